"""What the four estimators share: parameters, labels, scores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, as_labels, check_choice, check_flag
from headstart.estimators.faults import check_scored
from headstart.estimators.inputs import Labels, as_signs, read_classes, read_rows
from headstart.inner import ALGORITHMS, INNER
from headstart.losses import LOSSES, Logistic, Loss, get_loss
from headstart.meta.prior.posterior import row_weights
from headstart.online import PREDICTORS


class Estimator(BaseEstimator):
    """Parameters of all, and rows as the kernels want them."""

    loss: str | Loss
    reg: float | str
    inner: str
    predictor: str
    fit_intercept: bool
    _auto_losses = "squared", "absolute"  # with a prior, and with a number for reg

    def _has_prior(self) -> bool:
        """Whether tasks are pulled as a prior says, instead of by one number."""
        raise NotImplementedError

    def _loss(self) -> Loss:
        """The loss that is meant, if it is one for such labels."""
        if isinstance(self.loss, str) and self.loss == "auto":
            return get_loss(self._auto_losses[0 if self._has_prior() else 1])
        chosen, binary = get_loss(self.loss), isinstance(self, ClassifierMixin)
        if chosen.binary != binary:
            fitting = [name for name in LOSSES if get_loss(name).binary == binary]
            raise ValueError(
                f"loss: {type(self).__name__} takes {', '.join(map(repr, fitting))}, "
                f"found {chosen.name!r}"
            )
        return chosen

    def _check_choices(self) -> None:
        check_choice("inner", self.inner, INNER)
        check_choice("predictor", self.predictor, list(PREDICTORS))
        check_flag("fit_intercept", self.fit_intercept)

    def _weights(self, sample_weight: ArrayLike | None, n_rows: int) -> Vector | None:
        """How often each row counts; None where all count once."""
        weight = row_weights(sample_weight, n_rows)
        if bool(np.all(weight == 1.0)):
            return None
        if not weight.any():
            raise ValueError("sample_weight: expected a weight above 0, found that all are zero")
        if not self._has_prior() and np.ptp(weight[weight > 0.0]) > 0.0:
            raise ValueError(
                "sample_weight: expected the same number for all rows that count, with a number "
                "for reg: the paper's algorithms count a row once; a prior can weigh rows"
            )
        return weight

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

    def _to_labels(self, scores: FloatArray) -> Labels:
        """Linear predictions as labels."""
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
        inputs, labels = read_rows(self, X, y, reset=reset, numeric=True, sparse=self._has_prior())
        if labels.dtype == inputs.dtype:
            return inputs, cast(FloatArray, labels)
        return inputs, as_labels("y", labels, inputs.dtype)  # which may be too large for float32

    def _numbers(self, y: Labels) -> Vector:
        return np.asarray(y, np.float64)

    def _to_labels(self, scores: FloatArray) -> Labels:
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._has_prior()
        tags.regressor_tags.poor_score = not self._has_prior()  # a given step knows no scale
        return tags

    def _score(self, X: Any, y: ArrayLike, groups: Any, sample_weight: ArrayLike | None) -> float:
        scores = self._scores(X, groups)
        check_scored(y, sample_weight, numeric=True)
        with quietly():
            from sklearn.metrics import r2_score  # which takes as long to import as numba

            found = r2_score(y, scores, sample_weight=sample_weight)
        return check_answer(found, "y, sample_weight") if len(scores) > 1 else found


class Classifier(ClassifierMixin, Estimator):
    """Two labels of any kind in, the same out."""

    classes_: Labels
    _auto_losses = "logistic", "hinge"

    def _read(
        self, X: Any, y: ArrayLike, *, reset: bool, classes: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        inputs, labels = read_rows(self, X, y, reset=reset, numeric=False, sparse=self._has_prior())
        if reset:
            self.classes_ = read_classes(labels, classes)
        return inputs, self._numbers(labels).astype(inputs.dtype, copy=False)

    def _numbers(self, y: Labels) -> Vector:
        return as_signs(y, self.classes_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._has_prior()
        tags.classifier_tags.poor_score = not self._has_prior()
        tags.classifier_tags.multi_class = False
        return tags

    def _to_labels(self, scores: FloatArray) -> Labels:
        return self.classes_[(scores > 0.0).astype(np.int64)]

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        with quietly():
            odds = np.exp(-np.abs(scores))
        likelier = 1.0 / (1.0 + odds)
        second = np.where(scores > 0.0, likelier, odds * likelier)
        return np.column_stack([1.0 - second, second])

    def _score(self, X: Any, y: ArrayLike, groups: Any, sample_weight: ArrayLike | None) -> float:
        labels = self._to_labels(self._scores(X, groups))
        check_scored(y, sample_weight, numeric=False)
        try:
            from sklearn.metrics import accuracy_score

            found = accuracy_score(y, labels, sample_weight=sample_weight)
        except TypeError as error:  # labels that cannot be compared with these
            raise TypeError(f"y: expected the classes {self.classes_.tolist()} ({error})") from None
        return check_answer(found, "sample_weight")


def _is_stream(estimator: Estimator) -> bool:
    name = estimator.inner
    inner = ALGORITHMS.get(name) if isinstance(name, str) else None  # a wrong one is refused later
    if inner is None or not inner.exact or estimator._has_prior():
        return True
    raise AttributeError(
        "exact solutions need all rows of a task at once: with inner='erm' there is fit only"
    )


def _is_logistic(estimator: Classifier) -> bool:
    if isinstance(estimator._loss(), Logistic):
        return True
    raise AttributeError("predict_proba needs loss='logistic'; other losses give no probabilities")


def _is_bayesian(estimator: Estimator) -> bool:
    if estimator._has_prior():
        return True
    raise AttributeError("this needs a learned prior, which a number for reg does not give")


only_logistic = available_if(_is_logistic)
only_streams = available_if(_is_stream)
only_priors = available_if(_is_bayesian)
