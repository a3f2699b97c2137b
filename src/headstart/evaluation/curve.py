"""Errors of held-out tasks by the number of rows they were adapted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from headstart._core.checks import Vector
from headstart.estimators.inputs import Labels
from headstart.plot.style import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class FewShotCurve:
    """Errors of held-out tasks by the number of rows they were adapted to.

    Attributes
    ----------
    shots : numbers of rows, one for each column of `errors`
    errors : array of shape (tasks, shots), a mean over each held-out task's other rows
    ids : the held-out tasks
    level : of the confidence intervals, which are over tasks
    """

    shots: tuple[int, ...]
    errors: Vector
    ids: Labels
    level: float = 0.95

    @property
    def mean(self) -> Vector:
        """Mean error over tasks, by shots."""
        return np.asarray(self.errors.mean(axis=0), np.float64)

    @property
    def half_width(self) -> Vector:
        """Half the width of the mean's confidence interval, by Student's t over tasks."""
        n = len(self.errors)
        if n < 2:
            return np.full(len(self.shots), np.nan)
        quantile = float(student.ppf(0.5 + self.level / 2.0, n - 1))
        return np.asarray(quantile * self.errors.std(axis=0, ddof=1) / np.sqrt(n), np.float64)

    def minus(self, other: FewShotCurve) -> FewShotCurve:
        """The paired differences from another curve of the same tasks and shots."""
        if self.shots != other.shots or not np.array_equal(self.ids, other.ids):
            raise ValueError("other: expected a curve of the same tasks and shots")
        return FewShotCurve(self.shots, self.errors - other.errors, self.ids, self.level)

    def plot(self, ax: Axes | None = None, label: str | None = None, **style: Any) -> Axes:
        """Draw the curve with its band; returns the axes. `headstart.plot` draws several."""
        ax = axes_or_new(ax)
        places = np.arange(len(self.shots))
        (line,) = ax.plot(places, self.mean, label=label, **style)
        low, high = self.mean - self.half_width, self.mean + self.half_width
        ax.fill_between(places, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xticks(places, [str(k) for k in self.shots])
        ax.set_xlabel("rows of a new task to learn from")
        ax.set_ylabel("error on its other rows")
        return ax

    def __repr__(self) -> str:
        points = zip(self.shots, self.mean, self.half_width, strict=True)
        errors = ", ".join(f"{k}: {m:.3g} ± {h:.2g}" for k, m, h in points)
        return f"FewShotCurve({len(self.errors)} tasks; {errors})"
