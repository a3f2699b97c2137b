"""The same commands night after night: what has changed is learned, and older versions stay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import headstart.cli.fit
from headstart import MetaRegressor, load_model
from headstart._core.places import as_place
from headstart.cli import app
from headstart.estimators.run import FitRun
from headstart.jobs import read_index
from headstart.jobs.notes import read_runs
from headstart.parquet import ParquetRows
from headstart.store import read_versions
from headstart.training import fit_rounds

RNG = np.random.default_rng(0)
WHO = np.repeat(np.arange(60), 6)
TRIPS = pd.DataFrame({"who": WHO, "km": RNG.uniform(1.0, 9.0, WHO.size)})
TRIPS["minutes"] = 4.0 + TRIPS["km"] * RNG.normal(5.0, 1.0, 60)[WHO] + RNG.normal(size=WHO.size)
COLUMNS = ("--group", "who", "--target", "minutes")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: object) -> str:
    """What a command prints that does what it is asked for."""
    found = run(*words)
    assert found.exit_code == 0, found.output
    return found.output


def refused(*words: object) -> str:
    """What a command says that is a user's mistake, on one line."""
    found = run(*words)
    assert found.exit_code == 2, found.output
    return " ".join(found.output.split())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two files, each with half of the couriers."""
    folder = tmp_path / "trips"
    folder.mkdir()
    for name, rows in (("a", slice(None, 180)), ("b", slice(180, None))):
        TRIPS[rows].to_parquet(folder / f"{name}.parquet")
    return folder


def change(data: Path, minutes: float) -> None:
    """Write the second file anew, later than before."""
    path = data / "b.parquet"
    before = path.stat().st_mtime_ns
    TRIPS[180:].assign(minutes=TRIPS["minutes"][180:] + minutes).to_parquet(path)
    os.utime(path, ns=(0, before + 10**9))


def test_nights_of_fit(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    night = ("fit", data, *COLUMNS, "--out", model, "--initial", model)
    assert "2 files of 360 rows, 60 tasks" in done(*night, "--versions", 3)
    first = load_model(model)
    assert f"nothing has changed since {first.run_.started}" in done(*night)  # type: ignore[union-attr]
    assert len(read_versions(model)) == 1

    change(data, 0.2)
    done(*night, "--versions", 3)
    second = load_model(model)
    assert second.prior_.n_iter < first.prior_.n_iter  # it went on from the first
    assert second.intercept_ > first.intercept_
    assert load_model(model, version=1).prior_.bias.tolist() == first.prior_.bias.tolist()
    shown = done("info", model)
    assert "2 versions: 0 20" in shown
    assert "fitted 20" in shown
    assert f"{first.intercept_:.4g}" in done("info", model, "--version", 1)
    assert "0 for the newest to 1" in refused("info", model, "--version", 2)

    done(*night, "--force")  # asked for, though nothing has changed; and all versions stay
    assert len(read_versions(model)) == 2
    done(*night, "--force", "--versions", 1)
    assert len(read_versions(model)) == 1


def test_a_fit_of_something_else_is_not_the_same(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    night = ("fit", data, *COLUMNS, "--out", model, "--initial", model)
    done(*night)
    assert "nothing has changed" in done(*night)
    said = refused(*night, "--metric", "diagonal")
    assert "initial: expected a prior of Squared(), metric 'diagonal'" in said
    change(data, 0.0)  # the same rows, written again
    assert "nothing has changed" not in done(*night)


def test_a_prior_of_so_many_tasks_or_all(data: Path, tmp_path: Path) -> None:
    for asked, n_tasks in ((20, 20), (0, 60)):
        model = tmp_path / str(asked)
        done("fit", data, *COLUMNS, "--out", model, "--max-tasks", asked)
        found = load_model(model).run_
        assert found is not None
        assert found.tasks == n_tasks
    table = ("fit", data / "a.parquet", *COLUMNS, "--out", tmp_path / "model")
    assert "--max-tasks: needs a folder" in refused(*table, "--max-tasks", 5)


def test_nights_of_predict(data: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "night"
    done("fit", data, *COLUMNS, "--out", model)
    night = ("predict", model, data, "--target", "minutes", "--out", out)
    done(*night, "--versions", 2)
    change(data, 10.0)
    done(*night, "--versions", 2)
    assert "2 versions: 0 20" in done("info", out)
    assert "run 1" in done("info", out, "--version", 1)
    change(data, 20.0)
    done(*night)  # as many as there are stay
    assert [index.run.number for index in read_runs(out)] == [3, 2]
    assert read_runs(tmp_path / "nothing") == []


def test_rows_that_lie_apart_are_said_to(data: Path, tmp_path: Path) -> None:
    """A file for each day, with trips of everybody in it."""
    model, out = tmp_path / "model", tmp_path / "night"
    done("fit", data, *COLUMNS, "--out", model)
    night = ("adapt", model, data, "--target", "minutes", "--out", out)
    done(*night)
    for day, some in (("a", TRIPS[::2]), ("b", TRIPS[1::2])):
        some.to_parquet(data / f"{day}.parquet")
    assert "lie apart" not in done("info", out)
    done(*night)
    assert "rows of a task lie apart" in done("info", out)


def test_predictions_of_an_older_model(data: Path, tmp_path: Path) -> None:
    model, file = tmp_path / "model", data / "a.parquet"
    for k, minutes in enumerate((0.0, 100.0)):
        MetaRegressor(group="who").fit(
            TRIPS[["who", "km"]], TRIPS["minutes"] + minutes
        ).save(model, keep=k + 1)  # fmt: skip
    asked = ("predict", model, file, "--out", tmp_path / "new.parquet")
    done(*asked)
    done(*asked[:-1], tmp_path / "old.parquet", "--version", 1)
    new, old = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("new", "old"))
    np.testing.assert_allclose(new["prediction"] - old["prediction"], 100.0, rtol=1e-6)


def test_results_are_not_written_among_the_data(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert "is inside the data" in refused("fit", data, *COLUMNS, "--out", data / "model")
    done("fit", data, *COLUMNS, "--out", model)
    for command in ("predict", "adapt"):
        asked = (command, model, data, "--target", "minutes", "--out", data / "night")
        assert "is inside the data" in refused(*asked)
    assert sorted(path.name for path in data.iterdir()) == ["a.parquet", "b.parquet"]


def test_a_strangers_folder_is_refused_before_anything_is_learned(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    monkeypatch.delattr(headstart.cli.fit, "learn_from")
    said = refused("fit", data, *COLUMNS, "--out", folder, "--force")
    assert "holds 'letter.txt' and no model" in said


def test_a_damaged_model_is_replaced(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    done("fit", data, *COLUMNS, "--out", model)
    (model / "model.json").write_text("{}")
    assert "is not of a headstart model" in refused("info", model)
    done("fit", data, *COLUMNS, "--out", model, "--force")
    assert load_model(model).n_tasks_ == 60


def test_a_model_of_a_dataset_says_that_it_knows_nobody(data: Path, tmp_path: Path) -> None:
    model, file = tmp_path / "model", data / "a.parquet"
    done("fit", data, *COLUMNS, "--out", model)
    asked = ("predict", model, file, "--out", tmp_path / "p.csv")
    assert "180 predictions, all from the start: the model knows no entity" in done(*asked)
    assert "--target: is not looked at in a table" in done(*asked, "--target", "minutes")
    assert "--versions: is for a dataset" in refused(*asked, "--versions", 2)
    done("fit", file, *COLUMNS, "--out", tmp_path / "other")
    assert "all from the start" not in done("predict", tmp_path / "other", *asked[2:])


def test_an_unfinished_job_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    assert "a job is not finished" in refused("info", tmp_path)


def test_rounds_of_data_that_changed_do_not_go_on(data: Path, tmp_path: Path) -> None:
    model = MetaRegressor(reg=0.5, step=0.1, fit_intercept=False)
    rows = ParquetRows(data, "who", "minutes")
    fit_rounds(model, rows, folder=tmp_path / "rounds")
    fit_rounds(model, rows, folder=tmp_path / "rounds")
    change(data, 10.0)
    again = ParquetRows(data, "who", "minutes")
    with pytest.raises(ValueError, match="belongs to another job"):
        fit_rounds(model, again, folder=tmp_path / "rounds")


RUN = FitRun("2026-01-01T00:00:00+00:00", 1.5, 300.0, 2, 360, 60, 12, "0f")


def test_a_run_is_saved_with_its_model_and_gone_after_another_fit(
    data: Path, tmp_path: Path
) -> None:
    model = MetaRegressor().fit(ParquetRows(data, "who", "minutes"))
    found = model.run_
    assert found is not None
    assert found[3:7] == (2, 360, 60, model.prior_.n_iter)
    assert found.seconds > 0.0
    assert found.peak_mb > 10.0
    model.save(tmp_path / "model")
    assert MetaRegressor.load(tmp_path / "model").run_ == found
    assert model.fit(TRIPS[["km"]], TRIPS["minutes"], groups=TRIPS["who"]).run_ is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": -1},
        {"rows": 2**60},
        {"seconds": float("nan")},
        {"seconds": "soon"},
        {"started": "x" * 1000},
        {"content": "\x1b[2J"},
        {"more": 1},
    ],
)
def test_a_forged_run_is_refused(wrong: dict[str, Any]) -> None:
    assert FitRun.checked(RUN._asdict()) == RUN
    with pytest.raises((ValueError, TypeError), match="run: "):
        FitRun.checked(RUN._asdict() | wrong)


def test_the_runs_of_a_folder(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "night"
    done("fit", data, *COLUMNS, "--out", tmp_path / "model")
    done("adapt", tmp_path / "model", data, "--target", "minutes", "--out", out)
    assert read_runs(out) == [read_index(out)]


def test_pages_pictures_and_tables_go_to_addresses(tmp_path: Path) -> None:
    file = tmp_path / "trips.csv"
    TRIPS.to_csv(file, index=False)
    page = tmp_path / "page.html"
    done("diagnose", file, *COLUMNS, "--shots", 2, "--out", page.as_uri())
    assert "</html>" in page.read_text()
    compare = ("compare", file, *COLUMNS, "--shots", 2, "--out")
    done(*compare, "memory://pages/curves.png")
    done(*compare, "memory://pages/curves.csv")
    assert as_place("memory://pages/curves.png").exists()
    assert b"headstart" in as_place("memory://pages/curves.csv").read_bytes()
    assert "expected an address with two slashes" in refused(*compare, "s3:/x/curves.csv")


def test_experiments_are_made_on_this_machine() -> None:
    said = refused("reproduce", "--quick", "--out", "s3://bucket/results")
    assert "--out: expected a folder of this machine, found the address s3://bucket/results" in said
