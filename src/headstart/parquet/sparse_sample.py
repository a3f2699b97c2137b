"""The rows of those entities of a sparse dataset that have the smallest hashes of their ids."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart.parquet.columns import Array
from headstart.parquet.rows import ParquetRows
from headstart.tasks.ids import hash_ids, id_array, read_ids
from headstart.tasks.sparse import Csr, stack


def read_sparse(
    rows: ParquetRows, most: int | None
) -> tuple[FloatArray | Csr, NDArray[np.generic], Array]:
    """Inputs, labels and ids of the rows of so many entities, or of all; as they lie."""
    largest = _largest_hash(rows, most)
    inputs, labels, ids = [], [], []
    for block in rows.blocks():
        column = read_ids(rows.group, block.ids)  # by run
        hashes = hash_ids(id_array("ids", column.values))
        used = np.flatnonzero(block.by_row(column.by_row(hashes[column.codes] <= largest)))
        inputs.append(block.X[used])
        labels.append(block.y[used])
        ids.append(block.row_ids.take(pa.array(used)))
    return stack(inputs), np.concatenate(labels), pa.concat_arrays(ids)


def _largest_hash(rows: ParquetRows, most: int | None) -> np.uint64:
    """The largest hash of an id that is taken."""
    found = np.empty(0, np.uint64)
    for ids in rows.column(rows.group):
        column = read_ids(rows.group, ids)
        if column.missing.any():
            rows.refuse_nameless()
        new = hash_ids(id_array("ids", column.values))
        found = np.unique(np.append(found, new))[:most]
    return np.uint64(found[-1])
