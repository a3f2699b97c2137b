r"""A task's posterior a row at a time.

Row :math:`(x, y)` meets a prediction of mean :math:`f = \langle x, w\rangle` and variance
:math:`v = x^\top V x`. Its :math:`\omega, \tau` are those of the moments *after* the row, a fixed
point in two numbers, and

.. math:: \kappa = \frac{\omega/b}{1 + v\omega/b}, \qquad
          w \leftarrow w + \kappa(\tau - f)Vx, \qquad V \leftarrow V - \kappa(Vx)(Vx)^\top .

For the squared loss this is the posterior of all rows, in any order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, part
from headstart.losses import Form
from headstart.losses.many import quadratic_at
from headstart.losses.scalar import SQUARED

Matrix = NDArray[np.float64]

AGAIN = 50  # steps of the fixed point at most


@part
def row_moments(
    form: Form, f: float, v: float, y: float, share: float
) -> tuple[float, float, float]:
    """Kappa and tau of a row whose losses count `share` times, and its loss's bound after it."""
    mean, variance, kappa, tau, bound = f, v, 0.0, y, 0.0
    for _ in range(AGAIN):
        omega, tau, rest = quadratic_at(form, mean, variance, y)
        kappa = omega * share / (1.0 + v * omega * share)
        new, left = f + v * kappa * (tau - f), v / (1.0 + v * omega * share)
        bound = 0.5 * omega * ((new - tau) ** 2 + left) + rest
        if form.code == SQUARED or abs(new - mean) <= 1e-6 * math.sqrt(left + 1e-300):
            break
        mean += 0.5 * (new - mean)  # all the way, two forms might take turns
        variance += 0.5 * (left - variance)
    return kappa, tau, bound


@kernel
def follow_rows(
    X: Matrix,
    y: Vector,
    weight: Vector,
    begin: int,
    end: int,
    form: Form,
    noise: float,
    w: Vector,
    V: Matrix,
) -> float:
    """Take these rows into w and V; the sum of their losses' bounds."""
    k = w.size
    g, total = np.empty(k), 0.0
    for i in range(begin, end):
        f, v = 0.0, 0.0
        for j in range(k):
            g[j] = 0.0
            for m in range(k):
                g[j] += V[j, m] * X[i, m]
            f += X[i, j] * w[j]
            v += X[i, j] * g[j]
        kappa, tau, bound = row_moments(form, f, max(v, 0.0), y[i], weight[i] / noise)
        total += weight[i] * bound
        for j in range(k):
            w[j] += kappa * (tau - f) * g[j]
            for m in range(k):
                V[j, m] -= kappa * g[j] * g[m]
    return total
