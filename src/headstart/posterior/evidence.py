"""What tasks have shown: their rows, or sums over their rows, in standard units."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart._jit import kernel

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
    def n_rows(self) -> float:
        """How many rows there are, by their weights."""
        return float(self.weight.sum() + self.n[self.slot[self.slot >= 0]].sum())

    def pooled(self) -> tuple[Matrix, Vector, float]:
        """``A``, ``c`` and ``q`` of all tasks together, rows taken as they are."""
        used = self.slot[self.slot >= 0]
        scaled = self.X * self.weight[:, None]
        A = scaled.T @ self.X + unpacked(self.A[used].sum(axis=0))
        c = scaled.T @ self.y + self.c[used].sum(axis=0)
        return A, c, float(self.weight @ np.square(self.y) + self.q[used].sum())


def packed_size(k: int) -> int:
    """Number of entries of a lower triangle."""
    return k * (k + 1) // 2


@cache
def _lower(k: int) -> tuple[Counts, Counts]:
    i, j = np.tril_indices(k)
    return i, j


def packed(full: Matrix) -> Matrix:
    """The lower triangles of symmetric matrices, row by row."""
    i, j = _lower(full.shape[-1])
    return np.ascontiguousarray(full[..., i, j])


def unpacked(lower: Matrix) -> Matrix:
    """The symmetric matrices of packed lower triangles."""
    k = int((np.sqrt(8 * lower.shape[-1] + 1) - 1) / 2)
    i, j = _lower(k)
    full = np.empty((*lower.shape[:-1], k, k))
    full[..., i, j] = full[..., j, i] = lower
    return full


@kernel
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
