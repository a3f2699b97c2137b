r"""A task's dual problem: its primal point and its gap.

Solvers work on ``b_i = y_i n u_i`` (margin losses) or ``n u_i`` (residual losses), with u
the paper's dual variable, so that ``b_i`` lives in the domain of ``phi*`` and a row enters
as ``sign_i x_i``. For any w and b the gap between primal and dual values is

.. math:: \frac1n\sum_i\bigl[\varphi(s_i)+\varphi^*(b_i)-b_i s_i\bigr]
          + \frac\lambda2\Bigl\|w - h + \frac{1}{n\lambda}\sum_i b_i\,\mathrm{sign}_i x_i\Bigr\|^2,

a sum of terms none of which is negative: no digits are lost by subtracting two
objectives, and a gap of 1e-12 is a real one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.losses import Objective
from headstart.losses.scalar import SQUARED, fenchel_gap, score, sign_of
from headstart.tasks.rows import add, dot

SMALL = 64  # columns: up to here Newton systems are set up in the weights


class Workspace(NamedTuple):
    """Scratch of the solvers, allocated once for many tasks."""

    norms: Vector  # squared norms of the rows
    s: Vector  # scores
    ds: Vector  # change of the scores along the Newton direction
    center: Vector  # proximal centre of b
    curve: Vector  # curvature of each row in the Newton system
    free: NDArray[np.int64]  # rows with curvature
    g: Vector  # gradient in w
    step: Vector  # Newton direction in w
    best_w: Vector  # the point to go back to when a step brings nothing
    best_b: Vector
    system: NDArray[np.float64]  # Newton matrix
    rhs: Vector


@kernel
def workspace(n: int, d: int) -> Workspace:
    """Scratch for tasks of up to `n` rows and `d` columns."""
    m = d if d <= SMALL else min(n, d)
    return Workspace(
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(d),
        np.empty(d),
        np.empty(d),
        np.empty(n),
        np.empty((m, m)),
        np.empty(m),
    )


@kernel
def rounding(X: FloatArray, y: FloatArray, h: Vector) -> float:
    """A gap no larger than this is what rounding leaves of 0; an infinite one always is larger."""
    size = 0.0
    for i in range(len(y)):
        size += abs(dot(X, i, h)) + abs(y[i])
    return rounding_of(size / len(y))


@kernel
def rounding_of(size: float) -> float:
    """As `rounding`, from the mean of ``|<x, h>| + |y|``."""
    return min(1e-13 * size, 1e150)


@kernel
def gap_at_kkt(X: FloatArray, y: FloatArray, objective: Objective, w: Vector, b: Vector) -> float:
    """The duality gap where w is the primal point of b, so that its second part is 0."""
    form, total = objective.form, 0.0
    for i in range(len(y)):
        s = score(form, dot(X, i, w), y[i])
        if form.code == SQUARED:  # squares of large numbers would lose their difference
            total += 0.5 * (s - b[i]) * (s - b[i])
        else:
            total += fenchel_gap(form, s, b[i])
    return total / len(y)


@kernel
def finite_gap(
    X: FloatArray, y: FloatArray, objective: Objective, h: Vector, w: Vector, b: Vector
) -> float:
    """The gap at the primal point w of b; if it is not finite, both go back to w = h and b = 0."""
    gap = gap_at_kkt(X, y, objective, w, b)
    if not gap < math.inf:  # NaN is not either
        assign(w, h)
        b[:] = 0.0
        gap = gap_at_kkt(X, y, objective, w, b)
    return gap if gap < math.inf else math.inf


@kernel
def primal_from_dual(
    X: FloatArray, y: FloatArray, objective: Objective, h: Vector, b: Vector, w: Vector
) -> None:
    """``w = h - sum_i b_i sign_i x_i / (n lam)``."""
    assign(w, h)
    for i in range(len(y)):
        if b[i] != 0.0:
            add(X, i, -b[i] * sign_of(objective.form, y[i]) / (len(y) * objective.lam), w)


@kernel
def factor_in_place(A: NDArray[np.float64], m: int) -> None:
    """Cholesky's factor of the m x m matrix whose lower triangle is in `A`.

    Repeated or zero rows of X make it singular; its pivots are then kept just above 0.
    """
    for i in range(m):
        for j in range(i):
            total = 0.0
            for k in range(j):
                total += A[i, k] * A[j, k]
            A[i, j] = (A[i, j] - total) / A[j, j]
        total = 0.0
        for k in range(i):
            total += A[i, k] * A[i, k]
        A[i, i] = math.sqrt(max(A[i, i] - total, 1e-14 * A[i, i] + 1e-300))


@kernel
def solve_factored(A: NDArray[np.float64], r: Vector, m: int) -> None:
    """Solve for `r` the system whose factor is in `A`."""
    for i in range(m):
        total = 0.0
        for k in range(i):
            total += A[i, k] * r[k]
        r[i] = (r[i] - total) / A[i, i]
    for i in range(m - 1, -1, -1):
        r[i] /= A[i, i]
        for k in range(i):
            r[k] -= A[i, k] * r[i]


@kernel
def solve_in_place(A: NDArray[np.float64], r: Vector, m: int) -> None:
    """Solve for `r` the m x m system whose lower triangle is in `A`, which is lost."""
    factor_in_place(A, m)
    solve_factored(A, r, m)
