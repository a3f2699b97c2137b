"""Algorithm 2 with a within-task algorithm of one's own: no kernel, but the same steps."""

from __future__ import annotations

from headstart.inner.own import OwnInner
from headstart.losses import Objective
from headstart.meta.step import Iterates
from headstart.tasks import TaskSet


def take_own_steps(
    tasks: TaskSet,
    objective: Objective,
    inner: OwnInner,
    batch: int,
    step: float,
    iterates: Iterates,
) -> None:
    """Go through the tasks in batches, updating the iterates in place."""
    h, total, S, path = iterates
    for number, first in enumerate(range(0, len(tasks), batch), 1):
        last = min(first + batch, len(tasks))
        S[:] = 0.0
        for t in range(first, last):
            S += inner.gradient(tasks, t, h, objective.lam)
        h -= step / (last - first) * S
        total += h
        if len(path) > 0:
            path[number] = h
