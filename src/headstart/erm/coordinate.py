"""Dual coordinate descent, and Newton's step on the rows it leaves free."""

from __future__ import annotations

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel
from headstart.erm.dual import Workspace, add, dot, dot_rows, solve_in_place
from headstart.losses import Objective
from headstart.losses.scalar import (
    conjugate_slope,
    prox_conjugate,
    prox_slope,
    score,
    sign_of,
    slope,
)


@kernel
def coordinate_pass(
    X: FloatArray, y: FloatArray, objective: Objective, w: Vector, b: Vector, norms: Vector
) -> int:
    """Minimise the dual exactly in each coordinate in turn; `w` stays the primal point of b.

    Returns a number that stands for the set of rows left free: the sum of their squared
    positions.
    """
    form, ridge = objective.form, len(y) * objective.lam
    free = 0
    for i in range(len(y)):
        s = score(form, dot(X, i, w), y[i])
        q = norms[i] / ridge
        new = prox_conjugate(form, 1.0 / q, b[i] + s / q) if q > 0.0 else slope(form, s)
        if new != b[i]:
            add((b[i] - new) * sign_of(form, y[i]) / ridge, X, i, w)
            b[i] = new
        if form.lower < new < form.upper:
            free += (i + 1) * (i + 1)
    return free


@kernel
def free_step(
    X: FloatArray, y: FloatArray, objective: Objective, w: Vector, b: Vector, work: Workspace
) -> None:
    """Newton's step for the dual on the rows where b is free to move, cut at the domain's ends.

    Once coordinate descent has found which rows are free, this ends at the solution.
    """
    form, ridge = objective.form, len(y) * objective.lam
    A, r, free, n_free = work.system, work.rhs, work.free, 0
    corner = form.lower < 0.0 < form.upper and prox_slope(form, 1.0, 0.0) == 0.0  # of phi* at 0
    for i in range(len(y)):
        share = prox_slope(form, 1.0, b[i])  # 1 / (1 + second derivative of phi*)
        if share == 0.0:
            continue
        if n_free == len(r):
            return  # more free rows than columns: they do not determine a step
        free[n_free] = i
        sign = sign_of(form, y[i])
        for m in range(n_free + 1):
            A[n_free, m] = sign * sign_of(form, y[free[m]]) * dot_rows(X, i, free[m])
        A[n_free, n_free] += ridge * (1.0 / share - 1.0)
        s = score(form, dot(X, i, w), y[i])
        r[n_free] = ridge * (s - conjugate_slope(form, b[i]))
        n_free += 1
    solve_in_place(A, r, n_free)
    for m in range(n_free):
        i = free[m]
        new = min(max(b[i] + r[m], form.lower), form.upper)
        if corner and new * b[i] < 0.0:
            new = 0.0
        add((b[i] - new) * sign_of(form, y[i]) / ridge, X, i, w)
        b[i] = new
