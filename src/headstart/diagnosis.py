r"""Is sharing worth it here? Three ways to treat the tasks, compared on tasks held out.

*Independent*: every task alone, from bias 0 with one reg chosen on the other tasks; by exact
solutions or by the constant steps of headstart, whichever does better, so that what is left
between it and headstart is the bias. *Pooled*: one linear model for all. *Headstart*: the
learned bias, with the defaults of `MetaRegressor` and `MetaClassifier` and four passes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart._checks import Vector, check_count, check_generator
from headstart.adaptation import evaluate_bias, task_weights
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.evaluation import (
    ERRORS,
    FewShotCurve,
    Labels,
    Shots,
    held_out_curve,
    predict_rows,
    read_tasks,
)
from headstart.spread import Spread, estimate_spread
from headstart.tasks import TaskSet
from headstart.theory import fixed_bias, learned_bias

VERDICTS = ["share", "share a little", "pool instead", "do not share"]
LITTLE = 0.1  # a gain below this share of the error is little
KAPPAS = np.geomspace(1e-3, 1e2, 11)  # regs of the independent fits, in units of the data
PASSES = 4  # the others are solved to the end too
FREE = 10.0  # the constant column of the independent fits, in units of the others: hardly pulled


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
    spread : Spread
    bounds : the paper's bounds on the excess risk with these numbers put in
    n_tasks, n_rows : of the data
    """

    verdict: str
    headstart: FewShotCurve
    independent: FewShotCurve
    pooled: FewShotCurve
    spread: Spread
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
        told = [f"{self.n_tasks} tasks, {self.n_rows} rows; error on new tasks after {k} rows:"]
        for name, curve in self.curves.items():
            told.append(f"  {name:17} {curve.mean[-1]:.4g} ± {curve.half_width[-1]:.2g}")
        for name, other in (("alone", self.independent), ("pooled", self.pooled)):
            told.append(f"headstart - {name}, and its 95 % interval, by rows of the new task:")
            told += [
                f"  {gain.shots:3}  {gain.mean:+9.3g}   {gain.low:+.3g} to {gain.high:+.3g}"
                for gain in self.gains(other)
            ]
        s = self.spread
        told.append(f"weights: {s.var_0:.3g} from 0 (Var_0), {s.var_m:.3g} from their mean (Var_m)")
        bounds = ", ".join(f"{name} {value:.3g}" for name, value in self.bounds.items())
        told.append(f"the paper's bounds on the excess risk: {bounds}")
        return [*told, f"verdict: {self.verdict}. {REASONS[self.verdict]}"]

    def plot(self, ax: Any = None) -> Any:
        """Few-shot curves of the three, and the verdict as a title; returns the axes."""
        styles = [("#777777", "-.", "s"), ("#b2182b", "--", "^"), ("#2166ac", "-", "o")]
        for (name, curve), (color, dashes, marker) in zip(self.curves.items(), styles, strict=True):
            ax = curve.plot(ax, label=name, color=color, linestyle=dashes, marker=marker)
        ax.set_title(f"verdict: {self.verdict}")
        ax.legend(frameon=False)
        ax.grid(alpha=0.25)
        return ax

    def __repr__(self) -> str:
        return "\n".join(self.lines)


