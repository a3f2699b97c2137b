r"""Posteriors of tasks with fewer rows than columns, by matrices of the size of their rows.

.. math:: K = X\Sigma X^\top + b\,\mathrm{diag}(1/\omega) = LL^\top, \qquad B = L^{-1}X\Sigma,

.. math:: V = \Sigma - B^\top B, \qquad w = h + B^\top L^{-1}(\tau - Xh) .

With a diagonal :math:`\Sigma` that is :math:`O(n^2 d)`, and nothing is as large as :math:`d^2`.
:math:`X\Sigma` and :math:`\sum B^\top B`, which have the most products, are those of many tasks at
once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, part
from headstart.inner.posterior.evidence import Evidence, lower_triangle
from headstart.inner.posterior.state import Moments, Out, Sums, move, row_form
from headstart.inner.start import Start, start_weight
from headstart.losses import Form
from headstart.tasks import longest

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

AT_ONCE = 64  # tasks whose products are taken together


@part
def factor(K: Matrix, n: int) -> float:
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


@part
def variance_left(K: Matrix, n: int, i: int, d: float, z: Vector) -> float:
    """``d - d^2 (K^-1)_ii``: the variance left of prediction i, whose noise is d."""
    total = 0.0
    for m in range(i, n):  # column i of the factor's inverse
        value = 1.0 if m == i else 0.0
        for j in range(i, m):
            value -= K[m, j] * z[j]
        z[m] = value / K[m, m]
        total += z[m] * z[m]
    return max(d - d * d * total, 0.0)


def low_rank_pass(
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

    Products of the matrices of many tasks are quicker; the bits of each depend on the others.
    """
    full = len(start.covariance) > 0
    for first in range(0, len(tasks), AT_ONCE):
        block = tasks[first : first + AT_ONCE]
        X = e.X[_rows(e.offsets, block)]
        if not full:
            B = X * start.variances
        else:
            B = _times_covariance(X, start) if out.apart else X @ start.covariance
        delta = np.empty((len(block), X.shape[1]))
        _solve(e, start, form, moments, block, B, delta, sums.totals[chunk], out)
        sums.F[chunk] += delta.T @ e.side[block]
        if full:
            i, j = lower_triangle(X.shape[1])
            sums.V[chunk] += (len(block) * start.covariance - B.T @ B)[i, j]
            sums.D[chunk] += (delta.T @ delta)[i, j]
        else:
            sums.V[chunk] += len(block) * start.variances - np.square(B).sum(axis=0)
            sums.D[chunk] += np.square(delta).sum(axis=0)


@kernel
def _times_covariance(X: Matrix, start: Start) -> Matrix:
    """``X Sigma``, every row by itself."""
    S, k = start.covariance, X.shape[1]
    even = k - k % 4
    G = np.zeros(X.shape)
    for i in range(len(X)):
        for m in range(0, even, 4):  # four at a time: G is read and written less often
            a, b, c, d = X[i, m], X[i, m + 1], X[i, m + 2], X[i, m + 3]
            for j in range(k):
                G[i, j] += a * S[m, j] + b * S[m + 1, j] + c * S[m + 2, j] + d * S[m + 3, j]
        for m in range(even, k):
            for j in range(k):
                G[i, j] += X[i, m] * S[m, j]
    return G


def _rows(offsets: Counts, tasks: Counts) -> slice | Counts:
    """Where the rows of these tasks are."""
    if tasks[-1] - tasks[0] + 1 == len(tasks):
        return slice(int(offsets[tasks[0]]), int(offsets[tasks[-1] + 1]))
    sizes = offsets[tasks + 1] - offsets[tasks]
    ends = np.cumsum(sizes)
    return np.repeat(offsets[tasks] - (ends - sizes), sizes) + np.arange(ends[-1])


@kernel
def _solve(
    e: Evidence,
    start: Start,
    form: Form,
    moments: Moments | None,
    tasks: Counts,
    G: Matrix,
    went: Matrix,
    totals: Vector,
    out: Out,
) -> None:
    """Turn ``G = X Sigma`` of tasks that lie together into B, and find how far they went.

    Adds to the totals of `Sums`, and fills what is asked for.
    """
    k = len(start.effects)
    most = 0
    for t in tasks:
        most = max(most, longest(e.offsets, t, t + 1))
    K, noise, z, own = np.empty((most, most)), np.empty(most), np.empty(most), np.empty(most)
    h, b, base = np.empty(k), start.noise, 0
    for place in range(len(tasks)):
        t = tasks[place]
        begin, n = e.offsets[t], e.offsets[t + 1] - e.offsets[t]
        delta = went[place]
        for j in range(k):
            h[j] = start_weight(start.effects, e.side, t, j)
            delta[j] = 0.0
        lost, log_det, at_start = 0.0, 0.0, 0.0
        for a in range(n):
            i = begin + a
            omega, tau, rest = e.weight[i], e.y[i], 0.0  # of the squared loss
            if moments is not None:
                omega, tau, rest = row_form(e, form, moments, i)
            residual = tau
            for j in range(k):
                residual -= e.X[i, j] * h[j]
            z[a], noise[a] = residual, b / omega
            at_start += omega * residual * residual
            lost += 2.0 * rest
            log_det -= math.log(noise[a])
            for m in range(a + 1):
                total = 0.0
                for j in range(k):
                    total += e.X[i, j] * G[base + m, j]
                K[a, m] = total
            K[a, a] += noise[a]
        log_det += factor(K, n)
        fit = 0.0
        for a in range(n):  # z and G become L^-1 z and B = L^-1 G
            for m in range(a):
                z[a] -= K[a, m] * z[m]
                for j in range(k):
                    G[base + a, j] -= K[a, m] * G[base + m, j]
            z[a] /= K[a, a]
            fit += z[a] * z[a]
            for j in range(k):
                G[base + a, j] /= K[a, a]
                delta[j] += z[a] * G[base + a, j]
        totals[0] += at_start + lost
        totals[1] += at_start / b - fit
        totals[2] += log_det
        if len(out.W) > 0:
            for j in range(k):
                out.W[t, j] = h[j] + delta[j]
        if len(out.V) > 0:
            _fill(start, n, G, base, out, t)
        if moments is not None:
            moments.change[t] = 0.0
            for a in range(n):
                mean = 0.0
                for j in range(k):
                    mean += e.X[begin + a, j] * (h[j] + delta[j])
                away = move(moments, begin + a, mean, variance_left(K, n, a, noise[a], own))
                moments.change[t] = max(moments.change[t], away)
        base += n


@part
def _fill(start: Start, n: int, B: Matrix, base: int, out: Out, t: int) -> None:
    """The packed covariance of task t."""
    place = 0
    for j in range(B.shape[1]):
        for m in range(j + 1):
            value = 0.0
            if len(start.covariance) > 0:
                value = start.covariance[j, m]
            elif j == m:
                value = start.variances[j]
            for a in range(base, base + n):
                value -= B[a, j] * B[a, m]
            out.V[t, place + m] = value
        place += j + 1
