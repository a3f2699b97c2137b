"""The command line on tables: in process, and the faults it names."""

from __future__ import annotations

import csv
import errno
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from browser import needs_browser, open_page
from datasets_on_disk import read as read_folder
from pyarrow import feather, parquet
from rich.progress import Progress
from typer.testing import CliRunner

from headstart import MetaClassifier, MetaRegressor, diagnose, load_model
from headstart._core.leftovers import held
from headstart.cli import app, tables
from headstart.cli.dataset import Source
from headstart.cli.tables import read_columns, read_table
from headstart.parquet import ParquetRows

ASKED = ["--group", "user", "--target", "y"]


def table(T: int = 30, n: int = 10) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    user = np.repeat([f"u{i}" for i in range(T)], n)
    X = rng.normal(size=(T * n, 2))
    own = np.repeat(rng.normal([4.0, -2.0], 0.5, (T, 2)), n, axis=0)
    y = 2.0 + np.sum(X * own, axis=1) + rng.normal(size=T * n)
    return pd.DataFrame({"age": X[:, 0], "user": user, "price": X[:, 1], "y": y})


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_feather(path)
    return path


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def run(*arguments: Any) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_fit_predict_info(suffix: str, tmp_path: Path) -> None:
    frame = table()
    data = write(frame, tmp_path / f"data{suffix}")
    code, said, _ = run("fit", data, *ASKED, "--out", tmp_path / "model")
    assert code == 0
    assert "MetaRegressor(group='user') <30 tasks>" in said
    inside = frame[["age", "price", "user"]]
    expected = MetaRegressor(group="user").fit(inside, frame["y"])
    model = load_model(tmp_path / "model")
    np.testing.assert_allclose(model.bias_, expected.bias_, rtol=1e-12)
    code, _, _ = run("predict", tmp_path / "model", data, "--out", tmp_path / "out.csv")
    assert code == 0
    found = read(tmp_path / "out.csv")
    assert list(found.columns) == ["user", "prediction"]
    np.testing.assert_allclose(found["prediction"], expected.predict(inside), rtol=1e-9)
    code, said, _ = run("info", tmp_path / "model")
    assert code == 0
    for name, value in expected.bias_by_feature().items():
        assert name in said
        assert f"{value:.4g}" in said


def test_text_targets_are_classes(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 2.0, "yes", "no")
    data = write(frame, tmp_path / "data.csv")
    assert run("fit", data, *ASKED, "--out", tmp_path / "model")[0] == 0
    assert isinstance(load_model(tmp_path / "model"), MetaClassifier)
    run("predict", tmp_path / "model", data, "--out", tmp_path / "out.parquet")
    assert set(read(tmp_path / "out.parquet")["prediction"]) == {"yes", "no"}
    frame["y"] = (frame["y"] == "yes").astype(int)
    numbers = write(frame, tmp_path / "numbers.csv")
    assert run("fit", numbers, *ASKED, "--classify", "--out", tmp_path / "two")[0] == 0
    assert load_model(tmp_path / "two").classes_.tolist() == [0, 1]  # type: ignore[union-attr]


def test_adapt_writes_the_weights_of_new_entities(tmp_path: Path) -> None:
    frame = table()
    old, new = frame[frame["user"] < "u25"], frame[frame["user"] >= "u25"]
    run("fit", write(old, tmp_path / "old.csv"), *ASKED, "--out", tmp_path / "model")
    data = write(new, tmp_path / "new.csv")
    code, said, _ = run(
        "adapt", tmp_path / "model", data, "--target", "y", "--out", tmp_path / "w.parquet"
    )
    assert code == 0
    found = read(tmp_path / "w.parquet").set_index("user")
    assert f"weights of {len(found)} entities" in said
    model = load_model(tmp_path / "model")
    for user, rows in new.groupby("user"):
        task = model.adapt(rows[["age", "price"]], rows["y"])
        row = found.loc[str(user)].to_dict()
        np.testing.assert_allclose([row["age"], row["price"]], task.coef_)
        assert row["intercept"] == pytest.approx(task.intercept_)


