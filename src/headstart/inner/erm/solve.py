"""The exact solution of one task."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import (
    FloatArray,
    Vector,
    check_bias,
    check_choice,
    check_count,
    check_number,
    check_task,
)
from headstart._core.jit import kernel
from headstart.inner.erm.closed import solve_squares
from headstart.inner.erm.coordinate import descend
from headstart.inner.erm.dual import (
    Workspace,
    primal_from_dual,
    rounding,
    workspace,
)
from headstart.inner.erm.fista import fista
from headstart.inner.erm.newton import polish
from headstart.inner.erm.unsolved import warn_unsolved
from headstart.losses import Loss, Objective, get_loss
from headstart.losses.scalar import SQUARED
from headstart.tasks.rows import dot_rows

DESCENT_PASSES = 15  # of coordinate descent before `polish` takes over
TOLERANCE, MAX_ITER = 1e-6, 2000


class ERMResult(NamedTuple):
    """The solution of a task and how far it can be from the exact one.

    Attributes
    ----------
    weights : the minimiser w of the regularised empirical risk, up to `gap`
    dual : u in the paper's scaling, ``reg (w - bias) = -X^T u`` at the solution; times n it
        is on the scale of the subgradients that `biased_sgd` returns
    gap : primal minus dual value, before weights are rounded to the data's float type;
        ``|w - w_exact|^2 <= 2 gap / reg``
    n_iter : passes over the rows, or Newton steps
    converged : whether ``gap <= tol * min(1, reg)``, or it is what rounding leaves of 0: 1e-13
        times the mean of ``|<x, bias>| + |y|``; for the squared loss also the square of that
    """

    weights: FloatArray
    dual: FloatArray
    gap: float
    n_iter: int
    converged: bool


@kernel
def solve_task(
    X: FloatArray,
    y: FloatArray,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    target: float,
    max_iter: int,
    work: Workspace,
) -> tuple[float, int, bool]:
    """Minimise a task's regularised risk from the dual point `b`; fill `w` and `b`.

    The squared loss is solved as a linear system. For the others coordinate descent goes on
    until a pass leaves the same rows free as the one before; a Newton step on those then ends
    most tasks. `polish` takes the rest. Returns the gap, the number of passes and steps, and
    whether the gap is at the target, or at what rounding leaves of it. Where h is finite so are
    `w` and `b`, whatever `b` was.
    """
    floor = rounding(X, y, h)
    if objective.form.code == SQUARED:
        target = max(target, floor * max(floor, 1.0))
        gap, done = solve_squares(X, y, objective, h, w, b, target, work)
        return gap, done, gap <= target
    target = max(target, floor)
    if not math.isfinite(b.sum()):  # a sum that is not finite has a part that is not
        b[:] = 0.0
    primal_from_dual(X, y, objective, h, b, w)
    for i in range(len(y)):
        work.norms[i] = dot_rows(X, i, i)
    gap, done = descend(X, y, objective, h, w, b, target, min(DESCENT_PASSES, max_iter), work)
    if gap > target and max_iter > DESCENT_PASSES:
        gap, steps = polish(X, y, objective, h, w, b, gap, target, max_iter - DESCENT_PASSES, work)
        done += steps
    return gap, done, gap <= target


def biased_erm(
    X: ArrayLike,
    y: ArrayLike,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    solver: str = "cd",
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    smoothness: str = "radius",
) -> ERMResult:
    r"""The exact minimiser of a task's risk regularised toward `bias`.

    .. math:: w_h = \arg\min_w \frac1n\sum_i \ell(\langle x_i, w\rangle, y_i)
              + \frac\lambda2\|w - h\|^2

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
    bias : array-like of shape (d,)
    reg : float > 0
    loss : str or Loss
    solver : {"cd", "fista"}
        Dual coordinate descent with Newton steps, which is fast, or the paper's
        Algorithm 4, which is there for comparison. For the squared loss ``"cd"`` is the
        closed form.
    tol : float > 0
        Stop when the duality gap is at most ``tol * min(1, reg)``. The paper stops at a
        gap of 1e-6 whatever reg is, which for small reg says little about the weights.
    max_iter : int
        Passes over the rows and Newton steps at most, or iterations of FISTA.
    smoothness : {"radius", "operator"}
        FISTA's bound on the dual's curvature: the paper's ``n R^2 / reg`` with R the
        largest norm of a row, or the operator norm ``|X|^2 / reg``, which takes about
        half the iterations.

    Returns
    -------
    ERMResult

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the gap is still larger after `max_iter` iterations.

    Examples
    --------
    >>> result = biased_erm([[1.0], [1.0]], [3.0, 3.0], bias=[1.0], reg=0.5)
    >>> print(result.weights, result.converged)
    [3.] True
    """
    check_choice("solver", solver, ["cd", "fista"])
    check_choice("smoothness", smoothness, ["radius", "operator"])
    max_iter = min(check_count("max_iter", max_iter), 2**31)
    chosen = get_loss(loss)
    objective = chosen.regularised(reg, "erm")
    target = check_number("tol", tol, above=0.0) * min(1.0, objective.lam)
    inputs, labels = check_task(X, y)
    chosen.check_labels(labels)
    h = check_bias("bias", bias, inputs.shape[1])
    n, d = inputs.shape
    w, b = np.empty(d), np.zeros(n)
    if solver == "cd":
        work = workspace(n, d)
        gap, n_iter, converged = solve_task(
            inputs, labels, objective, h, w, b, target, max_iter, work
        )
    else:
        wide = inputs.astype(np.float64, copy=False)
        with quietly():
            curvature = (
                np.linalg.norm(wide, 2) ** 2 / n
                if smoothness == "operator"
                else np.square(wide).sum(axis=1).max()
            )
            eta = objective.lam / curvature if curvature > 0.0 else 1.0
        target = max(target, rounding(inputs, labels, h))
        gap, n_iter = fista(inputs, labels, objective, h, w, b, eta, target, max_iter)
        converged = gap <= target
    dual, dtype = (b * labels if chosen.binary else b) / n, inputs.dtype
    with quietly():
        check_answer((gap, w.astype(dtype), dual.astype(dtype)), "X, y, bias, reg")
    if not converged:
        warn_unsolved(f"not solved after {n_iter} iterations", gap, target, "raise max_iter, ")
    return ERMResult(w.astype(dtype), dual.astype(dtype), float(gap), int(n_iter), bool(converged))
