r"""Posteriors of tasks with sparse rows, under independent weights.

A task says nothing about columns that none of its rows has: there its weights stay those of the
start. So the non-zeros of a task are kept by column, and with :math:`x_j` the column of its rows,

.. math:: K = \sum_j \sigma_j x_j x_j^\top + b\,\mathrm{diag}(1/\omega), \qquad
          w_j = h_j + \sigma_j x_j^\top K^{-1}(\tau - Xh), \qquad
          V_{jj} = \sigma_j - \sigma_j^2\, x_j^\top K^{-1} x_j .

All of it costs as much as there are non-zeros, each times the rows that have its column, and
the factor of K.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.posterior.low_rank import factor, variance_left
from headstart.inner.posterior.state import Moments, Out, Start, Sums, move, quadratic_row
from headstart.losses import Form
from headstart.losses.scalar import SQUARED
from headstart.tasks import longest
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
    known = np.ones((len(offsets) - 1, 1 if side is None else 1 + side.shape[1]))
    known[:, 1:] = 0.0 if side is None else side
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
def start_moments(e: SparseEvidence, start: Start, mean: Vector, variance: Vector) -> None:
    """Mean and variance of the prediction of every row as the prior has them."""
    mean[:] = 0.0
    variance[:] = 0.0
    for t in range(len(e.offsets) - 1):
        for c in range(e.touched[t], e.touched[t + 1]):
            j = e.columns[c]
            h = 0.0
            for s in range(e.side.shape[1]):
                h += start.effects[j, s] * e.side[t, s]
            for p in range(e.starts[c], e.starts[c + 1]):
                i, x = e.offsets[t] + e.row[p], e.value[p]
                mean[i] += x * h
                variance[i] += x * x * start.variances[j]


@kernel
def _invert(L: Matrix, n: int, inverse: Matrix) -> None:
    """The inverse of ``L L^T``, all of it."""
    for i in range(n):  # the inverse of L, below the diagonal of `inverse`
        inverse[i, i] = 1.0 / L[i, i]
        for j in range(i):
            total = 0.0
            for m in range(j, i):
                total -= L[i, m] * inverse[m, j]
            inverse[i, j] = total * inverse[i, i]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for m in range(i, n):
                total += inverse[m, i] * inverse[m, j]
            inverse[j, i] = total  # above it, which is not read any more
    for i in range(n):
        for j in range(i):
            inverse[i, j] = inverse[j, i]


@kernel
def sparse_pass(
    e: SparseEvidence,
    start: Start,
    form: Form,
    moments: Moments,
    tasks: Counts,
    sums: Sums,
    chunk: int,
    out: Out,
) -> None:
    """Posteriors of these tasks: their sums go to row `chunk` of `sums`.

    If `out.W` has a row, it gets how far each of a task's columns went, as `e.columns` has them.
    """
    most = 0
    for t in tasks:
        most = max(most, longest(e.offsets, t, t + 1))
    K, inverse, noise = np.empty((most, most)), np.empty((most, most)), np.empty(most)
    residual, z, own = np.empty(most), np.empty(most), np.empty(most)
    b, r, totals, one = start.noise, e.side.shape[1], sums.totals[chunk], np.uint64(1)
    sums.V[chunk] += len(tasks) * start.variances
    for t in tasks:
        begin, n = e.offsets[t], e.offsets[t + 1] - e.offsets[t]
        first, last = e.touched[t], e.touched[t + 1]
        K[:n, :n] = 0.0
        lost, log_det, at_start = 0.0, 0.0, 0.0
        for a in range(n):
            omega, tau, rest = quadratic_row(e.weight, e.y, form, moments, begin + a)
            residual[a], noise[a] = tau, b / omega
            lost += 2.0 * rest
            log_det -= math.log(noise[a])
            K[a, a] = noise[a]
        for c in range(first, last):
            j = e.columns[c]
            h = 0.0
            for s in range(r):
                h += start.effects[j, s] * e.side[t, s]
            low, high = e.starts[c], e.starts[c + 1]
            if high - low == one:  # most columns are those of one row
                a, x = e.row[low], e.value[low]
                residual[a] -= x * h
                K[a, a] += start.variances[j] * x * x
                continue
            for p in range(low, high):
                a, x = e.row[p], e.value[p]
                residual[a] -= x * h
                for q in range(low, p + one):
                    K[a, e.row[q]] += start.variances[j] * x * e.value[q]
        for a in range(n):
            at_start += b / noise[a] * residual[a] * residual[a]
        log_det += factor(K, n)
        fit = 0.0
        for a in range(n):
            z[a] = residual[a]
            for m in range(a):
                z[a] -= K[a, m] * z[m]
            z[a] /= K[a, a]
            fit += z[a] * z[a]
        _invert(K, n, inverse)
        for a in range(n):  # z becomes K^-1 residual
            z[a] = 0.0
            for m in range(n):
                z[a] += inverse[a, m] * residual[m]
        for c in range(first, last):
            j = e.columns[c]
            sigma, pull, info = start.variances[j], 0.0, 0.0
            low, high = e.starts[c], e.starts[c + 1]
            if high - low == one:
                a, x = e.row[low], e.value[low]
                pull, info = x * z[a], x * x * inverse[a, a]
            else:
                for p in range(low, high):
                    a, x = e.row[p], e.value[p]
                    pull += x * z[a]
                    info += x * x * inverse[a, a]
                    for q in range(low, p):
                        info += 2.0 * x * e.value[q] * inverse[a, e.row[q]]
            delta = sigma * pull
            sums.V[chunk, j] -= sigma * sigma * info
            sums.D[chunk, j] += delta * delta
            for s in range(r):
                sums.F[chunk, j, s] += delta * e.side[t, s]
            if len(out.W) > 0:
                out.W[0, c] = delta
        totals[0] += at_start + lost
        totals[1] += at_start / b - fit
        totals[2] += log_det
        if form.code != SQUARED:
            moments.change[t] = 0.0
            for a in range(n):  # the mean after the rows is tau less noise times K^-1 residual
                _, tau, _ = quadratic_row(e.weight, e.y, form, moments, begin + a)
                mean = tau - noise[a] * z[a]
                left = variance_left(K, n, a, noise[a], own)
                away = move(moments, begin + a, mean, left)
                moments.change[t] = max(moments.change[t], away)
