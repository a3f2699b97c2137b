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
from headstart.inner.posterior.rows import answer, room_near
from headstart.inner.start import with_one
from headstart.losses import Logistic
from headstart.meta.prior import Prior
from headstart.meta.prior.posterior import interval
from headstart.online import AnyStream, PriorStream, predictions
from headstart.parquet import Block, Inputs

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

    `inputs` are those of all rows, `sizes` are how many rows of each task are learned from, `side`
    is what describes each task.
    """

    block: Block
    inputs: Inputs
    own: NDArray[np.bool_]
    labels: FloatArray
    sizes: Counts
    side: Matrix | None

    def learned_from(self, X: FloatArray) -> FloatArray:
        """Of all inputs, row by row, those of rows that are learned from."""
        return X if self.own.all() else X[self.own]


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

    def after(self, block: Block, inputs: Inputs, side: Matrix | None, wanted: Wanted) -> Knowledge:
        """What is known of tasks after their rows with a label; tasks may have none.

        The weights are those that `adapt` gives, and the start without rows.
        """
        own = ~block.unlabelled
        if block.missing.any():
            own &= ~block.by_row(block.missing)
        every = own.all()
        sizes = block.sizes if every else np.add.reduceat(own, block.starts, dtype=np.int64)
        labels = as_numbers(block.y if every else block.y[own], self.classes, inputs.dtype)
        self.stream.settings.loss.check_labels(labels)
        shown = Shown(block, inputs, own, labels, sizes, side)
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
        X, able = shown.inputs.matrix(), np.flatnonzero(shown.sizes)
        weights: FloatArray = np.tile(self.weights(X.dtype), (shown.sizes.size, 1))
        if able.size:
            offsets = np.append(0, np.cumsum(shown.sizes[able]))
            weights[able] = self.stream.adapted(shown.learned_from(X), shown.labels, offsets)
        scores, none = _scores(shown.block, X, weights, wanted), np.empty(0)
        return Knowledge(weights, shown.sizes, scores, none, none)

    def _settled(self, shown: Shown, wanted: Wanted) -> Knowledge:
        """By a prior of any loss: predictions from the weights and what is not known of them."""
        X, runs, unsure = shown.inputs.matrix(), shown.block.runs, wanted.variance
        W, V = self._posteriors(shown, X, covariance=wanted.covariance or unsure)
        weights, none = self._in_users_units(W, X.dtype), np.empty(0)
        variance = quadratic_forms(self._prior.columns.rows(X), V, runs) if unsure else none
        covariance = self._covariance(V, X.dtype) if wanted.covariance else none
        scores = _scores(shown.block, X, weights, wanted)
        return Knowledge(weights, shown.sizes, scores, variance, covariance)

    def _at_once(self, shown: Shown, wanted: Wanted) -> Knowledge:
        """By a prior of the squared loss: all from one kernel, but for covariances."""
        block, inputs, own, labels, sizes, side = shown
        y = labels.astype(np.float64, copy=False)
        if len(y) < len(own):
            y = np.zeros(len(own))
            y[own] = labels
        starts = np.append(block.starts, len(own))
        some = Some.where(own, sizes), Some.where(~own, block.sizes - sizes)
        near = room_near(starts, inputs.dtype, len(self._units.centre))
        rows = Rows(inputs.pieces, near, starts, y, *some, with_one(side, len(sizes)))
        found = answer(rows, self._units, predict=wanted.predictions)
        if not found.finite:
            inputs.refuse_wrong()
        covariance: FloatArray = np.empty(0)
        if wanted.covariance:
            _, V = self._posteriors(shown, inputs.matrix(), covariance=True)
            covariance = self._covariance(V, inputs.dtype)
        weights, scores = (a.astype(inputs.dtype, copy=False) for a in (found.W.T, found.mean))
        return Knowledge(weights, sizes, scores, found.variance, covariance)

    @cached_property
    def _units(self) -> Units:
        return Units.of(self._prior.columns, self._prior.standard)

    def _posteriors(
        self, shown: Shown, X: FloatArray, *, covariance: bool
    ) -> tuple[Matrix, Matrix]:
        """Weights in standard units, and packed covariances."""
        prior, cuts = self._prior, np.append(0, np.cumsum(shown.sizes))
        own = shown.learned_from(X)
        e = evidence_of(own, shown.labels, cuts, prior.columns, prior.loss, shown.side)
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


def _scores(block: Block, X: FloatArray, weights: FloatArray, wanted: Wanted) -> FloatArray:
    """A prediction for every row, by the weights of its task."""
    scores = np.empty(len(X) if wanted.predictions else 0, X.dtype)
    if wanted.predictions:
        predictions(X, block.runs, read_only(weights), weights[0], scores)
    return scores


def start_only(model: MetaModel) -> StartingModel:
    """What a fitted model gives to new tasks."""
    if model.base is not None:
        raise ValueError("base: expected None with a dataset on disk, found a value")
    return StartingModel(model.stream().without_entities(), getattr(model, "classes_", None))
