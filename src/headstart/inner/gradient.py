r"""Meta-gradients: what a task says about the bias it started from.

Every within-task algorithm gives :math:`\hat\nabla = -\lambda(w - h)`, w being where it came to
from h. Algorithm 2 in all its forms takes it through this one door.
"""

from __future__ import annotations

from typing import NamedTuple

from headstart._core.checks import Vector
from headstart._core.doors import door
from headstart._core.jit import kernel
from headstart.losses import Objective
from headstart.tasks import Rows
from headstart.tasks.rows import move


@door
def add_gradient(
    work: NamedTuple, rows: Rows, t: int, objective: Objective, h: Vector, S: Vector
) -> int:
    """Add a multiple of the meta-gradient of task t at h to S, which is 0; gives the multiple.

    `work` is the scratch of the algorithm (`Inner.work`), and its kind says which one it is.
    """
    raise NotImplementedError


@kernel
def sum_gradients(
    rows: Rows,
    objective: Objective,
    work: NamedTuple,
    first: int,
    last: int,
    h: Vector,
    S: Vector,
    out: Vector,
) -> None:
    """Add the meta-gradients at h of the tasks from `first` to before `last` to `out`; S is 0."""
    for t in range(first, last):
        multiple = add_gradient(work, rows, t, objective, h, S)
        move(rows.X, rows.offsets[t], rows.offsets[t + 1], 1.0 / multiple, S, out)
