r"""Is sharing worth it here? Three ways to treat the tasks, compared on tasks held out.

*Independent*: every task alone, the exact solution from bias 0 with one reg chosen on the other
tasks. *Pooled*: one linear model for all. *Headstart*: the learned prior, with the defaults of
`MetaRegressor` and `MetaClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart._core.checks import check_count, check_generator
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.estimators.inputs import Labels
from headstart.evaluation.curve import FewShotCurve, new_axes
from headstart.evaluation.held_out import ERRORS, Forecast, Plan, held_out_curve, read_tasks
from headstart.evaluation.task_variance import TaskVariance, estimate_task_variance
from headstart.evaluation.ways import adapted, pooled, solved_alone
from headstart.tasks import TaskSet
from headstart.theory import fixed_bias, learned_bias

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REASONS = {
    "share": "New tasks do clearly better from the learned bias than alone or pooled.",
    "share a little": "The learned bias helps, but by less than a tenth, or not surely.",
    "pool instead": "The tasks are too alike for weights of their own to help.",
    "do not share": "A common bias does not help these tasks more than their own rows do.",
}
VERDICTS = list(REASONS)
SMALL_GAIN = 0.1  # below this share of the error it is little
LEAST = 1e-12  # the bounds are for tasks that are not all the same


class Gain(NamedTuple):
    """Mean paired difference of two ways' errors after so many rows, and its 95 % interval."""

    shots: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What was found, and what to do.

    Attributes
    ----------
    verdict : one of "share", "share a little", "pool instead", "do not share"
    headstart, independent, pooled : FewShotCurve
        Errors on held-out tasks; of these the verdict takes the last column.
    spread : TaskVariance
        How far the tasks' weights are from 0 and from their mean.
    bounds : the paper's bounds on the excess risk with these numbers put in
    n_tasks, n_rows : of the data
    """

    verdict: str
    headstart: FewShotCurve
    independent: FewShotCurve
    pooled: FewShotCurve
    spread: TaskVariance
    bounds: dict[str, float]
    n_tasks: int
    n_rows: int

    @property
    def curves(self) -> dict[str, FewShotCurve]:
        """The three curves by name."""
        return {
            "each task alone": self.independent,
            "all tasks pooled": self.pooled,
            "headstart": self.headstart,
        }

    def gains(self, over: FewShotCurve) -> list[Gain]:
        """Errors of headstart minus those of `independent` or `pooled`, by the size of a task."""
        gap = self.headstart.minus(over)
        points = zip(gap.shots, gap.mean.tolist(), gap.half_width.tolist(), strict=True)
        return [Gain(k, mean, mean - half, mean + half) for k, mean, half in points]

    @property
    def lines(self) -> list[str]:
        """The findings in words."""
        k = self.headstart.shots[-1]
        lines = [f"{self.n_tasks} tasks, {self.n_rows} rows; error on new tasks after {k} rows:"]
        for name, curve in self.curves.items():
            lines.append(f"  {name:17} {curve.mean[-1]:.4g} ± {curve.half_width[-1]:.2g}")
        for name, other in (("alone", self.independent), ("pooled", self.pooled)):
            lines.append(f"headstart - {name}, and its 95 % interval, by rows of the new task:")
            lines += [
                f"  {gain.shots:3}  {gain.mean:+9.3g}   {gain.low:+.3g} to {gain.high:+.3g}"
                for gain in self.gains(other)
            ]
        from_0, from_m = f"{self.spread.var_0:.3g}", f"{self.spread.var_m:.3g}"
        lines.append(f"weights: {from_0} from 0 (Var_0), {from_m} from their mean (Var_m)")
        bounds = ", ".join(f"{name} {value:.3g}" for name, value in self.bounds.items())
        lines.append(f"the paper's bounds on the excess risk: {bounds}")
        return [*lines, f"verdict: {self.verdict}. {REASONS[self.verdict]}"]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Few-shot curves of the three, and the verdict as a title; returns the axes."""
        ax = new_axes() if ax is None else ax
        styles = [("#777777", "-.", "s"), ("#b2182b", "--", "^"), ("#2166ac", "-", "o")]
        for (name, curve), (color, dashes, marker) in zip(self.curves.items(), styles, strict=True):
            curve.plot(ax, label=name, color=color, linestyle=dashes, marker=marker)
        ax.set_title(f"verdict: {self.verdict}")
        ax.legend(frameon=False)
        ax.grid(alpha=0.25)
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
    folds: int = 5,
    random_state: object = 0,
    callback: Callable[[float], object] | None = None,
    executor: Executor | None = None,
) -> Diagnosis:
    """Compare independent, pooled and headstart on held-out tasks, and say what to do.

    Every task with more than `shots` rows is held out once, adapted to its first rows and
    judged by those after the first `shots`. Intervals are over tasks, of paired differences.

    Parameters
    ----------
    X, y, groups, group
        As in `MetaRegressor`.
    shots : int
        Rows of a new task to learn from.
    classify : bool, optional
        Whether y are two classes; by default if it has two values.
    folds, random_state
        As in `few_shot_curve`.
    callback : function of a number, optional
        Called with the share of the work that is done, from time to time.
    executor : concurrent.futures.Executor, optional
        Who compares the ways; this thread by default.

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
    tasks, classes = read_tasks(X, y, groups, group, binary=binary)
    most = check_count("shots", shots)
    powers = (1 << p for p in range(most.bit_length()))
    plan = Plan((0, *(k for k in powers if k < most), most), folds)
    seed = int(check_generator(random_state).integers(2**32))

    ways = _ways(classes)
    run = map if executor is None else executor.map
    curves = []
    for curve in run(partial(_curve, tasks, binary, plan, seed), ways):
        curves.append(curve)
        if callback is not None:
            callback(len(curves) / len(ways))
    head, pool, alone = curves
    variance = estimate_task_variance(tasks)
    return Diagnosis(
        decide(head, alone, pool, variance),
        *(head, alone, pool, variance, _bounds(tasks, variance, most)),
        *(len(tasks), len(tasks.y)),
    )


def _ways(classes: Labels) -> list[Forecast]:
    """Headstart, pooled and alone."""
    model: MetaRegressor | MetaClassifier = MetaRegressor()
    linear: HuberRegressor | LogisticRegression = HuberRegressor(max_iter=1000)
    if classes.size:
        model, linear = MetaClassifier(), LogisticRegression(max_iter=1000)
    return [
        partial(adapted, model, classes),
        partial(pooled, make_pipeline(StandardScaler(), linear), classes),
        partial(solved_alone, classes),
    ]


def _curve(tasks: TaskSet, binary: bool, plan: Plan, seed: int, way: Forecast) -> FewShotCurve:
    """Errors of one way on tasks held out, in the same folds as the others."""
    judge = ERRORS["zero_one" if binary else "absolute"]
    return held_out_curve(way, tasks, judge, plan, np.random.default_rng(seed))


def decide(
    head: FewShotCurve, alone: FewShotCurve, pool: FewShotCurve, variance: TaskVariance
) -> str:
    """What to do: a way is better than another if the whole interval of the difference says so."""

    def better(one: FewShotCurve, other: FewShotCurve) -> bool:
        gap = one.minus(other)
        return bool(gap.mean[-1] + gap.half_width[-1] < 0.0)

    before = np.repeat(head.errors[:, :1], len(head.shots), axis=1)
    unadapted = FewShotCurve(head.shots, before, head.ids)
    apart = variance.surely_apart or better(head, unadapted)
    if not better(head, alone):
        if better(pool, alone) and not apart:
            return "pool instead"
        likely = variance.surely_common and head.mean[-1] < min(alone.mean[-1], pool.mean[-1])
        return "share a little" if likely else "do not share"
    if not apart or better(pool, head):
        return "pool instead"
    gain = 1.0 - head.mean[-1] / min(alone.mean[-1], pool.mean[-1])
    return "share" if gain >= SMALL_GAIN else "share a little"


def _bounds(tasks: TaskSet, variance: TaskVariance, shots: int) -> dict[str, float]:
    """The paper's bounds for tasks of `shots` rows that are so far apart."""
    radius = float(np.sqrt(np.max(np.sum(tasks.X**2, axis=1))))
    var_0, var_m, distance = (
        max(value, LEAST) for value in (variance.var_0, variance.var_m, variance.distance)
    )
    return {
        "alone": fixed_bias(shots, var_0, radius=radius).bound,
        "learned": learned_bias(shots, len(tasks), var_m, distance, radius=radius).bound,
        "oracle": fixed_bias(shots, var_m, radius=radius).bound,
    }
