"""Rows in the order in which they came."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._checks import FloatArray, Vector

Counts = NDArray[np.int64]
Rows = tuple[FloatArray, FloatArray, Vector, Counts]


class Log:
    """Rows, their labels and weights, and the numbers of the entities they belong to."""

    def __init__(self, width: int, dtype: DTypeLike) -> None:
        self._room: Rows = _room(0, width, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def _rows(self) -> Rows:
        X, y, weight, entity = (part[: self._count] for part in self._room)
        return X, y, weight, entity

    @property
    def X(self) -> FloatArray:
        """Inputs."""
        return self._rows[0]

    @property
    def y(self) -> FloatArray:
        """Labels."""
        return self._rows[1]

    @property
    def weight(self) -> Vector:
        """How often each row counts."""
        return self._rows[2]

    @property
    def entity(self) -> Counts:
        """Whose row it is."""
        return self._rows[3]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(part.nbytes for part in self._rows)

    def append(self, X: FloatArray, y: FloatArray, weight: Vector, entity: Counts) -> None:
        """Rows that came now."""
        end = self._count + len(y)
        if end > len(self._room[1]):
            grown = _room(max(end, 2 * self._count), X.shape[1], self.X.dtype)
            for new, old in zip(grown, self._rows, strict=True):
                new[: self._count] = old
            self._room = grown
        for kept, new in zip(self._room, (X, y, weight, entity), strict=True):
            kept[self._count : end] = new
        self._count = end

    def take(self, leaving: NDArray[np.bool_]) -> Rows:
        """Take these rows out; the others close up."""
        X, y, weight, entity = (part[leaving] for part in self._rows)
        staying = ~leaving
        kept = [part[staying] for part in self._rows]
        self._count = len(kept[1])
        for part, new in zip(self._room, kept, strict=True):
            part[: self._count] = new
        return X, y, weight, entity


def _room(count: int, width: int, dtype: DTypeLike) -> Rows:
    return (
        np.empty((count, width), dtype),
        np.empty(count, dtype),
        np.empty(count),
        np.empty(count, np.int64),
    )
