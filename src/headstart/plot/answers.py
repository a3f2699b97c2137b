"""Predictions against what was seen: intervals and their coverage, and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import binomtest

from headstart._core.checks import check_number
from headstart.estimators.meta import Meta
from headstart.plot.style import INK, MISSED, SHARED, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DOTS = 150


def intervals(
    model: Meta,
    X: Any,
    y: ArrayLike,
    groups: Any = None,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Labels against predictions with their intervals, and how many labels these hold.

    For a classifier: how often the second class was seen against its probability. Rows should be
    new to the model, or coverage looks better than it is.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier with a learned prior
    X, y, groups : rows, as in `predict`, and their labels
    coverage : share of labels that intervals are meant to hold
    ax : matplotlib axes, optional
    """
    seen = np.asarray(y)
    if hasattr(model, "classes_"):
        share = model.predict_proba(X, groups)[:, 1]  # type: ignore[attr-defined]
        return calibration(seen == model.classes_[1], share, ax=ax)
    mean, std = model.predict(X, groups, return_std=True)  # type: ignore[attr-defined]
    return intervals_of(seen, mean, std, coverage=coverage, ax=ax)


def intervals_of(
    seen: ArrayLike, mean: ArrayLike, std: ArrayLike, *, coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """As `intervals`, of labels, predictions and their standard deviations."""
    share = check_number("coverage", coverage, above=0.0, below=1.0)
    ax, y, centre = axes_or_new(ax), np.asarray(seen, np.float64), np.asarray(mean, np.float64)
    half = float(ndtri(0.5 + share / 2.0)) * np.asarray(std, np.float64)
    inside = np.abs(y - centre) <= half
    shown = np.argsort(centre, kind="stable")[:: max(1, len(y) // MOST_DOTS)]
    x, hit = centre[shown], inside[shown]
    ax.vlines(x, (centre - half)[shown], (centre + half)[shown], color=SHARED, alpha=0.25, lw=1.5)
    ax.plot(x[hit], y[shown][hit], "o", color=SHARED, markersize=3.5)
    ax.plot(x[~hit], y[shown][~hit], "^", color=MISSED, markersize=5.5)
    ends = [float(centre.min()), float(centre.max())]
    ax.plot(ends, ends, color=INK, lw=0.8)
    ax.set_title(
        f"{100 * share:.3g} % intervals held {100 * inside.mean():.1f} % of {len(y):,} rows",
        loc="left",
    )
    ax.text(0.02, 0.97, "● inside its interval", color=SHARED, transform=ax.transAxes, va="top",
            fontsize="small")  # fmt: skip
    ax.text(0.02, 0.90, "▲ outside", color=MISSED, transform=ax.transAxes, va="top",
            fontsize="small")  # fmt: skip
    ax.set_xlabel("predicted")
    ax.set_ylabel("seen")
    return ax


def calibration(happened: ArrayLike, probability: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """How often something happened against its probability, in ten parts, with 90 % intervals."""
    ax = axes_or_new(ax)
    yes, p = np.asarray(happened, np.bool_), np.asarray(probability, np.float64)
    part = np.minimum((10.0 * p).astype(int), 9)
    for number in np.unique(part):
        there = part == number
        x, count = float(p[there].mean()), int(there.sum())
        ends = binomtest(int(yes[there].sum()), count).proportion_ci(0.9, "wilson")
        ax.vlines(x, ends.low, ends.high, color=SHARED, lw=2.0)
        ax.plot([x], [yes[there].mean()], "o", color=SHARED, markersize=6)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=INK, lw=0.8)
    ax.set_title(
        f"said {100 * p.mean():.1f} %, seen {100 * yes.mean():.1f} % of {len(p):,} rows", loc="left"
    )
    ax.set_xlabel("probability said")
    ax.set_ylabel("share seen")
    return ax
