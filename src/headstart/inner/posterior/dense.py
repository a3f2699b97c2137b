"""Posteriors of many tasks side by side: every step is taken for 32 tasks at once.

Matrices of a task are small, and loops over their rows are too short for vector instructions.
So the innermost loop is over tasks: entry (i, j) of all their matrices lies together, and
inverses and products of 32 matrices are found as one would be.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, part, within
from headstart.inner.posterior.evidence import Evidence, add_row
from headstart.inner.posterior.state import Moments, Out, Sums, move, row_form
from headstart.inner.start import Start, start_weight
from headstart.losses import Form

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

LANES = 32


@within
def _place(i: int) -> int:
    return i * (i + 1) // 2


@part
def add_rows(
    e: Evidence, form: Form, moments: Moments | None, t: int, own: Matrix, c: Vector
) -> float:
    """Fill ``own[0]`` with A and `c` with c of task t's rows, and give q."""
    own[0, :] = 0.0
    c[:] = 0.0
    q = 0.0
    for i in range(e.offsets[t], e.offsets[t + 1]):
        omega, tau, rest = e.weight[i], e.y[i], 0.0
        if moments is not None:
            omega, tau, rest = row_form(e, form, moments, i)
        add_row(omega, e.X, i, own, 0)
        for j in range(c.size):
            c[j] += omega * tau * e.X[i, j]
        q += omega * tau * tau + 2.0 * rest
    return q


@part
def sweep(M: Matrix, k: int, live: int, log_det: Vector, product: Vector, column: Matrix) -> None:
    """Replace matrices, a column of M each, by minus their inverses, and add log-determinants.

    A pivot after the other is swept: with column c and pivot d of the matrix as it is by then,
    ``M -= c c^T / d``, where row and column of the pivot count as 0, and the pivot in c as -1.
    Entries of the diagonal then only ever grow: no rounding makes a variance negative. A pivot
    that is not positive, which takes more rounding than there are digits, makes all NaN.
    A logarithm takes as long as a whole row: pivots are multiplied, eight at a time.
    """
    product[:] = 1.0
    for p in range(k):
        for j in range(k):
            entry = _place(p) + j if j <= p else _place(j) + p
            for l in range(live):
                column[j, l] = M[entry, l]
                M[entry, l] = 0.0
        for l in range(live):
            pivot = column[p, l] if column[p, l] > 0.0 else math.nan
            product[l] *= pivot
            column[k, l] = 1.0 / pivot
            column[p, l] = -1.0
        for i in range(k):
            row = _place(i)
            for l in range(live):
                column[k + 1, l] = column[i, l] * column[k, l]
            for j in range(i + 1):
                for l in range(live):
                    M[row + j, l] -= column[k + 1, l] * column[j, l]
        if p % 8 == 7 or p == k - 1:
            for l in range(live):
                log_det[l] += math.log(product[l])
                product[l] = 1.0


@part
def times(M: Matrix, x: Matrix, live: int, out: Matrix) -> None:
    """``out -= M x`` for every lane, M being packed and symmetric."""
    for i in range(len(x)):
        row = _place(i)
        for j in range(i):
            for l in range(live):
                out[i, l] -= M[row + j, l] * x[j, l]
                out[j, l] -= M[row + j, l] * x[i, l]
        for l in range(live):
            out[i, l] -= M[row + i, l] * x[i, l]


@part
def update_moments(e: Evidence, t: int, V: Matrix, w: Vector, moments: Moments) -> None:
    """Mean and variance of the predictions for task t's rows, from its posterior."""
    change = 0.0
    for i in range(e.offsets[t], e.offsets[t + 1]):
        mean, variance, place = 0.0, 0.0, 0
        for j in range(w.size):
            total = 0.0
            for m in range(j):
                total += V[0, place + m] * e.X[i, m]
            place += j + 1
            x = e.X[i, j]
            variance += x * (2.0 * total + V[0, place - 1] * x)
            mean += w[j] * x
        change = max(change, move(moments, i, mean, max(variance, 0.0)))
    moments.change[t] = change


