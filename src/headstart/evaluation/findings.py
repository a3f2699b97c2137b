"""What a diagnosis found: the verdict, the errors of every way, and both in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from headstart import plot
from headstart._core.checks import Vector
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.evaluation import priors
from headstart.evaluation.curve import FewShotCurve
from headstart.evaluation.priors import ALONE, HEADSTART, ISOTROPIC, LEVELS, POOLED
from headstart.evaluation.verdict import REASONS, Gain, gains, last_gain, surely_better

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        width = max(22, *map(len, self.curves))
        error = "share of wrong labels" if self.classify else "mean absolute error"
        lines = [f"verdict: {self.verdict}. {REASONS[self.verdict]}", self.headline, *self.notes]
        lines += [
            f"{self.n_tasks} tasks, {self.n_rows} rows; {T} tasks held out, {error} on their other "
            "rows by the rows they were adapted to:",
            " " * (width + 2)
            + "".join(f"{k:>9}" for k in shots)
            + f"   headstart minus it ({shots[-1]} rows)",
        ]
        for way, curve in self.curves.items():
            row = f"  {way:{width}}" + "".join(f"{mean:9.4g}" for mean in curve.mean)
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