@pytest.mark.parametrize("classes", [False, True])
def test_adapt_takes_rows_in_any_order(classes: bool, tmp_path: Path) -> None:
    frame = table(T=12)
    frame["y"] = np.where(frame["y"] > 2.0, "yes", "no") if classes else frame["y"]
    run("fit", write(frame, tmp_path / "d.parquet"), *ASKED, "--out", tmp_path / "model")
    mixed = frame.sample(frac=1.0, random_state=1)
    asked = ["--target", "y", "--out", tmp_path / "w.parquet"]
    data = write(mixed.reset_index(drop=True), tmp_path / "mixed.parquet")
    assert run("adapt", tmp_path / "model", data, *asked)[0] == 0
    found = read(tmp_path / "w.parquet")
    assert list(found.columns) == ["user", "age", "price", "intercept"]
    assert found["user"].tolist() == mixed["user"].drop_duplicates().tolist()
    model = load_model(tmp_path / "model")
    for row in found.to_dict("records"):
        own = mixed[mixed["user"] == row["user"]]
        task: Any = model.adapt(own[["age", "price"]], own["y"])
        expected = [*np.ravel(task.coef_), *np.ravel(task.intercept_)]
        np.testing.assert_allclose([row["age"], row["price"], row["intercept"]], expected)
    strange = mixed.assign(y=[*mixed["y"].iloc[:7], "perhaps", *mixed["y"].iloc[8:]])
    data = write(strange.astype({"y": str}).reset_index(drop=True), tmp_path / "s.parquet")
    code, _, said = run("adapt", tmp_path / "model", data, *asked)
    assert code == 2
    if classes:
        assert "y: expected the classes ['no', 'yes'], found 'perhaps' in row 7" in said


def test_predict_without_ids_is_by_the_start(tmp_path: Path) -> None:
    frame = table()
    run("fit", write(frame, tmp_path / "d.csv"), *ASKED, "--out", tmp_path / "model")
    data = write(frame.drop(columns=["user", "y"]), tmp_path / "rows.csv")
    code, said, _ = run("predict", tmp_path / "model", data, "--out", tmp_path / "p.csv")
    assert code == 0
    assert f"300 predictions: {tmp_path / 'p.csv'}" in said
    found, model = read(tmp_path / "p.csv"), load_model(tmp_path / "model")
    assert list(found.columns) == ["prediction"]
    expected = frame[["age", "price"]] @ model.bias_ + model.intercept_
    np.testing.assert_allclose(found["prediction"], expected)


def test_info_shows_what_is_shared_and_what_differs(tmp_path: Path) -> None:
    frame = table()
    model = MetaRegressor().fit(frame[["age", "price"]], frame["y"], groups=frame["user"])
    model.save(tmp_path / "model")
    code, said, _ = run("info", tmp_path / "model")
    assert code == 0
    rows = [line.split("│")[1:-1] for line in said.splitlines() if line.startswith("│")]
    prior = model.prior_
    for name, shared, variance, worth, cells in zip(
        ["age", "price", "(intercept)"],
        [*model.bias_, model.intercept_],
        np.diag(prior.covariance),
        prior.worth,
        rows,
        strict=True,
    ):
        numbers = [f"{value:.4g}" for value in (shared, np.sqrt(variance), worth)]
        assert [cell.strip() for cell in cells] == [name, *numbers]
    assert "30 entities with own weights" in said
    assert "adapt writes" not in said
    given = MetaRegressor(reg=1.0, step=0.1, fit_intercept=False)
    given.fit(frame[["age", "price"]], frame["y"], groups=frame["user"]).save(tmp_path / "given")
    said = run("info", tmp_path / "given")[1]
    assert "shared effect" in said
    assert "differs by" not in said


def test_features_and_settings_are_those_asked_for(tmp_path: Path) -> None:
    data = write(table(), tmp_path / "d.csv")
    asked = [*ASKED, "--features", "price", "--loss", "huber", "--metric", "diagonal"]
    assert run("fit", data, *asked, "--out", tmp_path / "[b]model")[0] == 0
    model = load_model(tmp_path / "[b]model")
    assert model.feature_names_in_.tolist() == ["price"]
    assert (model.loss, model.metric) == ("huber", "diagonal")
    code, said, _ = run("fit", data, *asked, "--out", tmp_path / "[b]model", "--force")
    assert code == 0
    assert f"model: {tmp_path}/[b]model" in said  # brackets are no markup


