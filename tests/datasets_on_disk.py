"""Small Parquet datasets, sorted, scattered and cut in awkward places, and jobs that stop."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

NAMES = ["a", "b", "c"]


def table(
    n_tasks: int = 60, seed: int = 0, kind: str = "int", dtype: str = "float64"
) -> pd.DataFrame:
    """Ragged regression tasks sorted by id."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, n_tasks)
    ids = np.repeat(np.arange(n_tasks), sizes)
    X = rng.normal(size=(len(ids), 3)).astype(dtype)
    own = rng.normal([3.0, -2.0, 1.0], 0.5, (n_tasks, 3))
    y = (5.0 + np.sum(X * own[ids], axis=1) + 0.3 * rng.normal(size=len(ids))).astype(dtype)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "id", ids if kind == "int" else [f"user-{i:04d}" for i in ids])
    frame["y"] = y
    return frame


def write(
    frame: pd.DataFrame, folder: Path, cuts: Sequence[int] = (), row_group: int = 1000
) -> Path:
    """A file for the rows between each two cuts."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = [0, *cuts, len(frame)]
    for k, (first, last) in enumerate(pairwise(edges)):
        part = pa.Table.from_pandas(frame.iloc[first:last], preserve_index=False)
        parquet.write_table(part, folder / f"part-{k:03d}.parquet", row_group_size=row_group)
    return folder


def read(folder: Path) -> pd.DataFrame:
    """All rows of a dataset."""
    found: Any = parquet.read_table(folder).to_pandas()
    assert isinstance(found, pd.DataFrame)
    return found


class Stopping(Executor):
    """Runs so many partitions and then no more, as a killed process would."""

    def __init__(self, count: int) -> None:
        self.count = count

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.count -= fn.__name__ == "run"  # else it is asked whether tasks lie together
        if self.count < 0:
            future.set_exception(KeyboardInterrupt())
        else:
            future.set_result(fn(*args, **kwargs))
        return future
