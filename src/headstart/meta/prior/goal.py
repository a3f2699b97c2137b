"""What is to be learned of tasks, and learning it: from what they have shown to a prior."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headstart._core.answers import RangeError, quietly
from headstart._core.checks import (
    check_choice,
    check_count,
    check_jobs,
    check_kind,
    check_number,
)
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.start import Start
from headstart.losses import Loss
from headstart.meta.prior.em import Aim, Learned, learn
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.sample import Shown
from headstart.meta.prior.units import METRICS, start_seen_from
from headstart.parquet import ParquetError
from headstart.tasks.columns import Columns

TOLERANCE, MAX_ITER, MAX_TASKS = 1e-5, 500, 65_536
LEAST_NOISE = float(np.finfo(np.float64).tiny)  # that can be divided by
MOST_FULL = 64  # columns up to which "auto" learns all covariances


class Goal(NamedTuple):
    """What is to be learned, and when learning ends; as in `learn_prior`, checked.

    With `base` the last feature is what a model of all rows predicts, see `_learned`.
    """

    metric: str
    shrink: float | None
    tol: float
    max_iter: int
    n_jobs: int
    most: int | None
    initial: Prior | None = None
    base: bool = False

    @classmethod
    def checked(
        cls,
        metric: str,
        tol: float = TOLERANCE,
        max_iter: int = MAX_ITER,
        n_jobs: int | None = None,
        shrink: float | None = None,
        max_tasks: int | None = MAX_TASKS,
        initial: Prior | None = None,
        base: bool = False,
    ) -> Goal:
        """What users give."""
        rate, passes = check_number("tol", tol, above=0.0), check_count("max_iter", max_iter)
        check_choice("metric", metric, ["auto", *METRICS])
        most = None if max_tasks is None else check_count("max_tasks", max_tasks)
        if shrink is not None:
            shrink = check_number("shrink", shrink, at_least=0.0, below=1.0)
        if initial is not None:
            check_kind("initial", initial, Prior, "as learn_prior gives it, or None")
        return cls(metric, shrink, rate, passes, check_jobs(n_jobs), most, initial, base)


def learn_from(shown: Shown, loss: Loss, goal: Goal) -> Prior:
    """The prior of what was shown, in the units of the users."""
    columns, units = shown.columns, shown.side_units
    sparse = isinstance(shown.e, SparseEvidence)
    shape = chosen_metric(goal.metric, columns.width, sparse=sparse)
    if goal.initial is not None:
        _check_initial(goal.initial, shown, loss, shape)
    try:
        with quietly():
            initial = None if goal.initial is None else _begin_at(goal.initial, columns, units)
            aim = Aim(shape, goal.shrink, goal.tol, goal.max_iter, goal.n_jobs, initial)
            found = _learned(shown, loss, aim, base=goal.base)
    except (ArithmeticError, ValueError) as error:  # of SciPy, NumPy and math
        if isinstance(error, ParquetError):
            raise
        found = None
    if found is None or not _are_numbers(found.start, columns):
        raise RangeError(
            "tasks: the numbers are too large or too small to learn from; use other units, or "
            "weights nearer to 1"
        )
    start = _from_side_units(found.start, units)
    return Prior.learned(start, columns, loss, shape, found.n_iter, found.converged)


def _learned(shown: Shown, loss: Loss, aim: Aim, *, base: bool) -> Learned:
    """Learn; and once more, with one weight of the base for all tasks, where its own say little.

    A base that helps some tasks and misleads as many says nothing of a new one. But how much it
    misleads is larger for tasks whose labels are, and weights that differ make that the likelier:
    tasks of other sizes pay for it. So its weights may differ by what they have in common at most.
    """
    e, columns, _, few = shown
    found = learn(e, loss, aim, few, level=columns.intercept)
    j = columns.centre.size - 1
    if not base or abs(found.start.effects[j, 0]) >= math.sqrt(found.start.variances[j]):
        return found
    return learn(e, loss, replace(aim, shared=j), few, level=columns.intercept)


def _check_initial(initial: Prior, shown: Shown, loss: Loss, metric: str) -> None:
    """Raise unless a prior is one that such tasks may have."""
    if isinstance(shown.e, SparseEvidence):
        raise ValueError("initial: expected None with sparse rows, found a prior")
    columns, units = shown.columns, shown.side_units
    ours = (loss, metric, columns.centre.size, columns.intercept, units.centre.size if units else 0)
    theirs = (initial.loss, initial.metric, initial.n_features, initial.intercept, initial.n_side)
    if ours != theirs:
        wanted, found = (
            f"{a!r}, metric {b!r}, {d} columns, {'an' if ones else 'no'} intercept and {p} numbers "
            "known of a task"
            for a, b, d, ones, p in (ours, theirs)
        )
        raise ValueError(f"initial: expected a prior of {wanted}, found one of {found}")


def _begin_at(initial: Prior, columns: Columns, units: Columns | None) -> Start:
    """A prior of other rows in the units of these."""
    start = start_seen_from(initial.standard, initial.columns, columns)
    if units is None:
        return start
    effects = start.effects.copy()
    effects[:, 0] += effects[:, 1:] @ units.centre
    effects[:, 1:] *= units.scale
    return start._replace(effects=effects)


def _are_numbers(start: Start, columns: Columns) -> bool:
    """Whether all of a prior and its units is finite, and the noise can be divided by."""
    parts = (*start, columns.centre, columns.scale, columns.level)
    return start.noise >= LEAST_NOISE and all(np.isfinite(part).all() for part in parts)


def chosen_metric(metric: str, width: int, *, sparse: bool = False) -> str:
    """The metric that ``"auto"`` stands for, or the metric itself."""
    if sparse and metric == "full":
        raise ValueError(
            "metric: expected 'diagonal' or 'isotropic' with sparse rows, found 'full'; a "
            "covariance of all columns is not sparse"
        )
    if metric != "auto":
        return metric
    return "full" if width <= MOST_FULL and not sparse else "diagonal"


def _from_side_units(start: Start, units: Columns | None) -> Start:
    """Starts by what is known of tasks in the units in which it came."""
    if units is None:
        return start
    effects = start.effects.copy()
    effects[:, 1:] /= units.scale
    effects[:, 0] -= effects[:, 1:] @ units.centre
    return start._replace(effects=effects)
