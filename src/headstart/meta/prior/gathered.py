"""What tasks have shown, gathered from columns as Arrow has them.

Rows of long tasks go from the columns into sums without being put into rows first: a few rows of
all columns are copied into the nearest cache, seen from the view, and multiplied there, in a
quarter of the time that adding up a row at a time takes. Rows of tasks that are shorter than their
sums stay rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.interleave import addresses_of, interleave, pointer
from headstart._core.jit import kernel
from headstart.inner.posterior.evidence import Evidence, packed_size
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

NEAR = 128  # rows that are multiplied together: with all columns they fit into the nearest cache
ROOM = 1 << 23  # numbers of A for which there is room before any comes, see `Gathered`
LANES = 8  # rows that a processor may multiply at once


@kernel
def _multiply(Z: Matrix, width: int, out: Matrix) -> None:
    """The lower triangle of ``Z Z^T`` over the first entries of its rows, and more than that.

    Two rows by four: so each number that is loaded is used often. There are four rows to spare.
    """
    for j in range(0, len(Z) - 4, 2):
        one, two = Z[j, :width], Z[j + 1, :width]
        for m in range(0, j + 2, 4):
            a, b, c, e = Z[m, :width], Z[m + 1, :width], Z[m + 2, :width], Z[m + 3, :width]
            a1 = b1 = c1 = e1 = a2 = b2 = c2 = e2 = 0.0
            for i in range(width):
                u, v = one[i], two[i]
                a1 += u * a[i]
                b1 += u * b[i]
                c1 += u * c[i]
                e1 += u * e[i]
                a2 += v * a[i]
                b2 += v * b[i]
                c2 += v * c[i]
                e2 += v * e[i]
            out[j, m], out[j, m + 1], out[j, m + 2], out[j, m + 3] = a1, b1, c1, e1
            out[j + 1, m], out[j + 1, m + 1], out[j + 1, m + 2], out[j + 1, m + 3] = a2, b2, c2, e2


@kernel
def _sum_columns(
    addresses: Counts,
    y: FloatArray,
    offsets: Counts,
    line: Counts,
    view: tuple[Vector, float],
    A: Matrix,
    c: Matrix,
    q: Vector,
    n: Vector,
) -> float:
    """Add the rows of tasks that have a line to its sums, as `sum_rows`; and all squares there.

    The labels are one more column, so that all sums are entries of one triangle.
    """
    centre, level = view
    d, k = len(addresses), c.shape[1]
    Z, out, total = np.zeros((k + 5, NEAR)), np.empty((k + 5, k + 5)), 0.0
    for t in range(len(line)):
        row = line[t]
        if row < 0:
            continue
        for first in range(offsets[t], offsets[t + 1], NEAR):
            count = min(NEAR, offsets[t + 1] - first)
            width = (count + LANES - 1) // LANES * LANES
            for j in range(d):
                column = carray(pointer(addresses[j]), len(y), y.dtype)[first : first + count]
                near, middle = Z[j, :width], centre[j]
                for i in range(count):
                    near[i] = column[i] - middle
                near[count:] = 0.0
            if k > d:
                Z[d, :count] = 1.0
                Z[d, count:width] = 0.0
            labels, near = y[first : first + count], Z[k, :width]
            for i in range(count):
                near[i] = labels[i] - level
            near[count:] = 0.0
            _multiply(Z, width, out)
            place = 0
            for j in range(k):
                into = A[row, place : place + j + 1]
                for m in range(j + 1):
                    into[m] += out[j, m]
                c[row, j] += out[k, j]
                total += out[j, j]
                place += j + 1
            q[row] += out[k, k]
        n[row] += offsets[t + 1] - offsets[t]
    return total


class Gathered:
    """What tasks have shown, a block of whole tasks after the other.

    Sums grow where they lie: they are most of what is kept, and are never there twice. They begin
    with room for many, which takes no memory until it is used: of what grows from little, an
    allocator keeps the places that it had before.
    """

    def __init__(self, view: Columns) -> None:
        self.view, k = view, view.width
        room = ROOM // packed_size(k)
        A, c = np.zeros((room, packed_size(k))), np.zeros((room, k))
        self._sums = A, c, np.zeros(room), np.zeros(room)
        self._n_lines = 0
        self._rows: list[tuple[Matrix, Vector]] = [(np.empty((0, k)), np.empty(0))]
        self._sizes, self._summed = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]

    def open(self, sizes: Counts) -> Counts:
        """Room for tasks of so many rows: the line of each, or -1 if its rows will stay."""
        summed = sizes >= self.view.width / 2
        begun = self._n_lines
        self._n_lines += int(np.count_nonzero(summed))
        if self._n_lines > len(self._sums[0]):
            self._resize()
        self._sizes.append(np.where(summed, 0, sizes))
        self._summed.append(summed)
        return np.where(summed, begun + np.cumsum(summed) - 1, -1)

    def _resize(self) -> None:
        """Sums of as many lines as there are, where they lie; new ones are 0."""
        for part in self._sums:
            part.resize((self._n_lines, *part.shape[1:]), refcheck=False)

    def add(
        self, columns: list[NDArray[Any]], y: FloatArray, offsets: Counts, lines: Counts
    ) -> bool:
        """Take rows of tasks, by their lines; whether all numbers are finite."""
        near = [np.ascontiguousarray(column, y.dtype) for column in columns]
        seen, left = (self.view.centre, self.view.level), np.repeat(lines < 0, np.diff(offsets))
        total = _sum_columns(addresses_of(near), y, offsets, lines, seen, *self._sums)
        finite = bool(np.isfinite(total))
        if left.any():
            X = np.empty((np.count_nonzero(left), len(near)), y.dtype)
            finite = interleave([c[left] for c in near], X) and finite
            self._rows.append((self.view.rows(X), self.view.labels(y[left])))
        return finite

    def evidence(self, side: Matrix) -> Evidence:
        """All of it, with ``(1, s)`` of each task."""
        self._resize()
        X, y = (np.concatenate(parts) for parts in zip(*self._rows, strict=True))
        offsets = np.append(0, np.cumsum(np.concatenate(self._sizes)))
        summed = np.concatenate(self._summed)
        slot = np.where(summed, np.cumsum(summed) - 1, -1)
        return Evidence(X, y, np.ones(len(y)), offsets, slot, *self._sums, side)
