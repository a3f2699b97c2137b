"""What users' estimators predict for a fold: adapted to each new task, pooled, or fitted alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from headstart._core.checks import FloatArray, Vector, as_floats
from headstart.estimators.inputs import Labels, split_columns
from headstart.estimators.meta import Meta
from headstart.evaluation.held_out import Fold, Shots, Table, rows_at
from headstart.tasks import TaskSet


def model_of(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def can_adapt(estimator: Any) -> bool:
    """Whether it learns where tasks start, and adapts to the rows of new ones."""
    return isinstance(model_of(estimator), Meta)


def adapted(estimator: Any, table: Table, fold: Fold, shots: Shots) -> Iterator[Labels]:
    """Learn where tasks start from the known ones, and adapt to k rows of each new one.

    The steps of a pipeline before the last learn from the known tasks too.
    """
    known, new, queries = fold
    fitted = clone(estimator)
    steps, model = (fitted[:-1], fitted[-1]) if isinstance(fitted, Pipeline) else (None, fitted)
    inside = model.group is not None
    Z, labels = table.rows(known, whole=inside), table.labels(known)
    if steps:
        Z = steps.fit_transform(Z, labels)
    model.fit(Z, labels, groups=None if inside else np.repeat(known.ids, known.sizes))
    rows = table.rows(new, whole=inside)
    Z, _, side = split_columns(
        steps.transform(rows) if steps else rows, None, model.group, model.side, required=True
    )
    prepared = _with_inputs(new, Z)
    asked = _with_inputs(queries, rows_at(Z, np.flatnonzero(_is_query(new, queries))))
    if model.base_ is not None:
        asked = _with_inputs(queries, model.with_base(asked.X))
    about = None if side is None else side[new.offsets[:-1]]
    for k in shots:
        if k:
            W = model.adapt_tasks(prepared.split_rows(k)[0], about)
        elif about is None:
            W = np.tile(np.append(model.bias_, model.intercept_), (len(new), 1))
        else:
            W = np.array([model.prior_.start(known) for known in about])
        yield table.signed(predict_rows(W, asked))


def pooled(estimator: Any, table: Table, fold: Fold, shots: Shots) -> Iterator[Labels]:
    """One model for all rows of the known tasks, whatever the new ones have."""
    known, _, queries = fold
    fitted = clone(estimator).fit(table.rows(known), table.labels(known))
    predictions = table.signs(np.asarray(fitted.predict(table.rows(queries))))
    return (predictions for _ in shots)


def fitted_alone(estimator: Any, table: Table, fold: Fold, shots: Shots) -> Iterator[Labels]:
    """A clone of the estimator for each new task, fitted to its k rows."""
    _, new, queries = fold
    for k in shots:
        places = range(len(new))
        yield np.concatenate(
            [_fit_one(estimator, table, new.subset([t]), queries.subset([t]), k) for t in places]
        )


def _fit_one(estimator: Any, table: Table, new: TaskSet, queries: TaskSet, k: int) -> Labels:
    """Predictions of a clone fitted to k rows; NaN without any, their label if all have one."""
    if k == 0:
        return np.full(len(queries.y), np.nan)
    shots, _ = new.split_rows(k)
    if table.classes.size and np.unique(shots.y).size == 1:
        return np.repeat(shots.y[:1], len(queries.y))
    fitted = clone(estimator).fit(table.rows(shots), table.labels(shots))
    return table.signs(np.asarray(fitted.predict(table.rows(queries))))


def predict_rows(W: FloatArray, tasks: TaskSet) -> Vector:
    """Predictions of every row by its task's weights, the intercept last."""
    own = np.repeat(W, tasks.sizes, axis=0)
    if tasks.sparse:
        products = np.asarray(tasks.inputs.multiply(own[:, :-1]).sum(axis=1)).ravel()  # type: ignore[union-attr]
        return np.asarray(products + own[:, -1])
    return np.asarray(np.einsum("id,id->i", tasks.X, own[:, :-1]) + own[:, -1])


def _with_inputs(tasks: TaskSet, Z: Any) -> TaskSet:
    """The tasks with these rows as inputs."""
    inputs = Z if hasattr(Z, "tocsr") else as_floats("X", Z, 2).astype(np.float64, copy=False)
    return TaskSet(inputs, tasks.y, tasks.offsets, tasks.ids)


def _is_query(new: TaskSet, queries: TaskSet) -> Any:
    """Which rows of the new tasks are their last ones, by which they are judged."""
    before = np.arange(len(new.y)) - np.repeat(new.offsets[:-1], new.sizes)
    return before >= np.repeat(new.sizes - queries.sizes, new.sizes)
