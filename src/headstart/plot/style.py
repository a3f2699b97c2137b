"""What pictures share: colours, axes, and labels that stand beside what they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headstart._core.checks import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that those who see red and green alike can tell apart (Okabe and Ito).
INK, FAINT, SHARED, MISSED = "#222222", "#8a8a8a", "#0072b2", "#d55e00"
PAPER = "#fdfdfd"  # what pictures stand on
PINK, SKY, GREEN, ORANGE = "#cc79a7", "#56b4e9", "#009e73", "#e69f00"

LINE = 1.4  # height of a line of text, over that of a letter

Label = tuple[float, str, str]  # where it belongs, its text and its colour


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes, or those of a new figure, with the frame on two sides only."""
    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def label_ends(ax: Axes, labels: Sequence[Label]) -> None:
    """Write names beside the right ends of lines, none over another."""
    from matplotlib import rcParams

    low, high = ax.get_ylim()
    to_axes = ax.transData + ax.transAxes.inverted()
    places = [float(to_axes.transform((0.0, y))[1]) for y, _, _ in labels]
    room = 0.75 * 72.0 * ax.get_figure().get_size_inches()[1]  # type: ignore[union-attr]
    least = LINE * rcParams["font.size"] / room  # axes take about three quarters of a figure
    found = apart(places, least)
    found += min(max(-float(found.min()), 0.0), max(1.0 - float(found.max()), 0.0))
    for place, (_, text, color) in zip(found, labels, strict=True):
        ax.text(1.02, place, text, transform=ax.transAxes, va="center", color=color)
    ax.set_ylim(low, high)


def apart(places: Sequence[float], least: float) -> Vector:
    """Places moved as little as needed for neighbours to be `least` apart.

    Examples
    --------
    >>> print(apart([0.5, 0.52, 0.9], 0.1).round(2))
    [0.46 0.56 0.9 ]
    """
    order = np.argsort(places, kind="stable")
    groups: list[list[float]] = []  # of neighbours that touch: their places, the mean kept
    for place in np.asarray(places)[order]:
        groups.append([float(place)])
        while len(groups) > 1 and _bottom(groups[-1], least) < _top(groups[-2], least) + least:
            last = groups.pop()
            groups[-1] += last
    out = np.empty(len(places))
    spread = [_bottom(g, least) + least * i for g in groups for i in range(len(g))]
    out[order] = spread
    return out


def _bottom(group: list[float], least: float) -> float:
    return float(np.mean(group)) - 0.5 * least * (len(group) - 1)


def _top(group: list[float], least: float) -> float:
    return float(np.mean(group)) + 0.5 * least * (len(group) - 1)
