"""What the command line makes of columns: categories, descriptions, a base, intervals, curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from headstart import MetaClassifier, MetaRegressor, load_model
from headstart.cli import app

RNG = np.random.default_rng(0)
T, N = 40, 7
WHO = np.repeat(np.arange(T), N)
TRIPS = pd.DataFrame(
    {
        "who": WHO,
        "vehicle": RNG.choice(["bike", "car", "on=foot"], T * N),
        "km": RNG.uniform(1.0, 9.0, T * N),
        "age": RNG.integers(18, 60, T)[WHO],
    }
)
TRIPS["minutes"] = (
    TRIPS["km"] * RNG.normal(5.0, 1.0, T)[WHO]
    - 8.0 * (TRIPS["vehicle"] == "car")
    + 0.5 * TRIPS["age"]
    + RNG.normal(0.0, 1.0, T * N)
)
TRIPS["late"] = np.where(TRIPS["minutes"] > TRIPS["minutes"].median(), "yes", "no")
SPLIT = pd.DataFrame(
    {
        "km": TRIPS["km"],
        **{f"vehicle={v}": (TRIPS["vehicle"] == v) * 1.0 for v in ("bike", "car", "on=foot")},
    }
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    TRIPS.to_csv(tmp_path / "trips.csv", index=False)
    return tmp_path / "trips.csv"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def fitted(data: Path, target: str, *more: str) -> Path:
    out = data.parent / "model"
    done = run("fit", data, "--group", "who", "--target", target, "--out", out, *more)
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--categorical", "vehicle,vehicle"], "--categorical: column 'vehicle' is named twice"),
        (["--categorical", "vehicle", "--side", "age,age"], "--side: column 'age' is named twice"),
    ],
)
def test_columns_named_twice(more: list[str], message: str, data: Path, tmp_path: Path) -> None:
    asked = ["--group", "who", "--target", "minutes", "--out", tmp_path / "model", *more]
    done = run("fit", data, "--features", "km,vehicle", *asked)
    assert done.exit_code == 2
    assert message in done.stderr


def test_no_result_is_written_over_the_data(data: Path) -> None:
    before = data.read_bytes()
    asked = ["--group", "who", "--target", "minutes", "--categorical", "vehicle"]
    model = fitted(data, "minutes", "--categorical", "vehicle", "--features", "km,vehicle")
    there = data.parent / "." / data.name
    for words in (
        ["predict", model, data],
        ["adapt", model, data, "--target", "minutes"],
        ["diagnose", data, *asked],
        ["compare", data, *asked],
    ):
        done = run(*words, "--out", there)
        assert done.exit_code == 2
        assert "--out: " in done.stderr
        assert "is the data itself; name another file" in done.stderr
    assert data.read_bytes() == before
    done = run("predict", model, data, "--keep", "km", "--out", data.parent / "p.csv")
    assert done.exit_code == 2
    assert "--keep: is for a dataset" in done.stderr


def regressor(folder: Path, *, trusted: bool = False) -> MetaRegressor:
    return MetaRegressor.load(folder, trusted=trusted)


def test_each_value_of_a_text_becomes_a_column(data: Path) -> None:
    words = "--features", "km,vehicle", "--categorical", "vehicle"
    model = regressor(fitted(data, "minutes", *words))
    assert list(model.feature_names_in_) == list(SPLIT)
    expected = MetaRegressor(group="who").fit(SPLIT.assign(who=WHO), TRIPS["minutes"])
    np.testing.assert_allclose(model.bias_, expected.bias_)
    out = data.parent / "p.csv"
    assert run("predict", data.parent / "model", data, "--out", out).exit_code == 0
    np.testing.assert_allclose(
        pd.read_csv(out)["prediction"], expected.predict(SPLIT.assign(who=WHO))
    )


@pytest.mark.filterwarnings("default")
def test_a_new_value_is_told_and_says_nothing(data: Path) -> None:
    model = fitted(data, "minutes", "--features", "km,vehicle", "--categorical", "vehicle")
    strange = data.parent / "strange.csv"
    TRIPS.assign(vehicle="rocket").to_csv(strange, index=False)
    out = data.parent / "p.csv"
    done = run("predict", model, strange, "--out", out)
    assert done.exit_code == 0
    assert "'rocket' is not among the values" in done.output
    rows = (SPLIT * [1.0, 0.0, 0.0, 0.0]).assign(who=WHO)
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], regressor(model).predict(rows))
    TRIPS.drop(columns="vehicle").to_csv(strange, index=False)
    done = run("predict", model, strange, "--out", out)
    assert done.exit_code == 2
    assert done.output.startswith("there is no column 'vehicle'; it has 'who', ")


def test_descriptions_of_entities(data: Path) -> None:
    model = fitted(data, "minutes", "--features", "km", "--side", "age")
    loaded = regressor(model)
    expected = MetaRegressor(group="who", side=["age"]).fit(
        TRIPS[["who", "km", "age"]], TRIPS["minutes"]
    )
    np.testing.assert_allclose(loaded.bias_, expected.bias_)
    assert "per age" in run("info", model).output
    new = data.parent / "new.csv"
    pd.DataFrame({"km": [5.0, 5.0], "age": [20.0, 60.0]}).to_csv(new, index=False)
    assert run("predict", model, new, "--out", data.parent / "p.csv").exit_code == 0
    young, old = pd.read_csv(data.parent / "p.csv")["prediction"]
    assert old - young == pytest.approx(20.0, abs=6.0)
    out = data.parent / "w.csv"
    assert run("adapt", model, data, "--target", "minutes", "--out", out).exit_code == 0
    task = TRIPS[TRIPS["who"] == 3]
    own = expected.adapt(task[["km", "age"]], task["minutes"])
    found = pd.read_csv(out).iloc[3]
    np.testing.assert_allclose([found["km"], found["intercept"]], [*own.coef_, own.intercept_])


def test_a_description_that_changes_is_refused(data: Path) -> None:
    model = fitted(data, "minutes", "--features", "km", "--side", "age")
    TRIPS.assign(age=np.arange(T * N)).to_csv(data, index=False)
    done = run("adapt", model, data, "--target", "minutes", "--out", data.parent / "w.csv")
    assert done.exit_code == 2
    assert "'age'" in done.output


def test_intervals_and_probabilities(data: Path) -> None:
    model = fitted(data, "minutes", "--features", "km")
    out = data.parent / "p.csv"
    assert run("predict", model, data, "--interval", "0.8", "--out", out).exit_code == 0
    found = pd.read_csv(out)
    ends = regressor(model).predict_interval(TRIPS[["who", "km"]], coverage=0.8)
    np.testing.assert_allclose(found[["low", "high"]], ends)
    done = run("predict", model, data, "--interval", "1.5", "--out", out)
    assert (done.exit_code, done.output.split(",")[0]) == (
        2,
        "--interval: expected a finite number > 0 and < 1",
    )
    classes = data.parent / "classes"
    words = "--group", "who", "--target", "late", "--features", "km", "--out", classes
    assert run("fit", data, *words).exit_code == 0
    assert run("predict", classes, data, "--out", out).exit_code == 0
    shares = load_model(classes)
    assert isinstance(shares, MetaClassifier)
    np.testing.assert_allclose(
        pd.read_csv(out)[["probability of no", "probability of yes"]],
        shares.predict_proba(TRIPS[["who", "km"]]),
    )
    done = run("predict", classes, data, "--interval", "0.8", "--out", out)
    assert done.exit_code == 2
    assert "--interval" in done.output


def test_a_base_is_named_and_trusted(data: Path) -> None:
    model = fitted(data, "minutes", "--features", "km,age", "--base", "random-forest")
    out = data.parent / "p.csv"
    done = run("predict", model, data, "--out", out)
    assert done.exit_code == 2
    assert "--trust" in done.output
    assert run("predict", model, data, "--out", out, "--trust").exit_code == 0
    expected = regressor(model, trusted=True).predict(TRIPS[["who", "km", "age"]])
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected)
    assert "(base)" in run("info", model, "--trust").output
    weights = data.parent / "w.csv"
    words = "adapt", model, data, "--target", "minutes", "--out", weights, "--trust"
    assert run(*words).exit_code == 0
    assert list(pd.read_csv(weights)) == ["who", "km", "age", "(base)", "intercept"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--categorical", "late"], "--categorical: column 'late'"),
        (["--categorical", "who"], "--categorical: column 'who'"),
        (["--features", "km", "--categorical", "vehicle"], "not among --features"),
        (["--features", "km,age", "--side", "age"], "among --features too"),
        (["--features", "km", "--side", "vehicle", "--categorical", "vehicle"], "--side"),
        (["--features", "km", "--base", "oracle"], "--base: expected one of"),
        (["--features", "km,vehicle"], "--categorical vehicle"),
        (["--features", "km,age", "--side", "age", "--batch-rows", "10"], "among --features too"),
    ],
)
def test_wrong_roles_are_told(data: Path, words: list[str], says: str) -> None:
    out = data.parent / "model"
    done = run("fit", data, "--group", "who", "--target", "late", "--out", out, *words)
    assert done.exit_code == 2
    assert says in done.output
    assert not out.exists()


def test_a_column_of_ids_is_no_category(data: Path) -> None:
    TRIPS.assign(number=[f"n{i}" for i in range(T * N)]).to_csv(data, index=False)
    words = "--group", "who", "--target", "minutes", "--features", "number", "--out", "m"
    done = run("fit", data, *words, "--categorical", "number")
    assert done.exit_code == 2
    assert "280 values" in done.output


def test_compare_prints_and_writes_curves(data: Path) -> None:
    words = "compare", data, "--group", "who", "--target", "minutes", "--features", "km,age"
    picture, table = data.parent / "c.svg", data.parent / "c.csv"
    assert run(*words, "--shots", "3", "--out", picture).exit_code == 0
    assert "each task alone" in picture.read_text()
    done = run(*words, "--shots", "3", "--out", table)
    assert "pooled, own" in done.output
    found = pd.read_csv(table)
    assert sorted(set(found["rows"])) == [0, 1, 2, 3]
    last = found[found["rows"] == 3].set_index("way")["error"].to_dict()
    assert last["headstart"] < 0.8 * last["all tasks pooled"]
    assert run(*words, "--out", data.parent / "c.txt").exit_code == 2


def test_compare_takes_a_base(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import Ridge

    from headstart.cli import bases

    monkeypatch.setitem(bases.BASES, "ridge", (lambda **_: Ridge(), None))
    words = "compare", data, "--group", "who", "--target", "minutes", "--features", "km,age"
    out = data.parent / "c.csv"
    assert run(*words, "--shots", "3", "--base", "ridge", "--out", out).exit_code == 0
    found = pd.read_csv(out)
    ways = found[found["rows"] == 3].set_index("way")["error"].to_dict()
    assert ways["headstart on ridge"] < ways["ridge"]


def test_diagnose_takes_a_base(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    from headstart.cli import bases

    def squares(**_: object) -> object:
        return make_pipeline(PolynomialFeatures(2), Ridge())

    monkeypatch.setitem(bases.BASES, "squares", (squares, None))
    bent = TRIPS.assign(minutes=TRIPS["minutes"] + 2.0 * TRIPS["km"] ** 2)
    bent.to_csv(data, index=False)
    words = "diagnose", data, "--group", "who", "--target", "minutes", "--features", "km,age"
    page = data.parent / "page.html"
    done = run(*words, "--shots", "3", "--base", "squares", "--out", page)
    assert done.exit_code == 0
    assert "headstart on squares is off by" in done.output
    assert "surely better than headstart" in done.output
    text = page.read_text()
    assert "--base squares --out model" in text
    assert "--trust" in text
    assert "--base squares" not in _page_without_base(words, page)
    assert run(*words, "--base", "oracle").exit_code == 2


def _page_without_base(words: tuple[object, ...], page: Path) -> str:
    assert run(*words, "--shots", "3", "--out", page).exit_code == 0
    return page.read_text()


def test_an_option_that_is_given_often_adds_up(data: Path) -> None:
    """The last one alone would count, and the others be forgotten without a word."""
    once = fitted(data, "minutes", "--features", "km,vehicle,age", "--categorical", "vehicle,age")
    names = regressor(once).feature_names_in_.tolist()
    options = ("--features", "km,vehicle", "--features", "age", "--categorical", "vehicle")
    often = fitted(data, "minutes", *options, "--categorical", "age", "--force")
    assert regressor(often).feature_names_in_.tolist() == names
    assert {name.partition("=")[0] for name in names} == {"km", "vehicle", "age"}


def test_fit_goes_on_from_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    folder.mkdir()
    TRIPS[["who", "km", "age", "minutes"]].to_parquet(folder / "a.parquet")
    asked = ("fit", folder, "--group", "who", "--target", "minutes", "--out", tmp_path / "model")
    assert run(*asked).exit_code == 0
    before = regressor(tmp_path / "model").prior_
    done = run(*asked, "--force", "--initial", tmp_path / "model")
    assert done.exit_code == 0, done.output
    now = regressor(tmp_path / "model").prior_
    assert now.n_iter < before.n_iter
    np.testing.assert_allclose(now.bias, before.bias, rtol=1e-2)
    other = run(*asked, "--force", "--features", "km", "--initial", tmp_path / "model")
    assert other.exit_code == 2
    assert "--initial: expected a model of the columns ['km'], found" in " ".join(
        other.output.split()
    )
    table = run("fit", folder / "a.parquet", *asked[2:], "--force", "--initial", tmp_path / "model")
    assert table.exit_code == 2
    assert "--initial: needs a folder, --batch-rows or --scheduler" in table.output
