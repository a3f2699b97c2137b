"""Bad data files, given to every command and to the library.

The contract: a right answer, which is the one that the same table gives in memory, or a clear
error: exit code 2 with a line that names the file, column or option. Never a traceback, another
exception, NaN or infinity.
"""

from __future__ import annotations

import shutil
import traceback
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from typer.testing import CliRunner

from attack.bad_files import Case, Rng, draw_case, read_plainly, write_case
from headstart import MetaClassifier, MetaRegressor, TaskSet, learn_prior, load_model
from headstart.cli import app
from headstart.cli.console import raised_here
from headstart.cli.tables import read_table
from headstart.jobs import adapt_all
from headstart.parquet import ParquetRows
from headstart.training import fit_rounds

LEARNED = 1e-3  # a prior is learned until its likelihood has settled, which may be flat
PAPER: dict[str, Any] = {"reg": 0.5, "step": 0.1}
Model = MetaRegressor | MetaClassifier


def run(count: int, seed: int) -> list[str]:
    """Try so many files; a line for each failure, with what is needed to repeat it."""
    found = []
    with TemporaryDirectory() as place, warnings.catch_warnings(action="ignore"):
        for number in range(count):
            folder = Path(place) / "attack"
            folder.mkdir()
            if fault := attack(seed, number, folder):
                found.append(fault.replace("\n", "\\n"))
            shutil.rmtree(folder)
    return found


def attack(seed: int, number: int, folder: Path) -> str | None:
    """One attack; a line if it succeeded."""
    rng = np.random.default_rng([seed, number])
    case = draw_case(rng)
    way = WAYS[int(rng.integers(len(WAYS)))]
    try:
        fault = way(rng, case, folder)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} at {frame.filename}:{frame.lineno}"
    about = f"{case.suffix} {case.damage} {case.group!r} {case.target!r} {case.features}"
    return f"files.attack({seed}, {number}) {way.__name__[1:]} {about}: {fault}" if fault else None


def _command(*arguments: Any) -> tuple[int, str | None]:
    """The exit code of a command, and what is wrong with how it ended."""
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    if done.exit_code == 0:
        return 0, None
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        frame = traceback.extract_tb(done.exception.__traceback__)[-1]
        what = f"{type(done.exception).__name__}: {done.exception}"
        return done.exit_code, f"{what} at {frame.filename}:{frame.lineno}"
    lines = [s for s in done.stderr.splitlines() if not s.startswith("warning: ")]
    said = lines[-1] if lines else ""
    named = any(sign in said for sign in ("data.", "column", "--", "the table", "model"))
    if done.exit_code != 2 or not named or "Traceback" in done.stderr or len(said) > 1500:
        return done.exit_code, f"exit code {done.exit_code}, said {said!r}"
    return 2, None


def _number(value: Any) -> float:
    return float(value)


def _floats(table: pa.Table, names: list[str]) -> Any:
    """The columns in float64, or in float32 if all are: what a model keeps of them."""
    columns = [[_number(v) for v in table[name].to_pylist()] for name in names]
    small = bool(names) and all(table.schema.field(name).type == pa.float32() for name in names)
    return np.array(columns).T.reshape(len(table), len(names)).astype("f4" if small else "f8")


def _in_memory(table: pa.Table, case: Case, model: Model) -> Model:
    """The model fitted to a table, without any file."""
    used = [name for name in table.column_names if name not in (case.group, case.target)]
    names = [name for name in used if not name.startswith("__index_level_")]
    labels = table[case.target].to_pylist()
    y = labels if isinstance(model, MetaClassifier) else [_number(v) for v in labels]
    model.set_params(group=None)
    return model.fit(_floats(table, names), np.array(y), groups=table[case.group])


def _differ(found: Any, expected: Any, what: str, within: float = 1e-9) -> str | None:
    """What is wrong with numbers, if they are not finite or not those expected."""
    one, other = np.asarray(found, float), np.asarray(expected, float)
    if not np.isfinite(one).all():
        return f"{what}: {one}"
    scale = max(float(np.max(np.abs(other), initial=0.0)), 1e-300)
    if one.shape != other.shape or np.max(np.abs(one - other), initial=0.0) > within * scale:
        return f"{what}: {one}, in memory {other}"
    return None


def _known(model: Model) -> Any:
    return [*model.bias_, model.intercept_]


def _fit(rng: Rng, case: Case, folder: Path) -> str | None:
    path = write_case(rng, case, folder)
    options = [["--classify"], ["--regress"], []][int(rng.integers(3))]
    if path.suffix in (".parquet", ".pq") and rng.random() < 0.5:
        options += ["--batch-rows", str(rng.integers(1, 20))]
    columns = [f"--group={case.group}", f"--target={case.target}"]
    code, fault = _command("fit", path, *columns, *options, "--out", folder / "model")
    if code:
        return fault
    model = load_model(folder / "model")
    kind = type(model)
    table = read_table(path, case.group) if path.suffix == ".csv" else read_plainly(path)
    return _differ(_known(model), _known(_in_memory(table, case, kind())), "fit", LEARNED)


