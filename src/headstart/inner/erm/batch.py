r"""The exact solution of one task from many biases and with many regs at once.

The scores at a dual point b, with the rows' signs inside K and at the biases inside S, are

.. math:: s = S_q - \frac{1}{n\lambda_q} K b, \qquad K = XX^\top,\ S = XH,

so that no candidate q needs a column of X. All of them are looked at together first: one that
has hardly moved since it was last solved is solved still. Each of the others begins with Newton's
step on the rows that were free there, which mostly ends at the solution. Neighbouring candidates
have the same free rows, and so share the factor of their system.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import inlined, kernel
from headstart.inner.erm.dual import factor_in_place, rounding_of, solve_factored, workspace
from headstart.inner.erm.solve import DESCENT_PASSES, MAX_ITER, TOLERANCE, solve_task
from headstart.losses import Form, Objective
from headstart.losses.form import ABSOLUTE, ABSOLUTE_FORM, HINGE, HINGE_FORM, SQUARED
from headstart.losses.scalar import (
    conjugate_slope,
    fenchel_gap,
    prox_conjugate,
    prox_slope,
    score,
    sign_of,
    slope,
)

Matrix = NDArray[np.float64]


class Batch(NamedTuple):
    """A task for all candidates, a column for each."""

    K: Matrix  # products of the rows, with their signs
    S: Matrix  # scores at the biases
    ridges: Vector  # n lam
    targets: Vector  # gaps to reach
    n_columns: int  # of X: no more free rows than that determine a step


class Column(NamedTuple):
    """One candidate in work, and the last system that was factored."""

    start: Vector  # scores at the bias
    b: Vector  # dual point
    s: Vector  # scores there
    step: Vector
    free: NDArray[np.int64]  # the rows of the system
    diagonal: Vector  # what was added to its diagonal
    factor: Matrix
    size: NDArray[np.int64]  # how many rows, a single number


@kernel
def read_task(X: FloatArray, y: FloatArray, H: Matrix, lams: Vector, form: Form) -> Batch:
    """The products of a task's rows, as scores."""
    n, m = len(y), lams.size
    K, S, targets = np.dot(X, X.T), np.dot(X, H), np.zeros(m)
    for i in range(n):
        for q in range(m):
            targets[q] += abs(S[i, q]) + abs(y[i])
            S[i, q] = score(form, S[i, q], y[i])
        for k in range(n):
            K[i, k] *= sign_of(form, y[i]) * sign_of(form, y[k])
    for q in range(m):
        floor = rounding_of(targets[q] / n)
        floor *= max(floor, 1.0) if form.code == SQUARED else 1.0
        targets[q] = max(TOLERANCE * min(1.0, lams[q]), floor)
    return Batch(K, S, n * lams, targets, X.shape[1])


@inlined
def _gap(form: Form, s: float, b: float) -> float:
    """A row's part of the duality gap."""
    if form.code == SQUARED:  # squares of large numbers would lose their difference
        return 0.5 * (s - b) * (s - b)
    return fenchel_gap(form, s, b)


@inlined
def _gaps(batch: Batch, form: Form, B: Matrix, now: Matrix, gaps: Vector) -> None:
    """Scores and gaps of all candidates at their dual points."""
    n, m = B.shape
    np.dot(batch.K, B, now)
    gaps[:] = 0.0
    for i in range(n):
        for q in range(m):
            now[i, q] = batch.S[i, q] - now[i, q] / batch.ridges[q]
            gaps[q] += _gap(form, now[i, q], B[i, q]) / n


@inlined
def _find_scores(batch: Batch, form: Form, ridge: float, column: Column) -> float:
    """Scores at the column's dual point; return the gap."""
    n, total = len(column.b), 0.0
    for i in range(n):
        drift = 0.0
        for k in range(n):
            drift += batch.K[i, k] * column.b[k]
        column.s[i] = column.start[i] - drift / ridge
        total += _gap(form, column.s[i], column.b[i])
    return total / n


@inlined
def _free_step(batch: Batch, form: Form, ridge: float, column: Column) -> None:
    """Newton's step on the rows where b is free to move, cut at the domain's ends.

    As `coordinate.free_step`, in products of rows.
    """
    K, b, free, diagonal, step = batch.K, column.b, column.free, column.diagonal, column.step
    corner = form.lower < 0.0 < form.upper and prox_slope(form, 1.0, 0.0) == 0.0  # of phi* at 0
    size, same = 0, True
    for i in range(len(b)):
        share = prox_slope(form, 1.0, b[i])  # 1 / (1 + second derivative of phi*)
        if share == 0.0:
            continue
        if size == batch.n_columns:
            column.size[0] = 0
            return
        added = ridge * (1.0 / share - 1.0)
        if size >= column.size[0] or free[size] != i or diagonal[size] != added:
            same, free[size], diagonal[size] = False, i, added
        step[size] = ridge * (column.s[i] - conjugate_slope(form, b[i]))
        size += 1
    if not same or size != column.size[0]:
        for k in range(size):
            for m in range(k + 1):
                column.factor[k, m] = K[free[k], free[m]]
            column.factor[k, k] += diagonal[k]
        factor_in_place(column.factor, size)
        column.size[0] = size
    solve_factored(column.factor, step, size)
    for k in range(size):
        i = free[k]
        new = min(max(b[i] + step[k], form.lower), form.upper)
        b[i] = 0.0 if corner and new * b[i] < 0.0 else new


