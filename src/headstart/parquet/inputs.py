"""The inputs of whole tasks, in columns as Arrow has them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart._core.interleave import Pieces, interleave
from headstart.parquet.blocks import Batch
from headstart.parquet.source import Source


class Inputs:
    """The inputs of the rows of a table, which lie in several pieces where a task was cut.

    Parameters
    ----------
    rows : the dataset
    table : neighbouring rows of it
    """

    def __init__(self, rows: Source, table: pa.Table) -> None:
        self._rows, self._batches = rows, list(map(Batch, table.to_batches()))
        self._columns = list(map(rows.inputs, self._batches))
        self.dtype = rows.dtype

    @cached_property
    def _contiguous(self) -> list[list[NDArray[Any]]]:
        return [[np.ascontiguousarray(c, self.dtype) for c in part] for part in self._columns]

    @property
    def pieces(self) -> Pieces:
        """Where they are, as long as this object is there."""
        return Pieces.of(self._contiguous)

    def matrix(self) -> FloatArray:
        """All of them, row by row."""
        sizes = [batch.columns.num_rows for batch in self._batches]
        X = np.empty((sum(sizes), self._rows.width), self.dtype)
        cuts = np.cumsum(sizes)[:-1]
        for columns, part in zip(self._columns, np.split(X, cuts), strict=True):
            if not interleave(columns, part):
                self.refuse_wrong()
        return X

    def refuse_wrong(self) -> None:
        """Raise if one of them is not finite, or too large."""
        for batch, columns in zip(self._batches, self._columns, strict=True):
            self._rows.refuse_wrong(batch, columns)
