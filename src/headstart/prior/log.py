"""Rows in the order in which they came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._checks import FloatArray, Vector

Counts = NDArray[np.int64]


class Table(NamedTuple):
    """Rows: inputs, labels, how often each counts, and the number of the entity it belongs to."""

    X: FloatArray
    y: FloatArray
    weight: Vector
    entity: Counts

    @classmethod
    def room(cls, count: int, width: int, dtype: DTypeLike) -> Table:
        """Room for so many rows."""
        numbers = np.empty(count), np.empty(count, np.int64)
        return cls(np.empty((count, width), dtype), np.empty(count, dtype), *numbers)

    def at(self, rows: slice | NDArray[np.bool_] | Counts) -> Table:
        """Some of the rows."""
        return Table(self.X[rows], self.y[rows], self.weight[rows], self.entity[rows])

    def put(self, place: slice, other: Table) -> None:
        """Write other rows to this place."""
        for mine, theirs in zip(self, other, strict=True):
            mine[place] = theirs


class Log:
    """Rows that wait, with room for more."""

    def __init__(self, width: int) -> None:
        self._room, self._count = Table.room(0, width, np.float32), 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Table:
        """All rows: views."""
        return self._room.at(slice(self._count))

    def append(self, new: Table) -> None:
        """Rows that came now."""
        end, kept = self._count + len(new.y), self.rows
        kind = np.result_type(kept.X, new.X)  # float32 as long as all are
        if end > len(self._room.y) or kind != kept.X.dtype:
            self._room = Table.room(max(end, 2 * self._count), new.X.shape[1], kind)
            self._room.put(slice(self._count), kept)
        self._room.put(slice(self._count, end), new)
        self._count = end

    def take(self, leaving: NDArray[np.bool_]) -> Table:
        """Take these rows out; the others close up."""
        gone, staying = self.rows.at(leaving), self.rows.at(~leaving)
        self._count = len(staying.y)
        self._room.put(slice(self._count), staying)
        return gone
