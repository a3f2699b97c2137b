"""Commands and jobs killed at random moments, and then run again.

The contract: the same call again ends as one that was never disturbed, with the same bits, and
nothing temporary is left. All is run in children of one process that has everything loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from typer.testing import CliRunner

from headstart import MetaRegressor, load_model
from headstart.cli import app
from headstart.jobs import adapt_all
from headstart.parquet import ParquetRows
from headstart.training import fit_rounds

PAPER: dict[str, Any] = {"reg": 0.5, "step": 0.1}
PATIENCE = 120.0  # seconds, after which a child that should end has failed
TEMPORARY = ("done", "clustered", "job.json", "spill")
Job = Callable[[Path, Path], int]  # of the folder with data and that for results; an exit code


def run(count: int, seed: int) -> list[str]:
    """Try so many kills; a line for each failure, with what is needed to repeat it."""
    code = "import sys; from attack.kills import main; main(int(sys.argv[1]), int(sys.argv[2]))"
    tests = str(Path(__file__).parent.parent)
    path = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH", "")]))
    found = subprocess.run(
        [sys.executable, "-c", code, str(count), str(seed)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        return [f"kills seed={seed}: ended with {found.returncode}: {found.stderr[-2000:]}"]
    lines: list[str] = json.loads(found.stdout.splitlines()[-1])
    return lines


def main(count: int, seed: int) -> None:
    """Print the failures as JSON."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        _write_data(data)
        names = list(JOBS)
        usual = {}
        for name in names[: max(1, min(count, len(names)))]:
            (Path(place) / "warm" / name / "results").mkdir(parents=True)
            JOBS[name](data, Path(place) / "warm" / name)  # so that all is loaded
            begin = time.perf_counter()
            code = _wait(_child(name, data, Path(place) / "usual" / name), PATIENCE)
            usual[name] = time.perf_counter() - begin, _outcome(Path(place) / "usual" / name)
            if code != 0:
                raise SystemExit(f"{name}: undisturbed, it ended with {code}")
        found = []
        for number in range(count):
            rng = np.random.default_rng([seed, number])
            name = list(usual)[number % len(usual)]
            out = Path(place) / "out"
            if fault := _attack(rng, name, data, out, *usual[name]):
                found.append(f"kills seed={seed} number={number} {name}: {fault}")
            shutil.rmtree(out, ignore_errors=True)
    print(json.dumps(found))


def _attack(
    rng: np.random.Generator, name: str, data: Path, out: Path, usual: float, expected: Any
) -> str | None:
    moments = []
    for _ in range(int(rng.integers(1, 3))):
        child = _child(name, data, out)
        moments.append(f"{rng.uniform(0.0, 1.05) * usual:.4f}")
        if _wait(child, float(moments[-1])) is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    code = _wait(again := _child(name, data, out), PATIENCE)
    about = f"killed after {', '.join(moments)} s of {usual:.4f}"
    if code is None:
        os.kill(again, signal.SIGKILL)
        os.waitpid(again, 0)
        return f"{about}, then it did not end"
    if code != 0:
        return f"{about}, then it ended with {code}: {(out / 'said').read_text()[-300:]}"
    found = _outcome(out)
    if found != expected:
        wrong = [k for k in {**found, **expected} if found.get(k) != expected.get(k)]
        return f"{about}, then other results: {sorted(wrong)[:5]}"
    return None