@kernel
def dense_pass(
    e: Evidence,
    start: Start,
    form: Form,
    moments: Moments | None,
    tasks: Counts,
    sums: Sums,
    chunk: int,
    out: Out,
) -> None:
    """Posteriors of these tasks: their sums go to row `chunk` of `sums`, and more if asked for.

    Without moments the loss is the squared one, and nothing of other losses is compiled.
    """
    k = len(start.effects)
    size = k * (k + 1) // 2
    own, c, precision = np.empty((1, size)), np.empty(k), np.empty(size)
    M, column = np.empty((size, LANES)), np.empty((k + 2, LANES))
    h, u, delta = np.empty((k, LANES)), np.empty((k, LANES)), np.empty((k, LANES))
    r0, log_det, product = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    full, b = sums.V.shape[1] == size, start.noise
    for j in range(k):
        for m in range(j + 1):
            precision[_place(j) + m] = 0.0
        precision[_place(j) + j] = 1.0 / start.variances[j]
    if len(start.precision) > 0:
        precision = start.precision
    for first in range(0, len(tasks), LANES):
        live = min(LANES, len(tasks) - first)
        for l in range(live):
            t = tasks[first + l]
            slot, r0[l] = e.slot[t], 0.0
            if slot >= 0:
                r0[l] = e.q[slot]
            for m in range(size):
                M[m, l] = e.A[slot, m] if slot >= 0 else 0.0
            for j in range(k):
                u[j, l] = e.c[slot, j] if slot >= 0 else 0.0
            if e.offsets[t + 1] > e.offsets[t]:
                r0[l] += add_rows(e, form, moments, t, own, c)
                for m in range(size):
                    M[m, l] += own[0, m]
                for j in range(k):
                    u[j, l] += c[j]
            for j in range(k):
                h[j, l] = start_weight(start.effects, e.side, t, j)
                r0[l] -= h[j, l] * u[j, l]
        times(M, h, live, u)
        for j in range(k):
            for l in range(live):
                r0[l] -= h[j, l] * u[j, l]
                u[j, l] /= b
                delta[j, l] = 0.0
        for m in range(size):
            for l in range(live):
                M[m, l] = M[m, l] / b + precision[m]
        log_det[:] = start.log_det
        sweep(M, k, live, log_det, product, column)
        times(M, u, live, delta)
        _collect(e.side, tasks[first : first + live], M, u, delta, r0, log_det, full, sums, chunk)
        for l in range(live):
            t = tasks[first + l]
            if len(out.W) > 0:
                for j in range(k):
                    out.W[t, j] = h[j, l] + delta[j, l]
            if len(out.V) > 0:
                for m in range(size):
                    out.V[t, m] = -M[m, l]
            if moments is not None and e.offsets[t + 1] > e.offsets[t]:
                for m in range(size):
                    own[0, m] = -M[m, l]
                for j in range(k):
                    c[j] = h[j, l] + delta[j, l]
                update_moments(e, t, own, c, moments)


@part
def _collect(
    side: Matrix,
    tasks: Counts,
    M: Matrix,
    u: Matrix,
    delta: Matrix,
    r0: Vector,
    log_det: Vector,
    full: bool,
    sums: Sums,
    chunk: int,
) -> None:
    """Add what the next prior needs of these lanes."""
    k, live = len(u), len(tasks)
    for j in range(k):
        row = _place(j)
        for m in range(0 if full else j, j + 1):
            v, d, entry = 0.0, 0.0, row + m if full else j
            for l in range(live):
                v -= M[row + m, l]
                d += delta[j, l] * delta[m, l]
            sums.V[chunk, entry] += v
            sums.D[chunk, entry] += d
        fit = 0.0
        for l in range(live):
            fit += u[j, l] * delta[j, l]
        sums.totals[chunk, 1] += fit
        for s in range(side.shape[1]):
            total = 0.0
            for l in range(live):
                total += delta[j, l] * side[tasks[l], s]
            sums.F[chunk, j, s] += total
    for l in range(live):
        sums.totals[chunk, 0] += r0[l]
        sums.totals[chunk, 2] += log_det[l]
