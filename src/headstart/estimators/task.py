"""Estimators of one task that starts from a given bias."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import check_is_fitted

from headstart._checks import FloatArray, Vector, check_bias, check_number, read_only
from headstart.erm import biased_erm
from headstart.estimators.base import Classifier, Estimator, Regressor, only_logistic, only_streams
from headstart.estimators.inputs import Labels, read_inputs
from headstart.losses import Loss, get_loss
from headstart.online import FOLLOW, Pace, Stream, TunedStream, predictions


class Task(Estimator):
    """One task: Algorithm 1 or the exact solution, from a given bias."""

    bias: ArrayLike | None
    intercept: float
    intercept_scaling: float | None
    coef_: FloatArray
    intercept_: float
    n_features_in_: int
    classes: ArrayLike | None = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from the rows of one task.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
        """
        objective = self._objective()
        inputs, labels = self._read(X, y, reset=True, classes=self.classes)
        start = self._start()
        scale = self._scale()
        if self.fit_intercept and scale is None:
            mean = float(np.einsum("id,id->", inputs, inputs, dtype=np.float64)) / inputs.size
            scale = np.sqrt(mean) if mean > 0.0 else 1.0
        b = scale or 0.0
        self._stream = self._new_stream(start, inputs.dtype)
        if self.inner == "erm":
            wide = np.column_stack([inputs, np.full(len(inputs), b, inputs.dtype)])
            bias = np.append(start[:-1], start[-1] / (b or 1.0))
            loss = get_loss(self.loss)
            w = biased_erm(wide, labels, bias, objective.lam, loss).weights.astype(np.float64)
            return self._take_weights(np.append(w[:-1], w[-1] * b))
        pace = Pace(0.0, 0, False, b * b)
        entity = np.zeros(len(labels), np.int64)
        self._stream.take(inputs, labels, entity, 1, objective, pace)
        return self._take_weights(self._stream.entities.weights[0])

    def _go_on(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        objective = self._objective()
        begun = self.__sklearn_is_fitted__()
        inputs, labels = self._read(X, y, reset=not begun, classes=classes)
        if not begun:
            self._stream = self._new_stream(self._start(), inputs.dtype)
        scale = self._scale() if self.fit_intercept else 0.0
        pace = Pace(0.0, 0, False, FOLLOW if scale is None else scale**2)
        entity = np.zeros(len(labels), np.int64)
        self._stream.take(inputs, labels, entity, 1, objective, pace)
        return self._take_weights(self._stream.entities.weights[0])

    def _new_stream(self, start: Vector, dtype: DTypeLike) -> Stream | TunedStream:
        if self.inner == "constant":
            eta = 1.0 / self._objective().lam
            return TunedStream.start(start, dtype, 0.0, 1, eta)
        return Stream.start(start, dtype, 0.0, self.predictor, 1)

    def _take_weights(self, weights: FloatArray) -> Self:
        kept = self._stream.entities.weights.dtype
        self.coef_, self.intercept_ = weights[:-1].astype(kept), float(weights[-1])
        return self

    def _start(self) -> Vector:
        d = self.n_features_in_
        bias = np.zeros(d) if self.bias is None else check_bias("bias", self.bias, d)
        return np.append(bias, check_number("intercept", self.intercept))

    def _scale(self) -> float | None:
        if not self.fit_intercept:
            return 0.0
        if self.intercept_scaling is None:
            return None
        return check_number("intercept_scaling", self.intercept_scaling, above=0.0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _scores(self, X: Any, groups: Any = None) -> FloatArray:  # noqa: ARG002
        check_is_fitted(self)
        inputs = read_inputs(self, X)
        weights = np.append(self.coef_, self.intercept_).astype(self.coef_.dtype)
        out = np.empty(len(inputs), inputs.dtype)
        nobody, nothing = np.full(len(inputs), -1), np.empty((0, weights.size), weights.dtype)
        predictions(inputs, nobody, read_only(nothing), read_only(weights), out)
        return out


class TaskRegressor(Regressor, Task):
    r"""Linear regression of one task, regularised toward a given bias.

    Minimises the risk plus :math:`\frac{\lambda}{2}\|w - h\|^2`: by one pass of Algorithm 1
    of the paper, or exactly.

    Parameters
    ----------
    bias : array-like of shape (d,), optional
        The vector h the weights start from and are pulled to; 0 by default.
    intercept : float
        What the intercept starts from and is pulled to.
    reg : float > 0
        The regularisation strength :math:`\lambda`.
    loss : str or Loss
        ``"absolute"``, ``"epsilon_insensitive"``, ``"pinball"`` or ``"huber"``.
    inner : {"sgd", "erm", "constant"}
        One pass of Algorithm 1; the exact solution; or one pass with the constant step
        1 / reg, which is :math:`\lambda` = reg / n in a task of n rows.
    predictor : {"average", "last", "poly"}
        What Algorithm 1 returns, see `weights_from_dual`.
    fit_intercept : bool
        Whether there is an intercept: the weight of a constant column, as the others
        pulled toward its bias.
    intercept_scaling : float > 0, optional
        Value of that column; by default the root mean square of the inputs, which
        makes the intercept as free as any other weight whatever their scale.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float

    Examples
    --------
    >>> model = TaskRegressor(bias=[4.0, 2.0], reg=1.0, fit_intercept=False)
    >>> model.fit([[1.0, 0.0], [1.0, 1.0]], [4.5, 7.0]).coef_
    array([4.5, 2. ])
    """

    def __init__(
        self,
        bias: ArrayLike | None = None,
        intercept: float = 0.0,
        reg: float = 1.0,
        loss: str | Loss = "absolute",
        inner: str = "sgd",
        predictor: str = "average",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
    ) -> None:
        self.bias = bias
        self.intercept = intercept
        self.reg = reg
        self.loss = loss
        self.inner = inner
        self.predictor = predictor
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling

    @only_streams
    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Go on with further rows of the task; any cutting of the same rows gives the same bits.

        Without `intercept_scaling` the constant column follows the rows seen so far, so
        that the intercept differs a little from that of `fit`.
        """
        return self._go_on(X, y)

    def predict(self, X: Any) -> FloatArray:
        """Predictions for the rows of X."""
        return self._scores(X)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination of the predictions."""
        return self._score(X, y, None, sample_weight)


class TaskClassifier(Classifier, Task):
    """Linear classification of one task into two classes, regularised toward a given bias.

    Parameters
    ----------
    bias, intercept, reg, inner, predictor, fit_intercept, intercept_scaling
        As in `TaskRegressor`.
    loss : str or Loss
        ``"hinge"``, ``"smoothed_hinge"`` or ``"logistic"``.
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
        loss: str | Loss = "hinge",
        inner: str = "sgd",
        predictor: str = "average",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        classes: ArrayLike | None = None,
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

    @only_streams
    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with further rows; `classes`, if they were not given before, at the first."""
        return self._go_on(X, y, self.classes if classes is None else classes)

    def decision_function(self, X: Any) -> FloatArray:
        """The score of every row, positive for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> Labels:
        """The class of every row."""
        return self._told(self._scores(X))

    @only_logistic
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes, for the logistic loss."""
        return self._probabilities(self._scores(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predictions."""
        return self._score(X, y, None, sample_weight)
