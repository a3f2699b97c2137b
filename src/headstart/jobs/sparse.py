"""Weights of tasks with sparse rows: the columns that the rows of a task have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from headstart._core.jit import source_digest
from headstart._core.places import Place
from headstart._core.runs import DIGEST, Clock, digest_of
from headstart.estimators.inputs import as_numbers
from headstart.estimators.start import StartingModel
from headstart.jobs.notes import JobIndex, Part, claim, finish, part_file
from headstart.jobs.runs import report
from headstart.jobs.tables import PREDICTION, Asked
from headstart.online import SparseStream
from headstart.parquet import Block, ParquetError, ParquetRows
from headstart.parquet.columns import Array
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
    if finished is not None and finished.is_there(["weights"]):
        return finished
    name = part_file(0, fingerprint[:DIGEST])
    with Writer(folder / "weights" / name) as file:
        for first in range(0, len(tasks), AT_ONCE):
            block = tasks.subset(np.arange(first, min(first + AT_ONCE, len(tasks))))
            known = stream.differing(block)
            file.write(_table(stream, known, pa.array(block.ids), block.sizes, "id"))
    ends = (ids.item() if isinstance(ids, np.generic) else ids for ids in tasks.ids[[0, -1]])
    first, last = ends
    part = Part(0, len(tasks), len(tasks.y), first, last, name, "", 0)
    run = report(clock, {}, None, kept=0, adapted=1)
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


def sparse_tables(
    start: StartingModel, asked: Asked, rows: ParquetRows, block: Block, table: pa.Table
) -> dict[str, pa.Table]:
    """As `block_tables`, of rows in lists."""
    stream = start.stream
    if not isinstance(stream, SparseStream) or stream.n_features != rows.n_features:
        raise ParquetError(
            f"{rows.known_as}: its rows are sparse, of {rows.n_features} columns; the model was "
            "fitted to others"
        )
    X = rows.sparse_rows(table)
    own = ~(block.by_row(block.missing) | block.unlabelled)
    sizes = np.add.reduceat(own, block.starts, dtype=np.int64)
    able = np.flatnonzero(sizes)
    differs: Any = csr_array((len(sizes), rows.n_features + 1))
    if able.size:
        labels = as_numbers(block.y[own], start.classes, X.dtype)
        stream.settings.loss.check_labels(labels)
        cuts = np.append(0, np.cumsum(sizes[able]))
        known = stream.differing(TaskSet.of(X[np.flatnonzero(own)], labels, cuts, able)).tocoo()
        places = able[known.row], known.col
        differs = csr_array((known.data, places), shape=differs.shape)
    found = {}
    if asked.weights:
        named = np.flatnonzero(~block.missing)
        ids = block.ids.take(pa.array(named))
        found["weights"] = _table(stream, differs[named], ids, sizes[named], rows.group)
    if asked.predictions:
        task, d = block.by_row(np.arange(len(sizes))), rows.n_features
        scores = X @ stream.start[:d] + stream.start[d]
        scores += np.asarray(X.multiply(differs[task][:, :d]).sum(axis=1)).reshape(-1)
        scores += differs[:, [d]].toarray()[task, 0]
        told = pa.array(start.labels(scores.astype(X.dtype)))
        beside = table.select(list(dict.fromkeys([rows.group, *asked.keep])))
        found["predictions"] = beside.append_column(PREDICTION, told)
    return found


def _table(stream: SparseStream, differs: Any, ids: Array, sizes: Any, name: str) -> pa.Table:
    """Weights by id, in the columns where they may differ from the start."""
    differs.sort_indices()
    d = stream.n_features
    own = differs[:, :d]
    weights = stream.start[own.indices] + own.data
    levels = stream.start[d] + differs[:, [d]].toarray()[:, 0]
    starts = pa.array(own.indptr, pa.int32())
    columns = [
        ids,
        pa.ListArray.from_arrays(starts, pa.array(own.indices, pa.int32())),
        pa.ListArray.from_arrays(starts, pa.array(weights)),
        pa.array(levels),
        pa.array(sizes),
    ]
    return pa.table(columns, names=[name, "columns", "weights", "intercept", "rows"])
