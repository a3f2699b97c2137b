"""Classification of one task that starts from a given bias, or from a prior."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.checks import FloatArray
from headstart.estimators.base import Classifier, only_logistic, only_streams
from headstart.estimators.inputs import Labels
from headstart.estimators.task import Task
from headstart.losses import Loss
from headstart.meta.prior import Prior


class TaskClassifier(Classifier, Task):
    """Linear classification of one task into two classes, from a given start.

    Parameters
    ----------
    bias, intercept, reg, inner, predictor, fit_intercept, intercept_scaling, prior
    base
        As in `TaskRegressor`.
    loss : str or Loss
        ``"auto"`` is that of the prior, or ``"hinge"`` without one; others are
        ``"smoothed_hinge"`` and ``"logistic"``.
    classes : array-like of two labels, optional
        Needed where the rows may show one of them only.

    Attributes
    ----------
    classes_ : array of the two labels, sorted
    coef_ : array of shape (d,)
        Weights of the score, which is positive for the second class.
    intercept_ : float

    Examples
    --------
    >>> model = TaskClassifier(bias=[1.0], classes=["no", "yes"]).fit([[2.0]], ["yes"])
    >>> print(*model.predict([[3.0], [-3.0]]))
    yes no
    """

    def __init__(
        self,
        bias: ArrayLike | None = None,
        intercept: float = 0.0,
        reg: float = 1.0,
        loss: str | Loss = "auto",
        inner: str = "sgd",
        predictor: str = "average",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        classes: ArrayLike | None = None,
        prior: Prior | None = None,
        base: Any = None,
    ) -> None:
        self.bias = bias
        self.intercept = intercept
        self.reg = reg
        self.loss = loss
        self.inner = inner
        self.predictor = predictor
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.prior = prior
        self.base = base

    @only_streams
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on with further rows; `classes`, if they were not given before, at the first."""
        return self._go_on(X, y, sample_weight, self.classes if classes is None else classes)

    def decision_function(self, X: Any) -> FloatArray:
        """The score of every row, positive for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> Labels:
        """The class of every row."""
        return self._to_labels(self._scores(X))

    @only_logistic
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes; with a prior, nearer to a half where less is known."""
        if self.prior is None:
            return self._probabilities(self._scores(X))
        second = self._posterior.probability(self._inputs(X))
        return np.column_stack([1.0 - second, second])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predictions."""
        return self._score(X, y, None, sample_weight)
