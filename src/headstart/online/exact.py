"""The bias and own weights by exact within-task solutions, a whole task at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner import Compiled, Visit, add_gradient
from headstart.inner.algorithm import exact_target
from headstart.inner.erm import warn_of_gaps
from headstart.online.bias import Bias, meta_step
from headstart.online.settings import Rules
from headstart.tasks import Rows, TaskSet
from headstart.tasks.columns import Constant

TASKS_A_CALL = 1 << 12  # then back to Python, where an interrupt can be noticed


@kernel
def _learn_tasks(
    rows: Rows, rules: Rules, work: NamedTuple, bias: Bias, b: float, first: int, last: int
) -> None:
    """Algorithm 2 over the tasks from `first` to before `last`, whose rows have the column b."""
    d, width = bias.h.size - 1, rows.X.shape[1]
    h, S, pulls = np.empty(width), np.zeros(width), np.zeros((1, d + 1))
    for t in range(first, last):
        for j in range(width):
            h[j] = bias.h[j] if j < d else bias.h[j] / b
        n = add_gradient(work, rows, t, rules.objective, h, S)
        for j in range(width):
            pulls[0, j] = S[j]
            S[j] = 0.0
        pulls[0, d] *= b
        meta_step(bias, rules, pulls, 0, n, bias.tally[0].steps, b * b)


def learn_exactly(
    bias: Bias, rules: Rules, inner: Compiled, tasks: TaskSet, column: Constant
) -> None:
    """Algorithm 2 with exact solutions over these tasks, each by its first `task_size` rows.

    With a step of 0 there is nothing to solve: all iterates are the first.
    """
    if not rules.auto and rules.step == 0.0:
        bias.tally["steps"] += len(tasks)
        bias.tally["weight"] += len(tasks)
        bias.total[:] = bias.tally["weight"] * bias.h
        return
    wide = widened(_first_rows(tasks, rules.task_size), column)
    rows, gaps = wide.rows(), np.zeros(len(tasks))
    work = inner.work(rows, rules.objective, wide.n_features, gaps)
    for first in range(0, len(tasks), TASKS_A_CALL):
        last = min(first + TASKS_A_CALL, len(tasks))
        _learn_tasks(rows, rules, work, bias, column.b, first, last)
    warn_of_gaps(gaps, exact_target(rules.objective.lam))


def solve_exactly(
    start: Vector, rules: Rules, inner: Compiled, tasks: TaskSet, column: Constant, n_jobs: int = 1
) -> FloatArray:
    """The exact weights of every task from one start, the intercept last."""
    bias = np.asarray(column.inward(start), np.float64)
    visit = Visit(n_jobs=n_jobs)
    return column.outward(inner.weights(widened(tasks, column), bias, rules.objective, visit))


def widened(tasks: TaskSet, column: Constant) -> TaskSet:
    """The tasks with the constant column."""
    return TaskSet.of(column.rows(tasks.X), tasks.y, tasks.offsets, tasks.ids)


def _first_rows(tasks: TaskSet, task_size: int) -> TaskSet:
    """The tasks with their first `task_size` rows, or with all if that is 0."""
    if task_size == 0:
        return tasks
    within = np.arange(len(tasks.y)) - np.repeat(tasks.offsets[:-1], tasks.sizes)
    offsets = np.append(0, np.cumsum(np.minimum(tasks.sizes, task_size)))
    return TaskSet.of(tasks.X[within < task_size], tasks.y[within < task_size], offsets, tasks.ids)
