"""What is known of one task, and what it predicts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, as_floats, check_number, check_task
from headstart.inner.posterior.follow import follow_rows
from headstart.losses import Logistic, Loss
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]

NOTHING = 1e-150  # how often a row counts that does not count


class Rows(NamedTuple):
    """How rows of a task are read: the units, the loss and the noise."""

    columns: Columns
    loss: Loss
    noise: float

    def check(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Inputs and labels that suit the columns and the loss."""
        inputs, labels = check_task(X, y)
        self.check_width(inputs.shape[1])
        self.loss.check_labels(labels)
        return inputs, labels

    def inputs(self, X: ArrayLike) -> Matrix:
        """Rows in standard units."""
        inputs = as_floats("X", X, 2)
        self.check_width(inputs.shape[1])
        with quietly():
            return self.columns.rows(inputs)

    def check_width(self, found: int) -> None:
        """Raise if rows have another number of columns."""
        wanted = self.columns.centre.size
        if found != wanted:
            raise ValueError(f"X: expected {wanted} columns, found {found}")


class Known(ABC):
    """What is known of a task, however it is kept: its weights, and what it predicts."""

    weights: FloatArray
    rows: Rows

    @abstractmethod
    def predict(self, X: ArrayLike) -> Vector:
        """The mean of the predictions ``<x, w>``."""

    @abstractmethod
    def variance(self, X: ArrayLike) -> Vector:
        """The variance of a new label at each row: that of the prediction and that of the noise.

        For labels -1 and +1, the variance of the prediction ``<x, w>`` alone.
        """

    @abstractmethod
    def update(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Known:
        """What is known after these rows too."""

    def interval(self, X: ArrayLike, coverage: float = 0.9) -> Matrix:
        """Ends between which a new label falls in that share of cases, shape (rows, 2).

        Those of a normal distribution with the mean and variance of the label.
        """
        ends = interval(self.predict(X), np.sqrt(self.variance(X)), coverage, self.rows.loss)
        return np.asarray(ends, np.float64)

    def probability(self, X: ArrayLike) -> Vector:
        r"""Probability of the label +1, by the logistic loss.

        :math:`\sigma(f/\sqrt{1 + \pi v/8})` with f and v the mean and variance of the prediction:
        the less is known, the nearer to a half.
        """
        if not isinstance(self.rows.loss, Logistic):
            raise ValueError(
                f"loss: probabilities need the logistic loss, found {self.rows.loss.name!r}"
            )
        shrunk = self.predict(X) / np.sqrt(1.0 + math.pi / 8.0 * self.variance(X))
        return np.asarray(expit(shrunk))


class Posteriors(NamedTuple):
    """Weights of many tasks, shape (tasks, k), and their covariances (tasks, k, k) or None."""

    weights: FloatArray
    covariance: FloatArray | None


@dataclass(frozen=True, eq=False)
class Posterior(Known):
    """What is known of a task: `Prior.posterior` makes one.

    Attributes
    ----------
    weights : array of shape (k,)
        The mean of the task's weights, in the user's units, the intercept last if there is one.
    covariance : array of shape (k, k)
        Their covariance: what is not known of them.
    """

    weights: FloatArray
    covariance: FloatArray
    rows: Rows = field(repr=False)
    mean: Vector = field(repr=False)  # of the weights, in standard units
    unknown: Matrix = field(repr=False)  # their covariance

    @classmethod
    def of(
        cls, rows: Rows, mean: Vector, unknown: Matrix, like: FloatArray | None = None
    ) -> Posterior:
        """The posterior with this mean and covariance in standard units, in the type of `like`."""
        dtype = np.float64 if like is None else like.dtype
        with quietly():
            weights = rows.columns.weights(mean).astype(dtype)
            covariance = rows.columns.covariance(unknown).astype(dtype)
        check_answer((weights, covariance), "X, y, prior")
        return cls(weights, covariance, rows, mean, unknown)

    def predict(self, X: ArrayLike) -> Vector:
        """The mean of the predictions ``<x, w>``."""
        inputs = self.rows.inputs(X)
        with quietly():
            return check_answer(np.asarray(inputs @ self.mean + self.rows.columns.level), "X")

    def variance(self, X: ArrayLike) -> Vector:
        """The variance of a new label at each row: that of the prediction and that of the noise.

        For labels -1 and +1, the variance of the prediction ``<x, w>`` alone.
        """
        inputs = self.rows.inputs(X)
        loss, noise = self.rows.loss, self.rows.noise
        with quietly():
            known: Vector = np.einsum("ij,ij->i", inputs @ self.unknown, inputs)
        return check_answer(known if loss.binary else known + loss.noise_variance(noise), "X")

    def update(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Posterior:
        """What is known after these rows too, taken one at a time; this one is left as it is.

        For the squared loss, the posterior of all rows together; for the others it depends a
        little on their order.

        Examples
        --------
        >>> from headstart import Prior
        >>> known = Prior(bias=[1.0], covariance=1.0, noise=0.5).posterior()
        >>> for x, y in [([1.0], 3.0), ([1.0], 3.0)]:
        ...     known = known.update([x], [y])
        >>> print(known.weights, known.covariance)
        [2.6] [[0.2]]
        """
        inputs, labels = self.rows.check(X, y)
        share = row_weights(sample_weight, len(labels))
        mean, unknown = self.mean.copy(), self.unknown.copy()
        columns, loss, noise = self.rows
        with quietly():
            rows, targets = columns.rows(inputs), columns.labels(labels)
        follow_rows(rows, targets, share, 0, len(labels), loss.form, noise, mean, unknown)
        return Posterior.of(self.rows, mean, unknown, inputs)


def interval(
    mean: FloatArray, std: FloatArray, coverage: float, loss: Loss
) -> NDArray[np.floating]:
    """Ends of the middle of normal distributions, where labels of this loss have some."""
    share = check_number("coverage", coverage, above=0.0, below=1.0)
    if loss.binary:
        raise ValueError("loss: labels -1 and +1 have no interval; use probability")
    if -loss.domain[0] != loss.domain[1]:
        raise ValueError(
            f"loss: {loss!r} predicts a quantile, which no interval is around; "
            "learn one prior for each end"
        )
    with quietly():
        half = float(ndtri(0.5 + 0.5 * share)) * std
        return check_answer(np.column_stack([mean - half, mean + half]), "X, coverage")


def row_weights(sample_weight: ArrayLike | None, n: int) -> Vector:
    """How often each row counts, once by default; none may count less than 0 times."""
    if sample_weight is None:
        return np.ones(n)
    weight = as_floats("sample_weight", sample_weight, 1).astype(np.float64)
    if weight.size != n:
        raise ValueError(f"sample_weight: expected one number per row ({n}), found {weight.size}")
    if not (weight >= 0.0).all():
        raise ValueError(f"sample_weight: expected numbers >= 0, found {weight.min():g}")
    return np.where(weight < NOTHING, 0.0, weight)
