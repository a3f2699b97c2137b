"""What `TaskRegressor` and `TaskClassifier` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, check_bias, check_number, read_only
from headstart.estimators.base import Estimator
from headstart.estimators.base_model import check_base, with_column
from headstart.estimators.inputs import read_inputs, split_columns
from headstart.losses import Loss
from headstart.meta.prior import Prior
from headstart.meta.prior.posterior import Known
from headstart.meta.prior.sparse_posterior import SparsePosterior
from headstart.online import OneTask, Settings, predictions
from headstart.tasks.sparse import is_sparse


class Task(Estimator):
    """One task: Algorithm 1 or the exact solution from a given bias, or a prior's posterior."""

    prior: Prior | None
    bias: ArrayLike | None
    base: Any
    intercept: float
    intercept_scaling: float | None
    coef_: FloatArray
    intercept_: float
    n_features_in_: int
    classes: ArrayLike | None = None
    _posterior: Known
    _beside: tuple[str | int | None, Sequence[str | int] | None] = None, None
    _task: OneTask

    def _has_prior(self) -> bool:
        return self.prior is not None

    def _loss(self) -> Loss:
        chosen = super()._loss()
        if self.prior is None or (isinstance(self.loss, str) and self.loss == "auto"):
            return chosen if self.prior is None else self.prior.loss
        if chosen != self.prior.loss:
            raise ValueError(f"loss: expected 'auto' or {self.prior.loss!r}, which the prior has")
        return chosen

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the rows of one task.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            How often each row counts; with a prior only.
        """
        self._check_parameters()
        inputs, labels = self._read(X, y, reset=True, classes=self.classes)
        inputs = with_column(self.base, inputs)
        weight = self._weights(sample_weight, len(labels))
        if self.prior is not None:
            self._check_width(self.prior)
            if is_sparse(inputs):
                return self._know(self.prior.sparse_posterior(inputs, labels, weight), inputs)
            return self._know(self.prior.posterior(inputs, labels, sample_weight=weight), inputs)
        inputs, labels = _used(inputs, labels, weight)
        self._task = self._new_task(inputs)
        return self._take(self._task.fit(inputs, labels))

    def _go_on(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        self._check_parameters()
        begun = self.__sklearn_is_fitted__()
        inputs, labels = self._read(X, y, reset=not begun, classes=classes)
        inputs = with_column(self.base, inputs)
        weight = self._weights(sample_weight, len(labels))
        if self.prior is not None:
            self._check_width(self.prior)
            if is_sparse(inputs) and not begun:
                return self._know(self.prior.sparse_posterior(inputs, labels, weight), inputs)
            known = self._posterior if begun else self.prior.posterior()
            return self._know(known.update(inputs, labels, weight), inputs)
        inputs, labels = _used(inputs, labels, weight)
        if not begun:
            self._task = self._new_task(inputs)
        return self._take(self._task.take(inputs, labels))

    def beside(self, group: str | int | None, side: Sequence[str | int] | None) -> Self:
        """Let rows to predict have these columns too; they are ignored."""
        self._beside = group, side
        return self

    def _inputs(self, X: Any) -> FloatArray:
        """Rows to predict; an array may have all columns or the features alone."""
        shape = getattr(X, "shape", (0, 0))
        sparse = isinstance(getattr(self, "_posterior", None), SparsePosterior)
        if self._beside == (None, None) or (len(shape) == 2 and shape[1] == self.n_features_in_):
            return with_column(self.base, read_inputs(self, X, sparse=sparse))
        rows, _, _ = split_columns(X, None, *self._beside, required=False)
        return with_column(self.base, read_inputs(self, rows))

    def _check_parameters(self) -> None:
        self._check_choices()
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise TypeError(f"prior: expected a Prior or None, found {type(self.prior).__name__}")
        loss = self._loss()
        if self.prior is None:
            loss.regularised(self.reg, self.inner)
        elif self.bias is not None:
            raise ValueError("bias: expected None with a prior, which has one")
        if self.base is not None:
            if self.prior is None:
                raise ValueError("base: expected None without a prior")
            check_base(self.base, binary=isinstance(self, ClassifierMixin))
            check_is_fitted(self.base)

    def _check_width(self, prior: Prior) -> None:
        width = self.n_features_in_ + (self.base is not None)
        if prior.n_features != width or prior.intercept != self.fit_intercept:
            raise ValueError(
                f"prior: expected one of {width} features with fit_intercept="
                f"{self.fit_intercept}, found {prior.n_features} and {prior.intercept}"
            )
        if prior.n_side:
            raise ValueError("prior: expected one for what is known of the task; see Prior.at")

    def _know(self, posterior: Known, inputs: FloatArray) -> Self:
        self._posterior = posterior
        d = inputs.shape[1]
        with quietly():
            coef = check_answer(posterior.weights[:d].astype(inputs.dtype), "X, y, prior")
        self.coef_ = coef
        self.intercept_ = float(posterior.weights[d]) if self.fit_intercept else 0.0
        return self

    def _new_task(self, inputs: FloatArray) -> OneTask:
        scale = self.intercept_scaling
        settings = Settings(
            self._loss(),
            float(self.reg),
            inner=self.inner,
            predictor=self.predictor,
            fit_intercept=bool(self.fit_intercept),
            scaling=None if scale is None else check_number("intercept_scaling", scale, above=0.0),
        )
        return OneTask(settings, self._start(), inputs.dtype)

    def _take(self, weights: FloatArray) -> Self:
        check_answer(weights, "X, y, bias, intercept, reg, intercept_scaling")
        self.coef_, self.intercept_ = weights[:-1], float(weights[-1])
        return self

    def _start(self) -> Vector:
        d = self.n_features_in_
        bias = np.zeros(d) if self.bias is None else check_bias("bias", self.bias, d)
        return np.append(bias, check_number("intercept", self.intercept))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _scores(self, X: Any, groups: Any = None) -> FloatArray:  # noqa: ARG002
        check_is_fitted(self)
        inputs = self._inputs(X)
        with quietly():
            if is_sparse(inputs):
                found = np.asarray(inputs @ self.coef_ + self.intercept_, self.coef_.dtype)
                return check_answer(found, "X")
            weights = np.append(self.coef_, self.intercept_).astype(self.coef_.dtype)
        out = np.empty(len(inputs), inputs.dtype)
        # To the kernel of many entities, all rows are of none: they get its start, our weights.
        unknown, none = np.full(len(inputs), -1), np.empty((0, weights.size), weights.dtype)
        predictions(inputs, unknown, read_only(none), read_only(weights), out)
        return check_answer(out, "X")


def _used(
    inputs: FloatArray, labels: FloatArray, weight: Vector | None
) -> tuple[FloatArray, FloatArray]:
    """The rows that count."""
    if weight is None:
        return inputs, labels
    return inputs[weight > 0.0], labels[weight > 0.0]