def test_groups_of_one_row_are_counted(tmp_path: Path) -> None:
    frame = pd.concat([table(T=5, n=4), table(T=8, n=1).assign(user=[f"v{i}" for i in range(8)])])
    frame.loc[frame["user"] == "v7", "user"] = "v6"  # of two rows
    said = run("fit", write(frame, tmp_path / "d.csv"), *ASKED, "--out", tmp_path / "m")[1]
    assert "6 of 12 groups have one row: their weights say little" in said
    said = run("fit", write(table(), tmp_path / "e.csv"), *ASKED, "--out", tmp_path / "n")[1]
    assert "groups have one row" not in said


@pytest.mark.parametrize("more", [[], ["--batch-rows", "50"]])
def test_texts_and_booleans_are_classes_and_of_two_numbers_the_user_says(
    more: list[str], tmp_path: Path
) -> None:
    frame = table()
    high = frame["y"] > 2.0
    counts = np.digitize(frame["y"], [0.0, 4.0])

    def fit(name: str, y: Any, *asked: str) -> tuple[int, str, str]:
        data = write(frame.assign(y=y), tmp_path / f"{name}.parquet")
        return run("fit", data, *ASKED, *asked, *more, "--out", tmp_path / name)

    code, said, _ = fit("true", high)
    assert code == 0
    assert "y: two classes, False and True; --regress would be for amounts" in said
    assert isinstance(load_model(tmp_path / "true"), MetaClassifier)
    for y in (high.astype(int), high * 1.5 - 1.0):
        code, _, said = fit("ask", y)
        assert code == 2
        assert "--target: column 'y' has two values, " in said
        assert "add --classify if they are classes, or --regress if they are amounts" in said
    for asked, kind in (("--classify", MetaClassifier), ("--regress", MetaRegressor)):
        code, said, _ = fit(asked, high.astype(int), asked)
        assert code == 0
        assert "two classes" not in said
        assert isinstance(load_model(tmp_path / asked), kind)
    assert fit("three", counts)[0] == 0
    assert isinstance(load_model(tmp_path / "three"), MetaRegressor)
    texts = np.where(high, "yes", "no")
    faults: list[tuple[str, Any, list[str], str]] = [
        ("a", texts, ["--regress"], "--regress: column 'y': expected numbers"),
        ("b", counts, ["--classify"], "expected numbers or two classes, found more than two:"),
        ("c", counts.astype(str), [], "expected numbers or two classes, found more than two:"),
        ("d", 1.5 + 0.0 * frame["y"], [], "column 'y': the target has one value only, 1.5"),
        ("e", high * 1.5, ["--classify"], "--classify: column 'y': expected whole numbers, texts"),
    ]
    for name, labels, wish, message in faults:
        code, _, said = fit(name, labels, *wish)
        assert code == 2
        assert message in said


def test_diagnose_asks_of_two_numbers_too(tmp_path: Path) -> None:
    frame = table()
    high = (frame["y"] > 2.0).astype(int)
    data = write(frame.assign(y=high), tmp_path / "d.parquet")
    code, _, said = run("diagnose", data, *ASKED)
    assert code == 2
    assert "add --classify if they are classes" in said
    code, said, _ = run("diagnose", data, *ASKED, "--regress", "--shots", 4)
    assert code == 0
    found = diagnose(frame[["age", "price"]], high, frame["user"], shots=4, classify=False)
    assert str(found) in said


