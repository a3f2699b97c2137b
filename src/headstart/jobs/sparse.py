"""Weights of tasks with sparse rows as one file: the columns that the rows of a task have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headstart._core.jit import source_digest
from headstart._core.places import Place
from headstart.estimators.start import StartingModel
from headstart.jobs.notes import JobIndex, Part, claim, finish, part_file
from headstart.jobs.runs import DIGEST, Clock, digest_of
from headstart.online import SparseStream
from headstart.parquet.writer import Writer
from headstart.tasks import TaskSet

AT_ONCE = 1 << 14  # tasks that are adapted and written together


def adapt_task_set(start: StartingModel, tasks: TaskSet, folder: Place) -> JobIndex:
    """Adapt to every task, and write the weights of each in the columns that its rows have.

    The file has the columns ``id``, ``columns`` and ``weights``, two lists of the same length,
    ``intercept`` and ``rows``.
    """
    clock, stream = Clock(), start.stream
    if not tasks.sparse or not isinstance(stream, SparseStream):
        raise ValueError(
            "rows: expected a dataset on disk, or a TaskSet of sparse rows for a model that was "
            "fitted on such; adapt_tasks gives the weights of other tasks as an array"
        )
    fingerprint = _fingerprint(stream, tasks)
    finished, _ = claim(folder, fingerprint, fingerprint)
    if finished is not None:
        return finished
    name = part_file(0, fingerprint[:DIGEST])
    with Writer(folder / "weights" / name) as file:
        for first in range(0, len(tasks), AT_ONCE):
            block = tasks.subset(np.arange(first, min(first + AT_ONCE, len(tasks))))
            file.write(_table(stream, block))
    ends = (ids.item() if isinstance(ids, np.generic) else ids for ids in tasks.ids[[0, -1]])
    first, last = ends
    part = Part(0, len(tasks), len(tasks.y), first, last, name, "", 0)
    run = clock.report({}, None, kept=0, adapted=1)
    index = JobIndex(folder, part.tasks, part.rows, [part], run, {})
    finish(index, fingerprint, fingerprint)
    return index


def _fingerprint(stream: SparseStream, tasks: TaskSet) -> str:
    """Digest of all that decides results: tasks, model and the code."""
    X: Any = tasks.inputs
    rows = [X.data, X.indices, X.indptr, tasks.y, tasks.offsets]
    arrays = [np.ascontiguousarray(a).tobytes() for a in (*rows, *stream.arrays().values())]
    about = stream.settings, tasks.inputs.shape, tasks.ids.tolist()
    return digest_of(source_digest(), *about, *arrays)


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
