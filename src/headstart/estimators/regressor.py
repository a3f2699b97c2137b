"""Regression of many tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, as_floats, check_flag
from headstart.estimators.base import Regressor, only_priors, only_streams
from headstart.estimators.meta import Meta
from headstart.estimators.task_regressor import TaskRegressor
from headstart.losses import Loss
from headstart.meta.prior.posterior import interval


class MetaRegressor(Regressor, Meta):
    r"""Linear regression of many small related tasks that share a learned starting point.

    Entities' weights are taken to be spread around the start :math:`h` as :math:`N(h, \Sigma)`.
    The start, the spread and the noise of rows are learned from all entities; each has its own
    weights, pulled toward the start the more the less entities differ there and the fewer rows it
    has. Known entities predict with their own weights, all others with the start; `adapt` makes an
    estimator for a new entity from a few rows. Units and order of columns and rows do not matter.

    With a number for `reg` it is the paper's method instead: Algorithm 2 learns the start, and
    Algorithm 1 every entity's weights, pulled by :math:`\frac{\lambda}{2}\|w - h\|^2`.

    Parameters
    ----------
    loss : str or Loss
        ``"auto"`` is ``"squared"`` with a learned prior and ``"absolute"`` with a number for
        `reg`; others are ``"epsilon_insensitive"``, ``"pinball"`` and ``"huber"``. The widths of
        epsilon-insensitive and Huber losses are in the units of y.
    metric : {"auto", "full", "diagonal", "isotropic"}
        What is learned of the spread: all variances and covariances, variances alone, or one
        for all columns. ``"auto"`` is full up to 64 columns, then diagonal. Of no meaning with
        a number for `reg`.
    reg : "auto", or float > 0
        ``"auto"``: a prior is learned. A number is the paper's :math:`\lambda`.
    step : float >= 0, or "auto"
        With a number for `reg`, the meta step size :math:`\gamma`; ``"auto"`` for steps that
        need none (DoG).
    inner : {"sgd", "erm", "constant"}
        With a number for `reg`: one pass of Algorithm 1 in each task; exact solutions; or one
        pass with the constant step 1 / reg, which is :math:`\lambda` = reg / n for n rows.
    predictor : {"average", "last", "poly"}
        With a number for `reg`, what Algorithm 1 returns, see `weights_from_dual`.
    group : str or int, optional
        The column of X that holds the ids, by name or number. With it, pipelines, searches
        and scorers need no `groups`.
    side : list of str or int, optional
        Columns of X that say what an entity is like, one value for each entity: where it starts
        depends on them, ``h + G s``, so that a new one without rows starts from its description.
    task_size : int, optional
        With a number for `reg`, a task gives its meta-gradient after so many rows; by default
        in a stream when another entity's row comes, and in `fit` after its last row.
    fit_intercept : bool
        Whether there is an intercept, learned and pulled as the other weights are.
    n_jobs : int, optional
        Threads; -1 for all cores. Results have the same bits for any number.
    random_state : None, int or numpy.random.Generator
        With a number for `reg`, the order of tasks in `fit`. A learned prior needs none.
    base : regressor of scikit-learn, optional
        A model of all rows, such as ``HistGradientBoostingRegressor()``, fitted to the features
        without ids and `side`. What it predicts is one more column; in `fit` it is predicted by
        models that have not seen the entity. Entities have weights of their own for it, or where
        these would differ by more than they have in common, all the same one. A stream goes on
        with the base as `fit` left it. Needs a learned prior.

    Attributes
    ----------
    bias_ : array of shape (d,), the learned starting point
    intercept_ : float, its intercept
    prior_ : `Prior`, with the spread around it and the noise of a row
    n_tasks_ : number of tasks that were learned from
    ids_ : the known ids
    step_ : with a number for `reg`, the meta step size in use
    base_ : the fitted `base`; its weight is then the last of `bias_`
    run_ : after `fit` of a dataset on disk, when it was, how long it took, and how much was read

    Notes
    -----
    Memory: of each known entity a learned prior keeps its weights and the sums that learning
    needs, ``8 (k (k + 1) / 2 + 2 k + 2)`` bytes for k = d + 1, or its rows where these are fewer;
    with losses other than the squared one also the newest k rows. `drop_summaries` leaves the
    weights alone, ``8 k`` bytes, once learning is done.

    Ids may be anything hashable. Numbers are one id if they are equal; None, NaN and NaT are no
    id: in learning such a row is a task of its own, in predicting it gets the start. Ids of
    another type than those learned from are warned of.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(300), 10), rng.standard_normal((3000, 2))
    >>> own = [4.0, -2.0] + [0.5, 0.1] * rng.standard_normal((300, 2))
    >>> y = 1.0 + (X * own[ids]).sum(axis=1) + 0.3 * rng.standard_normal(3000)
    >>> model = MetaRegressor().fit(X, y, groups=ids)
    >>> print(model.bias_.round(1), round(model.intercept_, 1))
    [ 4. -2.] 1.0
    >>> model.predict([[1.0, 1.0]] * 3, groups=[0, 1, 999]).round(1)
    array([2.2, 2.9, 3. ])
    >>> new = model.adapt([[1.0, 0.0], [0.0, 1.0]], [6.0, -1.0])
    >>> mean, std = new.predict([[1.0, 0.0]], return_std=True)
    >>> print(mean.round(1), std.round(1))
    [5.7] [0.4]
    """

    def __init__(
        self,
        loss: str | Loss = "auto",
        metric: str = "auto",
        reg: float | str = "auto",
        step: float | str = "auto",
        inner: str = "sgd",
        predictor: str = "average",
        group: str | int | None = None,
        side: Sequence[str | int] | None = None,
        task_size: int | None = None,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: object = None,
        base: Any = None,
    ) -> None:
        self.loss = loss
        self.metric = metric
        self.reg = reg
        self.step = step
        self.inner = inner
        self.predictor = predictor
        self.group = group
        self.side = side
        self.task_size = task_size
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.base = base

    __metadata_request__predict_interval: ClassVar = {"groups": True}

    @only_streams
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on with further rows of a stream; any cutting of the same rows gives the same bits.

        With a learned prior, rows of an entity may come at any time, mixed with others'. The
        prior is learned again whenever the rows have doubled, and at `finish`; own weights are
        those under the newest prior. With the squared loss all rows in any order, and `finish`,
        are `fit`.

        With a number for `reg`, a task opens at its entity's first row and gives its
        meta-gradient when it closes: after `task_size` rows, or without one when a row of another
        entity comes. The entity's own weights start from the bias of the moment it opened and
        learn from all its rows. Meta-gradients of tasks that were open together belong to an
        older bias and add up: a given step should be as many times smaller; with
        ``step="auto"`` it is. `finish` closes the tasks still open.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.
        """
        return self._go_on(X, y, groups, sample_weight)

    @overload
    def predict(
        self, X: Any, groups: Any = None, return_std: Literal[False] = False
    ) -> FloatArray: ...

    @overload
    def predict(
        self, X: Any, groups: Any = None, *, return_std: Literal[True]
    ) -> tuple[FloatArray, FloatArray]: ...

    def predict(
        self, X: Any, groups: Any = None, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predictions: by the own weights of a known id; else, or without ids, by the start.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, d)
        groups : array-like of shape (rows,), optional
        return_std : bool
            Also give the standard deviation of a label of each row: what is not known of the
            entity's weights, and the noise. Needs a learned prior.
        """
        if not check_flag("return_std", return_std):
            return self._scores(X, groups)
        return self._with_std(X, groups)

    def _with_std(self, X: Any, groups: Any) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        if not self._has_prior():
            raise ValueError("return_std: standard deviations need a learned prior, reg='auto'")
        prior = self.prior_
        query = self._query(X, groups)
        mean = self._predict_rows(query)
        variance = self._variances(query) + prior.loss.noise_variance(prior.noise)
        with quietly():
            return mean, check_answer(np.sqrt(variance).astype(mean.dtype), "X, groups")

    @only_priors
    def predict_interval(self, X: Any, groups: Any = None, coverage: float = 0.9) -> FloatArray:
        """Ends between which a label of each row falls in that share of cases, shape (rows, 2).

        Those of a normal distribution with the mean and standard deviation of `predict`.
        """
        return interval(*self._with_std(X, groups), coverage, self._loss())

    def score(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Coefficient of determination of the predictions."""
        return self._score(X, y, groups, sample_weight)

    def adapt(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TaskRegressor:
        """An estimator for a new entity, fitted to its rows from the start; this one is left alone.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            A few rows of the new entity, with or without the column `group`.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        """
        rows, settings = self._new_task(X)
        return TaskRegressor(**settings).fit(rows, y, sample_weight).beside(self.group, self.side)

    def _number_of(self, y: Any) -> float:
        return y if type(y) is float else float(as_floats("y", [y], 1)[0])

    def _label_of(self, score: float) -> float:
        return score
