r"""Five ways to treat tasks as five priors, so that like is compared with like.

Under a prior :math:`N(h, \Sigma)` of the tasks' weights, the ways differ in what is learned:

=====================  ============  ====================================
way                    start h       spread :math:`\Sigma`
=====================  ============  ====================================
each task alone        0             one variance for each column
all tasks pooled       learned       none
pooled, own levels     learned       of the level alone: a random intercept
headstart, isotropic   learned       one variance for all columns
headstart              learned       as `fit` learns it
=====================  ============  ====================================

Units, intercept, noise and the loss are the same in all of them. A task alone is pulled to 0, and
its level to the mean of all labels; how strongly, is learned from the other tasks, which is more
than a task alone could know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.blas import one_blas_thread
from headstart._core.checks import Vector
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.evaluation.held_out import Fold, Shots
from headstart.inner.posterior import packed, posteriors
from headstart.inner.posterior.gather import evidence_of
from headstart.inner.posterior.passes import quadratic_forms
from headstart.losses import get_loss
from headstart.meta.prior import Prior
from headstart.meta.prior.em import Learning
from headstart.meta.prior.goal import MAX_ITER, TOLERANCE
from headstart.meta.prior.learn import find_prior
from headstart.meta.prior.shapes import Factored, Full
from headstart.meta.prior.shown import task_evidence
from headstart.tasks import TaskSet

Matrix = NDArray[np.float64]

ALONE, POOLED, LEVELS = "each task alone", "all tasks pooled", "pooled, own levels"
ISOTROPIC, HEADSTART = "headstart, isotropic", "headstart"


class Known(NamedTuple):
    """What is known of the label of each query: its mean, and its variance.

    For classes they are those of the score, and the noise of a label is not in them.
    """

    mean: Vector
    variance: Vector


class _Pinned(Full):
    """All weights stay at the start, but for the level if it is `free`.

    The coordinate is the logarithm of the level's variance. The variances of the others are the
    least there may be, and starts move as they do with any covariance.
    """

    def __init__(self, width: int, *, free: bool) -> None:
        super().__init__()
        self.width, self.free = width, free

    def coordinates(self, variances: Vector, whole: Matrix) -> Vector:  # noqa: ARG002
        return np.log(variances[-1:])

    def covariance(self, coordinates: Vector, least: float, most: float) -> Factored:
        values = np.full(self.width, least)
        if self.free:
            values[-1] = np.clip(np.exp(np.clip(coordinates[0], -600.0, 600.0)), least, most)
        logs = float(np.log(values).sum())
        return Factored(values, np.diag(values), logs, np.eye(self.width), values)

    def step(self, sigma: Factored, info: Matrix, gone: Matrix) -> Vector:
        info, gone = self._shrunk(sigma, info, gone)
        factor = max(gone[-1, -1], 0.0) / info[-1, -1]
        return np.asarray(np.log(sigma.values[-1:] * max(np.sqrt(factor), 1e-12)))

    def plain_step(self, sigma: Factored, info: Matrix, gone: Matrix) -> Vector:
        factor = 1.0 - info[-1, -1] + gone[-1, -1]
        return np.asarray(np.log(sigma.values[-1:] * max(factor, 1e-12)))


def alone(tasks: TaskSet, loss: str) -> Prior:
    """The prior of tasks that have nothing in common.

    It starts at 0, because every task is learned from twice, once with its labels turned round.
    """
    level = 0.0 if get_loss(loss).binary else float(np.mean(tasks.y))
    y, cuts = tasks.y - level, tasks.offsets
    both = TaskSet(
        np.concatenate([tasks.X, tasks.X]),
        np.concatenate([y, -y]),
        np.concatenate([cuts, cuts[-1] + cuts[1:]]),
        np.arange(2 * len(tasks)),
    )
    prior = find_prior(both, loss, "diagonal", fit_intercept=True)
    columns = replace(prior.columns, level=prior.columns.level + level)
    how = prior.loss, prior.metric, prior.n_iter, prior.converged
    return Prior.learned(prior.standard, columns, *how)


def pooled(tasks: TaskSet, loss: str) -> Prior:
    """One model for all tasks: least squares with a weak ridge, or logistic regression."""
    return _pinned(tasks, loss, free=False)


def own_levels(tasks: TaskSet, loss: str) -> Prior:
    """One model for all tasks, and for each a level of its own: a random intercept."""
    return _pinned(tasks, loss, free=True)


def _pinned(tasks: TaskSet, name: str, *, free: bool) -> Prior:
    loss = get_loss(name)
    e, columns, _, _ = task_evidence(tasks, loss, intercept=True)
    with one_blas_thread():
        learning = Learning(e, loss, _Pinned(columns.width, free=free), level=True)
        found = learning.climb(TOLERANCE, MAX_ITER)
    return Prior.learned(found.start, columns, loss, "full", found.n_iter, found.converged)


def isotropic(tasks: TaskSet, loss: str) -> Prior:
    """The prior of `MetaRegressor` or `MetaClassifier` with one variance for all columns."""
    return _fitted(tasks, loss, "isotropic")


def headstart(tasks: TaskSet, loss: str) -> Prior:
    """The prior of `MetaRegressor` or `MetaClassifier` with their default settings."""
    return _fitted(tasks, loss, "auto")


def _fitted(tasks: TaskSet, loss: str, metric: str) -> Prior:
    model = MetaClassifier(metric=metric) if get_loss(loss).binary else MetaRegressor(metric=metric)
    model.fit(tasks.X, tasks.y, groups=np.repeat(np.arange(len(tasks)), tasks.sizes))
    return model.prior_


WAYS: dict[str, Callable[[TaskSet, str], Prior]] = {
    ALONE: alone,
    POOLED: pooled,
    LEVELS: own_levels,
    ISOTROPIC: isotropic,
    HEADSTART: headstart,
}


def forecasts(way: str, loss: str, fold: Fold, shots: Shots) -> Iterator[Known]:
    """What is known of the queries after each number of rows, by the prior of the known tasks."""
    prior = WAYS[way](fold.known, loss)
    for k in shots:
        yield known_after(prior, fold.new.split_rows(k)[0] if k else None, fold.queries)


def known_after(prior: Prior, shots: TaskSet | None, queries: TaskSet) -> Known:
    """What is known of tasks' queries after their shots, which are None if there are none."""
    start, columns, loss = prior.standard, prior.columns, prior.loss
    place = np.repeat(np.arange(len(queries)), queries.sizes)
    if shots is None:
        whole = start.covariance if start.covariance.size else np.diag(start.variances)
        W, V, place = start.effects.T, packed(whole)[None], np.zeros_like(place)
    else:
        e = evidence_of(shots.X, shots.y, shots.offsets, columns, loss)
        W, V, _ = posteriors(e, start, loss, covariance=True)
    Z = columns.rows(queries.X)
    mean = np.einsum("ij,ij->i", Z, W[place]) + columns.level
    noise = 0.0 if loss.binary else loss.noise_variance(prior.noise)
    return Known(mean, quadratic_forms(Z, np.ascontiguousarray(V), place) + noise)
