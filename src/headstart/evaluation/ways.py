"""Ways to treat tasks: headstart, all pooled, each alone. Each predicts the queries of a fold.

With `classes`, labels of tasks and predictions are -1 and +1 for the two of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from headstart._core.checks import FloatArray, Vector
from headstart.estimators.inputs import Labels, as_signs
from headstart.estimators.meta import Meta
from headstart.evaluation.held_out import Fold, Shots
from headstart.inner.adapt import evaluate_bias, task_weights
from headstart.tasks import TaskSet

RELATIVE_REGS = np.geomspace(1e-3, 1e2, 11)  # candidates, in units of the mean |x|^2 / k
# Candidates for the entry of the constant column, in units of the other columns: with a large one
# the level is hardly pulled to the mean, with a small one it stays there.
RELATIVE_CONSTANTS = (10.0, 0.1)


def adapted(estimator: Meta, classes: Labels, fold: Fold, shots: Shots) -> Iterator[Vector]:
    """Headstart: learn where tasks start from the known ones, and adapt to k rows of each new."""
    known, new, queries = fold
    owners = np.repeat(np.arange(len(known)), known.sizes)
    fitted = clone(estimator).set_params(group=None)
    fitted.fit(known.X, _as_classes(known.y, classes), groups=owners)
    start = np.append(fitted.bias_, fitted.intercept_)
    for k in shots:
        W = fitted.adapt_tasks(new.split_rows(k)[0]) if k else np.tile(start, (len(new), 1))
        yield _signed(predict_rows(W, queries), classes)


def pooled(estimator: Any, classes: Labels, fold: Fold, shots: Shots) -> Iterator[Labels]:
    """One model for all rows of the known tasks, whatever the new ones have."""
    known, _, queries = fold
    fitted = clone(estimator).fit(known.X, _as_classes(known.y, classes))
    predictions = _as_signs(fitted.predict(queries.X), classes)
    return (predictions for _ in shots)


def fitted_alone(estimator: Any, classes: Labels, fold: Fold, shots: Shots) -> Iterator[Labels]:
    """A clone of the estimator for each new task, fitted to its k rows."""
    _, new, queries = fold
    for k in shots:
        pairs = zip(new, queries, strict=True)
        yield np.concatenate(
            [_fit_one(estimator, classes, X[:k], y[:k], X_new) for (X, y), (X_new, _) in pairs]
        )


def _fit_one(
    estimator: Any, classes: Labels, X: FloatArray, y: FloatArray, X_new: FloatArray
) -> Labels:
    """Predictions of a clone fitted to these rows; NaN without any, their label if all have one."""
    if len(X) == 0:
        return np.full(len(X_new), np.nan)
    if classes.size and np.unique(y).size == 1:
        return np.repeat(y[:1], len(X_new))
    return _as_signs(clone(estimator).fit(X, _as_classes(y, classes)).predict(X_new), classes)


def solved_alone(classes: Labels, fold: Fold, shots: Shots) -> Iterator[Labels]:
    """Each new task alone: the exact solution from bias 0, with labels taken from their mean.

    How strongly weights are pulled, and how freely the level moves, is chosen on the known tasks.
    """
    known = fold.known
    loss, middle = ("logistic", 0.0) if classes.size else ("squared", float(np.mean(known.y)))
    square = float(np.mean(np.sum(known.X**2, axis=1)))
    size = float(np.sqrt(np.mean(known.X**2)))
    for k in shots:
        if k == 0:
            yield _signed(np.full(len(fold.queries.y), middle), classes)
            continue
        regs = RELATIVE_REGS * square / k
        trials = []
        for constant in RELATIVE_CONSTANTS:
            parts = (_with_constant(tasks, constant * size, middle) for tasks in fold)
            trials.append(_solve(Fold(*parts), k, loss, regs))
        yield _signed(min(trials, key=itemgetter(0))[1] + middle, classes)


def _solve(fold: Fold, k: int, loss: str, regs: Vector) -> tuple[float, Vector]:
    """The loss on the known tasks with the best reg, and predictions for the new ones with it."""
    known, new, queries = fold
    zero, trial = np.zeros(known.n_features), known.subset(known.sizes > k).split_rows(k)
    with warnings.catch_warnings():  # at the smallest regs a gap of 1e-8 does not matter here
        warnings.simplefilter("ignore", ConvergenceWarning)
        losses = [evaluate_bias(*trial, zero, reg, loss, "erm").mean() for reg in regs]
        best = int(np.argmin(losses))
        W = task_weights(new.split_rows(k)[0], zero, float(regs[best]), loss, "erm")
    return float(losses[best]), _products(W, queries)


def _with_constant(tasks: TaskSet, constant: float, middle: float) -> TaskSet:
    """The tasks with a constant column, whose weight is the level, and labels from `middle`."""
    wide = np.column_stack([tasks.X, np.full(len(tasks.X), constant)])
    return TaskSet.of(wide, tasks.y - middle, tasks.offsets, tasks.ids)


def predict_rows(W: FloatArray, tasks: TaskSet) -> Vector:
    """Predictions of every row by its task's weights, the intercept last."""
    return _products(W[:, :-1], tasks) + np.repeat(W[:, -1], tasks.sizes)


def _products(W: FloatArray, tasks: TaskSet) -> Vector:
    """The product of every row with its task's weights."""
    return np.asarray(np.einsum("id,id->i", tasks.X, np.repeat(W, tasks.sizes, axis=0)))


def _signed(scores: Vector, classes: Labels) -> Vector:
    """Linear predictions as labels of the tasks."""
    return np.where(scores > 0.0, 1.0, -1.0) if classes.size else scores


def _as_classes(labels: FloatArray, classes: Labels) -> Labels:
    """Labels of the tasks as an estimator is given them."""
    return classes[(labels > 0.0).astype(int)] if classes.size else labels


def _as_signs(labels: Labels, classes: Labels) -> Labels:
    """Predictions of an estimator as labels of the tasks."""
    return as_signs(labels, classes) if classes.size else labels
