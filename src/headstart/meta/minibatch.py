"""Algorithm 2 with several tasks a step: their gradients at one bias, averaged.

The mean of the tasks' eps-subgradients is a (mean eps)-subgradient of the mean objective.
A batch is cut into chunks of tasks. Each member of a team sums the gradients of its
chunks, and member 0 adds the chunks in order: the result has the same bits for any number
of members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.assign import assign
from headstart._core.checks import Vector
from headstart._core.jit import kernel
from headstart._core.team import (
    ROUNDS_A_CALL,
    Clock,
    finish_round,
    is_finished,
    is_open,
    new_clock,
    open_round,
    rounds_finished,
    rounds_opened,
    run_team,
)
from headstart.inner import Compiled, sum_gradients
from headstart.losses import Objective
from headstart.meta.step import Iterates, descend
from headstart.tasks import Rows

CHUNK = 32  # tasks


class Rounds(NamedTuple):
    """A round takes the gradients of the next `batch` tasks and then a step.

    `sums` has a row of gradients for each chunk of a round.
    """

    members: int
    batch: int
    n_tasks: int
    step: float
    sums: NDArray[np.float64]


@kernel
def _step(rounds: Rounds, iterates: Iterates, number: int) -> None:
    """End round `number` by a step against the mean of its gradients."""
    (h, total, _, path), sums = iterates, rounds.sums
    count = min(rounds.batch, rounds.n_tasks - number * rounds.batch)
    for chunk in range(1, -(-count // CHUNK)):
        for j in range(h.size):
            sums[0, j] += sums[chunk, j]
    descend(rounds.step / count, sums[0], h, total)
    if len(path) > 0:
        for j in range(h.size):
            path[number + 1, j] = h[j]


@kernel
def _begin(rounds: Rounds, iterates: Iterates, clock: Clock, member: int, number: int) -> bool:
    """Bring a member to round `number`; False if others keep it waiting.

    Member 0 ends the round before as soon as all have finished it.
    """
    if member > 0:
        return is_open(clock, number)
    if number > rounds_opened(clock):
        if not is_finished(clock, rounds.members, number - 1):
            return False
        _step(rounds, iterates, number - 1)
        open_round(clock, number)
    return True


@kernel
def _rounds(
    rows: Rows,
    objective: Objective,
    work: NamedTuple,
    rounds: Rounds,
    iterates: Iterates,
    clock: Clock,
    member: int,
) -> bool:
    h, sums, n_tasks = iterates.h, rounds.sums, rounds.n_tasks
    S, gradient = np.zeros(h.size), np.empty(h.size)
    for _ in range(ROUNDS_A_CALL):
        number = rounds_finished(clock, member)
        first, last = number * rounds.batch, min((number + 1) * rounds.batch, n_tasks)
        if not _begin(rounds, iterates, clock, member, number):
            return False
        if first >= n_tasks:
            return True
        for start in range(first + member * CHUNK, last, rounds.members * CHUNK):
            gradient[:] = 0.0
            end = min(start + CHUNK, last)
            sum_gradients(rows, objective, work, start, end, h, S, gradient)
            assign(sums[(start - first) // CHUNK], gradient)
        finish_round(clock, member, number)
    return False


def take_rounds(
    rows: Rows,
    objective: Objective,
    inner: Compiled,
    batch: int,
    step: float,
    iterates: Iterates,
    gaps: Vector,
    n_jobs: int,
) -> None:
    """Go through the tasks in batches, updating the iterates in place."""
    n_tasks, width = len(gaps), iterates.h.size
    chunks = -(-min(batch, n_tasks) // CHUNK)
    rounds = Rounds(min(n_jobs, chunks), batch, n_tasks, step, np.empty((chunks, width)))
    clock = new_clock(rounds.members)
    works = [inner.work(rows, objective, width, gaps) for _ in range(rounds.members)]
    run_team(
        lambda member: _rounds(rows, objective, works[member], rounds, iterates, clock, member),
        rounds.members,
    )
