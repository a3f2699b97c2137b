"""Error against the rows of a new task, for each way to treat tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headstart._core.checks import Vector
from headstart.plot.style import (
    FAINT,
    GREEN,
    INK,
    MISSED,
    ORANGE,
    PINK,
    SHARED,
    SKY,
    axes_or_new,
    label_ends,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAYS = {
    "each task alone": (FAINT, "s"),
    "all tasks pooled": (MISSED, "^"),
    "pooled, own levels": (PINK, "v"),
    "headstart, isotropic": (SKY, "D"),
    "headstart": (SHARED, "o"),
}
OTHERS = [(GREEN, "P"), (ORANGE, "X"), (INK, "*")]
WIDE = 5.0  # errors that differ by more stand on a logarithmic axis


class Curve(Protocol):
    """Errors by the rows of a new task, such as `FewShotCurve`."""

    @property
    def shots(self) -> tuple[int, ...]:
        """Numbers of rows."""

    @property
    def mean(self) -> Vector:
        """The mean error after each."""

    @property
    def half_width(self) -> Vector:
        """Half the width of its interval."""


def few_shot_curve(
    curves: Mapping[str, Curve],
    *,
    ax: Axes | None = None,
    error: str = "error on its other rows",
) -> Axes:
    """Error against the rows of a new task, a line with a 95 % band for each way.

    Parameters
    ----------
    curves : dict of `FewShotCurve` by name
        All of the same shots, such as `Diagnosis.curves`.
    ax : matplotlib axes, optional
    error : the label of the axis of errors

    Examples
    --------
    >>> from headstart import FewShotCurve
    >>> curve = FewShotCurve((0, 4), np.array([[3.0, 1.0], [4.0, 2.0]]), np.arange(2))
    >>> ax = few_shot_curve({"headstart": curve})
    >>> print([text.get_text() for text in ax.texts])
    ['headstart']
    """
    ax = axes_or_new(ax)
    others = iter(OTHERS * (1 + len(curves)))
    ends = []
    for name, curve in curves.items():
        color, marker = WAYS[name] if name in WAYS else next(others)
        places = np.arange(len(curve.shots))
        width = 2.4 if name == "headstart" else 1.4
        ax.plot(places, curve.mean, color=color, marker=marker, markersize=4.5, linewidth=width,
                label=name, zorder=3 if name == "headstart" else 2)  # fmt: skip
        low, high = curve.mean - curve.half_width, curve.mean + curve.half_width
        ax.fill_between(places, low, high, color=color, alpha=0.15, linewidth=0)
        ax.set_xticks(places, [str(k) for k in curve.shots])
        ends.append((float(curve.mean[-1]), name, color))
    values = np.concatenate([np.asarray(curve.mean) for curve in curves.values()])
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0.0 and values.max() > WIDE * values.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
    label_ends(ax, ends)
    ax.set_xlabel("rows of a new task to learn from")
    ax.set_ylabel(error)
    return ax
