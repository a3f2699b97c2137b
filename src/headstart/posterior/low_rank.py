r"""Posteriors of tasks with fewer rows than columns, by matrices of the size of their rows.

.. math:: K = X\Sigma X^\top + b\,\mathrm{diag}(1/\omega) = LL^\top, \qquad B = L^{-1}X\Sigma,

.. math:: V = \Sigma - B^\top B, \qquad w = h + B^\top L^{-1}(\tau - Xh) .

With a diagonal :math:`\Sigma` that is :math:`O(n^2 d)`, and nothing is as large as :math:`d^2`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart._jit import kernel
from headstart.losses import Form
from headstart.losses.scalar import SQUARED
from headstart.posterior.evidence import Evidence
from headstart.posterior.state import Moments, Out, Start, Sums, move, row_form
from headstart.tasks import longest

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


@kernel
def _spread(X: Matrix, i: int, start: Start, G: Matrix, row: int) -> None:
    """``G[row] = Sigma x_i``."""
    k = X.shape[1]
    if len(start.covariance) == 0:
        for j in range(k):
            G[row, j] = start.variances[j] * X[i, j]
        return
    S, even = start.covariance, k - k % 4
    G[row, :] = 0.0
    for m in range(0, even, 4):  # four at a time: G is read and written less often
        a, b, c, d = X[i, m], X[i, m + 1], X[i, m + 2], X[i, m + 3]
        for j in range(k):
            G[row, j] += a * S[m, j] + b * S[m + 1, j] + c * S[m + 2, j] + d * S[m + 3, j]
    for m in range(even, k):
        for j in range(k):
            G[row, j] += X[i, m] * S[m, j]


@kernel
def _factor(K: Matrix, n: int) -> float:
    """Cholesky's factor of the lower triangle in place; the log-determinant."""
    log_det = 0.0
    for i in range(n):
        for j in range(i + 1):
            total = K[i, j]
            for m in range(j):
                total -= K[i, m] * K[j, m]
            K[i, j] = total / K[j, j] if j < i else math.sqrt(total)
        log_det += 2.0 * math.log(K[i, i])
    return log_det


@kernel
def _variance(K: Matrix, n: int, i: int, d: float, z: Vector) -> float:
    """``d - d^2 (K^-1)_ii``: the variance left of prediction i, whose noise is d."""
    total = 0.0
    for m in range(i, n):  # column i of the factor's inverse
        value = 1.0 if m == i else 0.0
        for j in range(i, m):
            value -= K[m, j] * z[j]
        z[m] = value / K[m, m]
        total += z[m] * z[m]
    return max(d - d * d * total, 0.0)


@kernel
def low_rank_pass(
    e: Evidence,
    start: Start,
    form: Form,
    moments: Moments,
    tasks: Counts,
    sums: Sums,
    chunk: int,
    out: Out,
) -> None:
    """Posteriors of these tasks: their sums go to row `chunk` of `sums`, and more if asked for."""
    k, r = start.effects.shape
    most = 0
    for t in tasks:
        most = max(most, longest(e.offsets, t, t + 1))
    G, K, noise, z, own = (
        np.empty((most, k)),
        np.empty((most, most)),
        np.empty(most),
        np.empty(most),
        np.empty(most),
    )
    h, delta, b = np.empty(k), np.empty(k), start.noise
    for t in tasks:
        begin, n = e.offsets[t], e.offsets[t + 1] - e.offsets[t]
        for j in range(k):
            h[j] = 0.0
            for s in range(r):
                h[j] += start.effects[j, s] * e.side[t, s]
            delta[j] = 0.0
        lost, log_det, at_start = 0.0, 0.0, 0.0
        for a in range(n):
            i = begin + a
            omega, tau, rest = row_form(e, form, moments, i)
            residual = tau
            for j in range(k):
                residual -= e.X[i, j] * h[j]
            z[a], noise[a] = residual, b / omega
            at_start += omega * residual * residual
            lost += 2.0 * rest
            log_det -= math.log(noise[a])
            _spread(e.X, i, start, G, a)
            for m in range(a + 1):
                total = 0.0
                for j in range(k):
                    total += e.X[i, j] * G[m, j]
                K[a, m] = total
            K[a, a] += noise[a]
        log_det += _factor(K, n)
        fit = 0.0
        for a in range(n):  # z and G become L^-1 z and B = L^-1 G
            for m in range(a):
                z[a] -= K[a, m] * z[m]
                for j in range(k):
                    G[a, j] -= K[a, m] * G[m, j]
            z[a] /= K[a, a]
            fit += z[a] * z[a]
            for j in range(k):
                G[a, j] /= K[a, a]
                delta[j] += z[a] * G[a, j]
        _collect(e, start, t, n, G, delta, sums, chunk)
        sums.totals[chunk, 0] += at_start + lost
        sums.totals[chunk, 1] += at_start / b - fit
        sums.totals[chunk, 2] += log_det
        if len(out.W) > 0:
            for j in range(k):
                out.W[t, j] = h[j] + delta[j]
        if len(out.V) > 0:
            _fill(start, n, G, out, t)
        if form.code != SQUARED:
            moments.change[t] = 0.0
            for a in range(n):
                mean = 0.0
                for j in range(k):
                    mean += e.X[begin + a, j] * (h[j] + delta[j])
                away = move(moments, begin + a, mean, _variance(K, n, a, noise[a], own))
                moments.change[t] = max(moments.change[t], away)


@kernel
def _collect(
    e: Evidence, start: Start, t: int, n: int, B: Matrix, delta: Vector, sums: Sums, chunk: int
) -> None:
    """Add what the next prior needs of one task."""
    k = delta.size
    if len(start.covariance) == 0:
        for j in range(k):
            left = start.variances[j]
            for a in range(n):
                left -= B[a, j] * B[a, j]
            sums.V[chunk, j] += left
            sums.D[chunk, j] += delta[j] * delta[j]
    else:
        place = 0
        for j in range(k):
            for m in range(j + 1):
                sums.V[chunk, place + m] += start.covariance[j, m]
                sums.D[chunk, place + m] += delta[j] * delta[m]
            for a in range(0, n - 1, 2):
                p, q = B[a, j], B[a + 1, j]
                for m in range(j + 1):
                    sums.V[chunk, place + m] -= p * B[a, m] + q * B[a + 1, m]
            if n % 2 == 1:
                for m in range(j + 1):
                    sums.V[chunk, place + m] -= B[n - 1, j] * B[n - 1, m]
            place += j + 1
    for j in range(k):
        for s in range(e.side.shape[1]):
            sums.F[chunk, j, s] += delta[j] * e.side[t, s]


@kernel
def _fill(start: Start, n: int, B: Matrix, out: Out, t: int) -> None:
    """The packed covariance of task t."""
    place = 0
    for j in range(B.shape[1]):
        for m in range(j + 1):
            value = 0.0
            if len(start.covariance) > 0:
                value = start.covariance[j, m]
            elif j == m:
                value = start.variances[j]
            for a in range(n):
                value -= B[a, j] * B[a, m]
            out.V[t, place + m] = value
        place += j + 1
