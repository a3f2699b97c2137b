"""What is to be learned of tasks, and learning it: from what they have shown to a prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headstart._core.answers import quietly
from headstart._core.checks import check_choice, check_count, check_jobs, check_number
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.start import Start
from headstart.losses import Loss
from headstart.meta.prior.em import Aim, learn
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.sample import Shown
from headstart.meta.prior.units import METRICS
from headstart.parquet import ParquetError
from headstart.tasks.columns import Columns

TOLERANCE, MAX_ITER, MAX_TASKS = 1e-5, 500, 65_536
LEAST_NOISE = float(np.finfo(np.float64).tiny)  # that can be divided by
MOST_FULL = 64  # columns up to which "auto" learns all covariances


class Goal(NamedTuple):
    """What is to be learned, and when learning ends; as in `learn_prior`, checked."""

    metric: str
    shrink: float | None
    tol: float
    max_iter: int
    n_jobs: int
    most: int | None

    @classmethod
    def checked(
        cls,
        metric: str,
        tol: float = TOLERANCE,
        max_iter: int = MAX_ITER,
        n_jobs: int | None = None,
        shrink: float | None = None,
        max_tasks: int | None = MAX_TASKS,
    ) -> Goal:
        """What users give."""
        rate, passes = check_number("tol", tol, above=0.0), check_count("max_iter", max_iter)
        check_choice("metric", metric, ["auto", *METRICS])
        most = None if max_tasks is None else check_count("max_tasks", max_tasks)
        if shrink is not None:
            shrink = check_number("shrink", shrink, at_least=0.0, below=1.0)
        return cls(metric, shrink, rate, passes, check_jobs(n_jobs), most)


def learn_from(shown: Shown, loss: Loss, goal: Goal) -> Prior:
    """The prior of what was shown, in the units of the users."""
    e, columns, units, few = shown
    sparse = isinstance(e, SparseEvidence)
    shape = chosen_metric(goal.metric, columns.width, sparse=sparse)
    aim = Aim(shape, goal.shrink, goal.tol, goal.max_iter, goal.n_jobs)
    try:
        with quietly():
            found = learn(e, loss, aim, few, level=columns.intercept)
    except (ArithmeticError, ValueError) as error:  # of SciPy, NumPy and math
        if isinstance(error, ParquetError):
            raise
        found = None
    if found is None or not _are_numbers(found.start, columns):
        raise ValueError(
            "tasks: the numbers are too large or too small to learn from; use other units, or "
            "weights nearer to 1"
        )
    start = _from_side_units(found.start, units)
    return Prior.learned(start, columns, loss, shape, found.n_iter, found.converged)


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
