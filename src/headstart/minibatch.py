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

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel
from headstart._team import (
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
from headstart.erm import MAX_ITER, TOLERANCE, solve_one, warn_of_gaps, workspace
from headstart.losses import Objective
from headstart.sgd import sgd_pass
from headstart.tasks import Rows, longest

CHUNK = 32  # tasks


class Rounds(NamedTuple):
    """A round takes the gradients of the next `batch` tasks and then a step."""

    members: int
    batch: int
    n_tasks: int
    step: float


class Iterates(NamedTuple):
    """What the rounds update."""

    h: Vector
    total: Vector  # the sum of all iterates so far
    path: FloatArray  # the iterates as rows, or no rows
    sums: NDArray[np.float64]  # gradients of the round, a row for each chunk


@kernel
def _step(iterates: Iterates, count: int, step: float, number: int) -> None:
    """End round `number` by a step against the mean of its `count` gradients."""
    h, total, path, sums = iterates
    for chunk in range(1, -(-count // CHUNK)):
        for j in range(h.size):
            sums[0, j] += sums[chunk, j]
    rate = step / count
    for j in range(h.size):
        h[j] -= rate * sums[0, j]
        total[j] += h[j]
    if len(path) > 0:
        for j in range(h.size):
            path[number + 1, j] = h[j]


@kernel
def gradient_sum(
    rows: Rows,
    objective: Objective,
    constant: bool,
    first: int,
    last: int,
    h: Vector,
    out: Vector,
) -> None:
    """Add the meta-gradients at h of the tasks from `first` to before `last` to `out`."""
    X, y, offsets, drawn = rows
    S, u = np.empty(h.size), np.empty(longest(offsets, first, last))
    for t in range(first, last):
        n = offsets[t + 1] - offsets[t]
        sgd_pass(X, y, drawn, offsets[t], n, objective, constant, h, S, u)
        share = 1.0 / n
        for j in range(h.size):
            out[j] += share * S[j]


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
        count = min(rounds.batch, rounds.n_tasks - (number - 1) * rounds.batch)
        _step(iterates, count, rounds.step, number - 1)
        open_round(clock, number)
    return True


@kernel
def _sgd_rounds(
    rows: Rows,
    objective: Objective,
    constant: bool,
    rounds: Rounds,
    iterates: Iterates,
    clock: Clock,
    member: int,
) -> bool:
    h, sums, n_tasks = iterates.h, iterates.sums, rounds.n_tasks
    gradient = np.empty(h.size)
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
            gradient_sum(rows, objective, constant, start, end, h, gradient)
            sums[(start - first) // CHUNK] = gradient
        finish_round(clock, member, number)
    return False


@kernel
def _erm_rounds(
    rows: Rows,
    objective: Objective,
    target: float,
    gaps: Vector,
    rounds: Rounds,
    iterates: Iterates,
    clock: Clock,
    member: int,
) -> bool:
    h, sums, n_tasks = iterates.h, iterates.sums, rounds.n_tasks
    n = longest(rows.offsets, 0, n_tasks)
    work, w, b, gradient = workspace(n, h.size), np.empty(h.size), np.empty(n), np.empty(h.size)
    for _ in range(ROUNDS_A_CALL):
        number = rounds_finished(clock, member)
        first, last = number * rounds.batch, min((number + 1) * rounds.batch, n_tasks)
        if not _begin(rounds, iterates, clock, member, number):
            return False
        if first >= n_tasks:
            return True
        for start in range(first + member * CHUNK, last, rounds.members * CHUNK):
            gradient[:] = 0.0
            for t in range(start, min(start + CHUNK, last)):
                gaps[t] = solve_one(rows, t, objective, h, w, b, target, MAX_ITER, work)
                for j in range(h.size):
                    gradient[j] += objective.lam * (h[j] - w[j])
            sums[(start - first) // CHUNK] = gradient
        finish_round(clock, member, number)
    return False


def take_rounds(
    rows: Rows,
    objective: Objective,
    inner: str,
    batch: int,
    step: float,
    h: Vector,
    total: Vector,
    path: FloatArray,
    n_jobs: int,
) -> None:
    """Go through the tasks in batches, updating `h`, `total` and `path` in place."""
    n_tasks = len(rows.offsets) - 1
    chunks = -(-min(batch, n_tasks) // CHUNK)
    iterates = Iterates(h, total, path, np.empty((chunks, h.size)))
    rounds = Rounds(min(n_jobs, chunks), batch, n_tasks, step)
    clock = new_clock(rounds.members)
    if inner != "erm":
        constant = inner == "constant"
        run_team(
            lambda member: _sgd_rounds(rows, objective, constant, rounds, iterates, clock, member),
            rounds.members,
        )
        return
    target, gaps = TOLERANCE * min(1.0, objective.lam), np.empty(n_tasks)
    run_team(
        lambda member: _erm_rounds(rows, objective, target, gaps, rounds, iterates, clock, member),
        rounds.members,
    )
    warn_of_gaps(gaps, target)
