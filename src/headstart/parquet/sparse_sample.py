"""The rows of those entities of a sparse dataset that have the smallest hashes of their ids.

Whoever reads gives rows of the sample and no others. They are put one after another as they lie
in the files, so that they are the same for any partitions, threads and workers.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart.parquet.blocks import Batch
from headstart.parquet.columns import Array
from headstart.parquet.draw import Count, Draw
from headstart.parquet.engine import Engine, in_blocks
from headstart.parquet.plan import PARTITION_ROWS, Partition, plan_rows
from headstart.parquet.rows import ParquetRows
from headstart.parquet.sample_order import Hashes
from headstart.tasks.sparse import Csr, stack


class SparseRows(NamedTuple):
    """Inputs, labels as they are, and the id of each row."""

    X: FloatArray | Csr
    y: NDArray[np.generic]
    ids: Array


def read_sparse(
    rows: ParquetRows, most: int | None, engine: Engine, partition_rows: int = PARTITION_ROWS
) -> SparseRows:
    """The rows of so many entities, or of all; as they lie."""
    blocks = [tuple(block) for block in in_blocks(plan_rows(rows, partition_rows))]
    count = Count(rows, rows.n_rows if most is None else most)
    found = engine.tree(count.read, blocks, count.merge)
    if sum(found.nameless):
        rows.refuse_nameless()
    drawing, parts = _Drawing(Draw(rows, bound=found.hashes[-1])), []
    for done, some in enumerate(engine.map(drawing.read, blocks), 1):
        parts += some
        if rows.callback is not None:
            rows.callback(rows.n_rows * done // len(blocks))
    X, y, ids = zip(*parts, strict=True)
    return SparseRows(stack(X), np.concatenate(y), pa.concat_arrays(ids))


class _Drawing(NamedTuple):
    """Reads blocks of partitions."""

    draw: Draw

    def read(self, partitions: tuple[Partition, ...]) -> list[SparseRows]:
        """The rows of the sample, a part for each batch that has some."""
        found = chain(*(self.draw.batches(partition, 0) for partition in partitions))
        return list(map(self._rows, found))  # which holds on to no batch

    def _rows(self, drawn: tuple[pa.RecordBatch, Hashes]) -> SparseRows:
        rows, (batch, _) = self.draw.rows, drawn
        block = rows.labelled(Batch(batch), np.empty((batch.num_rows, 0), rows.dtype))
        return SparseRows(rows.sparse_rows(batch), block.y, block.row_ids)