def _clean(rng: Rng, case: Case, folder: Path) -> Model:
    """A model of these columns, fitted to other rows and saved."""
    X = rng.normal(size=(40, len(case.features)))
    y = X.sum(axis=1) + rng.normal(size=40)
    ids: Any = pa.array(np.repeat(np.arange(8), 5))
    if case.group in case.table.column_names and rng.random() < 0.8:
        known: Any = case.table.column(case.table.column_names.index(case.group)).combine_chunks()
        if len(known) and not pa.types.is_nested(known.type):
            ids = known.take(pa.array(rng.integers(0, len(known), 40)))
    table = pa.table([*X.T, ids], names=[*case.features, case.group])
    model = MetaRegressor(group=case.group).fit(table, y)
    model.save(folder / "model")
    return model


def _predict(rng: Rng, case: Case, folder: Path) -> str | None:
    model = _clean(rng, case, folder)
    path, out = write_case(rng, case, folder), folder / f"out{rng.choice(['.csv', '.parquet'])}"
    code, fault = _command("predict", folder / "model", path, "--out", out)
    if code:
        return fault
    table = read_table(path, case.group)
    X = _floats(table, case.features)
    columns = [*X.T, *([table[case.group]] if case.group in table.column_names else [])]
    names = [*case.features, case.group][: len(columns)]
    expected = model.predict(pa.table(columns, names=names))
    return _differ(read_plainly(out)["prediction"].to_pylist(), expected, "predict")


def _adapt(rng: Rng, case: Case, folder: Path) -> str | None:
    model = _clean(rng, case, folder)
    path, out = write_case(rng, case, folder), folder / f"out{rng.choice(['.csv', '.parquet'])}"
    asked = [folder / "model", path, f"--target={case.target}", "--out"]
    code, fault = _command("adapt", *asked, out)
    if code:
        return fault
    table, weights = read_table(path, case.group), read_table(out, case.group)
    keys = table[case.group].to_pylist()
    mine = np.array([k == keys[0] for k in keys])
    X, y = _floats(table, case.features), _floats(table, [case.target])[:, 0]
    task = model.adapt(pa.table([*X[mine].T], names=case.features), y[mine])
    found = [weights[name][0].as_py() for name in [*case.features, "intercept"]]
    return _differ(found, [*np.ravel(task.coef_), *np.ravel(task.intercept_)], "adapt")


def _diagnose(rng: Rng, case: Case, folder: Path) -> str | None:
    path = write_case(rng, case, folder)
    options = [["--classify"], ["--regress"], []][int(rng.integers(3))]
    columns = [f"--group={case.group}", f"--target={case.target}", "--shots", "2"]
    return _command("diagnose", path, *columns, *options)[1]


def _info(rng: Rng, case: Case, folder: Path) -> str | None:
    path = write_case(rng, case, folder)
    code, fault = _command("info", path)
    return fault if code else "a data file was taken for a model"


def _library(rng: Rng, case: Case, folder: Path) -> str | None:
    """`ParquetRows` and what takes them, against the same table in memory."""
    data = folder / "data"
    data.mkdir()
    path = write_case(rng, case._replace(suffix=".parquet"), data)
    use = USES[int(rng.integers(len(USES)))]
    try:
        rows = ParquetRows(data, case.group, case.target, batch_rows=int(rng.integers(1, 20)))
        found = use(rows, folder)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        if raised_here(error) or isinstance(error, OSError):
            return None
        raise
    table = parquet.read_table(path)
    if use is _prior:
        X, y = _floats(table, list(rows.features or ())), _floats(table, [case.target])[:, 0]
        tasks = TaskSet.from_arrays(X, y, table[case.group].to_pylist())
        return _differ(found, learn_prior(tasks).bias, "learn_prior", LEARNED)
    if use in (_rounds, _all):  # which are other than in memory, and must be numbers
        return _differ(found, found, use.__name__[1:])
    expected = _in_memory(table, case, MetaRegressor(**(PAPER if use is _paper else {})))
    return _differ(found, _known(expected), "fit", 1e-9 if use is _paper else LEARNED)


def _auto(rows: ParquetRows, _: Path) -> Any:
    return _known(MetaRegressor().fit(rows))


def _paper(rows: ParquetRows, _: Path) -> Any:
    return _known(MetaRegressor(**PAPER).fit(rows))


def _prior(rows: ParquetRows, _: Path) -> Any:
    return learn_prior(rows).bias


def _rounds(rows: ParquetRows, folder: Path) -> Any:
    return _known(fit_rounds(MetaRegressor(**PAPER), rows, folder=folder / "rounds"))


def _all(rows: ParquetRows, folder: Path) -> Any:
    model = MetaRegressor(**PAPER).fit(rows)
    adapt_all(model, rows, folder / "all", predictions=True, partition_rows=5)
    weights = parquet.read_table(folder / "all" / "weights")
    return _floats(weights, [name for name in weights.column_names if name != rows.group])


WAYS = [_fit, _fit, _fit, _predict, _adapt, _diagnose, _info, _library, _library]
USES = [_auto, _paper, _prior, _rounds, _all]
