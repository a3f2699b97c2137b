"""The bias of a stream: Algorithm 2's iterates, and how a closing task moves them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

STEPS, ROWS, CURRENT, OPEN, OPENED = range(5)  # of Bias.counts
SQUARES, WEIGHT, GRADIENTS, REACH, ORIGIN = range(5)  # of Bias.sums
NEW, CLOSED = -1, -2  # an entity's slot, if it has none
FOLLOW, AUTO = -1.0, -1.0  # of Pace.metric and Pace.step


class Pace(NamedTuple):
    """When tasks close and what follows.

    Attributes
    ----------
    step : meta step size; `AUTO` for DoG's
    task_size : number of rows after which a task closes; 0 for any number
    moving_on : whether a task closes when the stream moves on to another entity
    metric : the square of the constant column's value; 0 for no intercept, and `FOLLOW` to
        take the mean square of the inputs so far
    """

    step: float
    task_size: int
    moving_on: bool
    metric: float


class Bias(NamedTuple):
    """Algorithm 2 in progress: the iterate, the weighted sum of iterates, counts and sums."""

    h: Vector
    total: Vector
    counts: Counts
    sums: Vector

    @classmethod
    def start(cls, initial: Vector, step: float) -> Bias:
        """Before the first row. With a step of its own choosing weights come with the steps."""
        sums = np.zeros(5)
        sums[ORIGIN] = initial[-1]
        sums[WEIGHT] = 0.0 if step == AUTO else 1.0
        return cls(initial.copy(), sums[WEIGHT] * initial, np.array([0, 0, NEW, 0, 0]), sums)

    @property
    def mean(self) -> Vector:
        """The estimate: the mean of all iterates."""
        weight = float(self.sums[WEIGHT])
        return self.total / weight if weight > 0.0 else self.h.copy()

    @property
    def scale(self) -> float:
        """The root mean square of all inputs so far."""
        return math.sqrt(mean_square(self.sums, self.counts, self.h.size - 1))

    def check(self, step: float) -> None:
        """Raise if the bias is no longer finite."""
        if not np.isfinite(self.total).all():
            raise ValueError(
                f"step: the bias grew beyond all numbers with step {step:g}; use a smaller step, "
                "a larger reg, or scale the columns of X, and fit again"
            )


def task_cuts(entity: Counts) -> Counts:
    """Where the tasks begin, and where the last ends; rows without an id are one each."""
    if len(entity) == 0:
        return np.zeros(1, np.int64)
    return np.flatnonzero(np.r_[True, (entity[1:] != entity[:-1]) | (entity[1:] < 0), True])


def follow_runs(
    run: Counts, goes_on: bool, counts: Counts, entity_of: Counts
) -> tuple[Counts, Counts]:
    """Entities of rows numbered by task, and slots for them, 0 being the task before these rows."""
    entity = run if goes_on else np.where(run >= 0, run + 1, run)
    slot = np.full(int(entity.max(initial=0)) + 1, NEW)
    slot[0] = 0 if counts[OPEN] else CLOSED
    entity_of[0] = counts[CURRENT] = 0
    return entity, slot


@kernel
def mean_square(sums: Vector, counts: Counts, d: int) -> float:
    """Mean square of the inputs so far, and 1 where all were 0."""
    squares, entries = sums[SQUARES], max(counts[ROWS], 1) * d
    return float(squares / entries) if squares > 0.0 else 1.0


@kernel
def count_row(sums: Vector, counts: Counts, X: FloatArray, i: int) -> float:
    """Take row i into the mean square of the inputs, and give that."""
    square = 0.0
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        square += x * x
    return count_square(sums, counts, square, X.shape[1])


@kernel
def count_square(sums: Vector, counts: Counts, square: float, d: int) -> float:
    """Take a row's sum of squares into the mean square of the inputs, and give that."""
    counts[ROWS] += 1
    sums[SQUARES] += square
    return mean_square(sums, counts, d)


@kernel
def metric_now(bias: Bias, pace: Pace) -> float:
    """The square of the constant column's value at this moment."""
    if pace.metric != FOLLOW:
        return pace.metric
    return mean_square(bias.sums, bias.counts, bias.h.size - 1)


@kernel
def meta_step(
    bias: Bias, pulls: Matrix, s: int, n: int, born: int, pace: Pace, reach: float, metric: float
) -> None:
    r"""Move the bias by the meta-gradient ``g = pulls[s] / n`` of a closing task.

    Either by ``step``, all iterates having weight 1; or as DoG does (Ivgi, Hinder, Carmon,
    2023): by :math:`\bar r/\sqrt{\sum\|g\|^2}`, where :math:`\bar r` is the largest distance
    from the beginning so far, at first `reach` times the first gradient's norm, and the
    weight of an iterate. Its step is divided by the number of steps since the task was
    `born`, this one included: gradients of tasks that were open together belong to an older
    bias and would add up.
    """
    h, total, counts, sums = bias
    d = h.size - 1
    counts[STEPS] += 1
    if pace.step != AUTO:
        rate = pace.step / n
        sums[WEIGHT] += 1.0
        for j in range(d + 1):
            h[j] -= rate * pulls[s, j]
            total[j] += h[j]
        return
    unit = 1.0 / metric if metric > 0.0 else 0.0  # of the squared intercept
    norm = unit * (pulls[s, d] / n) ** 2
    for j in range(d):
        norm += (pulls[s, j] / n) ** 2
    sums[GRADIENTS] += norm
    if sums[GRADIENTS] == 0.0:
        return
    if sums[REACH] == 0.0:
        sums[REACH] = sums[WEIGHT] = reach * math.sqrt(norm)
        for j in range(d + 1):
            total[j] = sums[WEIGHT] * h[j]
    rate = sums[REACH] / math.sqrt(sums[GRADIENTS]) / (n * (counts[STEPS] - born))
    distance = 0.0
    for j in range(d):
        h[j] -= rate * pulls[s, j]
        distance += h[j] ** 2
    h[d] -= rate * pulls[s, d]
    distance += unit * (h[d] - sums[ORIGIN]) ** 2
    sums[REACH] = max(sums[REACH], math.sqrt(distance))
    sums[WEIGHT] += sums[REACH]
    for j in range(d + 1):
        total[j] += sums[REACH] * h[j]


@kernel
def lone_row(
    bias: Bias, X: FloatArray, i: int, u: float, pace: Pace, reach: float, pulls: Matrix, s: int
) -> None:
    """The meta-step of row i as a task of its own, u being its subgradient; s is a free slot."""
    d, metric = X.shape[1], metric_now(bias, pace)
    for j in range(d):
        pulls[s, j] = u * X[i, j]
    pulls[s, d] = u * metric
    meta_step(bias, pulls, s, 1, bias.counts[STEPS], pace, reach, metric)
