"""Weights of tasks with sparse rows as one file: the columns that the rows of a task have."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headstart._core.jit import source_digest
from headstart.estimators.dataset import StartingModel
from headstart.jobs.notes import JobIndex, Part, claim, finish
from headstart.online import SparseStream
from headstart.parquet.writer import Writer
from headstart.tasks import TaskSet

AT_ONCE = 1 << 14  # tasks that are adapted and written together


def adapt_task_set(start: StartingModel, tasks: TaskSet, folder: Path) -> JobIndex:
    """Adapt to every task, and write the weights of each in the columns that its rows have.

    The file has the columns ``id``, ``columns`` and ``weights``, two lists of the same length,
    ``intercept`` and ``rows``.
    """
    stream = start.stream
    if not tasks.sparse or not isinstance(stream, SparseStream):
        raise ValueError(
            "rows: expected a dataset on disk, or a TaskSet of sparse rows for a model that was "
            "fitted on such; adapt_tasks gives the weights of other tasks as an array"
        )
    fingerprint = _fingerprint(stream, tasks)
    if (finished := claim(folder, fingerprint)) is not None:
        return finished
    with Writer(folder / "weights" / "part-00000.parquet") as file:
        for first in range(0, len(tasks), AT_ONCE):
            block = tasks.subset(np.arange(first, min(first + AT_ONCE, len(tasks))))
            file.write(_table(stream, block))
    ends = (ids.item() if isinstance(ids, np.generic) else ids for ids in tasks.ids[[0, -1]])
    part = Part(0, len(tasks), len(tasks.y), *ends)
    index = JobIndex(folder, part.tasks, part.rows, [part])
    finish(index, fingerprint)
    return index


def _fingerprint(stream: SparseStream, tasks: TaskSet) -> str:
    """Digest of all that decides results: tasks, model and the code."""
    digest = blake2b(source_digest().encode(), digest_size=12)
    digest.update(f"{stream.settings!r} {tasks.inputs.shape} {tasks.ids.tolist()}".encode())
    X: Any = tasks.inputs
    rows = [X.data, X.indices, X.indptr, tasks.y, tasks.offsets]
    for array in [*rows, *stream.arrays().values()]:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _table(stream: SparseStream, tasks: TaskSet) -> pa.Table:
    differs = stream.differing(tasks)  # columns in order: a task's intercept is its last entry
    start = stream.start
    weights, levels = start[differs.indices] + differs.data, np.full(len(tasks), start[-1])
    slopes, starts = np.ones(len(weights), np.bool_), differs.indptr
    if stream.settings.fit_intercept:
        last = starts[1:] - 1
        levels, slopes[last] = weights[last], False
        starts = starts - np.arange(len(starts))
    begin = pa.array(starts, pa.int32())
    columns = [
        pa.array(tasks.ids),
        pa.ListArray.from_arrays(begin, pa.array(differs.indices[slopes])),
        pa.ListArray.from_arrays(begin, pa.array(weights[slopes])),
        pa.array(levels),
        pa.array(tasks.sizes),
    ]
    return pa.table(columns, names=["id", "columns", "weights", "intercept", "rows"])
