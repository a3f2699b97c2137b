"""Sums over rows, a line for each entity, and what they become in other units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel
from headstart.inner.posterior.evidence import packed_size

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


class Sums:
    """``A``, ``c``, ``q`` and ``n`` of entities, in an array with room for more.

    One entity takes ``k (k + 1) / 2 + k + 2`` numbers of 8 bytes for k columns. The array grows
    where it lies and by little: it is most of what a stream keeps, and must never be there twice.
    """

    def __init__(self, k: int) -> None:
        self.k, self.count = k, 0
        self._used = 0  # lines that were ever in use: beyond them all is 0
        self._table = np.empty((0, packed_size(k) + k + 2))

    def _columns(self, table: Matrix) -> tuple[Matrix, Matrix, Vector, Vector]:
        cut = packed_size(self.k)
        return table[:, :cut], table[:, cut:-2], table[:, -2], table[:, -1]

    @property
    def table(self) -> Matrix:
        """All numbers, a line for each entity; not to be held on to, because it may move."""
        return self._table[: self.count]

    @property
    def parts(self) -> tuple[Matrix, Matrix, Vector, Vector]:
        """``A``, ``c``, ``q`` and ``n``, likewise."""
        return self._columns(self.table)

    def open(self, more: int) -> Counts:
        """Room for more entities: their lines, all 0."""
        lines = np.arange(self.count, self.count + more)
        if more == 0:
            return lines
        self.count += more
        if self.count > len(self._table):
            room = max(self.count, len(self._table) + len(self._table) // 32)
            if not self._table.flags.owndata:  # it came out of a pickle
                self._table = self._table.copy()
            self._table.resize((room, self._table.shape[1]), refcheck=False)
        self._table[lines[0] : self._used] = 0.0
        self._used = max(self._used, self.count)
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
        self, which: Counts, factor: Vector, shift: Vector, level: float
    ) -> tuple[Matrix, Matrix, Vector, Vector]:
        """The sums of these lines for rows ``factor x + shift`` and labels ``y - level``.

        Where anything is shifted the last column is that of ones, which stays as it is.
        """
        table = self._table[which]
        A, c, q, n = (np.ascontiguousarray(part) for part in self._columns(table))
        move(A, c, q, factor, shift, level)
        return A, c, q, n


def move(A: Matrix, c: Matrix, q: Vector, factor: Vector, shift: Vector, level: float) -> None:
    """``A' = F A F^T`` with ``F x = factor x + shift``, and the others likewise, in place."""
    ones = A[:, -c.shape[1] :].copy()  # sums with the column of ones
    if level != 0.0:
        q += level * (level * ones[:, -1] - 2.0 * c[:, -1])
        c -= level * ones
    c[:] = factor * c + shift * c[:, -1:]
    _move_triangles(A, ones, factor, shift)


@kernel
def _move_triangles(A: Matrix, ones: Matrix, factor: Vector, shift: Vector) -> None:
    r"""The triangles moved: with :math:`a = \sum\omega x` from the column of ones, by entries.

    .. math:: A_{jm} \leftarrow f_j f_m A_{jm} + f_j t_m a_j + t_j f_m a_m + t_j t_m a_\text{last}
    """
    k = len(factor)
    for t in range(len(A)):
        place = 0
        for j in range(k):
            f, s, a = factor[j], shift[j], factor[j] * ones[t, j]
            for m in range(j + 1):
                more = a * shift[m] + s * (factor[m] * ones[t, m] + shift[m] * ones[t, k - 1])
                A[t, place + m] = f * factor[m] * A[t, place + m] + more
            place += j + 1