def _child(name: str, data: Path, out: Path) -> int:
    """The number of a process that runs the job and ends."""
    for folder in (out / "temporary", out / "results"):
        folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        tempfile.tempdir = str(out / "temporary")
        code = JOBS[name](data, out)
    except BaseException as error:
        (out / "said").write_text(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _wait(child: int, seconds: float) -> int | None:
    """The exit code of a child if it ends in time."""
    end = time.perf_counter() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.perf_counter() >= end:
            return None
        time.sleep(0.0005)


def _outcome(out: Path) -> dict[str, str]:
    """Digests of all results, and what is left that should not be."""
    found = {}
    for path in sorted((out / "results").rglob("*")):
        name = str(path.relative_to(out))
        if ".part" in path.name or path.name in TEMPORARY:
            found[name] = "left over"
        elif (path / "model.json").exists() and not path.name.startswith("arrays-"):
            model: Any = load_model(path)
            numbers = [model.bias_, model.intercept_, *map(model.weights_of, model.ids_)]
            found[name] = hashlib.sha256(
                repr([np.ravel(n).tolist() for n in numbers]).encode()
            ).hexdigest()
            found[name] += f", {len([*path.glob('arrays-*')])} folders of arrays"
        elif path.name == "index.json":  # all but how long it took
            page = {**json.loads(path.read_text()), "run": None}
            found[name] = hashlib.sha256(json.dumps(page).encode()).hexdigest()
        elif path.is_file() and path.suffix in RESULTS and path.name != "model.json":
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    left = [str(path.relative_to(out)) for path in (out / "temporary").iterdir()]
    return {**found, **dict.fromkeys(left, "left over")}


RESULTS = (".csv", ".parquet", ".json", ".png", ".svg", ".txt")


def _write_data(folder: Path) -> None:
    """Tables, a scattered dataset of several files, and a model."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(150), 8))
    X = rng.normal(size=(len(ids), 3))
    y = np.sum(X * rng.normal([3.0, -2.0, 1.0], 0.5, (150, 3))[ids], axis=1)
    y += 0.3 * rng.normal(size=len(ids))
    names = ["id", "a", "b", "c", "y"]
    table = pa.table([pa.array(column) for column in (ids, *X.T, y)], names=names)
    (folder / "rows").mkdir(parents=True)
    (folder / "sorted").mkdir()
    for k in range(3):
        parquet.write_table(table.slice(400 * k, 400), folder / "rows" / f"{k}.parquet")
    ordered = table.sort_by("id")
    parquet.write_table(ordered, folder / "sorted" / "0.parquet", row_group_size=100)
    csv.write_csv(table, folder / "rows.csv")
    MetaRegressor(group="id").fit(table.drop_columns(["y"]), y).save(folder / "model")


def _command(*arguments: Any) -> int:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    if done.exit_code == 2 and "exists; give another folder, or --force" in done.stderr:
        return 0  # it was finished when it was killed
    if done.exit_code:
        raise RuntimeError(f"{done.stderr} {done.exception!r}")
    return 0


def _fit(data: Path, out: Path) -> int:
    asked = ["--group", "id", "--target", "y", "--out", out / "results" / "model"]
    return _command("fit", data / "rows.csv", *asked)


def _fit_batches(data: Path, out: Path) -> int:
    asked = ["--group", "id", "--target", "y", "--out", out / "results" / "model"]
    return _command("fit", data / "rows", *asked, "--batch-rows", 100)


def _with_model(command: str, source: str, result: str, data: Path, out: Path) -> int:
    asked = ["--target", "y", "--out", out / "results" / result]
    return _command(command, data / "model", data / source, *asked)


def _partitions(data: Path, out: Path) -> int:
    """Many small partitions, of which some are finished when the job is killed."""
    rows = ParquetRows(data / "sorted", "id", "y")
    model = load_model(data / "model")
    adapt_all(model, rows, out / "results" / "all", predictions=True, partition_rows=60, n_jobs=2)
    return 0


def _rounds(data: Path, out: Path) -> int:
    rows = ParquetRows(data / "rows", "id", "y")
    kept = out / "rounds"
    model = fit_rounds(MetaRegressor(**PAPER), rows, batch_size=2, folder=kept, partition_rows=200)
    if [path.name for path in kept.rglob("*") if ".part" in path.name or path.name == "spill"]:
        raise RuntimeError("something temporary is left beside the rounds")
    (out / "results" / "bias.txt").write_text(repr([*model.bias_, model.intercept_]))
    return 0


def _paper(data: Path, out: Path) -> int:
    """Rows that are put together in a temporary folder."""
    model = MetaRegressor(**PAPER).fit(ParquetRows(data / "rows", "id", "y"))
    (out / "results" / "bias.txt").write_text(repr([*model.bias_, model.intercept_]))
    return 0


def _reproduce(_: Path, out: Path) -> int:
    asked = ["synthetic-regression", "--seeds", 2, "--tasks", 4, "--methods", "itl-sgd,ltl-sgd-sgd"]
    return _command("reproduce", *asked, "--out", out / "results" / "report", "--jobs", 2)


JOBS: dict[str, Job] = {
    "fit": _fit,
    "partitions": _partitions,
    "paper": _paper,
    "rounds": _rounds,
    "adapt": partial(_with_model, "adapt", "rows.csv", "weights.csv"),
    "predict": partial(_with_model, "predict", "rows.csv", "predictions.csv"),
    "adapt a dataset": partial(_with_model, "adapt", "rows", "weights"),
    "predict a dataset": partial(_with_model, "predict", "rows", "predictions"),
    "fit in batches": _fit_batches,
    "reproduce": _reproduce,
}
