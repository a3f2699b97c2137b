"""Regression of one task that starts from a given bias, or from a prior."""

from __future__ import annotations

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, check_flag
from headstart.estimators.base import Regressor, only_priors, only_streams
from headstart.estimators.task import Task
from headstart.losses import Loss
from headstart.meta.prior import Prior
from headstart.meta.prior.posterior import interval


class TaskRegressor(Regressor, Task):
    r"""Linear regression of one task, from a given start.

    With a `prior` it gives what is known of the task after its rows, with standard deviations.
    With a bias and `reg` it minimises the risk plus :math:`\frac{\lambda}{2}\|w - h\|^2`: by one
    pass of Algorithm 1 of the paper, or exactly.

    Parameters
    ----------
    bias : array-like of shape (d,), optional
        The vector h the weights start from and are pulled to; 0 by default.
    intercept : float
        What the intercept starts from and is pulled to.
    reg : float > 0
        The regularisation strength :math:`\lambda`.
    loss : str or Loss
        ``"auto"`` is that of the prior, or ``"absolute"`` without one; others are
        ``"epsilon_insensitive"``, ``"pinball"``, ``"huber"`` and ``"squared"``.
    inner : {"sgd", "erm", "constant"}
        One pass of Algorithm 1; the exact solution; or one pass with the constant step
        1 / reg, which is :math:`\lambda` = reg / n in a task of n rows.
    predictor : {"average", "last", "poly"}
        What Algorithm 1 returns, see `weights_from_dual`.
    fit_intercept : bool
        Whether there is an intercept, as the other weights pulled toward its start.
    intercept_scaling : float > 0, optional
        Value of the constant column whose weight the intercept is; by default the root mean
        square of the inputs. Of no meaning with a prior.
    prior : Prior, optional
        Where the task starts and how far it may go, instead of `bias`, `intercept` and `reg`.
    base : fitted estimator, optional
        What it predicts is the last column of the prior; `MetaRegressor.adapt` gives its own.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float

    Examples
    --------
    >>> model = TaskRegressor(bias=[4.0, 2.0], reg=1.0, fit_intercept=False)
    >>> model.fit([[1.0, 0.0], [1.0, 1.0]], [4.5, 7.0]).coef_
    array([4.5, 2. ])
    >>> prior = Prior(bias=[4.0, 2.0], covariance=[1.0, 0.1], noise=0.5)
    >>> model = TaskRegressor(prior=prior, fit_intercept=False).fit([[1.0, 0.0]], [7.0])
    >>> print(*model.predict([[1.0, 0.0]], return_std=True))
    [6.] [0.91287093]
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
        self.prior = prior
        self.base = base

    @only_streams
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with further rows of the task; any cutting of the same rows gives the same bits.

        With a prior and the squared loss it is `fit` of all rows; with other losses it depends a
        little on their order. Without a prior or `intercept_scaling` the constant column follows
        the rows seen so far, so that the intercept differs a little from that of `fit`.
        """
        return self._go_on(X, y, sample_weight)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...

    @overload
    def predict(self, X: Any, *, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...

    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predictions for the rows of X, with `return_std` also the labels' standard deviations."""
        if not check_flag("return_std", return_std):
            return self._scores(X)
        return self._with_std(X)

    def _with_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        if self.prior is None:
            raise ValueError("return_std: standard deviations need a prior")
        scores = self._scores(X)
        variance = self._posterior.variance(self._inputs(X))
        with quietly():
            return scores, check_answer(np.sqrt(variance).astype(scores.dtype), "X")

    @only_priors
    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Ends between which a label of each row falls in that share of cases, shape (rows, 2)."""
        return interval(*self._with_std(X), coverage, self._loss())

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination of the predictions."""
        return self._score(X, y, None, sample_weight)
