"""Few-shot evaluation: hold out whole tasks, adapt to their first k rows, score the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.base import ClassifierMixin, clone

from headstart._checks import FloatArray, Vector, check_choice, check_count, check_generator
from headstart.estimators.inputs import as_signs, read_classes, take_group
from headstart.estimators.many import Meta
from headstart.tasks import TaskSet

Labels = NDArray[np.generic]
Score = Callable[[Labels, Labels], ArrayLike]
Shots = tuple[int, ...]
Forecast = Callable[[TaskSet, TaskSet, TaskSet, Shots], Iterable[Labels]]

HOW = ["adapt", "independent", "pooled"]
ERRORS: dict[str, Score] = {
    "absolute": lambda y, z: np.abs(np.asarray(y, float) - np.asarray(z, float)),
    "squared": lambda y, z: np.square(np.asarray(y, float) - np.asarray(z, float)),
    "zero_one": lambda y, z: np.asarray(y != z, float),
}


@dataclass(frozen=True, repr=False)
class FewShotCurve:
    """Errors of held-out tasks by the number of rows they were adapted to.

    Attributes
    ----------
    shots : numbers of rows, one for each column of `errors`
    errors : array of shape (tasks, shots), a mean over each held-out task's other rows
    ids : the held-out tasks
    level : of the confidence intervals, which are over tasks
    """

    shots: tuple[int, ...]
    errors: Vector
    ids: Labels
    level: float = 0.95

    @property
    def mean(self) -> Vector:
        """Mean error over tasks, by shots."""
        return np.asarray(self.errors.mean(axis=0), np.float64)

    @property
    def half_width(self) -> Vector:
        """Half the width of the mean's confidence interval, by Student's t over tasks."""
        n = len(self.errors)
        if n < 2:
            return np.full(len(self.shots), np.nan)
        quantile = float(student.ppf(0.5 + self.level / 2.0, n - 1))
        return np.asarray(quantile * self.errors.std(axis=0, ddof=1) / np.sqrt(n), np.float64)

    def minus(self, other: FewShotCurve) -> FewShotCurve:
        """The paired differences from another curve of the same tasks and shots."""
        if self.shots != other.shots or not np.array_equal(self.ids, other.ids):
            raise ValueError("other: expected a curve of the same tasks and shots")
        return FewShotCurve(self.shots, self.errors - other.errors, self.ids, self.level)

    def plot(self, ax: Any = None, label: str | None = None, **style: Any) -> Any:
        """Draw the curve with its band; returns the axes."""
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots()[1]
        places = np.arange(len(self.shots))
        (line,) = ax.plot(places, self.mean, label=label, **style)
        low, high = self.mean - self.half_width, self.mean + self.half_width
        ax.fill_between(places, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xticks(places, [str(k) for k in self.shots])
        ax.set_xlabel("rows of a new task to learn from")
        ax.set_ylabel("error on its other rows")
        return ax

    def __repr__(self) -> str:
        points = zip(self.shots, self.mean, self.half_width, strict=True)
        told = ", ".join(f"{k}: {m:.3g} ± {h:.2g}" for k, m, h in points)
        return f"FewShotCurve({len(self.errors)} tasks; {told})"


def few_shot_curve(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    groups: Any = None,
    *,
    shots: Sequence[int] = (0, 1, 2, 4, 8),
    how: str | None = None,
    error: str | Score | None = None,
    group: str | int | None = None,
    folds: int = 5,
    repeats: int = 1,
    shuffle: bool = False,
    random_state: object = 0,
) -> FewShotCurve:
    """How well an estimator does on new tasks after k of their rows, for several k.

    Tasks are dealt into folds; each fold is held out once, the estimator fitted on the
    others, adapted to the first k rows of every held-out task and scored on its rows after
    the largest k, so that all k are judged by the same rows. Tasks without such rows are
    only learned from.

    Parameters
    ----------
    estimator : MetaRegressor, MetaClassifier, or any scikit-learn estimator
        A clone is fitted.
    X, y, groups
        As in `MetaRegressor.fit`; arrays or data frames of numbers.
    shots : sequence of int
        Numbers of rows to adapt to.
    how : {"adapt", "independent", "pooled"}, optional
        Adapt the fitted model; fit a clone to the k rows alone (which cannot be done with
        none); or fit one clone to the rows of all tasks that are not held out. The first by
        default, which needs an estimator with `adapt`.
    error : {"absolute", "squared", "zero_one"} or function of (y, prediction), optional
        Absolute errors for regressors and wrong labels for classifiers by default.
    group : str or int, optional
        The column of X that holds the ids; that of the estimator by default.
    folds, repeats : int
        Held-out parts, and how often tasks are dealt anew; a task's errors are averaged.
    shuffle : bool
        Draw the k rows at random instead of taking the first.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    FewShotCurve

    Examples
    --------
    >>> from headstart import MetaRegressor
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(100), 12), rng.standard_normal((1200, 3))
    >>> y = np.sum(X * rng.normal([4.0, -2.0, 1.0], 0.5, (100, 3))[ids], axis=1)
    >>> few_shot_curve(MetaRegressor(), X, y, ids, shots=[0, 8])
    FewShotCurve(100 tasks; 0: 0.626 ± 0.061, 8: 0.401 ± 0.044)
    """
    counts = tuple(sorted({check_count("shots", k, at_least=0) for k in shots}))
    kind = "adapt" if how is None else check_choice("how", how, HOW)
    if kind == "adapt" and not isinstance(estimator, Meta):
        raise TypeError(
            f"estimator: {type(estimator).__name__} cannot adapt; say how='independent' "
            "(fitted to each task's rows) or how='pooled' (to all tasks together)"
        )
    column = group if group is not None else getattr(estimator, "group", None)
    tasks, classes = read_tasks(X, y, groups, column, binary=isinstance(estimator, ClassifierMixin))
    forecast = {"adapt": _adapt, "independent": _fit_alone, "pooled": _fit_all}[kind]
    return held_out_curve(
        lambda *parts: forecast(estimator, classes, *parts),
        *(tasks, counts, _judge(error, classes.size > 0)),
        *(check_count("folds", folds, at_least=2), check_count("repeats", repeats), shuffle),
        check_generator(random_state),
    )


def few_shot_score(
    estimator: Any, X: Any, y: ArrayLike, groups: Any = None, *, shots: int = 8, **options: Any
) -> float:
    """Mean error on new tasks after `shots` of their rows; options as in `few_shot_curve`.

    Examples
    --------
    >>> from headstart import MetaRegressor
    >>> X, ids = np.ones((60, 1)), np.repeat(np.arange(20), 3)
    >>> print(round(few_shot_score(MetaRegressor(), X, 5.0 * X[:, 0], ids, shots=1), 1))
    0.0
    """
    return float(few_shot_curve(estimator, X, y, groups, shots=[shots], **options).mean[0])


def _judge(error: str | Score | None, binary: bool) -> Score:
    if callable(error):
        return error
    name = ("zero_one" if binary else "absolute") if error is None else error
    return ERRORS[check_choice("error", name, list(ERRORS), "or a function")]


def read_tasks(
    X: Any, y: ArrayLike, groups: Any, group: str | int | None, *, binary: bool
) -> tuple[TaskSet, Labels]:
    """The tasks, and the two classes if labels are such: then -1 and +1 stand for them."""
    table, ids = take_group(X, groups, group, required=True)
    if ids is None:
        raise ValueError("groups: expected an id for every row; give groups, or group")
    labels = np.asarray(y)
    classes = read_classes(labels) if binary else np.empty(0)
    numbers = as_signs(labels, classes) if binary else labels
    return TaskSet.from_arrays(np.asarray(table, np.float64), numbers, ids), classes


def held_out_curve(
    forecast: Forecast,
    tasks: TaskSet,
    shots: tuple[int, ...],
    judge: Score,
    folds: int,
    repeats: int,
    shuffle: bool,
    rng: np.random.Generator,
) -> FewShotCurve:
    """Errors of every task that has rows to spare, while it is held out."""
    total: Vector = np.zeros((len(tasks), len(shots)))
    for _ in range(repeats):
        dealt = _shuffled(tasks, rng) if shuffle else tasks
        for train, test in _deal(dealt, shots[-1], folds, rng):
            new = dealt.subset(test)
            queries = new.split_rows(shots[-1])[1] if shots[-1] else new
            owner = np.repeat(np.arange(len(new)), queries.sizes)
            found = forecast(dealt.subset(train), new, queries, shots)
            for column, predictions in enumerate(found):
                paid = np.asarray(judge(queries.y, predictions), np.float64)
                total[test, column] += np.bincount(owner, paid) / queries.sizes / repeats
    held_out = tasks.sizes > shots[-1]
    return FewShotCurve(shots, total[held_out], tasks.ids[held_out])


def _shuffled(tasks: TaskSet, rng: np.random.Generator) -> TaskSet:
    owner = np.repeat(np.arange(len(tasks)), tasks.sizes)
    order = np.lexsort([rng.random(owner.size), owner])
    return TaskSet(tasks.X[order], tasks.y[order], tasks.offsets, tasks.ids)


def _deal(
    tasks: TaskSet, most: int, folds: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """The tasks to learn from and those held out, for each fold."""
    able = np.flatnonzero(tasks.sizes > most)
    if able.size < folds:
        raise ValueError(
            f"shots: {able.size} tasks have more than {most} rows, at least {folds} (folds) are "
            "needed; ask for fewer shots"
        )
    for part in np.array_split(rng.permutation(able), folds):
        train = np.ones(len(tasks), np.bool_)
        train[part] = False
        yield train, np.sort(part)


def _named(labels: FloatArray, classes: Labels) -> Labels:
    return classes[(labels > 0.0).astype(int)] if classes.size else labels


def _signs(labels: Labels, classes: Labels) -> Labels:
    return as_signs(labels, classes) if classes.size else labels


def _adapt(
    estimator: Meta, classes: Labels, known: TaskSet, new: TaskSet, queries: TaskSet, shots: Shots
) -> Iterator[Labels]:
    owners = np.repeat(np.arange(len(known)), known.sizes)
    fitted = clone(estimator).set_params(group=None)
    fitted.fit(known.X, _named(known.y, classes), groups=owners)
    start = np.append(fitted.bias_, fitted.intercept_)
    for k in shots:
        W = fitted._adapted(new.split_rows(k)[0]) if k else np.tile(start, (len(new), 1))
        z = predict_rows(W, queries)
        yield np.where(z > 0.0, 1.0, -1.0) if classes.size else z


def predict_rows(W: FloatArray, tasks: TaskSet) -> Vector:
    """Predictions of every row by its task's weights, the intercept last."""
    rows = np.repeat(W, tasks.sizes, axis=0)
    return np.asarray(np.einsum("id,id->i", tasks.X, rows[:, :-1]) + rows[:, -1])


def _fit_all(
    estimator: Any, classes: Labels, known: TaskSet, _: TaskSet, queries: TaskSet, shots: Shots
) -> Iterator[Labels]:
    fitted = clone(estimator).fit(known.X, _named(known.y, classes))
    found = _signs(fitted.predict(queries.X), classes)
    return (found for _ in shots)


def _fit_alone(
    estimator: Any, classes: Labels, _: TaskSet, new: TaskSet, queries: TaskSet, shots: Shots
) -> Iterator[Labels]:
    for k in shots:
        pairs = zip(new, queries, strict=True)
        yield np.concatenate(
            [_alone(estimator, X[:k], y[:k], X_new, classes) for (X, y), (X_new, _) in pairs]
        )


def _alone(
    estimator: Any, X: FloatArray, y: FloatArray, X_new: FloatArray, classes: Labels
) -> Labels:
    """Predictions of a clone fitted to these rows; NaN without any, their label if all have one."""
    if len(X) == 0:
        return np.full(len(X_new), np.nan)
    if classes.size and np.unique(y).size == 1:
        return np.repeat(y[:1], len(X_new))
    return _signs(clone(estimator).fit(X, _named(y, classes)).predict(X_new), classes)
