"""Where a fitted model lets new tasks start, and what is known of many of them after their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import expit

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, read_only
from headstart.estimators.inputs import Labels, as_numbers
from headstart.estimators.protocol import MetaModel
from headstart.inner.posterior import packed, posteriors, unpacked
from headstart.inner.posterior.gather import evidence_of
from headstart.inner.posterior.passes import quadratic_forms
from headstart.losses import Logistic
from headstart.meta.prior import Prior
from headstart.meta.prior.posterior import interval
from headstart.online import AnyStream, PriorStream, predictions

Counts = NDArray[np.int64]
Matrix = NDArray[np.float64]


class Knowledge(NamedTuple):
    """What is known of many tasks after their rows.

    Attributes
    ----------
    weights : by task, the intercept last
    unknown : packed covariances in the units of the prior; none if they were not asked for
    prior : from which they were found; None with a number for reg
    """

    weights: FloatArray
    unknown: Matrix
    prior: Prior | None

    def predict(self, X: FloatArray, task: Counts) -> FloatArray:
        """A prediction for every row, by the weights of its task."""
        scores = np.empty(len(X), X.dtype)
        predictions(read_only(X), task, read_only(self.weights), self.weights[0], scores)
        return scores

    def variance(self, X: FloatArray, task: Counts) -> Vector:
        """The variance of each prediction, given all that is known of its task."""
        if self.prior is None:
            raise ValueError("prior: expected one")
        return quadratic_forms(self.prior.columns.rows(X), self.unknown, task)

    def covariance(self, which: NDArray[np.bool_]) -> FloatArray:
        """Covariances of the weights of these tasks in the user's units: packed lower triangles."""
        if self.prior is None:
            raise ValueError("prior: expected one")
        with quietly():
            found = packed(self.prior.columns.covariance(unpacked(self.unknown[which])))
        return check_answer(found.astype(self.weights.dtype), "rows, prior")


@dataclass(frozen=True)
class StartingModel:
    """Where new tasks start and how they are adapted: a model without its entities.

    Attributes
    ----------
    stream : what the model knows, but for entities
    classes : the two labels of a classifier, else None
    """

    stream: AnyStream
    classes: Labels | None

    @property
    def side(self) -> tuple[str, ...]:
        """The columns that say where a task starts."""
        return tuple(map(str, getattr(self.stream.settings, "side", ())))

    def weights(self, dtype: DTypeLike) -> FloatArray:
        """The weights of a task without rows, the intercept last."""
        return self.stream.start.astype(self.stream.dtype).astype(dtype)

    def labels(self, scores: FloatArray) -> Labels:
        """Linear predictions as labels."""
        return scores if self.classes is None else self.classes[(scores > 0.0).astype(np.int64)]

    def check_prior(self, option: str) -> None:
        """Raise unless a prior says how sure weights are; and predictions, if they are classes."""
        if not isinstance(self.stream, PriorStream):
            raise ValueError(f"{option}: needs a prior learned from dense rows, reg='auto'")
        binary = self.classes is not None and option != "covariance"
        if binary and not isinstance(self.stream.settings.loss, Logistic):
            raise ValueError(f"{option}: of classes the logistic loss alone gives probabilities")

    @property
    def _prior(self) -> Prior:
        self.check_prior("covariance")
        prior: Prior = self.stream.prior  # type: ignore[union-attr]
        return prior

    def std(self, variance: Vector) -> Vector:
        """The standard deviation of labels, from the variance of their predictions."""
        prior = self._prior
        with quietly():
            found = np.sqrt(variance + prior.loss.noise_variance(prior.noise))
        return check_answer(found, "rows")

    def interval(self, scores: FloatArray, std: FloatArray, coverage: float) -> FloatArray:
        """Ends between which labels fall in that share of cases, shape (rows, 2)."""
        return interval(scores, std, coverage, self._prior.loss).astype(scores.dtype)

    def probability(self, scores: FloatArray, variance: Vector) -> FloatArray:
        """The probability of the second class: nearer to a half where less is known."""
        return np.asarray(expit(scores / np.sqrt(1.0 + math.pi / 8.0 * variance)), scores.dtype)

    def after(
        self,
        X: FloatArray,
        y: Labels,
        sizes: Counts,
        side: Matrix | None = None,
        *,
        covariance: bool = False,
    ) -> Knowledge:
        """What is known of tasks after their rows, which lie together; tasks may have none.

        The weights are those that `adapt` gives, and the start without rows.
        """
        labels = as_numbers(y, self.classes, X.dtype)
        self.stream.settings.loss.check_labels(labels)
        if not isinstance(self.stream, PriorStream):
            return Knowledge(self._adapted(X, labels, sizes), np.empty((0, 0)), None)
        prior, cuts = self.stream.prior, np.append(0, np.cumsum(sizes))
        with quietly():
            e = evidence_of(X, labels, cuts, prior.columns, prior.loss, side)
            W, V, _ = posteriors(e, prior.standard, prior.loss, covariance=covariance)
            weights: FloatArray = prior.columns.weights(W).astype(X.dtype)
        check_answer(weights, "rows, prior")
        if not self.stream.settings.fit_intercept:
            weights = np.column_stack([weights, np.zeros(len(weights), X.dtype)])
        return Knowledge(weights, V, prior)

    def _adapted(self, X: FloatArray, labels: FloatArray, sizes: Counts) -> FloatArray:
        """Weights by a number for reg, of which tasks without rows take the start."""
        able = np.flatnonzero(sizes)
        weights: FloatArray = np.tile(self.weights(X.dtype), (sizes.size, 1))
        if able.size:
            offsets = np.append(0, np.cumsum(sizes[able]))
            weights[able] = self.stream.adapted(X, labels, offsets)
        return weights


def start_only(model: MetaModel) -> StartingModel:
    """What a fitted model gives to new tasks."""
    if model.base is not None:
        raise ValueError("base: expected None with a dataset on disk, found a value")
    return StartingModel(model.stream().without_entities(), getattr(model, "classes_", None))
