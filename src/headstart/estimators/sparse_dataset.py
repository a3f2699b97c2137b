"""Learning from a dataset of sparse rows, which a prior keeps as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headstart._core.checks import FloatArray
from headstart.estimators.inputs import Labels, as_numbers
from headstart.meta.prior.goal import MAX_TASKS
from headstart.online import PriorSettings, SparseStream
from headstart.online.stream import Chunk
from headstart.parquet import ParquetError, ParquetRows
from headstart.tasks.ids import hash_ids, id_array, read_ids
from headstart.tasks.sparse import stack


def learn_sparse(
    rows: ParquetRows, classes: Labels | None, settings: PriorSettings, n_jobs: int
) -> SparseStream:
    """The prior of those entities with the smallest hashes, whose rows are kept while learning."""
    largest = _largest_hash(rows)
    inputs, labels, ids = [], [], []
    for block in rows.blocks():
        column = read_ids(rows.group, block.ids)  # by run
        hashes = hash_ids(id_array("ids", column.values))
        used = np.flatnonzero(block.by_row(column.by_row(hashes[column.codes] <= largest)))
        inputs.append(block.X[used])
        labels.append(as_numbers(block.y[used], classes, rows.dtype))
        ids.append(block.row_ids.take(pa.array(used)))
    X, y = stack(inputs), np.concatenate(labels)
    settings.loss.check_labels(y)
    stream = SparseStream(settings, rows.n_features, rows.dtype)
    inside: FloatArray = X  # type: ignore[assignment]
    stream.fit(Chunk(inside, y, read_ids(rows.group, pa.concat_arrays(ids))), n_jobs)
    return stream.without_entities()


def _largest_hash(rows: ParquetRows) -> np.uint64:
    """The largest hash of an id that is learned from."""
    found = np.empty(0, np.uint64)
    for ids in rows.column(rows.group):
        column = read_ids(rows.group, ids)
        if column.missing.any():
            raise ParquetError(
                f"{rows.path}: column {rows.group!r}: expected an id in every row, found null; "
                "give such rows an id, or leave them out"
            )
        new = hash_ids(id_array("ids", column.values))
        found = np.unique(np.append(found, new))[:MAX_TASKS]
    return np.uint64(found[-1])