REASONS = {
    "share": "New tasks do clearly better from the learned bias than alone or pooled.",
    "share a little": "The learned bias helps, but by less than a tenth, or not surely.",
    "pool instead": "The tasks are too alike for weights of their own to help.",
    "do not share": "A common bias does not help these tasks more than their own rows do.",
}


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
    'share a little'
    """
    binary = np.unique(np.asarray(y)).size == 2 if classify is None else classify
    tasks, _ = read_tasks(X, y, groups, group, binary=binary)
    most = check_count("shots", shots)
    counts = tuple(sorted({0, most, *(1 << p for p in range(most.bit_length()) if 1 << p < most)}))
    rng = check_generator(random_state)
    seed = int(rng.integers(2**32))

    ways: list[Callable[..., Iterator[Labels]]] = [_headstart, _pooled, _exact, _steps_from_zero]
    run = map if executor is None else executor.map
    curves = []
    for curve in run(partial(_curve, tasks, counts, binary, folds, seed), ways):
        curves.append(curve)
        if callback is not None:
            callback(len(curves) / len(ways))
    head, pooled, *alones = curves
    alone = min(alones, key=lambda c: float(c.mean[-1]))
    spread = estimate_spread(tasks)
    return Diagnosis(
        _verdict(head, alone, pooled, spread),
        *(head, alone, pooled, spread, _bounds(tasks, spread, most)),
        *(len(tasks), len(tasks.y)),
    )


def _curve(
    tasks: TaskSet,
    shots: Shots,
    binary: bool,
    folds: int,
    seed: int,
    way: Callable[..., Iterator[Labels]],
) -> FewShotCurve:
    """Errors of one way on tasks held out, in the same folds as the others."""
    judge = _wrong_side if binary else ERRORS["absolute"]
    dealt = np.random.default_rng(seed)
    return held_out_curve(partial(way, binary), tasks, shots, judge, folds, 1, False, dealt)


def _wrong_side(y: Labels, z: Labels) -> Vector:
    return np.asarray((np.asarray(y, float) > 0.0) != (np.asarray(z, float) > 0.0), float)


def _verdict(head: FewShotCurve, alone: FewShotCurve, pooled: FewShotCurve, spread: Spread) -> str:
    def better(one: FewShotCurve, other: FewShotCurve) -> bool:
        gap = one.minus(other)
        return bool(gap.mean[-1] + gap.half_width[-1] < 0.0)

    before = np.repeat(head.errors[:, :1], len(head.shots), axis=1)
    unadapted = FewShotCurve(head.shots, before, head.ids)
    apart = spread.surely_apart or better(head, unadapted)
    if not better(head, alone):
        if better(pooled, alone) and not apart:
            return "pool instead"
        likely = spread.surely_common and head.mean[-1] < min(alone.mean[-1], pooled.mean[-1])
        return "share a little" if likely else "do not share"
    if not apart or better(pooled, head):
        return "pool instead"
    gain = 1.0 - head.mean[-1] / min(alone.mean[-1], pooled.mean[-1])
    return "share" if gain >= LITTLE else "share a little"


def _headstart(
    binary: bool,
    known: TaskSet,
    new: TaskSet,
    queries: TaskSet,
    shots: Shots,
    step: float | str = "auto",
) -> Iterator[Vector]:
    model = (MetaClassifier if binary else MetaRegressor)(step=step, passes=PASSES)
    model.fit(known.X, known.y, groups=np.repeat(np.arange(len(known)), known.sizes))
    start = np.append(model.bias_, model.intercept_)
    for k in shots:
        W = model._adapted(new.split_rows(k)[0]) if k else np.tile(start, (len(new), 1))
        yield predict_rows(W, queries)


def _pooled(
    binary: bool, known: TaskSet, _: TaskSet, queries: TaskSet, shots: Shots
) -> Iterator[Labels]:
    linear = LogisticRegression(max_iter=1000) if binary else HuberRegressor(max_iter=1000)
    model = make_pipeline(StandardScaler(), linear).fit(known.X, known.y)
    found = model.decision_function(queries.X) if binary else model.predict(queries.X)
    return (found for _ in shots)


def _exact(
    binary: bool, known: TaskSet, new: TaskSet, queries: TaskSet, shots: Shots
) -> Iterator[Labels]:
    """Exact solutions from 0, labels taken from their median, reg chosen on the known tasks."""
    loss = "hinge" if binary else "absolute"
    middle = 0.0 if binary else float(np.median(known.y))
    b = FREE * float(np.sqrt(np.mean(known.X**2)))
    shifted, fresh = (_with_constant(tasks, b, middle) for tasks in (known, new))
    size = float(np.mean(np.abs(shifted.y))) or 1.0
    unit = float(np.mean(np.sum(known.X**2, axis=1))) / size
    zero, asked = np.zeros(shifted.n_features), _with_constant(queries, b, middle)
    for k in shots:
        if k == 0:
            yield np.full(len(queries.y), middle)
            continue
        able = shifted.subset(shifted.sizes > k)
        trial = able.split_rows(k)
        regs = KAPPAS * unit / k
        with warnings.catch_warnings():  # a gap of 1e-8 at the smallest regs is no matter here
            warnings.simplefilter("ignore", ConvergenceWarning)
            losses = [evaluate_bias(*trial, zero, reg, loss, "erm").mean() for reg in regs]
            best = float(regs[int(np.argmin(losses))])
            W = task_weights(fresh.split_rows(k)[0], zero, best, loss, "erm")
        yield np.einsum("id,id->i", asked.X, np.repeat(W, queries.sizes, axis=0)) + middle


def _steps_from_zero(
    binary: bool, known: TaskSet, new: TaskSet, queries: TaskSet, shots: Shots
) -> Iterator[Labels]:
    """The constant steps of headstart with a bias that never moves from the middle."""
    middle = 0.0 if binary else float(np.median(known.y))
    parts = [_shifted(tasks, middle) for tasks in (known, new, queries)]
    for found in _headstart(binary, parts[0], parts[1], parts[2], shots, step=0.0):
        yield found + middle


def _shifted(tasks: TaskSet, middle: float) -> TaskSet:
    return TaskSet(tasks.X, tasks.y - middle, tasks.offsets, tasks.ids)


def _with_constant(tasks: TaskSet, b: float, middle: float) -> TaskSet:
    wide = np.column_stack([tasks.X, np.full(len(tasks.X), b)])
    return TaskSet(wide, tasks.y - middle, tasks.offsets, tasks.ids)


def _bounds(tasks: TaskSet, spread: Spread, shots: int) -> dict[str, float]:
    """The paper's bounds for tasks of `shots` rows, with the spread that was found."""
    radius = float(np.sqrt(np.max(np.sum(tasks.X**2, axis=1))))
    least = 1e-12
    var_0, var_m = max(spread.var_0, least), max(spread.var_m, least)
    learned = learned_bias(shots, len(tasks), var_m, max(spread.distance, least), radius=radius)
    return {
        "alone": fixed_bias(shots, var_0, radius=radius).bound,
        "learned": learned.bound,
        "oracle": fixed_bias(shots, var_m, radius=radius).bound,
    }