@pytest.mark.parametrize("more", [[], ["--batch-rows", "50"]])
def test_each_column_is_one_thing(more: list[str], tmp_path: Path) -> None:
    data = write(table(), tmp_path / "d.parquet")
    for asked, message in (
        (["--group", "user", "--target", "user"], "--target: 'user' is the group too; name an"),
        ([*ASKED, "--features", "age,y"], "--features: 'y' is the target; leave it out"),
        ([*ASKED, "--features", "user,age"], "--features: 'user' is the group; leave it out"),
        ([*ASKED, "--features", "age,age"], "--features: 'age' is named twice; name it once"),
        ([*ASKED, "--features", ","], "expected names with commas between them, found ','"),
    ):
        commands = [["fit", data, *asked, *more, "--out", tmp_path / "m"]]
        for command in [*commands, *([["diagnose", data, *asked]] if not more else [])]:
            code, _, said = run(*command)
            assert code == 2
            assert message in said
            assert len(said.splitlines()) == 1
    assert run("fit", data, *ASKED, "--out", tmp_path / "m")[0] == 0
    for name in ("adapt", "predict"):
        for target, message in (("user", "the group"), ("age", "a feature")):
            wish = [name, tmp_path / "m", data, "--target", target, "--out", tmp_path / "o.csv"]
            code, _, said = run(*wish, *more)
            assert code == 2
            assert f"--target: {target!r} is {message} of the model" in said


def test_what_stops_a_command_is_one_line_and_code_2(tmp_path: Path) -> None:
    data = write(table(), tmp_path / "d.csv")
    assert run("fit", data, *ASKED, "--out", tmp_path / "model")[0] == 0
    (tmp_path / "file").touch()
    for arguments, message in (
        (["predict", tmp_path / "model", data, "--out", tmp_path / "p.txt"], "p.txt: expected a"),
        (["predict", tmp_path / "model", data, "--out", tmp_path / "file" / "p.csv"], "file"),
        (["info", tmp_path / "nothing"], "is not a model"),
        (["fit", data, *ASKED, "--loss", "l7", "--out", tmp_path / "x"], "loss: expected one of"),
        (["fit", data, *ASKED, "--out", tmp_path / "file"], "file exists; give another folder"),
    ):
        code, _, said = run(*arguments)
        assert code == 2
        assert message in said
        assert len(said.splitlines()) == 1


def test_diagnose_prints_and_writes_a_page(tmp_path: Path) -> None:
    frame = table()
    data = write(frame, tmp_path / "data.parquet")
    code, said, _ = run("diagnose", data, *ASKED, "--out", tmp_path / "page.html", "--shots", 4)
    assert code == 0
    found = diagnose(frame[["age", "price"]], frame["y"], frame["user"], shots=4)
    assert str(found) in said
    page = (tmp_path / "page.html").read_text()
    assert f">{found.verdict}</h1>" in page
    assert page.count("<svg ") == 5 - 2 * (found.verdict == "pool instead")
    assert f"headstart fit {data} --group user --target y" in page
    for address in re.findall(r'(?:href|src)="([^"]*)"', page):
        assert address.startswith("#"), address  # all of it is in the page


def test_progress_ends_when_the_page_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device", "page.html")

    monkeypatch.setattr(Progress, "update", lambda _, __, completed, **___: seen.append(completed))
    data = write(table(), tmp_path / "data.parquet")
    options = ["diagnose", data, *ASKED, "--shots", 4, "--out", tmp_path / "page.html"]
    assert run(*options)[0] == 0
    total = seen[-1]
    assert seen == sorted(seen)
    command = sys.modules["headstart.cli.diagnose"]  # the name in headstart.cli is a function
    monkeypatch.setattr(command, "write_diagnosis", fails)
    seen.clear()
    code, _, said = run(*options)
    assert (code, "the disk is full" in said) == (2, True)
    assert seen[-1] < total


@needs_browser
def test_the_page_opens_in_a_browser(tmp_path: Path) -> None:
    data = write(table(), tmp_path / "data.parquet")
    assert run("diagnose", data, *ASKED, "--out", tmp_path / "diagnosis.html")[0] == 0
    document, picture = open_page(tmp_path / "diagnosis.html", tmp_path)
    assert 'id="verdict"' in document
    assert "headstart minus it" in document
    assert len(picture) > 20_000


