"""Where a fitted model lets new tasks start, and what is known of many of them after their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
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
from headstart.inner.posterior.lines import Rows, Some, Units
from headstart.inner.posterior.passes import quadratic_forms
from headstart.inner.posterior.rows import answer
from headstart.inner.start import with_one
from headstart.losses import Logistic
from headstart.meta.prior import Prior
from headstart.meta.prior.posterior import interval
from headstart.online import AnyStream, PriorStream, predictions
from headstart.parquet import Block

Counts = NDArray[np.int64]
Matrix = NDArray[np.float64]


class Wanted(NamedTuple):
    """What is to be found beside weights: predictions of rows, how sure they are, covariances."""

    predictions: bool
    variance: bool
    covariance: bool


class Knowledge(NamedTuple):
    """What is known of many tasks after their rows; nothing where that is not wanted.

    Attributes
    ----------
    weights : by task, the intercept last
    sizes : by task, how many rows it was adapted to
    scores, variance : by row, its linear prediction, and the variance of that
    covariance : by task, of its weights in the user's units, a packed lower triangle
    """

    weights: FloatArray
    sizes: Counts
    scores: FloatArray
    variance: Vector
    covariance: FloatArray


class Shown(NamedTuple):
    """A block of tasks, which of its rows are learned from, and their labels.

    `sizes` are how many of them each task has, `side` is what describes each task.
    """

    block: Block
    own: NDArray[np.bool_]
    labels: FloatArray
    sizes: Counts
    side: Matrix | None

    @property
    def inputs(self) -> FloatArray:
        """The inputs of the rows that are learned from."""
        return self.block.X if self.own.all() else self.block.X[self.own]


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
            found = variance + prior.loss.noise_variance(prior.noise)
            np.sqrt(found, out=found)
        return check_answer(found, "rows")

    def interval(self, scores: FloatArray, std: FloatArray, coverage: float) -> FloatArray:
        """Ends between which labels fall in that share of cases, shape (rows, 2)."""
        return interval(scores, std, coverage, self._prior.loss).astype(scores.dtype)

    def probability(self, scores: FloatArray, variance: Vector) -> FloatArray:
        """The probability of the second class: nearer to a half where less is known."""
        return np.asarray(expit(scores / np.sqrt(1.0 + math.pi / 8.0 * variance)), scores.dtype)

    def after(self, block: Block, side: Matrix | None, wanted: Wanted) -> Knowledge:
        """What is known of tasks after their rows with a label; tasks may have none.

        The weights are those that `adapt` gives, and the start without rows.
        """
        own = ~(block.by_row(block.missing) | block.unlabelled)
        sizes = np.add.reduceat(own, block.starts, dtype=np.int64)
        labels = as_numbers(block.y if own.all() else block.y[own], self.classes, block.X.dtype)
        self.stream.settings.loss.check_labels(labels)
        shown = Shown(block, own, labels, sizes, side)
        with quietly():
            if not isinstance(self.stream, PriorStream):
                known = self._adapted(shown, wanted)
            elif self._prior.loss.is_squared:
                known = self._at_once(shown, wanted)
            else:
                known = self._settled(shown, wanted)
        check_answer((known.weights, known.scores, known.covariance), "rows, prior")
        return known

    def _adapted(self, shown: Shown, wanted: Wanted) -> Knowledge:
        """By a number for reg, of which tasks without rows take the start."""
        block, able = shown.block, np.flatnonzero(shown.sizes)
        weights: FloatArray = np.tile(self.weights(block.X.dtype), (shown.sizes.size, 1))
        if able.size:
            offsets = np.append(0, np.cumsum(shown.sizes[able]))
            weights[able] = self.stream.adapted(shown.inputs, shown.labels, offsets)
        none = np.empty(0)
        return Knowledge(weights, shown.sizes, _scores(block, weights, wanted), none, none)

    def _settled(self, shown: Shown, wanted: Wanted) -> Knowledge:
        """By a prior of any loss: predictions from the weights and what is not known of them."""
        block, unsure = shown.block, wanted.variance
        W, V = self._posteriors(shown, covariance=wanted.covariance or unsure)
        weights, none = self._in_users_units(W, block.X.dtype), np.empty(0)
        variance = none
        if unsure:
            variance = quadratic_forms(self._prior.columns.rows(block.X), V, block.runs)
        covariance = self._covariance(V, block.X.dtype) if wanted.covariance else none
        scores = _scores(block, weights, wanted)
        return Knowledge(weights, shown.sizes, scores, variance, covariance)

    def _at_once(self, shown: Shown, wanted: Wanted) -> Knowledge:
        """By a prior of the squared loss: all from one kernel, but for covariances."""
        (block, own, labels, sizes, side), columns = shown, self._prior.columns
        y = columns.labels(labels)
        if not own.all():
            y = np.zeros(len(own))
            y[own] = columns.labels(labels)
        some = Some.where(own, sizes), Some.where(~own, block.sizes - sizes)
        rows = Rows(read_only(block.X), y, *some, with_one(side, len(sizes)))
        found = answer(rows, self._units, predict=wanted.predictions)
        found.mean[:] += columns.level
        covariance: FloatArray = np.empty(0)
        if wanted.covariance:
            covariance = self._covariance(
                self._posteriors(shown, covariance=True)[1], block.X.dtype
            )
        return Knowledge(
            self._in_users_units(found.W, block.X.dtype),
            sizes,
            found.mean.astype(block.X.dtype, copy=False),
            found.variance,
            covariance,
        )

    @cached_property
    def _units(self) -> Units:
        return Units.of(self._prior.columns, self._prior.standard)

    def _posteriors(self, shown: Shown, *, covariance: bool) -> tuple[Matrix, Matrix]:
        """Weights in standard units, and packed covariances."""
        prior, cuts = self._prior, np.append(0, np.cumsum(shown.sizes))
        e = evidence_of(shown.inputs, shown.labels, cuts, prior.columns, prior.loss, shown.side)
        W, V, _ = posteriors(e, prior.standard, prior.loss, covariance=covariance)
        return W, V

    def _in_users_units(self, W: Matrix, dtype: DTypeLike) -> FloatArray:
        """Weights of a prior, with an intercept of 0 if it has none."""
        weights: FloatArray = self._prior.columns.weights(W).astype(dtype, copy=False)
        if self._prior.columns.intercept:
            return weights
        return np.column_stack([weights, np.zeros(len(weights), dtype)])

    def _covariance(self, V: Matrix, dtype: DTypeLike) -> FloatArray:
        found = packed(self._prior.columns.covariance(unpacked(V)))
        return found.astype(dtype, copy=False)


def _scores(block: Block, weights: FloatArray, wanted: Wanted) -> FloatArray:
    """A prediction for every row, by the weights of its task."""
    scores = np.empty(len(block.X) if wanted.predictions else 0, block.X.dtype)
    if wanted.predictions:
        predictions(read_only(block.X), block.runs, read_only(weights), weights[0], scores)
    return scores


def start_only(model: MetaModel) -> StartingModel:
    """What a fitted model gives to new tasks."""
    if model.base is not None:
        raise ValueError("base: expected None with a dataset on disk, found a value")
    return StartingModel(model.stream().without_entities(), getattr(model, "classes_", None))
