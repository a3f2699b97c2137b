"""Algorithm 4 of the paper."""

from __future__ import annotations

import math

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.erm.dual import finite_gap, gap_at_kkt, primal_from_dual
from headstart.losses import Objective
from headstart.losses.scalar import prox_conjugate, score
from headstart.tasks.rows import dot


@kernel
def fista(
    X: FloatArray,
    y: FloatArray,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    eta: float,
    target: float,
    max_iter: int,
) -> tuple[float, int]:
    """Algorithm 4 of the paper: accelerated proximal gradient on the dual, from b = 0.

    In terms of b its step is ``eta = n gamma``: lam / R^2 for the paper's gamma.
    """
    n, form = len(y), objective.form
    p, old = b.copy(), b.copy()
    t, gap = 1.0, math.inf
    for iteration in range(1, max_iter + 1):
        primal_from_dual(X, y, objective, h, p, w)
        assign(old, b)
        for i in range(n):
            s = score(form, dot(X, i, w), y[i])
            b[i] = prox_conjugate(form, eta, p[i] + eta * s)
        primal_from_dual(X, y, objective, h, b, w)
        gap = gap_at_kkt(X, y, objective, w, b)
        if gap <= target:
            return gap, iteration
        if not gap < math.inf:  # numbers overflow, and would go on doing so
            return finite_gap(X, y, objective, h, w, b), iteration
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        for i in range(n):
            p[i] = b[i] + (t - 1.0) / after * (b[i] - old[i])
        t = after
    return gap, max_iter