def faulty(**changes: Any) -> pd.DataFrame:
    frame = table().astype(dict.fromkeys(changes, object))
    for name, (row, value) in changes.items():
        frame.loc[row, name] = value
    return frame.infer_objects()


FAULTS: list[tuple[str, pd.DataFrame, list[str], str]] = [
    ("d.csv", table(), ["--group", "usr", "--target", "y"], "there is no column 'usr'; it has"),
    ("d.csv", table(), ["--group", "user", "--target", "z"], "there is no column 'z'"),
    ("d.csv", table(), [*ASKED, "--features", "age,size"], "there is no column 'size'"),
    (
        "d.csv",
        faulty(age=(3, "old")),
        ASKED,
        "'age': expected numbers, found text, 'old' in row 3",
    ),
    ("d.csv", faulty(price=(7, None)), ASKED, "column 'price': a value is missing in row 7"),
    (
        "d.parquet",
        faulty(age=(9, np.inf)),
        ASKED,
        "'age': expected finite numbers, found inf",
    ),
    ("d.csv", faulty(y=(5, None)), ASKED, "column 'y': a value is missing in row 5"),
    ("d.csv", table().assign(y=1.5), ASKED, "column 'y': the target has one value only, 1.5"),
    ("d.csv", table()[["user", "y"]], ASKED, "expected a column beside 'user' and 'y'"),
    ("d.parquet", table().assign(age=pd.Timestamp("2024-01-01")), ASKED, "column 'age': expected"),
    (
        "d.parquet",
        table().assign(age="1.5"),
        ASKED,
        "column 'age': expected numbers, found text, '1.5' in row 0; with --categorical age each",
    ),
    (
        "d.parquet",
        table().assign(age=pd.Series([None] * 300, dtype="str")),
        ASKED,
        "column 'age': a value is missing in row 0",
    ),
    ("d.csv", table().assign(age=None), ASKED, "column 'age': a value is missing in row 0"),
    ("d.csv", table().iloc[:0], ASKED, "the table has no rows"),
    (
        "d.parquet",
        table().assign(y=pd.Timestamp("2024-01-01")),
        ASKED,
        "column 'y': expected numbers, texts or booleans to predict, found timestamp",
    ),
    ("d.csv", table().set_axis(["a", "user", "a", "y"], axis=1), ASKED, "'a': there are 2 of this"),
]


@pytest.mark.parametrize(("name", "frame", "asked", "message"), FAULTS)
def test_faults_are_one_line(
    name: str, frame: pd.DataFrame, asked: list[str], message: str, tmp_path: Path
) -> None:
    data = write(frame, tmp_path / name)
    code, _, said = run("fit", data, *asked, "--out", tmp_path / "model")
    assert code == 2
    assert message in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "model").exists()


def test_files_that_are_not_there_or_not_tables(tmp_path: Path) -> None:
    out = ["--out", tmp_path / "model"]
    assert "there is no such file" in run("fit", tmp_path / "no.csv", *ASKED, *out)[2]
    assert "there is no such file" in run("fit", tmp_path / "folder", *ASKED, *out)[2]
    (tmp_path / "a.txt").touch()
    assert "expected a file named *.parquet" in run("fit", tmp_path / "a.txt", *ASKED, *out)[2]
    broken = tmp_path / "broken.parquet"
    broken.write_text("not a table")
    assert "broken.parquet: cannot be read" in run("fit", broken, *ASKED, *out)[2]
    assert "is not a model" in run("info", broken)[2]
    data = write(table(), tmp_path / "d.csv")
    assert run("fit", data, *ASKED, *out)[0] == 0
    code, _, said = run("fit", data, *ASKED, *out)
    assert code == 2
    assert "exists; give another folder, or --force" in said
    assert run("fit", data, *ASKED, *out, "--force")[0] == 0
    lone = write(table().drop_duplicates("user"), tmp_path / "lone.csv")
    said = run("fit", lone, *ASKED, "--out", tmp_path / "lone")[1]
    assert "30 of 30 groups have one row" in said
    assert "shots: 0 tasks have more than 8 rows" in run("diagnose", lone, *ASKED)[2]


