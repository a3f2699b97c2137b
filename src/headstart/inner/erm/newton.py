"""Semismooth Newton steps for the tasks on which coordinate descent is slow."""

from __future__ import annotations

import math

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.erm.dual import SMALL, Workspace, rounding, solve_in_place
from headstart.losses import Objective
from headstart.losses.scalar import fenchel_gap, prox_conjugate, prox_slope, score, sign_of
from headstart.tasks.rows import add, add_outer, dot, dot_rows


@kernel
def newton_direction(X: FloatArray, ridge: float, work: Workspace, n_free: int) -> None:
    """``step = -(ridge I + sum_free curve_i x_i x_i^T)^{-1} g``.

    Solved in the weights, or with many columns and few free rows in those rows: that is
    cheaper, but loses digits where the rows are ill-conditioned.
    """
    d, g, step, free, curve = len(work.g), work.g, work.step, work.free, work.curve
    A, r = work.system, work.rhs
    if n_free < d and d > SMALL:
        for k in range(n_free):
            for m in range(k + 1):
                A[k, m] = dot_rows(X, free[k], free[m])
            A[k, k] += ridge / curve[free[k]]
            r[k] = dot(X, free[k], g)
        solve_in_place(A, r, n_free)
        for j in range(d):
            step[j] = -g[j] / ridge
        for k in range(n_free):
            add(X, free[k], r[k] / ridge, step)
        return
    A[:] = 0.0
    for k in range(n_free):
        row = free[k]
        add_outer(X, row, curve[row], A)
    for i in range(d):
        A[i, i] += ridge
        r[i] = -g[i]
    solve_in_place(A, r, d)
    assign(step, r)


@kernel
def line_search(
    objective: Objective, h: Vector, w: Vector, delta: float, work: Workspace, n: int
) -> float:
    """A step along the Newton direction at which the convex objective still falls or is flat."""
    left, right, t = 0.0, math.inf, 1.0
    start = 0.0
    for trial in range(100):
        at = 0.0 if trial == 0 else t
        rise = 0.0
        for j in range(h.size):
            rise += (w[j] + at * work.step[j] - h[j]) * work.step[j]
        rise *= n * objective.lam
        for i in range(n):
            s = work.s[i] + at * work.ds[i]
            a = work.center[i] + s / delta
            rise += prox_conjugate(objective.form, 1.0 / delta, a) * work.ds[i]
        if trial == 0:
            start = rise
        elif rise > 0.1 * abs(start):
            right = t
            t = 0.5 * (left + right)
        else:
            left = t
            if right == math.inf or rise >= 0.5 * start:
                return t
            t = 0.5 * (left + right)
    return left


@kernel
def polish(
    X: FloatArray,
    y: FloatArray,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    gap: float,
    target: float,
    max_steps: int,
    work: Workspace,
) -> tuple[float, int]:
    """Semismooth Newton steps on the dual with a vanishing proximal term.

    Begins at the primal point w of b, whose gap is `gap`, and ends at the best point met:
    at the target, when a hundred steps have brought nothing better, or when numbers overflow.

    With centre p and width delta, ``b_i(s) = argmin_b phi*(b) - b s + delta (b - p_i)^2 / 2``
    is a prox of the conjugate, and what remains is a smooth convex problem in w,

        sum_i max_b [b s_i - phi*(b) - delta (b - p_i)^2 / 2] + n lam |w - h|^2 / 2,

    whose Newton system involves only the rows where b_i is free. When the proximal part
    dominates the gap, the centre moves to b and delta shrinks. This takes a few dozen
    steps where n > d and lam is small, and coordinate descent would take thousands.
    """
    n, form = len(y), objective.form
    ridge = n * objective.lam
    s, ds, center, g, step = work.s, work.ds, work.center, work.g, work.step
    delta = 0.0
    for i in range(n):
        s[i] = score(form, dot(X, i, w), y[i])
        center[i] = b[i]
        delta += abs(s[i]) / n
    delta = max(0.1 * delta, 1e7 * rounding(X, y, h))
    # b is s / delta up to a prox: a smaller delta would only magnify the rounding of s, and
    # moving the centre converges fast without it.
    smallest = 1e-5 * delta
    best, since = gap, 0
    assign(work.best_w, w)
    assign(work.best_b[:n], b)
    for iteration in range(max_steps + 1):
        n_free = 0
        for j in range(h.size):
            g[j] = ridge * (w[j] - h[j])
        fenchel = 0.0
        for i in range(n):
            b[i] = prox_conjugate(form, 1.0 / delta, center[i] + s[i] / delta)
            fenchel += fenchel_gap(form, s[i], b[i]) / n
            if b[i] != 0.0:
                add(X, i, b[i] * sign_of(form, y[i]), g)
            work.curve[i] = prox_slope(form, 1.0 / delta, b[i]) / delta
            if work.curve[i] > 0.0:
                work.free[n_free] = i
                n_free += 1
        infeasible = 0.0
        for j in range(h.size):
            infeasible += g[j] * g[j] / (2.0 * n * ridge)
        gap, since = fenchel + infeasible, since + 1
        if gap < best:
            best, since = gap, 0
            assign(work.best_w, w)
            assign(work.best_b[:n], b)
        if best <= target or iteration == max_steps or since == 100 or not gap < math.inf:
            break
        if infeasible <= 0.1 * fenchel:
            for i in range(n):
                center[i] = b[i]
            delta = max(0.1 * delta, smallest)
            continue
        newton_direction(X, ridge, work, n_free)
        for i in range(n):
            ds[i] = dot(X, i, step) * sign_of(form, y[i])
        t = line_search(objective, h, w, delta, work, n)
        for j in range(h.size):
            w[j] += t * step[j]
        for i in range(n):  # from w, not by adding t ds: the gap is to be that of w
            s[i] = score(form, dot(X, i, w), y[i])
    assign(w, work.best_w)
    assign(b, work.best_b)
    return best, iteration
