"""What the four estimators share: parameters, labels, scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from headstart._checks import FloatArray, Vector, check_choice
from headstart.adaptation import INNER
from headstart.estimators.inputs import Labels, as_signs, read_classes, read_rows
from headstart.losses import LOSSES, Logistic, Loss, Objective, get_loss
from headstart.online import PREDICTORS


class Estimator(BaseEstimator):
    """Parameters of all, and rows as the kernels want them."""

    loss: str | Loss
    reg: float | str
    inner: str
    predictor: str
    fit_intercept: bool
    _or_auto = ""

    def _objective(self) -> Objective:
        """The checked parameters of the within-task algorithm."""
        check_choice("inner", self.inner, INNER)
        check_choice("predictor", self.predictor, list(PREDICTORS))
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept: expected True or False, found {self.fit_intercept!r}")
        chosen = get_loss(self.loss)
        binary = isinstance(self, ClassifierMixin)
        if chosen.binary != binary:
            fitting = [name for name in LOSSES if get_loss(name).binary == binary]
            raise ValueError(
                f"loss: {type(self).__name__} takes {', '.join(map(repr, fitting))}, "
                f"found {chosen.name!r}"
            )
        if isinstance(self.reg, str) and not self._is_tuned():
            raise ValueError(f"reg: expected a number > 0{self._or_auto}, found {self.reg!r}")
        return chosen.regularised(1.0 if self._is_tuned() else self.reg, self.inner)

    def _is_tuned(self) -> bool:
        """Whether reg is to be chosen; an estimator of one task has nothing to choose it by."""
        return False

    def _read(
        self, X: Any, y: ArrayLike, *, reset: bool, classes: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Inputs and labels of one float type, labels as numbers the losses take."""
        raise NotImplementedError

    def _scores(self, X: Any, groups: Any = None) -> FloatArray:
        """The linear predictions."""
        raise NotImplementedError

    def _numbers(self, y: Labels) -> Vector:
        """Labels as numbers the losses take."""
        raise NotImplementedError

    def _told(self, scores: FloatArray) -> Labels:
        """Linear predictions as what the user is told."""
        raise NotImplementedError


class Regressor(RegressorMixin, Estimator):
    """Numbers in, numbers out."""

    def _read(
        self,
        X: Any,
        y: ArrayLike,
        *,
        reset: bool,
        classes: ArrayLike | None = None,  # noqa: ARG002
    ) -> tuple[FloatArray, FloatArray]:
        inputs, labels = read_rows(self, X, y, reset=reset, numeric=True)
        return inputs, labels.astype(inputs.dtype, copy=False)

    def _numbers(self, y: Labels) -> Vector:
        return np.asarray(y, np.float64)

    def _told(self, scores: FloatArray) -> Labels:
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = not self._is_tuned()  # a given step knows no scale
        return tags

    def _score(self, X: Any, y: ArrayLike, groups: Any, sample_weight: ArrayLike | None) -> float:
        return r2_score(y, self._scores(X, groups), sample_weight=sample_weight)


def _is_stream(estimator: Estimator) -> bool:
    if estimator.inner != "erm":
        return True
    raise AttributeError(
        "exact solutions need all rows of a task at once: with inner='erm' there is fit only"
    )


def _is_logistic(estimator: Classifier) -> bool:
    if isinstance(get_loss(estimator.loss), Logistic):
        return True
    raise AttributeError("predict_proba needs loss='logistic'; other losses give no probabilities")


class Classifier(ClassifierMixin, Estimator):
    """Two labels of any kind in, the same out."""

    classes_: Labels

    def _read(
        self, X: Any, y: ArrayLike, *, reset: bool, classes: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        inputs, labels = read_rows(self, X, y, reset=reset, numeric=False)
        if reset:
            self.classes_ = read_classes(labels, classes)
        return inputs, self._numbers(labels).astype(inputs.dtype, copy=False)

    def _numbers(self, y: Labels) -> Vector:
        return as_signs(y, self.classes_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self._is_tuned()
        tags.classifier_tags.multi_class = False
        return tags

    def _told(self, scores: FloatArray) -> Labels:
        return self.classes_[(scores > 0.0).astype(np.int64)]

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        odds = np.exp(-np.abs(scores))
        likelier = 1.0 / (1.0 + odds)
        second = np.where(scores > 0.0, likelier, odds * likelier)
        return np.column_stack([1.0 - second, second])

    def _score(self, X: Any, y: ArrayLike, groups: Any, sample_weight: ArrayLike | None) -> float:
        return accuracy_score(y, self._told(self._scores(X, groups)), sample_weight=sample_weight)


only_logistic = available_if(_is_logistic)
only_streams = available_if(_is_stream)
