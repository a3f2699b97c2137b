"""Meta-gradients by exact solutions."""

from __future__ import annotations

from typing import NamedTuple

from headstart._core.checks import Vector
from headstart._core.doors import text_for
from headstart.inner.erm.dual import Workspace
from headstart.inner.erm.many import solve_one
from headstart.inner.erm.solve import MAX_ITER
from headstart.inner.gradient import add_gradient
from headstart.losses import Objective
from headstart.tasks import Rows


class Solving(NamedTuple):
    """Scratch of the solvers; `gaps` has a place for each task, 0 where one is solved."""

    target: float
    gaps: Vector
    w: Vector
    b: Vector
    work: Workspace


@text_for(add_gradient, Solving)
def _(work: Solving, rows: Rows, t: int, objective: Objective, h: Vector, S: Vector) -> int:
    w, b, scratch = work.w, work.b, work.work
    work.gaps[t] = solve_one(rows, t, objective, h, w, b, work.target, MAX_ITER, scratch)
    for j in range(h.size):
        S[j] += objective.lam * (h[j] - w[j])
    return 1
