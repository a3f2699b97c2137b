"""Learning a prior: the face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from headstart._core.answers import quietly
from headstart._core.checks import check_flag, warn_user
from headstart.losses import Loss, get_loss
from headstart.meta.prior.dataset import Reading
from headstart.meta.prior.from_dataset import dataset_prior
from headstart.meta.prior.goal import MAX_ITER, MAX_TASKS, TOLERANCE, Goal, learn_from
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.sample import Shown
from headstart.meta.prior.shown import task_evidence
from headstart.meta.prior.summaries import Summaries
from headstart.parquet import ParquetRows
from headstart.parquet.engine import LocalEngine
from headstart.parquet.sparse_sample import read_sparse
from headstart.tasks import Tasks, TaskSet, as_task_set


def learn_prior(
    tasks: Tasks | ParquetRows | Summaries,
    loss: str | Loss = "squared",
    metric: str = "auto",
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    n_jobs: int | None = None,
    *,
    fit_intercept: bool = False,
    shrink: float | None = None,
    max_tasks: int | None = MAX_TASKS,
    side: ArrayLike | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    initial: Prior | None = None,
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
        0 for the most likely covariance and start. Else starts are pulled to 0 too, weakly, in
        standard units. By default both a diagonal and a full one are shrunk,
        :math:`\rho = \nu/(\nu + T)` with :math:`\nu = \frac k4(1+\frac kT)` and
        :math:`2k(1+\frac kT)` for k columns and T tasks.
    max_tasks : int, optional
        Where there are more, those with the smallest hash of their id are used: the same ones
        in any order and from any file. None for all: those of a dataset stay on disk as rows or
        in memory as sums with the squared loss, and come into memory as rows with others, or are
        refused if there is no room for them.
    side : array-like of shape (tasks, p), or names of columns of a dataset, optional
        What is known of each task, beside its rows: its start is ``h + G s``.
    sample_weight : array-like of shape (rows,), optional
        How often each row of a `TaskSet` counts.
    initial : Prior, optional
        Where learning begins, in place of a first guess: the prior of yesterday's rows, say. It
        must be of as many columns, the same loss and the same metric. Learning ends at the same
        prior, to `tol`, after fewer passes the nearer it is.

    Returns
    -------
    Prior

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the likelihood still rises by more after `max_iter` passes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 10, 2))
    >>> w = [4.0, -2.0] + [1.0, 0.1] * rng.standard_normal((300, 2))
    >>> y = np.einsum("tnd,td->tn", X, w) + 0.5 * rng.standard_normal((300, 10))
    >>> prior = learn_prior(list(zip(X, y)))
    >>> print(prior.bias.round(1), round(prior.noise, 2))
    [ 4. -2.] 0.25
    >>> print(np.sqrt(np.diag(prior.covariance)).round(1))  # how far tasks go
    [1.  0.1]
    >>> again = learn_prior(list(zip(X, y)), initial=prior)
    >>> print(again.n_iter < prior.n_iter, again.bias.round(1))
    True [ 4. -2.]
    """
    prior = find_prior(
        tasks, loss, metric, tol, max_iter, n_jobs, fit_intercept=fit_intercept, shrink=shrink,
        max_tasks=max_tasks, side=side, sample_weight=sample_weight, initial=initial,
    )  # fmt: skip
    if not prior.converged:
        warn_user(
            f"learn_prior: the likelihood still rises after {max_iter} passes; raise max_iter or "
            "tol",
            ConvergenceWarning,
        )
    return prior


def find_prior(
    tasks: Tasks | ParquetRows | Summaries,
    loss: str | Loss,
    metric: str,
    tol: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    n_jobs: int | None = None,
    *,
    fit_intercept: bool = False,
    shrink: float | None = None,
    max_tasks: int | None = MAX_TASKS,
    side: ArrayLike | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    initial: Prior | None = None,
    base: bool = False,
) -> Prior:
    """As `learn_prior`, without a word if it has not settled; for `base` see `Goal`."""
    chosen = tasks.loss if isinstance(tasks, Summaries) else get_loss(loss)
    goal = Goal.checked(metric, tol, max_iter, n_jobs, shrink, max_tasks, initial, base)
    check_flag("fit_intercept", fit_intercept)
    chosen.check_inner("posterior")
    if isinstance(tasks, ParquetRows):
        _refuse(sample_weight)
        if not chosen.binary:
            tasks.check_numbers()
        if tasks.sparse is not None:
            if side is not None:
                raise ValueError("side: expected None with a dataset of sparse rows")
            tasks = TaskSet.from_arrays(*read_sparse(tasks, goal.most, LocalEngine()))
            return learn_from(_shown(tasks, chosen, fit_intercept, goal), chosen, goal)
        reading = Reading(tasks, chosen, fit_intercept, _names(side))
        return dataset_prior(reading, goal).prior
    if isinstance(tasks, Summaries):
        _refuse(sample_weight)
        shown = tasks.evidence(goal.most, side)
    else:
        shown = _shown(as_task_set(tasks), chosen, fit_intercept, goal, side, sample_weight)
    return learn_from(shown, chosen, goal)


def _shown(
    tasks: TaskSet,
    loss: Loss,
    intercept: bool,
    goal: Goal,
    side: ArrayLike | Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Shown:
    with quietly():
        return task_evidence(tasks, loss, intercept, goal.most, side, sample_weight)


def _names(side: ArrayLike | Sequence[str] | None) -> tuple[str, ...]:
    """Columns of a dataset that describe the entity."""
    if side is None:
        return ()
    names = tuple(side) if isinstance(side, list | tuple) else (side,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            "side: expected names of columns with a dataset on disk; its tasks have an order of "
            "their own"
        )
    return cast(tuple[str, ...], names)


def _refuse(sample_weight: ArrayLike | None) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight: expected None with Summaries or a dataset; add takes it")
