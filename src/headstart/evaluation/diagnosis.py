r"""Is sharing worth it here? Five ways to treat the tasks, compared on tasks held out.

The ways stand in `priors`; they are five priors of the tasks' weights, of which the last is what
`MetaRegressor().fit` and `MetaClassifier().fit` learn. What is made of their errors stands in
`verdict`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from headstart import plot
from headstart._core.checks import Vector, check_count, check_generator
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.estimators.inputs import Labels
from headstart.evaluation import priors, ways
from headstart.evaluation.curve import FewShotCurve
from headstart.evaluation.held_out import Fold, Plan, Table, deal, task_means
from headstart.evaluation.priors import ALONE, HEADSTART, ISOTROPIC, LEVELS, POOLED, Known
from headstart.evaluation.verdict import REASONS, Gain, decide, gains, last_gain, surely_better
from headstart.tasks import TaskSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS, ROWS_OF_A_TASK = 200_000, 1_000  # of more, a sample is enough
LEAST_SAMPLE = 100  # tasks, however many rows they have


class Forecasts(NamedTuple):
    """Labels of held-out rows, and what headstart knew of them after the most rows of each task.

    `mean` and `std` are those of the label; for classes `seen` is -1 or +1, and `mean` the
    probability of +1.
    """

    seen: Vector
    mean: Vector
    std: Vector


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What was found, and what to do.

    Attributes
    ----------
    verdict : str
        "share": learn a start, new tasks do clearly better from it. "share a little": the same,
        but the gain is below a tenth of the error. "pool instead": one model for all does as
        well. "do not share": each task alone does as well. "cannot tell": too few tasks.
    curves : dict of FewShotCurve by way
        Errors on held-out tasks: absolute errors, or the share of wrong labels. Estimators that
        were given come last.
    scores : dict of FewShotCurve by way
        What the verdict is taken from, after the most rows: the same errors; for classes the
        log loss of the probabilities, which tells more.
    forecasts : Forecasts
        What headstart knew of every held-out row.
    model : MetaRegressor or MetaClassifier
        Fitted to all rows that were looked at.
    classify : whether labels are two classes
    n_tasks, n_rows : of the data
    n_used : tasks that were looked at; a sample if there are very many
    """

    verdict: str
    curves: dict[str, FewShotCurve]
    scores: dict[str, FewShotCurve]
    forecasts: Forecasts
    model: MetaRegressor | MetaClassifier = field(repr=False)
    classify: bool
    n_tasks: int
    n_rows: int
    n_used: int

    @property
    def headstart(self) -> FewShotCurve:
        """Errors of what `fit` learns."""
        return self.curves[HEADSTART]

    @property
    def isotropic(self) -> FewShotCurve:
        """Errors of headstart with one variance for all columns."""
        return self.curves[ISOTROPIC]

    @property
    def levels(self) -> FewShotCurve:
        """Errors of one model with a shrunken level for each task: a random intercept."""
        return self.curves[LEVELS]

    @property
    def pooled(self) -> FewShotCurve:
        """Errors of one model for all tasks."""
        return self.curves[POOLED]

    @property
    def independent(self) -> FewShotCurve:
        """Errors of each task alone."""
        return self.curves[ALONE]

    @property
    def simple(self) -> str:
        """The better of each task alone and all tasks pooled."""
        return min((ALONE, POOLED), key=lambda way: float(self.scores[way].mean[-1]))

    @property
    def levels_suffice(self) -> bool:
        """Whether own levels do as well as own weights altogether."""
        return not surely_better(self.scores[HEADSTART], self.scores[LEVELS])

    def gains(self, over: FewShotCurve) -> list[Gain]:
        """Errors of headstart minus those of another way, by the rows of a new task."""
        return gains(self.headstart, over)

    @property
    def headline(self) -> str:
        """The number that matters, in a sentence."""
        k = self.headstart.shots[-1]
        return (
            f"After {k} rows of a new task, headstart {self.said(HEADSTART)} on average; "
            f"{self.simple} {self.said(self.simple)}. {self.difference(self.simple)}"
        )

    def said(self, way: str) -> str:
        """The error of a way after the most rows, in words."""
        mean = float(self.curves[way].mean[-1])
        wrong = f"gets {100.0 * mean:.1f} % of labels wrong"
        return wrong if self.classify else f"is off by {mean:.4g}"

    def difference(self, way: str) -> str:
        """How much less or more headstart is off than another way, with the 95 % interval."""
        gap, base = last_gain(self.headstart, self.curves[way]), self.curves[way].mean[-1]
        if not base > 0.0:
            return f"The difference is {gap.mean:.3g} ({gap.low:.3g} to {gap.high:.3g})."
        mean, low, high = (100.0 * float(value / base) for value in (gap.mean, gap.low, gap.high))
        word = "less" if mean <= 0.0 else "more"
        return (
            f"That is {abs(mean):.1f} % {word} error, with a 95 % interval "
            f"from {low:+.1f} % to {high:+.1f} %."
        )

    @property
    def notes(self) -> list[str]:
        """What else there is to know, in sentences."""
        notes = []
        if self.verdict.startswith("share") and self.levels_suffice:
            notes.append(
                "Own levels are enough: one model with a level of its own for each task (a random "
                f"intercept) {self.said(LEVELS)}, which is as good as own weights for all columns."
            )
        for way, curve in self.curves.items():
            if way in priors.WAYS:
                continue
            better = surely_better(curve, self.headstart)
            notes.append(
                f"{way} {self.said(way)}: "
                + ("surely better than headstart." if better else "not surely better than it.")
            )
        if self.n_used < self.n_tasks:
            notes.append(
                f"This was measured on a sample: {self.n_used:,} of {self.n_tasks:,} tasks."
            )
        return notes

    @property
    def lines(self) -> list[str]:
        """The findings in words, the verdict first."""
        shots, T = self.headstart.shots, len(self.headstart.errors)
        error = "share of wrong labels" if self.classify else "mean absolute error"
        lines = [f"verdict: {self.verdict}. {REASONS[self.verdict]}", self.headline, *self.notes]
        lines += [
            f"{self.n_tasks} tasks, {self.n_rows} rows; {T} tasks held out, {error} on their other "
            "rows by the rows they were adapted to:",
            " " * 24
            + "".join(f"{k:>9}" for k in shots)
            + f"   headstart minus it ({shots[-1]} rows)",
        ]
        for way, curve in self.curves.items():
            row = f"  {way:22}" + "".join(f"{mean:9.4g}" for mean in curve.mean)
            if way != HEADSTART:
                gap = last_gain(self.headstart, curve)
                row += f"   {gap.mean:+.3g} ({gap.low:+.3g} to {gap.high:+.3g})"
            lines.append(row)
        return lines

    def plot(self, ax: Axes | None = None) -> Axes:
        """Few-shot curves of all ways, and the verdict as a title; returns the axes."""
        unit = "wrong labels" if self.classify else "error"
        ax = plot.few_shot_curve(self.curves, ax=ax, error=f"{unit} on its other rows")
        ax.set_title(f"verdict: {self.verdict}")
        return ax

    def __repr__(self) -> str:
        return "\n".join(self.lines)


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
        As in `MetaRegressor`.
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
    binary = np.unique(np.asarray(y)).size == 2 if classify is None else classify
    table = Table.read(X, y, groups, group, binary=binary)
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
