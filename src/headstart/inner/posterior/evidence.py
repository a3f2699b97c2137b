"""What tasks have shown: their rows, or sums over their rows, in standard units."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import ROWS_AT_ONCE, Vector
from headstart._core.jit import kernel, part
from headstart.inner.posterior.pooled import Pooled

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


class Evidence(NamedTuple):
    """What kernels see of many tasks.

    A task has rows, or sums over rows that are no longer there, or both.

    Attributes
    ----------
    X, y : the rows that are kept, stacked
    weight : how often each of them counts
    offsets : where each task's rows begin, and where the last ends
    slot : the row of `A`, `c`, `q` and `n` that belongs to a task, or -1
    A : sums of ``omega x x^T``, lower triangles packed row by row
    c, q : sums of ``omega tau x`` and of ``omega tau^2 + 2 c``
    n : how many rows were summed
    side : ``(1, s)`` of each task, s being what is known of it; ``(1,)`` if nothing is
    """

    X: Matrix
    y: Vector
    weight: Vector
    offsets: Counts
    slot: Counts
    A: Matrix
    c: Matrix
    q: Vector
    n: Vector
    side: Matrix

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def norm(self) -> float:
        """About the mean square norm of a row, in standard units."""
        return float(self.width)

    @property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return len(self.slot)

    @property
    def n_rows(self) -> float:
        """How many rows there are, by their weights."""
        return float(self.weight.sum() + self.n[self.slot[self.slot >= 0]].sum())

    def at(self, tasks: Counts) -> Evidence:
        """What these tasks have shown."""
        sizes, slot = np.diff(self.offsets)[tasks], self.slot[tasks]
        offsets = np.append(0, np.cumsum(sizes))
        rows = np.repeat(self.offsets[tasks] - offsets[:-1], sizes) + np.arange(offsets[-1])
        used = slot[slot >= 0]
        return Evidence(
            X=self.X[rows],
            y=self.y[rows],
            weight=self.weight[rows],
            offsets=offsets,
            slot=np.where(slot >= 0, np.cumsum(slot >= 0) - 1, -1),
            A=self.A[used],
            c=self.c[used],
            q=self.q[used],
            n=self.n[used],
            side=self.side[tasks],
        )

    def pooled(self, width: int) -> Pooled:
        """The rows of all tasks together, in so many of the first columns."""
        if not (self.slot >= 0).any() and len(self.y) < width:
            root = np.sqrt(self.weight)
            return Pooled.of_rows(self.X[:, :width] * root[:, None], self.y * root, self.n_rows)
        A, c, square = self.gram()
        return Pooled.of_gram(A[:width, :width], c[:width], square, self.n_rows)

    def gram(self) -> tuple[Matrix, Vector, float]:
        """All rows pooled: A and c of `Evidence` for the squared loss, and the labels' squares."""
        used = self.slot[self.slot >= 0]
        square = float(self.weight @ np.square(self.y) + self.q[used].sum())
        A, c = unpacked(self.A[used].sum(axis=0)), self.c[used].sum(axis=0)
        for first in range(0, len(self.y), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            scaled = (self.X[rows] * self.weight[rows, None]).T
            A += scaled @ self.X[rows]
            c += scaled @ self.y[rows]
        return A, c, square


def together(parts: list[Evidence]) -> Evidence:
    """What the tasks of all parts have shown, in their order."""
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    before = np.cumsum([0, *(len(part.n) for part in parts[:-1])])
    slots = [np.where(p.slot < 0, -1, p.slot + b) for p, b in zip(parts, before, strict=True)]
    every = Evidence(*map(np.concatenate, zip(*parts, strict=True)))
    return every._replace(offsets=np.append(0, np.cumsum(sizes)), slot=np.concatenate(slots))


def packed_size(k: int) -> int:
    """Number of entries of a lower triangle."""
    return k * (k + 1) // 2


@cache
def lower_triangle(k: int) -> tuple[Counts, Counts]:
    """Rows and columns of the entries of a lower triangle."""
    i, j = np.tril_indices(k)
    return i, j


def packed(full: Matrix) -> Matrix:
    """The lower triangles of symmetric matrices, row by row."""
    i, j = lower_triangle(full.shape[-1])
    return np.ascontiguousarray(full[..., i, j])


def unpacked(lower: Matrix) -> Matrix:
    """The symmetric matrices of packed lower triangles."""
    k = int((np.sqrt(8 * lower.shape[-1] + 1) - 1) / 2)
    i, j = lower_triangle(k)
    full = np.empty((*lower.shape[:-1], k, k))
    full[..., i, j] = full[..., j, i] = lower
    return full


@part
def add_row(omega: float, X: Matrix, i: int, A: Matrix, t: int) -> None:
    """``A[t] += omega x_i x_i^T``, packed."""
    place = 0
    for j in range(X.shape[1]):
        factor = omega * X[i, j]
        for m in range(j + 1):
            A[t, place + m] += factor * X[i, m]
        place += j + 1


@kernel
def sum_rows(
    X: Matrix, y: Vector, weight: Vector, task: Counts, A: Matrix, c: Matrix, q: Vector, n: Vector
) -> None:
    """Add rows of the squared loss, for which omega is 1 and tau the label, to their tasks' sums.

    Row by row: the sums have the same bits for any cutting of the rows into calls.
    """
    for i in range(len(y)):
        t, label = task[i], weight[i] * y[i]
        add_row(weight[i], X, i, A, t)
        for j in range(X.shape[1]):
            c[t, j] += label * X[i, j]
        q[t] += label * y[i]
        n[t] += weight[i]
