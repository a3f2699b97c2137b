"""Few-shot evaluation: hold out whole tasks, adapt to their first k rows, score the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from headstart._core.checks import check_choice, check_count, check_generator
from headstart.estimators.inputs import Labels
from headstart.evaluation.curve import FewShotCurve
from headstart.evaluation.held_out import ERRORS, Plan, Score, Table, held_out_curve
from headstart.evaluation.ways import adapted, can_adapt, fitted_alone, model_of, pooled

WAYS: dict[str, Callable[..., Iterator[Labels]]] = {
    "adapt": adapted,
    "independent": fitted_alone,
    "pooled": pooled,
}


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
    estimator : MetaRegressor, MetaClassifier, or any scikit-learn estimator or pipeline
        A clone is fitted. The steps of a pipeline learn from tasks that are not held out; one
        that ends in a `MetaRegressor` or `MetaClassifier` is adapted.
    X, y, groups
        As in `MetaRegressor.fit`, or what the first step of the pipeline takes.
    shots : sequence of int
        Numbers of rows to adapt to.
    how : {"adapt", "independent", "pooled"}, optional
        Adapt the fitted model; fit a clone to the k rows alone, whose errors with no rows are
        NaN; or fit one clone to the rows of all tasks that are not held out. The first by
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
    >>> import numpy as np
    >>> from headstart import MetaRegressor
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(100), 12), rng.standard_normal((1200, 3))
    >>> w = rng.normal([4.0, -2.0, 1.0], 0.5, (100, 3))
    >>> y = np.sum(X * w[ids], axis=1) + 0.3 * rng.standard_normal(1200)
    >>> few_shot_curve(MetaRegressor(), X, y, ids, shots=[0, 8])
    FewShotCurve(100 tasks; 0: 0.685 ± 0.065, 8: 0.279 ± 0.02)
    """
    several = isinstance(shots, Iterable) and getattr(shots, "ndim", 1) > 0
    if not several or isinstance(shots, str | bytes):
        raise TypeError(f"shots: expected a list of numbers of rows, found {shots!r}")
    counts = tuple(sorted({check_count("shots", k, at_least=0) for k in shots}))
    if not counts:
        raise ValueError("shots: expected at least one number of rows, found none")
    way = "adapt" if how is None else check_choice("how", how, list(WAYS))
    if way == "adapt" and not can_adapt(estimator):
        raise TypeError(
            f"estimator: {type(estimator).__name__} cannot adapt; say how='independent' "
            "(fitted to each task's rows) or how='pooled' (to all tasks together)"
        )
    model = model_of(estimator)
    column = group if group is not None else getattr(model, "group", None)
    table = Table.read(X, y, groups, column, binary=is_classifier(model))
    plan = Plan(
        counts,
        check_count("folds", folds, at_least=2),
        check_count("repeats", repeats),
        shuffle,
    )
    return held_out_curve(
        partial(WAYS[way], estimator, table),
        table.tasks,
        _judge(error, table.classes.size > 0),
        plan,
        check_generator(random_state),
    )


def few_shot_score(
    estimator: Any, X: Any, y: ArrayLike, groups: Any = None, *, shots: int = 8, **options: Any
) -> float:
    """Mean error on new tasks after `shots` of their rows; options as in `few_shot_curve`.

    Parameters
    ----------
    estimator, X, y, groups, **options
        As in `few_shot_curve`.
    shots : int
        Rows of a new task to learn from.

    Notes
    -----
    scikit-learn's splitters do not measure this. `GroupKFold` holds out whole tasks, and shows
    the estimator none of their rows: it judges the start alone, ``shots=0``. `KFold` leaves rows
    of the same tasks in both parts: it judges tasks that are known already. To judge new tasks
    after their first rows, and to choose settings for them, compare scores of this function.

    Examples
    --------
    What ten new tasks are off by without any of their rows, and after four:

    >>> import numpy as np
    >>> from headstart import MetaRegressor
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(50), 8), rng.standard_normal((400, 1))
    >>> y = rng.normal(3.0, 1.0, 50)[ids] * X[:, 0] + 0.1 * rng.standard_normal(400)
    >>> table, model = np.column_stack([X, ids]), MetaRegressor(group=1)
    >>> no_rows = cross_val_score(model, table, y, groups=ids, cv=GroupKFold(5),
    ...                           scoring="neg_mean_absolute_error")
    >>> print(-no_rows.mean().round(1), round(few_shot_score(model, table, y, shots=0), 1))
    0.7 0.7
    >>> print(round(few_shot_score(model, table, y, shots=4), 1))
    0.1
    """
    score = float(few_shot_curve(estimator, X, y, groups, shots=[shots], **options).mean[0])
    if math.isnan(score) and shots == 0:
        raise ValueError("shots: expected 1 or more with how='independent': nothing is fitted to 0")
    return score


def _judge(error: str | Score | None, binary: bool) -> Score:
    if callable(error):
        return error
    name = ("zero_one" if binary else "absolute") if error is None else error
    return ERRORS[check_choice("error", name, list(ERRORS), "or a function")]
