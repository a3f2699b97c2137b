"""Effects of features: the shared one, how far entities differ from it, and who is unusual."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from headstart._core.checks import Vector, check_count
from headstart.estimators.meta import Meta
from headstart.plot.style import (
    FAINT,
    GREEN,
    INK,
    MISSED,
    ORANGE,
    PAPER,
    PINK,
    SHARED,
    Label,
    apart,
    axes_or_new,
)
from headstart.tasks.ids import canonical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = [(GREEN, "P"), (ORANGE, "X"), (PINK, "v"), (SHARED, "o"), (MISSED, "^")]
MOST_FEATURES, MOST_DOTS = 12, 150
LEVEL = "(level)"


class Effects:
    """Effects of a typical step of each feature, the strongest first, and the level last.

    The level is what is predicted where all features are at their mean; here it is 0 where the
    shared one is, because it says nothing of a step.
    """

    def __init__(self, model: Meta) -> None:
        prior = model.prior_
        start, self.columns = prior.standard, prior.columns
        shared, differs = start.bias, np.sqrt(start.variances)
        slopes = self.columns.centre.size
        size = np.hypot(shared, differs)[:slopes]
        order = np.argsort(-size, kind="stable")[:MOST_FEATURES]
        self.left_out = slopes - len(order)
        names = list(model.bias_by_feature())
        self.names = [names[j] for j in order]
        self.step = self.columns.scale[order]
        if self.columns.intercept:
            order, self.names = np.append(order, slopes), [*self.names, LEVEL]
            self.step = np.append(self.step, 1.0)
        self.order: NDArray[np.int64] = order
        self.shared, self.differs = shared[order], differs[order]
        self.zero = np.zeros(len(order))  # what stands at 0 on the axis
        self.level = 0.0
        if self.columns.intercept:
            self.zero[-1] = self.shared[-1]
            self.level = float(self.columns.level)
        self.model = model

    def own(self) -> tuple[list[Hashable], Vector]:
        """All known entities, and their own effects on the axis."""
        keys = list(self.model.ids_)
        if not keys:
            raise ValueError("model: expected entities with own weights, found none")
        stream = self.model.stream()
        weights, place = stream.weights(np.array(stream.ids.find(keys), np.int64))
        standard = self.columns.standard(np.asarray(weights[place], np.float64)[:, : self._width])
        return keys, standard[:, self.order]

    @property
    def _width(self) -> int:
        return int(self.columns.width)

    @property
    def places(self) -> NDArray[np.int64]:
        """The rows of the picture, from the top."""
        return np.arange(len(self.names))[::-1]

    def scaled(self, own: Vector) -> Vector:
        """How far own effects are from the shared ones, in standard deviations of entities."""
        return np.asarray((own - self.shared) / self.differs)

    def most_unusual(self, own: Vector) -> NDArray[np.int64]:
        """Places of entities, the furthest from the shared effects in any of them first."""
        return np.argsort(-np.abs(self.scaled(own)).max(axis=1), kind="stable")

    def in_units(self, effect: float, j: int) -> float:
        """An effect of one unit of feature number j, or the level itself."""
        return float(effect / self.step[j] + (self.level if self.names[j] == LEVEL else 0.0))

    def text(self, j: int) -> str:
        """The shared effect of one unit, and the standard deviation of entities."""
        return f"{self.in_units(self.shared[j], j):.3g} ± {self.differs[j] / self.step[j]:.2g}"


def effects(model: Meta, *, ax: Axes | None = None, target: str = "the target") -> Axes:
    """The shared effect of each feature, and how far entities differ in it.

    A thick line holds the middle two thirds of entities, a thin one nine in ten. Of many features
    the twelve with the largest effects are shown.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier with a learned prior
    ax : matplotlib axes, optional
    target : what is predicted, for the axis

    Examples
    --------
    >>> from headstart import MetaRegressor
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(40), 10), rng.standard_normal((400, 1))
    >>> y = rng.normal(4.0, 0.5, 40)[ids] * X[:, 0] + rng.standard_normal(400)
    >>> ax = effects(MetaRegressor().fit(X, y, groups=ids))
    >>> print(*(text.get_text() for text in ax.get_yticklabels()))
    x0 (level)
    """
    ax, known = axes_or_new(ax), Effects(model)
    middle, places = known.shared - known.zero, known.places
    for reach, width in ((float(ndtri(0.95)), 1.2), (1.0, 4.5)):
        half = reach * known.differs
        ax.hlines(places, middle - half, middle + half, color=SHARED, lw=width)
    ax.plot(middle, places, "o", color=SHARED, markersize=7, markeredgecolor=PAPER)
    _feature_axis(ax, known, target)
    beside = ax.get_yaxis_transform()
    for j, place in enumerate(places):
        ax.text(1.02, place, known.text(j), transform=beside, va="center", color=INK)
    ax.text(1.02, places[0] + 0.5, "of one unit:", transform=beside, va="bottom", color=FAINT)
    return ax


def entities(
    model: Meta,
    ids: Sequence[Hashable] | None = None,
    *,
    ax: Axes | None = None,
    target: str = "the target",
) -> Axes:
    """The own effects of entities around the shared one; a few of them by name.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier with a learned prior
    ids : the entities to name; the three most unusual by default
    ax : matplotlib axes, optional
    target : what is predicted, for the axis
    """
    ax, known = axes_or_new(ax), Effects(model)
    keys, own = known.own()
    if ids is None:
        named = known.most_unusual(own)[:3].tolist()
    else:
        at = {key: number for number, key in enumerate(keys)}
        if unknown := [i for i in ids if canonical(i) not in at]:
            raise KeyError(f"{unknown[0]!r} is no known id")
        named = [at[canonical(i)] for i in ids]
    own, middle, places = own - known.zero, known.shared - known.zero, known.places
    some = own[:: max(1, len(own) // MOST_DOTS)]
    for j, place in enumerate(places):
        ax.plot(some[:, j], np.full(len(some), place), "|", color=FAINT, alpha=0.5, markersize=10)
    ax.plot(middle, places, "D", color=INK, markersize=6, zorder=4)
    labels: dict[int, list[Label]] = {0: [(float(middle[0]), "shared", INK)]}
    for number, entity in enumerate(named):
        color, marker = NAMED[number % len(NAMED)]
        ax.plot(own[entity], places, color=color, marker=marker, markersize=6, lw=1.0, zorder=3)
        j = int(np.argmax(np.abs((own[entity] - middle) / known.differs)))
        labels.setdefault(j, []).append((float(own[entity, j]), str(keys[entity]), color))
    _feature_axis(ax, known, target)
    for j, row in labels.items():
        _label_row(ax, row, places[j] + 0.25)
    return ax


def unusual(model: Meta, *, most: int = 10, ax: Axes | None = None) -> Axes:
    """The entities that are furthest from the shared start, and in which effect.

    How far is counted in standard deviations of the entities' own effects.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier with a learned prior
    most : how many entities
    ax : matplotlib axes, optional
    """
    ax, known = axes_or_new(ax), Effects(model)
    keys, own = known.own()
    top = known.most_unusual(own)[: check_count("most", most)]
    scaled = known.scaled(own[top])
    column = np.argmax(np.abs(scaled), axis=1)
    places = np.arange(len(top))[::-1]
    for place, entity, j, row in zip(places, top, column, scaled, strict=True):
        z = float(row[j])
        ax.hlines(place, 0.0, z, color=SHARED, lw=1.5)
        ax.plot([z], [place], "o", color=SHARED, markersize=7)
        there, shared = known.in_units(own[entity, j], j), known.in_units(known.shared[j], j)
        ax.annotate(
            f"{known.names[j]} {there:.3g}, shared {shared:.3g}", (0.0, place),
            (-6 if z > 0.0 else 6, 0), textcoords="offset points",
            ha="right" if z > 0.0 else "left", va="center", color=INK, fontsize="small",
        )  # fmt: skip
    ax.axvline(0.0, color=FAINT, lw=0.8)
    ax.set_yticks(places, [str(keys[entity]) for entity in top])
    reach = 1.12 * float(np.abs(scaled).max(initial=1.0))
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-0.7, len(top) - 0.3)
    ax.set_xlabel("from the shared effect, in standard deviations of entities")
    return ax


def _feature_axis(ax: Axes, known: Effects, target: str) -> None:
    """Features as rows, and an axis for effects of a typical step."""
    ax.axvline(0.0, color=FAINT, lw=0.8, zorder=0)
    ax.set_yticks(known.places, known.names)
    ax.set_ylim(-0.7, len(known.names) - 0.3)
    odds = "log-odds of " if known.model.prior_.loss.binary else ""
    more = f" ({known.left_out} weaker features not shown)" if known.left_out else ""
    ax.set_xlabel(f"change in {odds}{target} for a typical step{more}")


def _label_row(ax: Axes, labels: Sequence[Label], height: float) -> None:
    """Write names above their marks in a row, none over another."""
    low, high = ax.get_xlim()
    width = ax.get_figure().get_size_inches()[0] * 72.0  # type: ignore[union-attr]
    longest = max(len(text) for _, text, _ in labels)
    places = apart([(x - low) / (high - low) for x, _, _ in labels], 9.0 * (longest + 1) / width)
    for place, (_, text, color) in zip(places, labels, strict=True):
        ax.text(low + place * (high - low), height, text, color=color, ha="center", va="bottom")
    ax.set_xlim(low, high)
