r"""The squared loss, whose exact solution is that of a linear system.

It is either of, the second being smaller with fewer rows than columns,

.. math:: (X^\top X + n\lambda I)(w - h) = X^\top(y - Xh), \qquad
          (XX^\top + n\lambda I)\,b = n\lambda(Xh - y),\quad w = h - \frac{1}{n\lambda}X^\top b .

The residual of the system is taken from X and not from its products, and solving for it once
more brings back the digits that those have lost.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.erm.dual import (
    Workspace,
    factor_in_place,
    primal_from_dual,
    solve_factored,
)
from headstart.losses import Objective
from headstart.tasks.rows import add, add_outer, dot, dot_rows

Matrix = NDArray[np.float64]

SOLVES = 6  # the first, and refinements as long as they help


@kernel
def solve_squares(
    X: FloatArray,
    y: FloatArray,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    target: float,
    work: Workspace,
) -> tuple[float, int]:
    """Fill `w` with the solution and `b` with its residuals; return the gap and the solves.

    The system in the rows loses digits where those are nearly dependent and reg is tiny; that in
    the weights then often does not.
    """
    n, d = X.shape
    gap, done = _solve(X, y, objective, h, w, b, target, n < d, work)
    if gap > target and n < d <= len(work.rhs):
        row_w, row_b = work.step, work.center[:n]
        assign(row_w, w)
        assign(row_b, b)
        other, more = _solve(X, y, objective, h, w, b, target, False, work)
        done += more
        if other < gap:
            return other, done
        assign(w, row_w)
        assign(b, row_b)
    return gap, done


@kernel
def _solve(
    X: FloatArray,
    y: FloatArray,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    target: float,
    by_rows: bool,
    work: Workspace,
) -> tuple[float, int]:
    """Solve one of the systems, and once more for its residual as long as the gap falls."""
    n, d = X.shape
    m = n if by_rows else d
    point = b if by_rows else w
    best, best_w, best_b = math.inf, work.best_w, work.best_b[:n]
    assign(w, h)
    b[:] = 0.0
    for done in range(SOLVES + 1):
        if by_rows:
            gap = _row_residual(X, y, objective, h, w, b, work.rhs)
        else:
            gap = _column_residual(X, y, objective, h, w, b, work.rhs)
        if done > 0 and gap <= target:
            return gap, done
        if done == 0:
            _fill(X, n * objective.lam, by_rows, work.system)
            factor_in_place(work.system, m)
        elif not gap < best:
            break
        best = gap
        assign(best_w, w)
        assign(best_b, b)
        solve_factored(work.system, work.rhs, m)
        for i in range(m):
            point[i] += work.rhs[i]
    assign(w, best_w)
    assign(b, best_b)
    if not best < math.inf:  # numbers overflow: w is h
        b[:] = 0.0
        return math.inf, done
    return best, done


@kernel
def _row_residual(
    X: FloatArray, y: FloatArray, objective: Objective, h: Vector, w: Vector, b: Vector, r: Vector
) -> float:
    """Fill w with the primal point of b, and r with what b misses; return the gap."""
    n, total = len(y), 0.0
    primal_from_dual(X, y, objective, h, b, w)
    for i in range(n):
        off = dot(X, i, w) - y[i] - b[i]
        r[i] = n * objective.lam * off
        total += off * off
    return total / (2.0 * n)


@kernel
def _column_residual(
    X: FloatArray, y: FloatArray, objective: Objective, h: Vector, w: Vector, b: Vector, r: Vector
) -> float:
    """Fill b with the residuals of w, and r with what w misses; return the gap."""
    n, ridge, total = len(y), len(y) * objective.lam, 0.0
    for j in range(h.size):
        r[j] = ridge * (h[j] - w[j])
    for i in range(n):
        b[i] = dot(X, i, w) - y[i]
        add(X, i, -b[i], r)
    for j in range(h.size):
        total += r[j] * r[j]
    return total / (2.0 * n * ridge)


@kernel
def _fill(X: FloatArray, ridge: float, by_rows: bool, A: Matrix) -> None:
    """The lower triangle of a system."""
    n, d = X.shape
    if by_rows:
        for i in range(n):
            for k in range(i + 1):
                A[i, k] = dot_rows(X, i, k)
            A[i, i] += ridge
        return
    A[:] = 0.0
    for i in range(n):
        add_outer(X, i, 1.0, A)
    for j in range(d):
        A[j, j] += ridge
