r"""Is sharing worth it here? Five ways to treat the tasks, compared on tasks held out.

The ways stand in `priors`; they are five priors of the tasks' weights, of which the last is what
`MetaRegressor().fit` and `MetaClassifier().fit` learn. What is made of their errors stands in
`verdict`, and how it is worded in `findings`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from headstart._core.checks import Vector, check_count, check_flag, check_generator
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.estimators.inputs import Labels
from headstart.evaluation import priors, ways
from headstart.evaluation.curve import FewShotCurve
from headstart.evaluation.findings import Diagnosis, Forecasts
from headstart.evaluation.held_out import Fold, Plan, Table, deal, read_labels, task_means
from headstart.evaluation.priors import ALONE, HEADSTART, LEVELS, POOLED, Known
from headstart.evaluation.verdict import decide
from headstart.tasks import TaskSet

MAX_ROWS, ROWS_OF_A_TASK = 200_000, 1_000  # of more, a sample is enough
LEAST_SAMPLE = 100  # tasks, however many rows they have
MAX_COLUMNS = 500  # the costs of pooling and of variances grow with their third power


def diagnose(
    X: Any,
    y: ArrayLike,
    groups: Any = None,
    *,
    group: str | int | None = None,
    shots: int = 8,
    classify: bool | None = None,
    estimators: Mapping[str, Any] | None = None,
    folds: int = 5,
    max_tasks: int = 5_000,
    random_state: object = 0,
    callback: Callable[[float], object] | None = None,
    executor: Executor | None = None,
) -> Diagnosis:
    """Compare five ways to treat tasks on tasks held out, and say what to do.

    Each task alone, all pooled, pooled with a shrunken level of each task (a random intercept),
    headstart with one variance for all columns, and headstart as `fit` learns it. All have the
    same units, intercept and loss. Every task with more than `shots` rows is held out once,
    adapted to its first rows and judged by those after the first `shots`. Intervals are over
    tasks, of paired differences.

    Parameters
    ----------
    X, y, groups, group
        As in `MetaRegressor`; X is dense and has at most 500 columns.
    shots : int
        Rows of a new task to learn from.
    classify : bool, optional
        Whether y are two classes; by default if it has two values.
    estimators : dict of scikit-learn estimators or pipelines by name, optional
        To be compared too. Each is fitted to the pooled rows of the tasks that are not held out;
        one that can adapt, such as a pipeline that ends in `MetaRegressor`, is adapted. They
        have no part in the verdict.
    folds, random_state
        As in `few_shot_curve`.
    max_tasks : int
        Of more tasks, or of more than 200,000 rows, a random sample is looked at; of a task its
        first 1,000 rows.
    callback : function of a number, optional
        Called with the share of the work that is done, from time to time.
    executor : concurrent.futures.Executor, optional
        Who does the folds; this thread by default.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(60), 16), rng.standard_normal((960, 3))
    >>> w = rng.normal([4.0, -2.0, 1.0], 0.5, (60, 3))
    >>> y = np.sum(X * w[ids], axis=1) + rng.normal(size=960)
    >>> diagnose(X, y, ids).verdict
    'share'
    """
    two = classify is None and np.unique(read_labels(y)).size == 2
    binary = two if classify is None else check_flag("classify", classify)
    table = Table.read(X, y, groups, group, binary=binary)
    if issparse(table.X):
        raise ValueError(
            "X: expected dense rows to compare ways by, found a sparse matrix; X.toarray(), or "
            "compare by few_shot_curve, which takes it"
        )
    width = (table.X.shape if hasattr(table.X, "shape") else np.shape(table.X))[-1]
    if width > MAX_COLUMNS:
        raise ValueError(
            f"X: expected at most {MAX_COLUMNS} columns to compare ways by, found {width}; give "
            "those that matter, or compare by few_shot_curve, which takes any number"
        )
    most, rng = check_count("shots", shots), check_generator(random_state)
    powers = (1 << p for p in range(most.bit_length()))
    steps = (0, *(k for k in powers if k < most), most)
    plan = Plan(steps, check_count("folds", folds, at_least=2))
    tasks = _sample(table.tasks, check_count("max_tasks", max_tasks, at_least=2), most, rng)
    cases = list(deal(tasks, plan, rng))
    extra = dict(estimators or {})
    if taken := sorted(set(extra) & set(priors.WAYS)):
        raise ValueError(f"estimators: the name {taken[0]!r} is taken; give another")

    done, work = 0, 1 + len(cases) * (len(priors.WAYS) + len(extra))

    def count(steps: int = 1) -> None:
        nonlocal done
        done += steps
        if callback is not None:
            callback(done / work)

    model = MetaClassifier() if binary else MetaRegressor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        names = np.repeat(tasks.ids, tasks.sizes)
        model.fit(table.rows(tasks), table.labels(tasks), groups=names)
        count()
        numbers = np.asarray(table.X, np.float64)
        judge = partial(_judge, table, numbers, extra, steps)
        if executor is None:
            judged: Iterator[_Judged] = (judge(fold, count) for _, fold in cases)
        else:
            judged = executor.map(judge, [fold for _, fold in cases])
        errors: dict[str, Vector] = {}
        parts = []
        for (places, _), (found, seen) in zip(cases, judged, strict=True):
            for way, values in found.items():
                shape = (len(values), len(tasks), len(steps))
                errors.setdefault(way, np.zeros(shape))[:, places] = values
            parts.append(seen)
            if executor is not None:
                count(len(found))
    able = tasks.sizes > most
    curves = {way: FewShotCurve(steps, e[0, able], tasks.ids[able]) for way, e in errors.items()}
    scores = {w: FewShotCurve(steps, e[-1, able], tasks.ids[able]) for w, e in errors.items()
              if w in priors.WAYS}  # fmt: skip
    return Diagnosis(
        decide(*(scores[way] for way in (HEADSTART, LEVELS, ALONE, POOLED))),
        curves,
        scores,
        Forecasts(*(np.concatenate(column) for column in zip(*parts, strict=True))),
        model,
        bool(binary),
        *(len(table.tasks), len(table.tasks.y), len(tasks)),
    )


# Errors by way, of shape (kinds, tasks, shots), and what headstart knew of the queries.
_Judged = tuple[dict[str, Vector], Forecasts]


def _sample(tasks: TaskSet, most: int, shots: int, rng: np.random.Generator) -> TaskSet:
    """The tasks, or where there are very many rows, some of them and their first rows."""
    limit = max(ROWS_OF_A_TASK, 2 * shots)
    if tasks.sizes.max() > limit:
        first = np.arange(len(tasks.y)) - np.repeat(tasks.offsets[:-1], tasks.sizes) < limit
        offsets = np.append(0, np.cumsum(np.minimum(tasks.sizes, limit)))
        tasks = TaskSet(tasks.X[first], tasks.y[first], offsets, tasks.ids)
    order = rng.permutation(len(tasks))
    fit = int(np.searchsorted(np.cumsum(tasks.sizes[order]), MAX_ROWS, side="right"))
    used = min(len(tasks), most, max(fit, LEAST_SAMPLE))
    return tasks if used == len(tasks) else tasks.subset(np.sort(order[:used]))


def _judge(
    table: Table,
    numbers: Vector,
    extra: dict[str, Any],
    shots: tuple[int, ...],
    fold: Fold,
    count: Callable[[], object] = lambda: None,
) -> _Judged:
    """Errors of every way on a fold, each kind of error for each task and number of rows."""
    binary, y = bool(table.classes.size), fold.queries.y.astype(np.float64)
    dense = Fold(*(_with_numbers(tasks, numbers) for tasks in fold))
    errors = {}
    for way in priors.WAYS:
        known = list(priors.forecasts(way, "logistic" if binary else "squared", dense, shots))
        kinds = [[_plain_error(y, k.mean, binary) for k in known]]
        if binary:
            kinds.append([np.logaddexp(0.0, -y * _margin(k)) for k in known])
        errors[way] = _by_task(kinds, fold.queries)
        count()
    last = known[-1]
    mean = 1.0 / (1.0 + np.exp(-_margin(last))) if binary else last.mean
    for name, estimator in extra.items():
        predict: Callable[..., Iterator[Labels]] = ways.pooled
        if ways.can_adapt(estimator):
            predict = ways.adapted
        labels = predict(estimator, table, fold, shots)
        errors[name] = _by_task([[_plain_error(y, z, binary) for z in labels]], fold.queries)
        count()
    return errors, Forecasts(y, mean, np.sqrt(last.variance))


def _with_numbers(tasks: TaskSet, numbers: Vector) -> TaskSet:
    return TaskSet(numbers[tasks.X[:, 0].astype(np.int64)], tasks.y, tasks.offsets, tasks.ids)


def _margin(known: Known) -> Vector:
    """The score of +1 over -1, nearer to 0 where less is known."""
    return known.mean / np.sqrt(1.0 + math.pi / 8.0 * known.variance)


def _plain_error(y: Vector, z: Labels, binary: bool) -> Vector:
    predicted = z.astype(np.float64)
    return np.asarray(y * predicted <= 0.0, np.float64) if binary else np.abs(y - predicted)


def _by_task(kinds: list[list[Vector]], queries: TaskSet) -> Vector:
    """Means over the rows of each task, of shape (kinds, tasks, shots)."""
    return np.array([[task_means(e, queries) for e in kind] for kind in kinds]).transpose(0, 2, 1)
