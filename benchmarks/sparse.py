"""What sparse rows cost, over dense ones with as many columns as they have non-zeros.

Tasks of ten rows; a sparse row has 20 non-zeros among 100,000 columns, anywhere, or as words of a
text have them. All ratios are by row, timed in turn in one run.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from core import REG, STEP, best, report
from pyarrow import parquet
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from headstart import MetaRegressor, Prior, TaskSet, learn_bias, learn_prior
from headstart.jobs import adapt_all
from headstart.parquet import ParquetRows

T, N, NONZERO, WIDTH = 20_000, 10, 20, 100_000
ALLOWED = "<= 5x"


def sparse_inputs(*, as_words: bool) -> csr_array:
    rng = np.random.default_rng(0)
    columns = rng.integers(0, WIDTH, (T * N, NONZERO))
    if as_words:  # of which the r-th most frequent is as frequent as 1 / r
        columns = np.floor(WIDTH ** rng.random((T * N, NONZERO))).astype(np.int64) - 1
    values, starts = rng.standard_normal(columns.size), np.arange(0, columns.size + 1, NONZERO)
    X = csr_array((values, np.sort(columns, axis=1).ravel(), starts), shape=(T * N, WIDTH))
    X.sum_duplicates()
    return X


def labelled(X: Any) -> TaskSet:
    rng, ids = np.random.default_rng(1), np.repeat(np.arange(T), N)
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(T)[ids]
    return TaskSet.from_arrays(X, y + rng.standard_normal(len(y)), ids)


def ratio(
    what: str, dense: TaskSet, sparse: TaskSet, work: Callable[[TaskSet], object], repeat: int
) -> None:
    work(dense), work(sparse)
    short, long = best(lambda: work(dense), lambda: work(sparse), repeat=repeat)
    report(f"{what}, sparse over dense, a row", f"{long / short:.1f}x", ALLOWED)


def prior(tasks: TaskSet) -> Prior:
    return learn_prior(tasks, metric="diagonal", fit_intercept=True)


def fit(tasks: TaskSet) -> MetaRegressor:
    ids = np.repeat(tasks.ids, tasks.sizes)
    return MetaRegressor(metric="diagonal").fit(tasks.inputs, tasks.y, groups=ids)


def adapting(dense: TaskSet, sparse: TaskSet) -> None:
    """Weights of all tasks in a file: dense rows from one, sparse ones from memory."""
    one, other = fit(dense), fit(sparse)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"x{j}" for j in range(dense.n_features)]
        table = pa.table([*dense.X.T], names).append_column("y", pa.array(dense.y))
        ids = np.repeat(dense.ids, dense.sizes)
        parquet.write_table(table.append_column("id", pa.array(ids)), Path(folder) / "in.parquet")
        rows, seconds = ParquetRows(Path(folder) / "in.parquet", "id", "y", names), []
        for number in range(4):
            start = perf_counter()
            adapt_all(one, rows, Path(folder) / f"dense-{number}", n_jobs=1)
            middle = perf_counter()
            adapt_all(other, sparse, Path(folder) / f"sparse-{number}")
            seconds.append((perf_counter() - middle) / (middle - start))
    report("adapt_all, sparse over dense, a row", f"{min(seconds[1:]):.1f}x", ALLOWED)


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    dense = labelled(np.random.default_rng(2).standard_normal((T * N, NONZERO)))
    for name, as_words in (("anywhere", False), ("as words", True)):
        sparse = labelled(sparse_inputs(as_words=as_words))
        print(f"{NONZERO} non-zeros of {WIDTH:,} columns, {name}")
        ratio("learn_bias", dense, sparse, lambda tasks: learn_bias(tasks, REG, STEP), 15)
        ratio("learn_prior", dense, sparse, prior, 2)
        ratio("MetaRegressor.fit", dense, sparse, fit, 2)
        adapting(dense, sparse)


if __name__ == "__main__":
    main()
