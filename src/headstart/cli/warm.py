"""``headstart warm``: compile what is compiled at first use, for images and servers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import DTypeLike
from pyarrow import parquet
from scipy.sparse import csr_array

from headstart._core.jit import CACHE_FOLDER
from headstart.cli.console import print_line
from headstart.estimators import MetaClassifier, MetaRegressor, TaskRegressor
from headstart.evaluation import few_shot_score
from headstart.inner import get_inner
from headstart.inner.adapt import evaluate_bias, task_weights
from headstart.inner.erm import biased_erm
from headstart.inner.sgd import SGDState, biased_sgd, sgd_batch
from headstart.jobs import adapt_all
from headstart.meta import learn_bias
from headstart.meta.prior import continue_prior, learn_prior, start_prior
from headstart.parquet import ParquetRows
from headstart.selection import select_online, select_reg
from headstart.tasks import TaskSet

TASKS, ROWS, COLUMNS = 12, 6, 2


class Rows:
    """A few rows of a few entities, of one float type."""

    def __init__(self, dtype: DTypeLike) -> None:
        rng, n = np.random.default_rng(0), TASKS * ROWS
        self.ids = np.repeat(np.arange(TASKS), ROWS)
        self.X = rng.standard_normal((n, COLUMNS)).astype(dtype)
        self.y = (self.X.sum(axis=1) + rng.standard_normal(n)).astype(dtype)
        self.signs = np.where(rng.random(n) < 0.5, -1.0, 1.0).astype(dtype)
        self.tasks = TaskSet.from_arrays(self.X, self.y, self.ids)
        self.classes = TaskSet.from_arrays(self.X, self.signs, self.ids)


def estimators(rows: Rows) -> None:
    """Both estimators of many tasks with a learned prior: tables, streams, single rows."""
    X, ids = rows.X, rows.ids
    for model, y in ((MetaRegressor(), rows.y), (MetaClassifier(), rows.signs)):
        for inputs in (X, csr_array(X)):
            model.fit(inputs, y, groups=ids)
            model.predict(inputs, groups=ids)
            model.adapt(inputs[:3], y[:3]).predict(inputs)
            model.partial_fit(inputs, y, groups=ids).finish()
            if isinstance(model, MetaRegressor):
                model.predict_interval(inputs, groups=ids)
            else:
                model.predict_proba(inputs, groups=ids)
        model.fit(X, y, groups=ids)
        model.learn_one(X[0], y[0], 0)
        model.predict_one(X[0], 0)
        few_shot_score(model, X, y, ids, shots=2)


def paper(rows: Rows) -> None:
    """The paper's algorithms, alone and in the estimators."""
    X, y, h = rows.X, rows.y, np.zeros(COLUMNS)
    biased_sgd(X[:ROWS], y[:ROWS], h, 1.0)
    sgd_batch(X[:ROWS], y[:ROWS], np.zeros((2, COLUMNS)), np.ones(2))
    SGDState.start(h, 1.0).update(X, y)
    biased_erm(X[:ROWS], y[:ROWS], h, 1.0, solver="fista")
    for tasks in (rows.tasks, TaskSet.from_arrays(csr_array(X), y, rows.ids)):
        for inner in ("sgd", "constant"):
            learn_bias(tasks, 1.0, 0.1, inner=inner)
            learn_bias(tasks, 1.0, 0.1, inner=inner, batch_size=4)
            task_weights(tasks, h, 1.0, inner=inner)
    for tasks, loss in ((rows.tasks, "absolute"), (rows.classes, "hinge"), (rows.tasks, "squared")):
        learn_bias(tasks, 1.0, 0.1, loss, "erm")
        learn_bias(tasks, 1.0, 0.1, loss, "erm", batch_size=4)
        shots, queries = tasks.split_rows(3)
        evaluate_bias(shots, queries, h, 1.0, loss, "erm")
    for inner in ("sgd", "constant", "erm"):
        model = MetaRegressor(reg=1.0, inner=inner).fit(X, y, groups=rows.ids)
        model.predict(X, groups=rows.ids)
        model.adapt(X[:3], y[:3]).predict(X)
        if not get_inner(inner).exact:
            model.partial_fit(X, y, groups=rows.ids).finish()
            TaskRegressor(inner=inner).partial_fit(X, y)


def priors(rows: Rows) -> None:
    """Priors of every shape, from task sets and one task after another."""
    sparse = TaskSet.from_arrays(csr_array(rows.X), rows.y, rows.ids)
    for metric in ("full", "diagonal", "isotropic"):
        learn_prior(rows.tasks, metric=metric)
        learn_prior(rows.classes, loss="logistic", metric=metric)
    learn_prior(rows.tasks, loss="absolute")
    learn_prior(sparse, metric="diagonal")
    wide = np.random.default_rng(0).standard_normal((len(rows.y), 3 * ROWS))
    tasks = TaskSet.from_arrays(wide.astype(rows.X.dtype), rows.y, rows.ids)
    learn_prior(tasks).posteriors(tasks)
    continue_prior(start_prior(), rows.tasks)


def selection(rows: Rows) -> None:
    """Choosing reg and step by validation tasks."""
    pair = rows.tasks.split_rows(3)
    for inner in ("sgd", "constant", "erm"):
        select_online(rows.tasks, pair, pair, [0.1, 1.0], [0.1], "absolute", inner, inner)
        select_reg(pair, pair, np.zeros(COLUMNS), [0.1, 1.0], "absolute", inner)


def files(rows: Rows) -> None:
    """A dataset on disk."""
    with TemporaryDirectory() as folder:
        path, out = Path(folder) / "rows.parquet", Path(folder) / "out"
        columns = {"id": rows.ids, "y": rows.y, **{f"x{j}": rows.X[:, j] for j in range(COLUMNS)}}
        parquet.write_table(pa.table(columns), path)
        dataset = ParquetRows(path, "id", "y")
        for model in (MetaRegressor(), MetaRegressor(reg=1.0)):
            adapt_all(model.fit(dataset), dataset, out / str(model.reg), predictions=True)


JOBS: dict[str, Callable[[Rows], None]] = {
    "estimators": estimators,
    "the paper's algorithms": paper,
    "priors": priors,
    "selection": selection,
    "datasets on disk": files,
}


def warm(
    single: Annotated[bool, typer.Option(help="For float32 too, at twice the time.")] = False,
) -> None:
    """Compile every kernel now, so that no first call has to wait: for images and servers."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is learned here is of no interest
        for dtype in (np.float64, np.float32) if single else (np.float64,):
            rows = Rows(dtype)
            for name, job in JOBS.items():
                job(rows)
                print_line(f"{perf_counter() - start:6.1f} s  {name}, {np.dtype(dtype).name}")
    if CACHE_FOLDER is None:
        print_line("no folder can be written to: set NUMBA_CACHE_DIR, or nothing is kept")
        raise typer.Exit(1)
    print_line(f"machine code: {CACHE_FOLDER}")
