"""``headstart warm``: after it, nothing that users do compiles."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numba.core.dispatcher import Dispatcher
from typer.testing import CliRunner

from headstart import (
    MetaClassifier,
    MetaRegressor,
    TaskSet,
    diagnose,
    evaluate_bias,
    few_shot_curve,
    learn_bias,
    learn_prior,
    select_online,
)
from headstart.cli import app, warm
from headstart.cli.warm import JOBS, Rows
from headstart.jobs import adapt_all
from headstart.parquet import ParquetRows


def compiled() -> dict[str, int]:
    """How many versions of each kernel there are in this process."""
    kernels = {
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}": len(kernel.signatures)
        for module in [m for name, m in sys.modules.items() if name.startswith("headstart.")]
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher)
    }
    assert len(kernels) > 50
    return kernels


def use_everything(folder: Path) -> None:
    """What users do, on tables of another size than the one that was compiled with."""
    rng, T, n = np.random.default_rng(1), 40, 9
    ids = np.repeat(np.arange(T), n)
    table = pd.DataFrame(rng.standard_normal((T * n, 4)), columns=list("abcd")).assign(id=ids)
    y = table["a"] + rng.standard_normal(T)[ids] + 0.1 * rng.standard_normal(T * n)
    model = MetaRegressor(group="id").fit(table, y)
    model.predict_interval(table)
    model.adapt(table[:3], y[:3]).predict(table, return_std=True)
    model.partial_fit(table, y).finish()
    model.learn_one({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, 2.0, 3)
    model.predict_one({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, 3)
    MetaClassifier(group="id").fit(table, y > 0.0).predict_proba(table)
    MetaRegressor(group="id", reg=1.0).fit(table, y).predict(table)
    few_shot_curve(MetaRegressor(group="id"), table, y, shots=[0, 4])
    diagnose(table, y, group="id", shots=4)
    diagnose(table, y > 0.0, group="id", shots=4)
    tasks = TaskSet.from_arrays(table[list("abcd")], y, ids)
    bias = learn_bias(tasks, 1.0, 0.1).bias
    pair = tasks.split_rows(4)
    evaluate_bias(*pair, bias, 1.0)
    select_online(tasks, pair, pair, [0.1, 1.0], [0.1, 1.0])
    learn_prior(tasks, fit_intercept=True)
    table.assign(y=y).to_parquet(folder / "rows.parquet", index=False)
    rows = ParquetRows(folder / "rows.parquet", "id", "y")
    adapt_all(MetaRegressor().fit(rows), rows, folder / "out", predictions=True)


@pytest.mark.filterwarnings("ignore")
def test_nothing_compiles_afterwards(tmp_path: Path) -> None:
    rows = Rows(np.float64)
    for job in JOBS.values():
        job(rows)
    before = compiled()
    use_everything(tmp_path)
    grown = {name for name, count in compiled().items() if count > before.get(name, 0)}
    assert grown == set()


def test_the_command_says_where_the_code_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "JOBS", {"nothing": lambda _: None})
    done = CliRunner().invoke(app, ["warm", "--single"])
    assert done.exit_code == 0
    assert "nothing, float32" in done.output
    assert "kernels-" in done.output
    monkeypatch.setattr(warm, "CACHE_FOLDER", None)
    done = CliRunner().invoke(app, ["warm"])
    assert done.exit_code == 1
    assert "NUMBA_CACHE_DIR" in done.output
