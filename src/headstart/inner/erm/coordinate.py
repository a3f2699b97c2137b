"""Dual coordinate descent, and Newton's step on the rows it leaves free."""

from __future__ import annotations

import math

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.erm.dual import (
    Workspace,
    finite_gap,
    gap_at_kkt,
    solve_in_place,
)
from headstart.losses import Objective
from headstart.losses.scalar import (
    conjugate_slope,
    prox_conjugate,
    prox_slope,
    score,
    sign_of,
    slope,
)
from headstart.tasks.rows import add, dot, dot_rows


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
            add(X, i, (b[i] - new) * sign_of(form, y[i]) / ridge, w)
            b[i] = new
        if form.lower < new < form.upper:
            free += (i + 1) * (i + 1)
    return free


@kernel
def free_step(
    X: FloatArray, y: FloatArray, objective: Objective, w: Vector, b: Vector, work: Workspace
) -> None:
    """Newton's step for the dual on the rows where b is free to move, cut at the domain's ends.

    Once coordinate descent has found which rows are free, this ends at the solution. Before
    that, and where the free rows depend on each other, it may lead anywhere, or not be finite.
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
        add(X, i, (b[i] - new) * sign_of(form, y[i]) / ridge, w)
        b[i] = new


@kernel
def descend(
    X: FloatArray,
    y: FloatArray,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    target: float,
    passes: int,
    work: Workspace,
) -> tuple[float, int]:
    """Passes from the primal point w of b, with a Newton step whenever the free rows settle.

    Ends at the target, or at the best point met. A step that makes the gap rise is not undone at
    once: cut at the domain's ends it often shows which rows are free, and undoing it would make
    small tasks take two to four times as long. One that is not finite is, and one that no end
    cuts: from far away w would come back with the rounding of large numbers. Returns the gap
    and the number of passes.
    """
    form, best, before = objective.form, math.inf, -1
    best_w, best_b = work.best_w, work.best_b[: len(y)]
    for done in range(1, passes + 1):
        free = coordinate_pass(X, y, objective, w, b, work.norms)
        settled, before = free == before, free
        if settled:
            free_step(X, y, objective, w, b, work)
            gap = gap_at_kkt(X, y, objective, w, b)
        elif done == 1:
            gap = finite_gap(X, y, objective, h, w, b)
        else:
            continue
        if gap <= target:
            return gap, done
        if gap < best or done == 1:
            best = gap
            assign(best_w, w)
            assign(best_b, b)
        elif not gap < math.inf or form.upper - form.lower == math.inf:
            assign(w, best_w)
            assign(b, best_b)
    gap = gap_at_kkt(X, y, objective, w, b)
    if gap < best:
        return gap, passes
    assign(w, best_w)
    assign(b, best_b)
    return best, passes