def test_datasets_are_read_in_batches(tmp_path: Path) -> None:
    frame = table().sort_values("user", kind="stable")
    folder = tmp_path / "data"
    folder.mkdir()
    for k in range(3):
        write(frame.iloc[k * 100 : (k + 1) * 100], folder / f"{k}.parquet")
    code, said, _ = run("fit", folder, *ASKED, "--out", tmp_path / "model", "--batch-rows", 37)
    assert code == 0
    whole = MetaRegressor().fit(frame[["age", "price"]], frame["y"], groups=frame["user"])
    model = load_model(tmp_path / "model")
    np.testing.assert_allclose(model.bias_, whole.bias_, rtol=1e-12)  # in another order of rows
    assert "0 entities with own weights" in said
    asked = [tmp_path / "model", folder, "--target", "y"]
    code, said, shown = run("adapt", *asked, "--out", tmp_path / "weights")
    assert code == 0
    assert "weights of 30 tasks" in said
    assert "rows/s" in shown  # of a single partition too, which is told once
    weights = read_folder(tmp_path / "weights" / "weights").set_index("user")
    user = frame["user"].iloc[0]
    np.testing.assert_allclose(weights.loc[user, ["age", "price"]], whole.weights_of(user))
    code, said, _ = run("predict", *asked, "--out", tmp_path / "found", "--keep", "age")
    assert code == 0
    found = read_folder(tmp_path / "found" / "predictions")
    expected = whole.predict(frame[["age", "price"]], groups=frame["user"])
    np.testing.assert_allclose(found["prediction"], expected)
    assert found.columns.tolist() == ["user", "age", "prediction"]
    said = run("predict", tmp_path / "model", folder, "--out", tmp_path / "x")[2]
    assert "--target: a dataset's tasks are adapted" in said
    code, said, _ = run("adapt", *asked, "--out", tmp_path / "weights")
    assert code == 0  # it is done
    assert "weights of 30 tasks" in said
    code, _, said = run("predict", *asked, "--out", tmp_path / "weights")
    assert code == 2
    assert "weights: holds the finished results of another job" in said
    (folder / "1.parquet").write_bytes((folder / "1.parquet").read_bytes()[:99])
    code, _, said = run("fit", folder, *ASKED, "--out", tmp_path / "other")
    assert code == 2
    assert "1.parquet" in said
    assert len(said.splitlines()) == 1


def test_what_is_a_dataset_and_how_it_is_read(tmp_path: Path) -> None:
    data = write(table(), tmp_path / "d.parquet")
    assert not Source(data, None, None).in_batches
    assert Source(tmp_path, None, None).in_batches
    assert Source(data, 37, None).in_batches
    assert Source(data, None, "tcp://there:1").in_batches
    rows = Source(data, 37, None).rows("user", "y", ["price"])
    assert (rows.batch_rows, rows.group, rows.features) == (37, "user", ("price",))
    assert Source(data, None, None).rows("user", "y", None).batch_rows > 300


def test_files_that_are_not_in_utf8(tmp_path: Path) -> None:
    frame = table()
    for name, changed in (
        ("cell", frame.assign(user="Zoë")),
        ("title", frame.rename(columns={"age": "âge"})),
    ):
        data = tmp_path / f"{name}.csv"
        for encoding in ("latin-1", "utf-16"):
            changed.to_csv(data, index=False, encoding=encoding)
            code, _, said = run("fit", data, *ASKED, "--out", tmp_path / "m")
            assert code == 2
            assert f"{name}.csv: cannot be read: it is not text in UTF-8; save it so, or as" in said
    frame.to_csv(tmp_path / "mark.csv", index=False, encoding="utf-8-sig")
    assert run("fit", tmp_path / "mark.csv", *ASKED, "--out", tmp_path / "m")[0] == 0


