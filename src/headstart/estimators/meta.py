"""Estimators of many tasks that learn where all of them start."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from headstart._checks import FloatArray
from headstart.estimators.base import Classifier, Regressor, only_logistic, only_streams
from headstart.estimators.inputs import Labels
from headstart.estimators.many import Meta
from headstart.estimators.task import TaskClassifier, TaskRegressor
from headstart.losses import Loss
from headstart.store import read_model


class MetaRegressor(Regressor, Meta):
    r"""Linear regression of many small related tasks that share a learned starting point.

    The bias :math:`h` is learned online from all tasks (Algorithm 2 of the paper); every
    entity has its own weights, regularised toward it by
    :math:`\frac{\lambda}{2}\|w - h\|^2`. Known entities predict with their own weights, all
    others with the bias; `adapt` makes an estimator for a new entity from a few rows.

    Parameters
    ----------
    loss : str or Loss
        ``"absolute"``, ``"epsilon_insensitive"``, ``"pinball"`` or ``"huber"``.
    reg : float > 0, or "auto"
        Within-task regularisation :math:`\lambda`: large where tasks are alike. ``"auto"``
        chooses it while learning, by what each of eight candidates loses before it sees a
        row; tasks then take constant steps, and `inner` and `predictor` are of no meaning.
    step : float >= 0, or "auto"
        Meta step size :math:`\gamma`; ``"auto"`` for steps that need none (DoG). With
        numbers for `reg` and `step` these are the paper's Algorithms 1 and 2.
    inner : {"sgd", "erm", "constant"}
        One pass of Algorithm 1 in each task; exact solutions; or one pass with the constant
        step 1 / reg, which is :math:`\lambda` = reg / n in a task of n rows.
    predictor : {"average", "last", "poly"}
        What Algorithm 1 returns, see `weights_from_dual`.
    group : str or int, optional
        The column of X that holds the ids, by name or number. With it, pipelines, searches
        and scorers need no `groups`.
    task_size : int, optional
        A task gives its meta-gradient after so many rows; by default in a stream when
        another entity's row comes, and in `fit` after its last row.
    fit_intercept : bool
        Whether there is an intercept: the weight of a constant column on the scale of the
        inputs, learned, and pulled to its learned value, as the others.
    n_jobs : int, optional
        Threads for the tasks' own weights in `fit`; -1 for all cores.
    random_state : None, int or numpy.random.Generator
        With a number, `fit` takes the tasks in a random order: of use where the table is
        sorted by something that matters.
    passes : int
        How often `fit` goes through the tasks. One is the paper's; a few help where there
        are not many tasks.
    validation_fraction : float, optional
        With a number, `fit` holds out this share of the tasks, the last ones, and chooses reg
        by them: learning from the first half of their rows, judged by the others. Without
        one it is chosen while learning, and all tasks are learned from.

    Attributes
    ----------
    bias_ : array of shape (d,), the learned starting point
    intercept_ : float, its intercept
    reg_, step_ : what is in use; a chosen `reg_` is in rows, :math:`\lambda` being reg_ / n
    reg_sureness_ : probability that the chosen reg is better than the next best candidate
    tuning_ : the candidates for reg and what they lost
    n_tasks_ : number of tasks the bias has learned from, counted in every pass
    ids_ : the known ids

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(300), 10), rng.standard_normal((3000, 2))
    >>> own = [4.0, -2.0] + 0.3 * rng.standard_normal((300, 2))
    >>> y = 1.0 + (X * own[ids]).sum(axis=1)
    >>> model = MetaRegressor().fit(X, y, groups=ids)
    >>> model
    MetaRegressor() <300 tasks, reg 8.87 chosen, 82 % sure>
    >>> print(model.bias_.round(1), round(model.intercept_, 1))
    [ 4. -2.] 1.0
    >>> model.predict([[1.0, 1.0]] * 3, groups=[0, 1, "new"]).round(1)
    array([2.2, 3.5, 3. ])
    >>> model.adapt([[1.0, 0.0], [0.0, 1.0]], [9.0, -1.0]).predict([[1.0, 0.0]]).round(1)
    array([5.1])
    """

    def __init__(
        self,
        loss: str | Loss = "absolute",
        reg: float | str = "auto",
        step: float | str = "auto",
        inner: str = "sgd",
        predictor: str = "average",
        group: str | int | None = None,
        task_size: int | None = None,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: object = None,
        passes: int = 1,
        validation_fraction: float | None = None,
    ) -> None:
        self.loss = loss
        self.reg = reg
        self.step = step
        self.inner = inner
        self.predictor = predictor
        self.group = group
        self.task_size = task_size
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.passes = passes
        self.validation_fraction = validation_fraction

    @only_streams
    def partial_fit(self, X: Any, y: ArrayLike | None = None, groups: Any = None) -> Self:
        """Go on with further rows of a stream; any cutting of the same rows gives the same bits.

        A task opens at its entity's first row and gives its meta-gradient when it closes:
        after `task_size` rows, or without one when a row of another entity comes. The
        entity's own weights start from the bias of the moment it opened and learn from all
        its rows. `finish` closes the tasks still open.

        Meta-gradients of tasks that were open together belong to an older bias and add up:
        a given step should be as many times smaller; with ``step="auto"`` it is.

        Parameters
        ----------
        X, y, groups
            As in `fit`.
        """
        return self._go_on(X, y, groups)

    def predict(self, X: Any, groups: Any = None) -> FloatArray:
        """Predictions: by the own weights of a known id; else, or without ids, by the bias."""
        return self._scores(X, groups)

    def score(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Coefficient of determination of the predictions."""
        return self._score(X, y, groups, sample_weight)

    def adapt(self, X: Any, y: ArrayLike) -> TaskRegressor:
        """An estimator for a new entity, fitted to its rows from the bias; this one is left alone.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            A few rows of the new entity, with or without the column `group`.
        y : array-like of shape (n,)
        """
        return TaskRegressor(**self._task_settings()).fit(self._task_rows(X), y)


