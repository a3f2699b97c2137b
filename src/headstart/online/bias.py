"""The bias of a stream: Algorithm 2's iterates, and how a closing task moves them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, within
from headstart._core.saved import MANY, Arrays, checked
from headstart.meta.step import descend
from headstart.online.settings import Rules
from headstart.tasks.columns import FOLLOW

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]
Record = NDArray[np.void]  # of one element, `TALLY`

NEW, CLOSED = -1, -2  # an entity's slot among the open tasks, if it has none

COUNTS = ["steps", "rows", "current", "n_open", "n_opened"]
SUMS = ["squares", "weight", "gradients", "reach"]
TALLY = np.dtype([(name, np.int64) for name in COUNTS] + [(name, np.float64) for name in SUMS])


class Bias(NamedTuple):
    """Algorithm 2 in progress.

    Attributes
    ----------
    first : the first iterate
    h : the newest iterate
    total : the weighted sum of all iterates
    tally : one record of numbers:
        steps, rows : meta-steps taken and rows seen
        current : the entity of the newest row
        n_open, n_opened : tasks that are open, and that ever were
        squares : sum of the squares of all inputs
        weight : sum of the iterates' weights
        gradients, reach : of DoG, the sum of squared norms and the largest distance so far
    """

    first: Vector
    h: Vector
    total: Vector
    tally: Record

    @classmethod
    def begin(cls, initial: Vector, auto: bool) -> Bias:
        """Before the first row. With DoG's steps weights come with the steps."""
        tally = np.zeros(1, TALLY)
        tally["current"], tally["weight"] = NEW, 0.0 if auto else 1.0
        total = np.zeros_like(initial) if auto else initial.copy()
        return cls(initial.copy(), initial.copy(), total, tally)

    @classmethod
    def from_arrays(cls, arrays: Arrays, width: int, n_entities: int) -> Bias:
        """The bias of this many numbers whose `arrays` these are, in a stream of such entities."""
        counts = checked(arrays, "bias_counts", (len(COUNTS),), np.int64, at_least=NEW, below=MANY)
        sums = checked(arrays, "bias_sums", (len(SUMS),), np.float64, at_least=0.0)
        tally = np.zeros(1, TALLY)
        for name, value in zip([*COUNTS, *SUMS], [*counts.tolist(), *sums.tolist()], strict=True):
            tally[name] = value
        steps, rows, current, n_open, n_opened = counts.tolist()
        if min(steps, rows) < 0 or not 0 <= n_open <= n_opened or not current < max(n_entities, 1):
            raise ValueError(f"bias_counts: expected counts that fit, found {counts.tolist()}")
        if rows == 0 and tally["squares"][0] > 0.0:
            raise ValueError("bias_sums: expected no squares of no rows")
        first, last, total = (
            checked(arrays, f"bias_{name}", (width,), np.float64).copy()
            for name in ("first", "last", "total")
        )
        return cls(first, last, total, tally)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it by name, the numbers as counts and sums in the order of their names."""
        return {
            "bias_first": self.first,
            "bias_last": self.h,
            "bias_total": self.total,
            "bias_counts": np.array([self.tally[name][0] for name in COUNTS], np.int64),
            "bias_sums": np.array([self.tally[name][0] for name in SUMS]),
        }

    @property
    def steps(self) -> int:
        """Number of meta-steps taken."""
        return int(self.tally["steps"][0])

    @property
    def rows(self) -> int:
        """Number of rows seen."""
        return int(self.tally["rows"][0])

    @property
    def n_open(self) -> int:
        """Number of open tasks."""
        return int(self.tally["n_open"][0])

    @property
    def newest_step(self) -> float:
        """The newest of DoG's step sizes; 0 before the first."""
        reach, gradients = self.tally["reach"][0], self.tally["gradients"][0]
        return float(reach / np.sqrt(gradients)) if gradients > 0.0 else 0.0

    def copy(self) -> Bias:
        """The same in memory of its own."""
        return Bias(self.first.copy(), self.h.copy(), self.total.copy(), self.tally.copy())


@within
def metric_now(rules: Rules, squares: float, entries: int) -> float:
    """The square of the constant column's value, by the sum of squares of so many inputs.

    Where all inputs were 0 it is as if they were 1.
    """
    if rules.metric != FOLLOW:
        return rules.metric
    return squares / entries if squares > 0.0 else 1.0


class Begin(NamedTuple):
    """What a new task begins with: weights and the metric; and whether all of it is finite."""

    weights: Vector
    metric: float
    finite: bool

    def check(self, step: float | None) -> None:
        """Raise if the bias is no longer finite; `step` is None for DoG's."""
        if not self.finite:
            chosen = "steps of its own choosing" if step is None else f"step {step:g}"
            raise ValueError(
                f"step: the bias grew beyond all numbers with {chosen}; use a smaller step, "
                "a larger reg, or scale the columns of X, and fit again"
            )


@kernel
def begin_now(bias: Bias, rules: Rules) -> tuple[Vector, float, bool]:
    """What a new task begins with: the mean of all iterates, the metric, and if it is finite."""
    tally, mean, finite = bias.tally[0], bias.h.copy(), True
    for j in range(mean.size):
        if tally.weight > 0.0:
            mean[j] = bias.total[j] / tally.weight
        finite = finite and math.isfinite(mean[j])
    return mean, metric_now(rules, tally.squares, tally.rows * (mean.size - 1)), finite


@within
def meta_step(
    bias: Bias, rules: Rules, pulls: Matrix, s: int, n: int, born: int, metric: float
) -> None:
    r"""Move the bias by the meta-gradient ``g = pulls[s] / n`` of a closing task.

    Either by ``step``, all iterates having weight 1; or as DoG does (Ivgi, Hinder, Carmon,
    2023): by :math:`\bar r/\sqrt{\sum\|g\|^2}`, where :math:`\bar r` is the largest distance
    from the beginning so far, at first that of the first task's weights, and the weight of an
    iterate. Its step is divided by the number of steps since the task was `born`, this one
    included: gradients of tasks that were open together belong to an older bias and would add up.
    """
    first, h, total, record = bias
    tally, d = record[0], bias.h.size - 1
    tally.steps += 1
    if not rules.auto:
        tally.weight += 1.0
        descend(rules.step / n, pulls[s], h, total)
        return
    unit = 1.0 / metric if metric > 0.0 else 0.0  # of the squared intercept
    norm = unit * (pulls[s, d] / n) ** 2
    for j in range(d):
        norm += (pulls[s, j] / n) ** 2
    tally.gradients += norm
    if tally.gradients == 0.0:
        return
    reach = tally.reach
    if reach == 0.0:
        rows = n if rules.constant else 1  # steps of length 1 / reg are the paper's reg / n
        reach = rows / rules.objective.lam * math.sqrt(norm)
        tally.weight = reach
        for j in range(d + 1):
            total[j] = reach * h[j]
    rate = reach / math.sqrt(tally.gradients) / (n * (tally.steps - born))
    distance = 0.0
    for j in range(d):
        h[j] -= rate * pulls[s, j]
        distance += (h[j] - first[j]) ** 2
    h[d] -= rate * pulls[s, d]
    distance += unit * (h[d] - first[d]) ** 2
    reach = max(reach, math.sqrt(distance))
    tally.reach = reach
    tally.weight += reach
    for j in range(d + 1):
        total[j] += reach * h[j]
