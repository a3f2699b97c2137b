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

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, part
from headstart.inner.posterior.low_rank import factor, variance_left
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.posterior.state import Moments, Out, Sums, move, quadratic_row
from headstart.inner.start import Start, start_weight
from headstart.losses import Form
from headstart.losses.scalar import SQUARED
from headstart.tasks import longest

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


@kernel
def start_moments(e: SparseEvidence, start: Start, mean: Vector, variance: Vector) -> None:
    """Mean and variance of the prediction of every row as the prior has them."""
    mean[:] = 0.0
    variance[:] = 0.0
    for t in range(len(e.offsets) - 1):
        for c in range(e.touched[t], e.touched[t + 1]):
            j = e.columns[c]
            h = start_weight(start.effects, e.side, t, j)
            for p in range(e.starts[c], e.starts[c + 1]):
                i, x = e.offsets[t] + e.row[p], e.value[p]
                mean[i] += x * h
                variance[i] += x * x * start.variances[j]


def side_by_side(start: Start) -> Start:
    """The same, with all numbers of a column next to each other.

    Tasks meet columns that are far apart, and what a pass waits for is memory: two numbers of one
    column had better come together. Sums are kept in the same way.
    """
    table = np.column_stack([start.variances, start.effects])
    return start._replace(variances=table[:, 0], effects=table[:, 1:])


@part
def _invert(L: Matrix, n: int, half: Matrix, inverse: Matrix) -> None:
    """The inverse of L, and that of ``L L^T``; both below and on their diagonals.

    All sums run along rows, so that they become vector instructions.
    """
    for i in range(n):
        below = 1.0 / L[i, i]
        for j in range(i + 1):
            half[i, j] = inverse[i, j] = 0.0
        for m in range(i):
            factor = L[i, m] * below
            for j in range(m + 1):
                half[i, j] -= factor * half[m, j]
        half[i, i] = below
    for m in range(n):
        for i in range(m + 1):
            for j in range(i + 1):
                inverse[i, j] += half[m, i] * half[m, j]


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
    K, half, inverse = np.empty((most, most)), np.empty((most, most)), np.empty((most, most))
    noise, residual, z, own = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    b, totals, one = start.noise, sums.totals[chunk], np.uint64(1)
    infos, pulls = sums.V[chunk], sums.D[chunk]  # until the last task is done
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
            h = start_weight(start.effects, e.side, t, j)
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
        _invert(K, n, half, inverse)
        z[:n], fit = 0.0, 0.0
        for a in range(n):  # z is K^-1 residual
            total = 0.0
            for m in range(a + 1):
                total += half[a, m] * residual[m]
            fit += total * total
            for m in range(a + 1):
                z[m] += total * half[a, m]
        for c in range(first, last):
            j = e.columns[c]
            pull, info = 0.0, 0.0
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
            infos[j] += info
            pulls[j] += pull * pull
            if len(out.W) > 0:
                out.W[0, c] = start.variances[j] * pull
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
    for j in range(infos.size):
        sigma = start.variances[j]
        infos[j] = len(tasks) * sigma - sigma * sigma * infos[j]
        pulls[j] *= sigma * sigma