class MetaClassifier(Classifier, Meta):
    """Linear classification into two classes for many small related tasks.

    Parameters
    ----------
    loss : str or Loss
        ``"hinge"``, ``"smoothed_hinge"`` or ``"logistic"``; the last gives probabilities.
    reg, step, inner, predictor, group, task_size, fit_intercept, n_jobs, random_state
    passes, validation_fraction
        As in `MetaRegressor`.

    Attributes
    ----------
    classes_ : array of the two labels, sorted
    bias_, intercept_, n_tasks_, ids_
        As in `MetaRegressor`; scores are positive for the second class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(300), 10), rng.standard_normal((3000, 2))
    >>> own = [4.0, -2.0] + 0.3 * rng.standard_normal((300, 2))
    >>> y = np.where((X * own[ids]).sum(axis=1) > 0, "buys", "leaves")
    >>> model = MetaClassifier().fit(X, y, groups=ids)
    >>> model.score(X, y, groups=ids) > 0.9
    True
    """

    def __init__(
        self,
        loss: str | Loss = "hinge",
        reg: float | str = "auto",
        step: float | str = "auto",
        inner: str = "sgd",
        predictor: str = "average",
        group: str | int | None = None,
        task_size: int | None = None,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: object = None,
        passes: int = 1,
        validation_fraction: float | None = None,
    ) -> None:
        self.loss = loss
        self.reg = reg
        self.step = step
        self.inner = inner
        self.predictor = predictor
        self.group = group
        self.task_size = task_size
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.passes = passes
        self.validation_fraction = validation_fraction

    __metadata_request__decision_function: ClassVar = {"groups": True}
    __metadata_request__predict_proba: ClassVar = {"groups": True}

    @only_streams
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: Any = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Go on with further rows of a stream, as in `MetaRegressor.partial_fit`.

        Parameters
        ----------
        X, y, groups
            As in `fit`.
        classes : array-like of two labels, optional
            Needed at the first rows if these show one label only.
        """
        return self._go_on(X, y, groups, classes)

    def decision_function(self, X: Any, groups: Any = None) -> FloatArray:
        """The score of every row, positive for the second class."""
        return self._scores(X, groups)

    def predict(self, X: Any, groups: Any = None) -> Labels:
        """Classes: by the own weights of a known id; else, or without ids, by the bias."""
        return self._told(self._scores(X, groups))

    @only_logistic
    def predict_proba(self, X: Any, groups: Any = None) -> FloatArray:
        """Probabilities of the two classes, for the logistic loss."""
        return self._probabilities(self._scores(X, groups))

    def score(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy of the predictions."""
        return self._score(X, y, groups, sample_weight)

    def adapt(self, X: Any, y: ArrayLike) -> TaskClassifier:
        """An estimator for a new entity, as `MetaRegressor.adapt`; one label in y is enough."""
        task = TaskClassifier(**self._task_settings(), classes=self.classes_)
        return task.fit(self._task_rows(X), y)


def load_model(path: str | Path) -> MetaRegressor | MetaClassifier:
    """The model in the folder `path`, of whichever class it is."""
    if read_model(Path(path))[0]["kind"] == "MetaClassifier":
        return MetaClassifier.load(path)
    return MetaRegressor.load(path)
