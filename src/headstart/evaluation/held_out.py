"""Tasks held out in turn: a way to treat tasks learns from the others and is judged by these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.checks import Vector, as_floats
from headstart.estimators.inputs import Labels, as_signs, read_classes, split_columns
from headstart.evaluation.curve import FewShotCurve
from headstart.tasks import TaskSet

Shots = tuple[int, ...]
Score = Callable[[Labels, Labels], ArrayLike]

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


def read_tasks(
    X: Any, y: ArrayLike, groups: Any, group: str | int | None, *, binary: bool
) -> tuple[TaskSet, Labels]:
    """The tasks, and the two classes if labels are such: then -1 and +1 stand for them."""
    table, ids, _ = split_columns(X, groups, group, required=True)
    if ids is None:
        raise ValueError("groups: expected an id for every row; give groups, or group")
    labels = np.asarray(y)
    classes = read_classes(labels) if binary else np.empty(0)
    numbers = as_signs(labels, classes) if binary else labels
    return TaskSet.from_arrays(as_floats("X", table, 2).astype(np.float64), numbers, ids), classes


def held_out_curve(
    forecast: Forecast, tasks: TaskSet, judge: Score, plan: Plan, rng: np.random.Generator
) -> FewShotCurve:
    """Errors of every task that has rows to spare, while it is held out."""
    shots, most = plan.shots, plan.shots[-1]
    total: Vector = np.zeros((len(tasks), len(shots)))
    for _ in range(plan.repeats):
        dealt = _shuffled(tasks, rng) if plan.shuffle else tasks
        for train, test in _deal(dealt, most, plan.folds, rng):
            new = dealt.subset(test)
            queries = new.split_rows(most)[1] if most else new
            owner = np.repeat(np.arange(len(new)), queries.sizes)
            fold = Fold(dealt.subset(train), new, queries)
            for column, predictions in enumerate(forecast(fold, shots)):
                errors = np.asarray(judge(queries.y, predictions), np.float64)
                total[test, column] += np.bincount(owner, errors) / queries.sizes / plan.repeats
    held_out = tasks.sizes > most
    return FewShotCurve(shots, total[held_out], tasks.ids[held_out])


def _shuffled(tasks: TaskSet, rng: np.random.Generator) -> TaskSet:
    owner = np.repeat(np.arange(len(tasks)), tasks.sizes)
    order = np.lexsort([rng.random(owner.size), owner])
    return TaskSet.of(tasks.X[order], tasks.y[order], tasks.offsets, tasks.ids)


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
