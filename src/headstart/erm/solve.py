"""The faces of the exact solution: one task, or every task of a set."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from headstart._checks import (
    FloatArray,
    Vector,
    check_bias,
    check_choice,
    check_count,
    check_number,
    check_task,
    warn_user,
)
from headstart._jit import kernel, run_blocks
from headstart.erm.coordinate import coordinate_pass, free_step
from headstart.erm.dual import (
    Workspace,
    dot_rows,
    gap_at_kkt,
    primal_from_dual,
    rounding,
    workspace,
)
from headstart.erm.fista import fista
from headstart.erm.newton import polish
from headstart.losses import Loss, Objective, get_loss
from headstart.tasks import Rows, TaskSet, longest

PASSES = 15  # of coordinate descent before `polish` takes over
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
        times the mean of ``|<x, bias>| + |y|``
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

    Coordinate descent goes on until a pass leaves the same rows free as the one before;
    a Newton step on those then ends most tasks. `polish` takes the others. Returns the gap,
    the number of passes and steps, and whether the gap is at the target, or at what rounding
    leaves of it.
    """
    target = max(target, rounding(X, y, h))
    primal_from_dual(X, y, objective, h, b, w)
    for i in range(len(y)):
        work.norms[i] = dot_rows(X, i, i)
    gap, before = math.inf, -1
    for done in range(1, min(PASSES, max_iter) + 1):
        free = coordinate_pass(X, y, objective, w, b, work.norms)
        settled = free == before
        before = free
        if settled:
            free_step(X, y, objective, w, b, work)
        if settled or done == 1 or done == max_iter:
            gap = gap_at_kkt(X, y, objective, w, b)
            if gap <= target or done == max_iter:
                return gap, done, gap <= target
    gap = gap_at_kkt(X, y, objective, w, b)
    gap, steps = polish(X, y, objective, h, w, b, gap, target, max_iter - PASSES, work)
    return gap, PASSES + steps, gap <= target


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
        Algorithm 4, which is there for comparison.
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
        curvature = (
            np.linalg.norm(wide, 2) ** 2 / n
            if smoothness == "operator"
            else np.square(wide).sum(axis=1).max()
        )
        eta = objective.lam / curvature if curvature > 0.0 else 1.0
        target = max(target, rounding(inputs, labels, h))
        gap, n_iter = fista(inputs, labels, objective, h, w, b, eta, target, max_iter)
        converged = gap <= target
    if not converged:
        _warn(f"not solved after {n_iter} iterations", gap, target, "raise max_iter, ")
    dual = (b * labels if chosen.binary else b) / n
    kept = inputs.dtype
    return ERMResult(w.astype(kept), dual.astype(kept), float(gap), int(n_iter), bool(converged))


def _warn(where: str, gap: float, target: float, remedy: str = "") -> None:
    remedy += (
        "scale the columns of X to similar sizes, or use a larger reg"
        if gap < math.inf
        else "numbers overflow: scale the columns of X down, or use a larger reg"
    )
    warn_user(
        f"{where}: duality gap {gap:.1e} is above tol * min(1, reg) = {target:.1e}; {remedy}",
        ConvergenceWarning,
    )


@kernel
def solve_one(
    rows: Rows,
    t: int,
    objective: Objective,
    h: Vector,
    w: Vector,
    b: Vector,
    target: float,
    max_iter: int,
    work: Workspace,
) -> float:
    """Solve task `t` of a set from the dual point 0; fill `w`, return the gap, or 0 if solved."""
    begin, end = rows.offsets[t], rows.offsets[t + 1]
    X, y, dual = rows.X[begin:end], rows.y[begin:end], b[: end - begin]
    dual[:] = 0.0
    gap, _, converged = solve_task(X, y, objective, h, w, dual, target, max_iter, work)
    return 0.0 if converged else gap


@kernel
def _weights(
    rows: Rows,
    objective: Objective,
    h: Vector,
    target: float,
    first: int,
    last: int,
    out: FloatArray,
    gaps: Vector,
) -> None:
    n = longest(rows.offsets, first, last)
    work, w, b = workspace(n, h.size), np.empty(h.size), np.empty(n)
    for t in range(first, last):
        gaps[t] = solve_one(rows, t, objective, h, w, b, target, MAX_ITER, work)
        out[t] = w


def erm_weights(
    tasks: TaskSet,
    bias: Vector,
    objective: Objective,
    n_jobs: int = 1,
) -> FloatArray:
    """Exact weights of every task from one bias, shape (tasks, n_features)."""
    rows = tasks.rows()
    out = np.empty((len(tasks), tasks.n_features), tasks.X.dtype)
    gaps = np.empty(len(tasks))
    target = TOLERANCE * min(1.0, objective.lam)
    run_blocks(
        lambda first, last: _weights(rows, objective, bias, target, first, last, out, gaps),
        len(tasks),
        n_jobs,
    )
    warn_of_gaps(gaps, target)
    return out


def warn_of_gaps(gaps: Vector, target: float) -> None:
    """Warn if tasks were left unsolved: `gaps` is 0 where one was solved."""
    unsolved = int(np.count_nonzero(gaps))
    if unsolved:
        _warn(f"{unsolved} of {gaps.size} tasks not solved", gaps.max(), target)
