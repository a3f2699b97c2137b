"""Posteriors of many tasks side by side: every step is taken for 32 tasks at once.

Matrices of a task are small, and loops over their rows are too short for vector instructions.
So the innermost loop is over tasks: entry (i, j) of all their matrices lies together, and
factors, inverses and products of 32 matrices are found as one would be.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel
from headstart.inner.posterior.evidence import Evidence, add_row
from headstart.inner.posterior.state import Moments, Out, Sums, move, row_form
from headstart.inner.start import Start, start_weight
from headstart.losses import Form

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

LANES = 32


@kernel
def _place(i: int) -> int:
    return i * (i + 1) // 2


@kernel
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


@kernel
def invert(M: Matrix, k: int, live: int, log_det: Vector, product: Vector) -> None:
    """Replace matrices, a column of M each, by their inverses, and add their log-determinants.

    A logarithm takes as long as a whole row: pivots are multiplied, eight at a time.
    """
    product[:] = 1.0
    for i in range(k):  # Cholesky's factor, with the inverses of its diagonal
        row = _place(i)
        for j in range(i + 1):
            other = _place(j)
            for m in range(j):
                for l in range(live):
                    M[row + j, l] -= M[row + m, l] * M[other + m, l]
            if j < i:
                for l in range(live):
                    M[row + j, l] *= M[other + j, l]
        for l in range(live):
            product[l] *= M[row + i, l]
            M[row + i, l] = 1.0 / math.sqrt(M[row + i, l])
        if i % 8 == 7 or i == k - 1:
            for l in range(live):
                log_det[l] += math.log(product[l])
                product[l] = 1.0
    for j in range(k):  # the factor's inverse
        for i in range(j + 1, k):
            row, head = _place(i), _place(j)
            for l in range(live):
                M[row + j, l] *= M[head + j, l]
            for m in range(j + 1, i):
                for l in range(live):
                    M[row + j, l] += M[row + m, l] * M[_place(m) + j, l]
            for l in range(live):
                M[row + j, l] *= -M[row + i, l]
    for i in range(k):  # and its product with its transpose
        row = _place(i)
        for j in range(i + 1):
            for l in range(live):
                M[row + j, l] *= M[row + i, l]
            for m in range(i + 1, k):
                below = _place(m)
                for l in range(live):
                    M[row + j, l] += M[below + i, l] * M[below + j, l]


@kernel
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


@kernel
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
    own, c = np.empty((1, size)), np.empty(k)
    M, h, u, delta = (
        np.empty((size, LANES)),
        np.empty((k, LANES)),
        np.empty((k, LANES)),
        np.empty((k, LANES)),
    )
    r0, log_det, product = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    full, b = sums.V.shape[1] == size, start.noise
    for first in range(0, len(tasks), LANES):
        live = min(LANES, len(tasks) - first)
        for l in range(live):
            t = tasks[first + l]
            slot, q = e.slot[t], 0.0
            if slot >= 0:
                q = e.q[slot]
                for m in range(size):
                    M[m, l] = e.A[slot, m]
                for j in range(k):
                    u[j, l] = e.c[slot, j]
            if slot < 0 or e.offsets[t + 1] > e.offsets[t]:
                q += add_rows(e, form, moments, t, own, c)
                for m in range(size):
                    M[m, l] = own[0, m] + (M[m, l] if slot >= 0 else 0.0)
                for j in range(k):
                    u[j, l] = c[j] + (u[j, l] if slot >= 0 else 0.0)
            r0[l] = q
            for j in range(k):
                mean = start_weight(start.effects, e.side, t, j)
                h[j, l] = mean
                r0[l] -= mean * u[j, l]
        times(M, h, live, u)
        for j in range(k):
            for l in range(live):
                r0[l] -= h[j, l] * u[j, l]
                u[j, l] /= b
                delta[j, l] = 0.0
        for m in range(size):
            for l in range(live):
                M[m, l] /= b
                if len(start.precision) > 0:
                    M[m, l] += start.precision[m]
        for j in range(k if len(start.precision) == 0 else 0):
            for l in range(live):
                M[_place(j) + j, l] += 1.0 / start.variances[j]
        log_det[:] = start.log_det
        invert(M, k, live, log_det, product)
        times(M, u, live, delta)
        for j in range(k):
            for l in range(live):
                delta[j, l] = -delta[j, l]
        _collect(e, tasks[first : first + live], M, u, delta, r0, log_det, full, sums, chunk)
        for l in range(live):
            t = tasks[first + l]
            if len(out.W) > 0:
                for j in range(k):
                    out.W[t, j] = h[j, l] + delta[j, l]
            if len(out.V) > 0:
                for m in range(size):
                    out.V[t, m] = M[m, l]
            if moments is not None and e.offsets[t + 1] > e.offsets[t]:
                for m in range(size):
                    own[0, m] = M[m, l]
                for j in range(k):
                    c[j] = h[j, l] + delta[j, l]
                update_moments(e, t, own, c, moments)


@kernel
def _collect(
    e: Evidence,
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
        for m in range(j + 1 if full else 0):
            v, d = 0.0, 0.0
            for l in range(live):
                v += M[row + m, l]
                d += delta[j, l] * delta[m, l]
            sums.V[chunk, row + m] += v
            sums.D[chunk, row + m] += d
        if not full:
            v, d = 0.0, 0.0
            for l in range(live):
                v += M[row + j, l]
                d += delta[j, l] * delta[j, l]
            sums.V[chunk, j] += v
            sums.D[chunk, j] += d
        fit = 0.0
        for l in range(live):
            fit += u[j, l] * delta[j, l]
        sums.totals[chunk, 1] += fit
        for s in range(e.side.shape[1]):
            total = 0.0
            for l in range(live):
                total += delta[j, l] * e.side[tasks[l], s]
            sums.F[chunk, j, s] += total
    for l in range(live):
        sums.totals[chunk, 0] += r0[l]
        sums.totals[chunk, 2] += log_det[l]
