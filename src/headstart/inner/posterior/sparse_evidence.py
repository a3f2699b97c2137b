"""What tasks with sparse rows have shown: their non-zeros by row, and by column within a task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.start import with_one
from headstart.tasks.columns import Columns
from headstart.tasks.rows import Sparse, add, dot

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


class SparseEvidence(NamedTuple):
    """What kernels see of many tasks with sparse rows, in standard units.

    Attributes
    ----------
    X : the rows
    y, weight, offsets, side : as in `Evidence`
    touched : where each task's columns begin among `columns`, and where the last ends
    columns : the columns that the rows of a task have, one task after another, each in order
    starts : where the non-zeros of each of them begin, and where the last ends
    row, value : the row of a non-zero, counted within its task, and what it is
    width : number of columns there are
    ones : whether the last is that of ones
    """

    X: Sparse
    y: Vector
    weight: Vector
    offsets: Counts
    side: Matrix
    touched: Counts
    columns: NDArray[np.uint32]
    starts: NDArray[np.uint64]
    row: NDArray[np.uint32]
    value: Vector
    width: int
    ones: bool

    @property
    def norm(self) -> float:
        """The mean square norm of a row."""
        return max(float(self.value @ self.value) / len(self.y), 1e-300)

    @property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> float:
        """How many rows there are, by their weights."""
        return float(self.weight.sum())

    def at(self, tasks: Counts) -> SparseEvidence:
        """What these tasks have shown."""
        rows, offsets = _ranges(self.offsets, tasks)
        columns, touched = _ranges(self.touched, tasks)
        entries, begin = _ranges(self.starts.view(np.int64), columns)
        starts = begin.view(np.uint64)
        values, row_starts = _ranges(self.X.starts.view(np.int64), rows)
        X = Sparse(self.X.values[values], self.X.columns[values], row_starts.view(np.uint64))
        return SparseEvidence(
            X, self.y[rows], self.weight[rows], offsets, self.side[tasks], touched,
            self.columns[columns], starts, self.row[entries], self.value[entries], self.width,
            self.ones,
        )  # fmt: skip


def _ranges(offsets: Counts, chosen: Counts) -> tuple[Counts, Counts]:
    """The members of chosen ranges, one after another, and where each range begins there."""
    sizes = offsets[chosen + 1] - offsets[chosen]
    begin = np.append(0, np.cumsum(sizes))
    return np.repeat(offsets[chosen] - begin[:-1], sizes) + np.arange(begin[-1]), begin


@kernel
def _standard(X: Sparse, units: Vector, ones: bool, out: Sparse) -> None:
    """Fill `out` with the rows in these units, and the column of ones after the others."""
    place = 0
    for i in range(len(X.starts) - 1):
        out.starts[i] = place
        for p in range(X.starts[i], X.starts[i + 1]):
            out.columns[place] = X.columns[p]
            out.values[place] = X.values[p] / units[X.columns[p]]
            place += 1
        if ones:
            out.columns[place], out.values[place] = units.size, 1.0
            place += 1
    out.starts[-1] = place


@kernel
def _gather(
    X: Sparse,
    offsets: Counts,
    touched: Counts,
    columns: NDArray[np.uint32],
    starts: NDArray[np.uint64],
    row: NDArray[np.uint32],
    value: Vector,
) -> int:
    """Fill the last five with the non-zeros of every task by column; how many columns that are."""
    used, place = 0, 0
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        first, last = np.int64(X.starts[begin]), np.int64(X.starts[end])
        owner = np.empty(last - first, np.uint32)
        for i in range(begin, end):
            owner[np.int64(X.starts[i]) - first : np.int64(X.starts[i + 1]) - first] = i - begin
        newest = np.int64(-1)
        for p in np.argsort(X.columns[first:last], kind="mergesort"):
            j = np.int64(X.columns[first + p])
            if j != newest:
                newest, columns[used], starts[used] = j, j, place
                used += 1
            row[place], value[place] = owner[p], X.values[first + p]
            place += 1
        touched[t + 1] = used
    starts[used] = place
    return used


def sparse_evidence(
    X: Sparse,
    y: FloatArray,
    offsets: Counts,
    units: Columns,
    side: Matrix | None = None,
    weight: Vector | None = None,
) -> SparseEvidence:
    """What these tasks have shown, in these units, whose centre must be 0."""
    ones, count = units.intercept, len(X.values) + units.intercept * len(y)
    starts = np.empty(len(y) + 1, np.uint64)
    rows = Sparse(np.empty(count), np.empty(count, np.uint32), starts)
    _standard(X, units.scale, ones, rows)
    touched, begin = np.zeros(len(offsets), np.int64), np.empty(count + 1, np.uint64)
    columns, row, value = np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count)
    used = _gather(rows, offsets, touched, columns, begin, row, value)
    known = with_one(side, len(offsets) - 1)
    shares = np.ones(len(y)) if weight is None else weight
    return SparseEvidence(
        rows, units.labels(y), shares, offsets, known, touched, columns[:used].copy(),
        begin[: used + 1].copy(), row, value, units.width, ones,
    )  # fmt: skip


@kernel
def products_with(X: Sparse, w: Vector) -> Vector:
    """``X w``."""
    out = np.empty(len(X.starts) - 1)
    for i in range(out.size):
        out[i] = dot(X, i, w)
    return out


@kernel
def sum_of_rows(X: Sparse, r: Vector, width: int) -> Vector:
    """``X^T r``."""
    out = np.zeros(width)
    for i in range(r.size):
        add(X, i, r[i], out)
    return out


@kernel
def gram_times(X: Sparse, omega: Vector, w: Vector) -> Vector:
    """``X^T Omega X w``, rows of omega 0 costing nothing.

    Both vectors lie side by side, as in `side_by_side`.
    """
    both = np.zeros((w.size, 2))
    assign(both[:, 0], w)
    here, out = both[:, 0], both[:, 1]
    for i in range(omega.size):
        if omega[i] != 0.0:
            add(X, i, omega[i] * dot(X, i, here), out)
    return out.copy()
