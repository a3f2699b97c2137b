"""Sums over rows, a line for each entity, and what they become in other units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart.posterior.evidence import packed, packed_size, unpacked

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

AT_ONCE = 4096  # entities whose matrices are unpacked together


class Sums:
    """``A``, ``c``, ``q`` and ``n`` of entities, in an array with room for more.

    One entity takes ``k (k + 1) / 2 + k + 2`` numbers of 8 bytes for k columns.
    """

    def __init__(self, k: int) -> None:
        self.k, self.count = k, 0
        self._table = np.empty((0, packed_size(k) + k + 2))

    def _columns(self, table: Matrix) -> tuple[Matrix, Matrix, Vector, Vector]:
        cut = packed_size(self.k)
        return table[:, :cut], table[:, cut:-2], table[:, -2], table[:, -1]

    @property
    def parts(self) -> tuple[Matrix, Matrix, Vector, Vector]:
        """``A``, ``c``, ``q`` and ``n``: views, a line for each entity."""
        return self._columns(self._table[: self.count])

    def lines(self, which: Counts) -> Matrix:
        """Copies of these lines."""
        return self._table[which]

    def open(self, more: int) -> Counts:
        """Room for more entities: their lines, all 0."""
        lines = np.arange(self.count, self.count + more)
        self.count += more
        if self.count > len(self._table):
            grown = np.empty((max(self.count, len(self._table) * 3 // 2), self._table.shape[1]))
            grown[: lines[0]] = self._table[: lines[0]]
            self._table = grown
        self._table[lines] = 0.0
        return lines

    def add(self, lines: Counts, table: Matrix) -> None:
        """Add other sums to these lines."""
        self._table[lines] += table

    def remove(self, line: int) -> int:
        """Put the last line in the place of this one; gives the number the last one had."""
        self.count -= 1
        self._table[line] = self._table[self.count]
        return self.count

    def moved(
        self, which: Counts, F: Matrix, level: float
    ) -> tuple[Matrix, Matrix, Vector, Vector]:
        """The sums of these lines for rows ``F x`` and labels ``y - level``.

        With a level other than 0 the last column is that of ones.
        """
        A_, c, q, n = (part.copy() for part in self._columns(self._table[which]))
        for first in range(0, len(which), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            A = unpacked(A_[some])
            if level != 0.0:
                q[some] += level * (level * A[:, -1, -1] - 2.0 * c[some, -1])
                c[some] -= level * A[:, :, -1]
            A_[some], c[some] = packed(F @ A @ F.T), c[some] @ F.T
        return A_, c, q, n
