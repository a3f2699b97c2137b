"""Curves into figures. Nothing is computed here but means and bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter, SymmetricalLogLocator

from headstart._core.files import write_aside
from headstart.experiments.claims import Interval
from headstart.experiments.methods import METHODS
from headstart.experiments.pieces import Curves
from headstart.experiments.running import learning_times
from headstart.experiments.settings import Experiment
from headstart.plot.style import FAINT, GREEN, INK, MISSED, ORANGE, PINK, SHARED, SKY

Results = Mapping[str, tuple[Experiment, dict[str, Curves]]]

WIDTH = 7.0  # inches: the text of a page
NEAR = 1.75  # a method that ends at no more than so many times the best loss is near it


@contextmanager
def _style() -> Iterator[None]:
    """Sizes for print, and ids in SVG files that are the same for the same figure."""
    with rc_context(
        {
            "font.size": 8.0, "axes.titlesize": 8.5, "legend.fontsize": 7.5,
            "lines.linewidth": 1.3, "svg.hashsalt": "headstart",
        }
    ):  # fmt: skip
        yield


class Look(NamedTuple):
    """How a method is drawn; dashes and markers differ too, for print in black and white."""

    color: str
    dash: str | tuple[int, tuple[float, ...]]
    marker: str


LOOKS = {
    "itl-sgd": Look(MISSED, "solid", "s"),
    "itl-erm": Look(ORANGE, (0, (1, 1)), "D"),
    "mean-sgd": Look(INK, (0, (6, 2)), "^"),
    "mean-erm": Look(FAINT, (0, (3, 1, 1, 1)), "v"),
    "ltl-sgd-sgd": Look(SHARED, "solid", "o"),
    "ltl-erm-sgd": Look(SKY, (0, (4, 1.5)), "x"),
    "ltl-sgd-erm": Look(GREEN, (0, (2, 1)), "P"),
    "ltl-erm-erm": Look(PINK, (0, (5, 1, 1, 1)), "*"),
    "pooled": Look("#8c6d31", (0, (1, 2)), "<"),
    "ridge-ltl": Look("#5e4fa2", (0, (7, 1.5, 1.5, 1.5)), ">"),
    "prior": Look("#b10026", (0, (3, 1)), "h"),
}
OWN_LOOKS = (  # in turn, of methods of one's own
    Look("#1b7837", "solid", "d"),
    Look("#762a83", (0, (5, 1)), "p"),
    Look("#01665e", (0, (2, 2)), "X"),
    Look("#8c510a", (0, (4, 1, 1, 1)), "H"),
)
PAPER_FIGURES = {  # what they show: two experiments side by side, and which methods
    "figure-1": ("synthetic", ["itl-sgd", "mean-sgd", "ltl-sgd-sgd"]),
    "figure-2": ("lenk", ["itl-sgd", "ltl-sgd-sgd"]),
    "figure-3": ("synthetic", [m for m in METHODS if METHODS[m].evaluate_with]),
    "figure-4": ("lenk", [m for m in METHODS if METHODS[m].evaluate_with]),
}


def title(method: str) -> str:
    """A method's name as the paper writes it: ``LTL SGD-SGD``; one's own as it is."""
    if method not in METHODS:
        return method
    if not METHODS[method].evaluate_with:
        return {"pooled": "pooled", "ridge-ltl": "ridge LTL", "prior": "learned prior"}[method]
    kind, _, rest = method.upper().partition("-")
    return f"{kind} {rest}"


@_style()
def draw(experiment: Experiment, curves: dict[str, Curves]) -> Figure:
    """All methods of an experiment: everything, and enlarged where the best ones end."""
    figure = _figure(3.6)
    whole, near = figure.subplots(1, 2)
    _panel(whole, experiment, curves, logarithmic=True)
    whole.set_title(f"{experiment.name.replace('-', ' ')}, {_runs(curves)}")
    _enlarged(near, experiment, curves)
    _legend(figure, whole)
    return figure


@_style()
def draw_paper(name: str, results: Results) -> Figure | None:
    """A figure of the paper, two experiments side by side; None if neither was run.

    Where many methods are shown, a second row of panels enlarges where the best ones end.
    """
    data, methods = PAPER_FIGURES[name]
    names = [f"{data}-regression", f"{data}-classification"]
    shown = [results[n] for n in names if n in results and set(methods) & set(results[n][1])]
    many = len(methods) > 3
    exact = any(
        METHODS[m].evaluate_with == "erm" for _, curves in shown for m in methods if m in curves
    )
    if not shown or (many and not exact):  # without exact solutions it would be another figure
        return None
    figure = _figure(5.4 if many else 2.9)
    panels = figure.subplots(2 if many else 1, len(shown), squeeze=False)
    for column, (experiment, curves) in zip(panels.T, shown, strict=True):
        some = {m: runs for m, runs in curves.items() if m in methods}
        _panel(column[0], experiment, some, logarithmic=many)
        column[0].set_title(f"{experiment.name.partition('-')[2]}, {_runs(some)}")
        if many:
            _enlarged(column[1], experiment, some)
    _legend(figure, panels[0, 0])
    return figure


@_style()
def draw_chosen(experiment: Experiment, curves: dict[str, Curves]) -> Figure | None:
    """The reg and step that validation chose: medians, and where half of the runs are."""
    figure = _figure(3.0)
    panels = figure.subplots(1, 2)
    empty = True
    for axes, what in zip(panels, ("reg", "step"), strict=True):
        for method, runs in curves.items():
            values = getattr(runs, what)
            if np.isnan(values).any():
                continue
            empty = False
            look = _look(method, curves)
            every = _shown(experiment, method)[1:]  # nothing is learned at 0
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0, method="nearest")
            axes.plot(
                runs.tasks[every], middle[every], color=look.color, linestyle=look.dash,
                marker=look.marker, markersize=3.5, markevery=_sparse(every), label=title(method),
            )  # fmt: skip
            axes.fill_between(
                runs.tasks[every], low[every], high[every], color=look.color, alpha=0.12, lw=0
            )
        axes.set_yscale("log")
        _tasks_axis(axes, experiment, logarithmic=True)
        axes.set_xlim(1, max(experiment.n_tasks, 2))
        axes.set_title(f"chosen {what}")
    _legend(figure, panels[0])
    return None if empty else figure


@_style()
def draw_sweep(gains: dict[str, dict[float, Interval]]) -> Figure:
    """By how much LTL is below ITL, against what varies: means and 95 % intervals."""
    figure = _figure(2.6)
    for axes, (what, found) in zip(figure.subplots(1, len(gains)), gains.items(), strict=True):
        keys = sorted(found)
        means = [found[k].mean for k in keys]
        halves = np.nan_to_num([found[k].half for k in keys])  # one run has no error
        axes.errorbar(keys, means, halves, color=SHARED, marker="o", markersize=4, capsize=3)
        axes.axhline(0.0, color=FAINT, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks(keys, [f"{k:g}" for k in keys])
        axes.minorticks_off()
        axes.set(xlabel=what, ylabel="ITL minus LTL")
        axes.grid(alpha=0.25)
    return figure


def _figure(height: float) -> Figure:
    return Figure(figsize=(WIDTH, height), layout="constrained")


def _panel(
    axes: Axes, experiment: Experiment, curves: dict[str, Curves], *, logarithmic: bool
) -> None:
    """Test loss against the number of observed tasks: means, and one standard deviation."""
    for method, runs in curves.items():
        look, every = _look(method, curves), _shown(experiment, method)
        tasks = runs.tasks[every]
        mean, band = runs.loss.mean(axis=0)[every], runs.loss.std(axis=0)[every]
        axes.plot(
            tasks, mean, color=look.color, linestyle=look.dash, marker=look.marker,
            markersize=4, markevery=_sparse(every, logarithmic), label=title(method),
        )  # fmt: skip
        if len(runs.loss) > 1:
            axes.fill_between(tasks, mean - band, mean + band, color=look.color, alpha=0.1, lw=0)
    axes.set_ylabel(f"{experiment.loss} loss on new tasks")
    means = [runs.loss.mean(axis=0) for runs in curves.values()]
    low, high = axes.get_ylim()
    bottom, top = 0.8 * min(m.min() for m in means), 1.15 * max(m[0] for m in means)
    if top > bottom:  # what explodes is cut, and its band
        axes.set_ylim(max(low, bottom), min(high, top))
    _tasks_axis(axes, experiment, logarithmic=logarithmic)


def _enlarged(axes: Axes, experiment: Experiment, curves: dict[str, Curves]) -> None:
    """The heights in which the best methods end; each task alone is not among them."""
    _panel(axes, experiment, curves, logarithmic=True)
    axes.set_title("enlarged")
    ends = [r.loss[:, -1].mean() for m, r in curves.items() if not m.startswith("itl")]
    if ends and (floor := float(min(ends))) > 0.0:
        top = max(float(end) for end in ends if end <= NEAR * floor)
        pad = max(0.3 * (top - floor), 0.03 * floor)
        axes.set_ylim(floor - pad, top + 2.0 * pad)
    axes.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=1.0, base=10.0, subs=[1, 2, 5]))
    axes.set_xlim(experiment.n_tasks // 50, experiment.n_tasks)


def _tasks_axis(axes: Axes, experiment: Experiment, *, logarithmic: bool) -> None:
    axes.set_xlabel("number of training tasks")
    if logarithmic:
        axes.set_xscale("symlog", linthresh=1.0)
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_xlim(0, experiment.n_tasks)
    axes.grid(alpha=0.25)


def _shown(experiment: Experiment, method: str) -> np.ndarray:
    """Which numbers of tasks are drawn: of methods that learn at some of them, those."""
    if method in METHODS and not METHODS[method].evaluate_with:
        return learning_times(experiment.n_tasks)
    return np.arange(experiment.n_tasks + 1)


def _look(method: str, curves: dict[str, Curves]) -> Look:
    """That of the method; those of one's own have theirs in the order in which they were run."""
    if method in LOOKS:
        return LOOKS[method]
    own = [m for m in curves if m not in LOOKS]
    return OWN_LOOKS[own.index(method) % len(OWN_LOOKS)]


def _sparse(every: np.ndarray, logarithmic: bool = True) -> list[int]:
    """Where markers stand: at about equal distances."""
    last = len(every) - 1
    places = np.geomspace(1, last + 1, 7) - 1 if logarithmic else np.linspace(0, last, 7)
    return sorted(set(np.rint(places).astype(int).tolist()))


def _runs(curves: dict[str, Curves]) -> str:
    count = max((len(runs.loss) for runs in curves.values()), default=0)
    return f"{count} runs" if count > 1 else "one run"


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", frameon=False, ncols=min(len(labels), 6) or 1
    )


def save_figure(figure: Figure, folder: Path, name: str = "figure") -> Path:
    """PNG, SVG and PDF, the same bytes for the same curves; returns the path of the first."""
    with _style():
        for kind, dated in (("png", None), ("svg", "Date"), ("pdf", "CreationDate")):
            metadata = {} if dated is None else {dated: None}
            save = partial(figure.savefig, format=kind, dpi=200, metadata=metadata)
            write_aside(folder / f"{name}.{kind}", save)
    return folder / f"{name}.png"
