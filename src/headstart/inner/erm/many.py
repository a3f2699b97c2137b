"""The exact solutions of every task of a set."""

from __future__ import annotations

import numpy as np

from headstart._core.assign import assign
from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel, run_blocks, within
from headstart.inner.erm.dual import Workspace, workspace
from headstart.inner.erm.solve import MAX_ITER, TOLERANCE, solve_task
from headstart.inner.erm.unsolved import Unsolved, warn_of_gaps
from headstart.losses import Objective
from headstart.tasks import Rows, TaskSet, longest


@within
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
        assign(out[t], w)


def erm_weights(
    tasks: TaskSet,
    bias: Vector,
    objective: Objective,
    n_jobs: int = 1,
    unsolved: Unsolved | None = None,
) -> FloatArray:
    """Exact weights of every task from one bias, shape (tasks, n_features).

    Tasks that are not solved are counted in `unsolved`; if there is none, the user is warned.
    """
    rows = tasks.rows()
    out = np.empty((len(tasks), tasks.n_features), tasks.dtype)
    gaps = np.empty(len(tasks))
    target = TOLERANCE * min(1.0, objective.lam)
    run_blocks(
        lambda first, last: _weights(rows, objective, bias, target, first, last, out, gaps),
        len(tasks),
        n_jobs,
    )
    if unsolved is None:
        warn_of_gaps(gaps, target)
    else:
        unsolved.add(gaps, target)
    return out
