"""Meta-gradients by a pass of Algorithm 1, or of constant steps."""

from __future__ import annotations

from typing import NamedTuple

from headstart._core.checks import Vector
from headstart._core.doors import text_for
from headstart.inner.gradient import add_gradient
from headstart.inner.sgd.one_pass import sgd_pass
from headstart.losses import Objective
from headstart.tasks import Rows


class Pass(NamedTuple):
    """Scratch of a pass: whether its steps are constant, and room for subgradients."""

    constant: bool
    u: Vector


@text_for(add_gradient, Pass)
def _(work: Pass, rows: Rows, t: int, objective: Objective, h: Vector, S: Vector) -> int:
    sgd_pass(rows, t, objective, work.constant, h, S, work.u)
    n: int = rows.offsets[t + 1] - rows.offsets[t]
    return n
