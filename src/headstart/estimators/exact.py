"""The bias and all own weights by exact within-task solutions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._checks import FloatArray, Vector
from headstart.adaptation import task_weights
from headstart.losses import Loss
from headstart.meta import continue_bias, start_bias
from headstart.online import CLOSED, FOLLOW, ROWS, SQUARES, STEPS, WEIGHT, Pace, Stream, task_cuts
from headstart.tasks import TaskSet


def fit_exactly(
    stream: Stream,
    X: FloatArray,
    y: FloatArray,
    entity: NDArray[np.int64],
    reg: float,
    loss: Loss,
    pace: Pace,
    passes: int,
    n_jobs: int,
) -> None:
    """As `Stream.fit`, with exact solutions; the intercept is that of a constant column."""
    bias, known = stream.bias, stream.entities
    bias.counts[ROWS] = len(y)
    bias.sums[SQUARES] = np.einsum("id,id->", X, X, dtype=np.float64)
    offsets = task_cuts(entity)
    tasks, units = _widened(stream, TaskSet(X, y, offsets, np.arange(len(offsets) - 1)), pace)
    state = start_bias(units.size)
    learned_from = _first_rows(tasks, pace.task_size)
    for _ in range(passes):
        state = continue_bias(state, learned_from, reg, pace.step, loss, "erm")
    bias.h[:], bias.total[:] = state.last * units, state.total * units
    bias.counts[STEPS], bias.sums[WEIGHT] = state.steps, state.steps + 1

    owner = entity[offsets[:-1]]
    if len(known.rows):
        W = task_weights(tasks.subset(owner >= 0), state.bias, reg, loss, "erm", n_jobs=n_jobs)
        known.weights[owner[owner >= 0]] = W * units
        known.rows[owner[owner >= 0]] = tasks.sizes[owner >= 0]
        known.slot[:] = CLOSED


def adapt_exactly(stream: Stream, tasks: TaskSet, reg: float, loss: Loss, pace: Pace) -> FloatArray:
    """As `Stream.adapted`, with exact solutions."""
    wide, units = _widened(stream, tasks, pace)
    start = stream.bias.mean / np.where(units > 0.0, units, 1.0)
    return np.asarray(task_weights(wide, start, reg, loss, "erm") * units, tasks.X.dtype)


def _widened(stream: Stream, tasks: TaskSet, pace: Pace) -> tuple[TaskSet, Vector]:
    """The tasks with the constant column, and what turns its weights into the stream's units."""
    b = stream.bias.scale if pace.metric == FOLLOW else pace.metric**0.5
    wide = np.column_stack([tasks.X, np.full(len(tasks.X), b, tasks.X.dtype)])
    units = np.append(np.ones(tasks.n_features), b)
    return TaskSet(wide, tasks.y, tasks.offsets, tasks.ids), units


def _first_rows(tasks: TaskSet, task_size: int) -> TaskSet:
    """The tasks with their first `task_size` rows, or with all if that is 0."""
    if task_size == 0:
        return tasks
    within = np.arange(len(tasks.y)) - np.repeat(tasks.offsets[:-1], tasks.sizes)
    offsets = np.append(0, np.cumsum(np.minimum(tasks.sizes, task_size)))
    return TaskSet(tasks.X[within < task_size], tasks.y[within < task_size], offsets, tasks.ids)
