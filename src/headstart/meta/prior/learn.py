"""Learning a prior: the face."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from headstart._core.answers import quietly
from headstart._core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_flag,
    check_jobs,
    check_number,
    warn_user,
)
from headstart.inner.posterior.gather import any_evidence
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.start import Start
from headstart.losses import Loss, get_loss
from headstart.meta.prior.em import Aim, learn
from headstart.meta.prior.posterior import row_weights
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.sample import MANY_TASKS, Shown, sampled
from headstart.meta.prior.summaries import Summaries
from headstart.meta.prior.units import METRICS, check_side
from headstart.tasks import Tasks, TaskSet, TaskStream, as_task_set
from headstart.tasks.columns import Columns, units_of
from headstart.tasks.ids import Column, hash_ids, id_array, read_ids

Matrix = NDArray[np.float64]

TOLERANCE, MAX_ITER, MAX_TASKS = 1e-5, 500, 65_536
LEAST_NOISE = float(np.finfo(np.float64).tiny)  # that can be divided by
MOST_FULL = 64  # columns up to which "auto" learns all covariances


def learn_prior(
    tasks: Tasks | TaskStream | Summaries,
    loss: str | Loss = "squared",
    metric: str = "auto",
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    n_jobs: int | None = None,
    *,
    fit_intercept: bool = False,
    shrink: float | None = None,
    max_tasks: int | None = MAX_TASKS,
    side: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Prior:
    r"""Learn where tasks start, how far and in which directions they go, and how noisy rows are.

    Weights of tasks are taken to be spread as :math:`N(h, \Sigma)`, and rows to be noisy by b;
    :math:`(h, \Sigma, b)` are those under which all rows are most likely, or for losses other
    than the squared one, under which a lower bound of that is largest. The order of tasks and of
    rows does not matter, nor do the units of the columns; with an intercept, nor do their zeros.

    The bound of losses with corners (absolute, pinball, epsilon-insensitive, hinge) is loose where
    tasks have about as few rows as columns, and best there with no variances at all: use the
    squared, Huber or logistic loss for such tasks.

    Parameters
    ----------
    tasks : TaskSet, list of pairs (X, y), Summaries, or ParquetRows
    loss : str or Loss
        With `Summaries`, theirs.
    metric : {"auto", "full", "diagonal", "isotropic"}
        The shape of the covariance in standard units: any; one variance for each column; the
        same for all. ``"auto"`` is full up to 64 columns, then diagonal.
    tol : float > 0
        Stop when a pass raises the log-likelihood by less, for each task.
    max_iter : int
        Passes over the tasks at most.
    n_jobs : int, optional
        Threads; -1 for all cores. The result has the same bits for any number.
    fit_intercept : bool
        Whether a column of ones is added, with a start and a variance of its own. With
        `Summaries`, as they have it.
    shrink : float, optional
        A covariance C is :math:`(1-\rho)C + \rho D`, with D the best of the next simpler shape;
        0 for the most likely covariance. By default both a diagonal and a full one are shrunk,
        :math:`\rho = \nu/(\nu + T)` with :math:`\nu = \frac k4(1+\frac kT)` and
        :math:`2k(1+\frac kT)` for k columns and T tasks.
    max_tasks : int, optional
        Where there are more, those with the smallest hash of their id are used: the same ones
        in any order and from any file. None for all.
    side : array-like of shape (tasks, p), optional
        What is known of each task, beside its rows: its start is ``h + G s``.
    sample_weight : array-like of shape (rows,), optional
        How often each row of a `TaskSet` counts.

    Returns
    -------
    Prior

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the likelihood still rises by more after `max_iter` passes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 10, 2))
    >>> w = [4.0, -2.0] + [1.0, 0.1] * rng.standard_normal((300, 2))
    >>> y = np.einsum("tnd,td->tn", X, w) + 0.5 * rng.standard_normal((300, 10))
    >>> prior = learn_prior(list(zip(X, y)))
    >>> print(prior.bias.round(1), round(prior.noise, 2))
    [ 4. -2.] 0.25
    >>> print(np.sqrt(np.diag(prior.covariance)).round(1))  # how far tasks go
    [1.  0.1]
    """
    prior = find_prior(
        tasks, loss, metric, tol, max_iter, n_jobs, fit_intercept=fit_intercept, shrink=shrink,
        max_tasks=max_tasks, side=side, sample_weight=sample_weight,
    )  # fmt: skip
    if not prior.converged:
        warn_user(
            f"learn_prior: the likelihood still rises after {max_iter} passes; raise max_iter or "
            "tol",
            ConvergenceWarning,
        )
    return prior


def find_prior(
    tasks: Tasks | TaskStream | Summaries,
    loss: str | Loss,
    metric: str,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    n_jobs: int | None = None,
    *,
    fit_intercept: bool = False,
    shrink: float | None = None,
    max_tasks: int | None = MAX_TASKS,
    side: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Prior:
    """As `learn_prior`, without a word if it has not settled."""
    rate, passes = check_number("tol", tol, above=0.0), check_count("max_iter", max_iter)
    check_choice("metric", metric, ["auto", *METRICS])
    most = None if max_tasks is None else check_count("max_tasks", max_tasks)
    check_flag("fit_intercept", fit_intercept)
    if shrink is not None:
        shrink = check_number("shrink", shrink, at_least=0.0, below=1.0)
    chosen = tasks.loss if isinstance(tasks, Summaries) else get_loss(loss)
    chosen.check_inner("posterior")
    if isinstance(tasks, TaskStream) and not isinstance(tasks, TaskSet | Summaries):
        if side is not None:
            raise ValueError(
                "side: expected None with a dataset on disk; its tasks have an order of their own"
            )
        parts = (
            (batch.X, batch.y, read_ids("ids", np.repeat(batch.ids, batch.sizes)))
            for batch in tasks.task_sets()
        )
        tasks = summarised(parts, chosen, fit_intercept, most)
    if isinstance(tasks, Summaries):
        _refuse(sample_weight)
        e, columns, units, few = tasks.evidence(most, side)
    else:
        with quietly():
            e, columns, units, few = task_evidence(
                as_task_set(tasks), chosen, fit_intercept, most, side, sample_weight
            )
    shape = chosen_metric(metric, columns.width, sparse=isinstance(e, SparseEvidence))
    jobs = check_jobs(n_jobs)
    aim = Aim(shape, shrink, rate, passes, jobs)
    try:
        with quietly():
            found = learn(e, chosen, aim, few, level=columns.intercept)
    except (ArithmeticError, ValueError):  # of SciPy, NumPy and math; nothing there is refused
        found = None
    if found is None or not _are_numbers(found.start, columns):
        raise ValueError(
            "tasks: the numbers are too large or too small to learn from; use other units, or "
            "weights nearer to 1"
        )
    start = _from_side_units(found.start, units)
    return Prior.learned(start, columns, chosen, shape, found.n_iter, found.converged)


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


def task_evidence(
    tasks: TaskSet,
    loss: Loss,
    intercept: bool = False,
    most: int | None = None,
    side: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Shown:
    """What a task set shows."""
    loss.check_labels(tasks.y, tasks.place)
    weight = row_weights(sample_weight, len(tasks.y))
    if not weight.any():
        raise ValueError("sample_weight: expected a number > 0, found none")
    known = None if side is None else check_side(side, len(tasks))
    chosen, few = np.arange(len(tasks)), None
    if len(tasks) > min(MANY_TASKS, most or MANY_TASKS):
        chosen, few = sampled(chosen, hash_ids(tasks.ids), most)
    if len(chosen) < len(tasks):
        weight = weight[np.repeat(np.isin(np.arange(len(tasks)), chosen), tasks.sizes)]
        tasks, known = tasks.subset(chosen), None if known is None else known[chosen]
    X, y, offsets = tasks.inputs, tasks.y, tasks.offsets
    if not weight.all():
        used = weight > 0.0
        counts = np.add.reduceat(used, offsets[:-1])
        X, y, weight = X[used], y[used], weight[used]
        offsets = np.append(0, np.cumsum(counts))
    units = None
    if known is not None:
        units = Columns.of(known, np.zeros(len(known)), intercept=True)
        known = units.rows(known)[:, :-1]
    columns = units_of(X, y, intercept=intercept, margin=loss.binary, weight=weight)
    return Shown(any_evidence(X, y, offsets, columns, loss, known, weight), columns, units, few)


def summarised(
    parts: Iterable[tuple[FloatArray, FloatArray, Column]],
    loss: Loss,
    intercept: bool,
    most: int | None,
) -> Summaries:
    """What rows with ids show that come part by part, of the entities with the smallest hashes."""
    found, bound = Summaries(loss, fit_intercept=intercept), np.uint64(2**64 - 1)
    for X, y, column in parts:
        numbers = found.number(column, len(y)) if bound == 2**64 - 1 else None
        if numbers is None:
            hashes = np.append(hash_ids(id_array("ids", column.values)), np.uint64(0))
            used = column.by_row((hashes <= bound)[column.codes]).astype(np.bool_)
            X, y = X[used], y[used]
            numbers = found.number(column.at(used), len(y))
        found.take(X, y, numbers, None)
        if most is not None and len(found) > 2 * most:
            bound = found.sample(most)
    return found


def _refuse(sample_weight: ArrayLike | None) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight: expected None with Summaries or a dataset; add takes it")


def _from_side_units(start: Start, units: Columns | None) -> Start:
    """Starts by what is known of tasks in the units in which it came."""
    if units is None:
        return start
    effects = start.effects.copy()
    effects[:, 1:] /= units.scale
    effects[:, 0] -= effects[:, 1:] @ units.centre
    return start._replace(effects=effects)