def test_an_arrow_file_that_says_more_rows_than_it_has(tmp_path: Path) -> None:
    """Reading does not look: without a check, numbers behind the column would be taken."""
    whole = pa.Table.from_pandas(table(), preserve_index=False)
    size = len(whole) * 8  # bytes of a column
    feather.write_feather(whole, str(tmp_path / "d.arrow"), compression="uncompressed")
    data = (tmp_path / "d.arrow").read_bytes()
    wrong = data.replace(size.to_bytes(8, "little"), (size - 80).to_bytes(8, "little"))
    assert wrong != data
    (tmp_path / "d.arrow").write_bytes(wrong)
    code, _, said = run("fit", tmp_path / "d.arrow", *ASKED, "--out", tmp_path / "m")
    assert code == 2
    assert "d.arrow: cannot be read: " in said


@pytest.mark.parametrize("more", [[], ["--batch-rows", "50"]])
def test_decimal_targets_are_numbers(more: list[str], tmp_path: Path) -> None:
    frame = table()
    exact = [Decimal(f"{value:.4f}") for value in frame["y"]]
    whole = pa.Table.from_pandas(frame, preserve_index=False).set_column(3, "y", pa.array(exact))
    parquet.write_table(whole, tmp_path / "d.parquet")
    assert run("fit", tmp_path / "d.parquet", *ASKED, *more, "--out", tmp_path / "m")[0] == 0
    expected = MetaRegressor(group="user")
    expected.fit(frame[["age", "price", "user"]], [float(value) for value in exact])
    found = load_model(tmp_path / "m")
    assert isinstance(found, MetaRegressor)
    np.testing.assert_allclose(found.bias_, expected.bias_, rtol=1e-9)


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    names = {"age": "[bold]age[/bold]", "price": ":smile: [/x]"}
    frame = table().rename(columns=names)
    data = write(frame, tmp_path / "d.parquet")
    code, said, _ = run("fit", data, *ASKED, "--out", tmp_path / "[red]m")
    assert code == 0
    assert all(name in said for name in [*names.values(), "[red]m"])
    code, _, said = run("fit", data, "--group", "[/b]", "--target", "y\n", "--out", tmp_path / "n")
    assert code == 2
    assert "there is no column '[/b]'; it has '[bold]age[/bold]', 'user', ':smile: [/x]'" in said
    assert len(said.splitlines()) == 1


def test_ten_thousand_columns(tmp_path: Path) -> None:
    """No name is compared with all others: that would be 10^8 comparisons."""
    rng, count = np.random.default_rng(0), 10_000
    compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    X = rng.normal(size=(30, count))
    names: list[str] = [Name(f"x{k}") for k in range(count)]
    columns = [*map(pa.array, X.T), pa.array(np.repeat(np.arange(10), 3)), pa.array(X[:, 0])]
    whole = pa.table(columns, names=[*names, "user", "y"])
    found = read_columns(whole, "user", "y", names)
    assert found.X.column_names == names
    parquet.write_table(whole, tmp_path / "d.parquet")
    assert ParquetRows(tmp_path / "d.parquet", "user", "y", names).n_features == count
    assert compared < 20 * count


TEXTS = {  # as they are, and as they are written
    "=1+1": "'=1+1",
    "+2+3": "'+2+3",
    "-x": "'-x",
    "@me": "'@me",
    "'=x": "''=x",
    "''@": "'" + "''@",
    "\ttab": "'\ttab",
    "-1.5e3": "-1.5e3",
    "it's": "it's",
    "'quoted'": "'quoted'",
}