@inlined
def _coordinate_pass(batch: Batch, form: Form, ridge: float, column: Column) -> None:
    """Minimise the dual exactly in each coordinate in turn; the scores follow."""
    K, b, s = batch.K, column.b, column.s
    for i in range(len(b)):
        q = K[i, i] / ridge
        new = prox_conjugate(form, 1.0 / q, b[i] + s[i] / q) if q > 0.0 else slope(form, s[i])
        if new != b[i]:
            change = (b[i] - new) / ridge
            for k in range(len(b)):
                s[k] += change * K[i, k]
            b[i] = new


@inlined
def _descend(batch: Batch, form: Form, q: int, column: Column) -> float:
    """Newton's steps with passes of coordinate descent between them; return the gap."""
    ridge, gap = batch.ridges[q], math.inf
    for _ in range(DESCENT_PASSES):
        _free_step(batch, form, ridge, column)
        gap = _find_scores(batch, form, ridge, column)
        if gap <= batch.targets[q]:
            break
        if not gap < math.inf:  # NaN is not either
            column.b[:] = 0.0
            assign(column.s, column.start)
        _coordinate_pass(batch, form, ridge, column)
    return gap


@inlined
def _improve_all(batch: Batch, form: Form, B: Matrix, gaps: Vector) -> None:
    """Bring the gaps of all candidates to their targets, where that is quick."""
    n, m = B.shape
    now = np.empty((n, m))
    column = Column(
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty((n, n)),
        np.zeros(1, np.int64),
    )
    _gaps(batch, form, B, now, gaps)
    for q in range(m):
        if gaps[q] <= batch.targets[q]:
            continue
        for i in range(n):
            column.start[i], column.b[i], column.s[i] = batch.S[i, q], B[i, q], now[i, q]
        if math.isfinite(column.start.sum()):
            gaps[q] = _descend(batch, form, q, column)
            for i in range(n):
                B[i, q] = column.b[i]


@kernel
def improve(batch: Batch, form: Form, B: Matrix, gaps: Vector) -> None:
    """As `_improve_all`, for any loss; the paper's two losses are constants in their loops."""
    if form.code == ABSOLUTE:
        _improve_all(batch, ABSOLUTE_FORM, B, gaps)
    elif form.code == HINGE:
        _improve_all(batch, HINGE_FORM, B, gaps)
    else:
        _improve_all(batch, form, B, gaps)


@kernel
def _fill_weights(
    X: FloatArray, y: FloatArray, H: Matrix, lams: Vector, form: Form, B: Matrix, W: Matrix
) -> None:
    """The primal points of dual points: ``w = h - sum_i b_i sign_i x_i / (n lam)``."""
    n, m = B.shape
    shares = np.empty((n, m))
    for i in range(n):
        sign = sign_of(form, y[i]) / n
        for q in range(m):
            shares[i, q] = B[i, q] * sign / lams[q]
    np.dot(X.T, shares, W)
    for j in range(len(W)):
        for q in range(m):
            W[j, q] = H[j, q] - W[j, q]


@kernel
def solve_batch(
    X: FloatArray,
    y: FloatArray,
    H: Matrix,
    lams: Vector,
    form: Form,
    B: Matrix,
    W: Matrix,
    gaps: Vector,
) -> None:
    """Solve a task from every column of H with its own lam, beginning at the columns of B.

    Fills `B` and `W` with dual points and weights, and `gaps`: 0 where solved. `solve_task` takes
    the candidates that stay above their target, and all of them where a task has so many rows
    that their products are more than the rows. A bias that is not finite is its own solution.
    """
    (n, d), m = X.shape, lams.size
    gaps[:] = math.inf
    if n <= 2 * d:
        batch = read_task(X, y, H, lams, form)
        improve(batch, form, B, gaps)
        for q in range(m):
            if gaps[q] <= batch.targets[q]:
                gaps[q] = 0.0
        _fill_weights(X, y, H, lams, form, B, W)
    if not gaps.any():
        return
    work, w, h, b = workspace(n, d), np.empty(d), np.empty(d), np.empty(n)
    for q in range(m):
        if gaps[q] == 0.0:
            continue
        assign(h, H[:, q])
        assign(b, B[:, q])
        if math.isfinite(h.sum()):
            objective = Objective(lams[q], form)
            target = TOLERANCE * min(1.0, objective.lam)
            gap, _, solved = solve_task(X, y, objective, h, w, b, target, MAX_ITER, work)
            gaps[q] = 0.0 if solved else gap
            assign(B[:, q], b)
            assign(W[:, q], w)
        else:
            gaps[q] = 0.0
            assign(W[:, q], h)
