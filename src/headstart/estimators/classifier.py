"""Classification of many tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.checks import FloatArray
from headstart.estimators.base import Classifier, only_logistic, only_streams
from headstart.estimators.inputs import Labels
from headstart.estimators.meta import Meta
from headstart.estimators.task_classifier import TaskClassifier
from headstart.losses import Loss


class MetaClassifier(Classifier, Meta):
    """Linear classification into two classes for many small related tasks.

    As `MetaRegressor`, with probabilities. For more than two classes wrap it:
    ``OneVsRestClassifier(MetaClassifier(group="user"))`` from scikit-learn; the ids must then be
    a column of X, because `groups` are not handed on there.

    Parameters
    ----------
    loss : str or Loss
        ``"auto"`` is ``"logistic"`` with a learned prior and ``"hinge"`` with a number for
        `reg`; there is also ``"smoothed_hinge"``. Only the logistic loss gives probabilities.
    metric, reg, step, inner, predictor, group, side, task_size, fit_intercept, n_jobs
    random_state
        As in `MetaRegressor`.
    base : classifier of scikit-learn, optional
        As in `MetaRegressor`; its column are the log odds of the second class.

    Attributes
    ----------
    classes_ : array of the two labels, sorted
    bias_, intercept_, prior_, n_tasks_, ids_, run_
        As in `MetaRegressor`; scores are positive for the second class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(300), 10), rng.standard_normal((3000, 2))
    >>> own = [4.0, -2.0] + 0.3 * rng.standard_normal((300, 2))
    >>> score = (X * own[ids]).sum(axis=1) + rng.logistic(size=3000)
    >>> y = np.where(score > 0, "buys", "leaves")
    >>> model = MetaClassifier().fit(X, y, groups=ids)
    >>> print(round(model.score(X, y, groups=ids), 2))
    0.88
    >>> model.predict_proba([[1.0, 0.0], [0.1, 0.1]]).round(1)
    array([[1. , 0. ],
           [0.6, 0.4]])
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

    __metadata_request__decision_function: ClassVar = {"groups": True}
    __metadata_request__predict_proba: ClassVar = {"groups": True}

    @only_streams
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: Any = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on with further rows of a stream, as in `MetaRegressor.partial_fit`.

        Parameters
        ----------
        X, y, groups, sample_weight : as in `fit`
        classes : array-like of two labels, optional
            Needed at the first rows if these show one label only.
        """
        return self._go_on(X, y, groups, sample_weight, classes)

    def decision_function(self, X: Any, groups: Any = None) -> FloatArray:
        """The score of every row, positive for the second class."""
        return self._scores(X, groups)

    def predict(self, X: Any, groups: Any = None) -> Labels:
        """Classes: by the own weights of a known id; else, or without ids, by the start."""
        return self._to_labels(self._scores(X, groups))

    @only_logistic
    def predict_proba(self, X: Any, groups: Any = None) -> FloatArray:
        r"""Probabilities of the two classes.

        With a learned prior :math:`\sigma(f/\sqrt{1 + \pi v/8})`, f and v being the mean and
        variance of the score: the less is known of an entity, the nearer to a half.
        """
        if not self._has_prior():
            return self._probabilities(self._scores(X, groups))
        query = self._query(X, groups)
        shrink = np.sqrt(1.0 + math.pi / 8.0 * self._variances(query))
        return self._probabilities(self._predict_rows(query) / shrink)

    def score(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy of the predictions."""
        return self._score(X, y, groups, sample_weight)

    def adapt(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TaskClassifier:
        """An estimator for a new entity, as `MetaRegressor.adapt`; one label in y is enough."""
        rows, settings = self._new_task(X)
        task = TaskClassifier(**settings, classes=self.classes_)
        return task.fit(rows, y, sample_weight).beside(self.group, self.side)

    def _number_of(self, y: Any) -> float:
        first, second = self.classes_
        for label, number in ((second, 1.0), (first, -1.0)):
            try:
                same = y == label
            except (TypeError, ValueError):  # what cannot be compared with a label is none
                same = False
            if isinstance(same, bool | np.bool_) and same:
                return number
        raise ValueError(f"y: expected one of {self.classes_.tolist()}, found {y!r}")

    def _label_of(self, score: float) -> Any:
        return self.classes_[int(score > 0.0)]