def test_a_spreadsheet_runs_no_bytes(tmp_path: Path) -> None:
    ids: Any = pa.array([b"=1+1", b"@c", b"plain"], pa.binary())
    views: Any = pa.array(["=1+1", "@c", "plain"]).cast(pa.string_view())
    for number, column in enumerate((ids, views)):
        source = pa.table({"user": column, "x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 2.5]})
        parquet.write_table(source, tmp_path / f"{number}.parquet")
        data, model = tmp_path / f"{number}.parquet", tmp_path / f"m{number}"
        assert run("fit", data, *ASKED, "--out", model)[0] == 0
        out = tmp_path / f"{number}.csv"
        assert run("adapt", model, data, "--target", "y", "--out", out)[0] == 0
        with out.open(newline="") as file:
            assert [line[0] for line in csv.reader(file)] == ["user", "'=1+1", "'@c", "plain"]


def test_a_spreadsheet_runs_no_text(tmp_path: Path) -> None:
    frame = table(T=len(TEXTS), n=6)
    frame["user"] = np.repeat(list(TEXTS), 6)
    data = write(frame.rename(columns={"age": "=age"}), tmp_path / "d.parquet")
    assert run("fit", data, *ASKED, "--out", tmp_path / "m")[0] == 0
    asked = [tmp_path / "m", data, "--target", "y", "--out", tmp_path / "w.csv"]
    assert run("adapt", *asked)[0] == 0
    with (tmp_path / "w.csv").open(newline="") as file:
        title, *cells = csv.reader(file)
    assert title == ["user", "'=age", "price", "intercept"]
    assert [line[0] for line in cells] == list(TEXTS.values())
    assert all(float(line[2]) < 0.0 for line in cells)  # numbers stay numbers
    back = read_table(tmp_path / "w.csv", "user")
    assert back["user"].to_pylist() == list(TEXTS)
    assert back.column_names == ["user", "=age", "price", "intercept"]
    (tmp_path / "both.csv").write_text("user,x,y\n=a,1,2\n'=a,2,3\n")
    code, _, said = run("fit", tmp_path / "both.csv", *ASKED, "--out", tmp_path / "n")
    assert code == 2
    assert "both.csv: cannot be read: two texts differ by an apostrophe" in said


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_full_disk_is_said_and_leaves_nothing(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(table(), tmp_path / "d.csv")
    assert run("fit", data, *ASKED, "--out", tmp_path / "m")[0] == 0

    def full(_: object, path: str) -> None:
        Path(path).write_text("half")
        raise OSError(errno.ENOSPC, "Error writing bytes to file")  # as Arrow says it, no file

    monkeypatch.setitem(tables.WRITERS, suffix, full)
    out = tmp_path / "out" / f"p{suffix}"
    code, _, said = run("predict", tmp_path / "m", data, "--out", out)
    assert code == 2
    assert said == f"{out}: the disk is full; nothing half written stays, make room and try again\n"
    assert not list(out.parent.iterdir())


def test_what_a_killed_command_left_is_cleared_and_what_runs_is_not(tmp_path: Path) -> None:
    data = write(table(), tmp_path / "d.csv")
    assert run("fit", data, *ASKED, "--out", tmp_path / "m")[0] == 0
    killed = tmp_path / ".p.csv.0123abcd.part.csv"
    killed.write_text("half")
    other = tmp_path / ".q.csv.0123abcd.part.csv"
    other.write_text("of another file")
    running = tmp_path / ".p.csv.89abcdef.part.csv"
    with held(running):
        assert run("predict", tmp_path / "m", data, "--out", tmp_path / "p.csv")[0] == 0
        assert running.exists()
    assert not killed.exists()
    assert other.exists()


def test_a_fault_of_ours_is_no_mistake_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(table(), tmp_path / "d.csv")
    monkeypatch.setattr("headstart.cli.fit.group_sizes", lambda *_: len(3))  # type: ignore[arg-type]
    done = CliRunner().invoke(
        app, ["fit", str(data), *ASKED, "--out", str(tmp_path / "m"), "--force"]
    )
    assert done.exit_code == 1
    assert isinstance(done.exception, TypeError)


def test_a_fit_that_was_killed_while_it_saved_does_not_block_its_folder(tmp_path: Path) -> None:
    data = write(table(), tmp_path / "d.csv")
    (tmp_path / "m" / "arrays-0123456789ab").mkdir(parents=True)
    (tmp_path / "m" / "arrays-0123456789ab" / "bias.npy").write_text("half")
    assert run("fit", data, *ASKED, "--out", tmp_path / "m")[0] == 0
    assert load_model(tmp_path / "m").n_tasks_ == 30


def test_for_real(tmp_path: Path) -> None:
    write(table(), tmp_path / "d.csv")
    command = [str(Path(sys.executable).parent / "headstart"), "fit", "d.csv", *ASKED, "--out", "m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert load_model(tmp_path / "m").n_tasks_ == 30
