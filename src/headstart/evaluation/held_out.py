"""Tasks held out in turn: a way to treat tasks learns from the others and is judged by these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from headstart._core.checks import FloatArray, Vector
from headstart.estimators.inputs import Labels, as_signs, read_classes, split_columns
from headstart.evaluation.curve import FewShotCurve
from headstart.tasks import TaskSet

Shots = tuple[int, ...]
Score = Callable[[Labels, Labels], ArrayLike]
Positions = NDArray[np.int64]

ERRORS: dict[str, Score] = {
    "absolute": lambda y, z: np.abs(np.asarray(y, float) - np.asarray(z, float)),
    "squared": lambda y, z: np.square(np.asarray(y, float) - np.asarray(z, float)),
    "zero_one": lambda y, z: np.asarray(y != z, float),
}


class Plan(NamedTuple):
    """How tasks are held out.

    `shots` are the numbers of rows to adapt to, in increasing order; `folds` the parts, each of
    which is held out once; `repeats` how often tasks are dealt into them; with `shuffle` the
    rows of a task come in a random order.
    """

    shots: Shots
    folds: int
    repeats: int = 1
    shuffle: bool = False


class Fold(NamedTuple):
    """Tasks to learn from, tasks held out, and the rows of these by which a way is judged."""

    known: TaskSet
    new: TaskSet
    queries: TaskSet


# Predictions of all queries, for each number of rows that the new tasks are adapted to.
Forecast = Callable[[Fold, Shots], Iterable[Labels]]


@dataclass(frozen=True)
class Table:
    """The rows a user gave, as they are, and which task has which.

    Attributes
    ----------
    X : the rows without the column of ids
    whole : the rows with all columns
    tasks : their only input is the number of a row; labels are numbers, -1 and +1 for classes
    classes : the two classes, or nothing
    """

    X: Any
    whole: Any
    tasks: TaskSet
    classes: Labels

    @classmethod
    def read(
        cls, X: Any, y: ArrayLike, groups: Any, group: str | int | None, *, binary: bool
    ) -> Table:
        """The rows, with ids in the column `group` or in `groups`."""
        rest, ids, _ = split_columns(X, groups, group, required=True)
        if ids is None:
            raise ValueError("groups: expected an id for every row; give groups, or group")
        labels = read_labels(y)
        classes = read_classes(labels) if binary else np.empty(0)
        numbers = as_signs(labels, classes) if binary else labels
        places = np.arange(len(labels), dtype=np.float64)[:, None]
        height = _height(X)
        if height != len(labels):
            raise ValueError(f"y: expected one label per row of X ({height}), found {len(labels)}")
        return cls(rest, X, TaskSet.from_arrays(places, numbers, ids), classes)

    def rows(self, tasks: TaskSet, *, whole: bool = False) -> Any:
        """The user's rows of these tasks, which stand in their order."""
        return rows_at(self.whole if whole else self.X, tasks.X[:, 0].astype(np.int64))

    def labels(self, tasks: TaskSet) -> Labels:
        """The user's labels of these tasks."""
        return self.classes[(tasks.y > 0.0).astype(int)] if self.classes.size else tasks.y

    def signs(self, predictions: Labels) -> Labels:
        """Predicted labels as tasks have them."""
        return as_signs(predictions, self.classes) if self.classes.size else predictions

    def signed(self, scores: FloatArray) -> FloatArray:
        """Linear predictions as labels of tasks."""
        return np.where(scores > 0.0, 1.0, -1.0) if self.classes.size else scores


def read_labels(y: ArrayLike) -> Labels:
    """Labels as they are, one for each row."""
    try:
        labels = np.asarray(y)
    except ValueError:
        raise ValueError("y: expected one label per row, found lists among them") from None
    if labels.ndim != 1:
        raise ValueError(
            f"y: expected one label per row, found {type(y).__name__}, {labels.ndim}-d"
        )
    return labels


def _height(X: Any) -> int:
    """The number of rows of an array, a sparse matrix, a data frame or a list."""
    shape = (len(X),) if isinstance(X, list | tuple) else getattr(X, "shape", ())
    if not shape:
        raise TypeError(f"X: expected a table, found {type(X).__name__}")
    return int(shape[0])


def rows_at(X: Any, places: Positions) -> Any:
    """These rows of an array, a sparse matrix or a data frame."""
    if nw.dependencies.is_pandas_dataframe(X):  # which has an index that narwhals would keep
        return X.iloc[places].reset_index(drop=True)
    if nw.dependencies.is_into_dataframe(X):
        return nw.from_native(X, eager_only=True)[places].to_native()
    if issparse(X):
        return cast(Any, X).tocsr()[places]  # some formats know no rows
    try:
        return (X if hasattr(X, "shape") else np.asarray(X))[places]
    except ValueError:
        raise ValueError("X: expected rows of one length, found lists of several") from None


def held_out_curve(
    forecast: Forecast, tasks: TaskSet, judge: Score, plan: Plan, rng: np.random.Generator
) -> FewShotCurve:
    """Errors of every task that has rows to spare, while it is held out."""
    shots = plan.shots
    total: Vector = np.zeros((len(tasks), len(shots)))
    for places, fold in deal(tasks, plan, rng):
        for column, predictions in enumerate(forecast(fold, shots)):
            errors = _errors(judge, fold.queries.y, predictions)
            total[places, column] += task_means(errors, fold.queries) / plan.repeats
    held_out = tasks.sizes > shots[-1]
    return FewShotCurve(shots, total[held_out], tasks.ids[held_out])


def _errors(judge: Score, y: Labels, predictions: Labels) -> Vector:
    try:
        errors = np.asarray(judge(y, predictions), np.float64)
    except (TypeError, ValueError) as why:
        raise TypeError(f"error: the function failed with {type(why).__name__}: {why}") from why
    if errors.shape != y.shape:
        raise ValueError(
            f"error: expected a number for each of {len(y)} rows, found {errors.shape}"
        )
    return errors


def task_means(errors: Vector, queries: TaskSet) -> Vector:
    """The mean over each task's rows."""
    return np.add.reduceat(errors, queries.offsets[:-1]) / queries.sizes


def deal(tasks: TaskSet, plan: Plan, rng: np.random.Generator) -> Iterator[tuple[Positions, Fold]]:
    """The tasks dealt into folds: the places of those held out, and the fold."""
    most = plan.shots[-1]
    able = np.flatnonzero(tasks.sizes > most)
    if able.size < plan.folds:
        raise ValueError(
            f"shots: {able.size} tasks have more than {most} rows, at least {plan.folds} (folds) "
            "are needed; ask for fewer shots"
        )
    for _ in range(plan.repeats):
        dealt = _shuffled(tasks, rng) if plan.shuffle else tasks
        for part in np.array_split(rng.permutation(able), plan.folds):
            known = np.ones(len(tasks), np.bool_)
            known[part] = False
            places = np.sort(part)
            new = dealt.subset(places)
            yield places, Fold(dealt.subset(known), new, new.split_rows(most)[1] if most else new)


def _shuffled(tasks: TaskSet, rng: np.random.Generator) -> TaskSet:
    owner = np.repeat(np.arange(len(tasks)), tasks.sizes)
    order = np.lexsort([rng.random(owner.size), owner])
    return TaskSet.of(tasks.X[order], tasks.y[order], tasks.offsets, tasks.ids)
