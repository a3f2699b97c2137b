"""Curves into figures and a report. Nothing is computed here but means and bands."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headstart._core.checks import Vector
from headstart._core.files import write_aside
from headstart.evaluation.page import picture, write_page
from headstart.experiments.claims import Claim
from headstart.experiments.pieces import Curves
from headstart.experiments.settings import METHODS, Experiment

# A colour for each kind of bias; dashes and markers differ too, for print in black and white.
COLORS = {"itl": "#b2182b", "mean": "#4d4d4d", "ltl": "#2166ac"}
DASHES = {
    "itl-sgd": (0, (6, 2)),
    "itl-erm": (0, (1, 1.5)),
    "mean-sgd": (0, (8, 2, 1, 2)),
    "mean-erm": (0, (3, 1, 1, 1)),
    "ltl-sgd-sgd": "solid",
    "ltl-erm-sgd": (0, (5, 1)),
    "ltl-sgd-erm": (0, (3, 2)),
    "ltl-erm-erm": (0, (1, 1)),
}
MARKERS = {
    "itl-sgd": "s", "itl-erm": "D", "mean-sgd": "^", "mean-erm": "v",
    "ltl-sgd-sgd": "o", "ltl-erm-sgd": "x", "ltl-sgd-erm": "+", "ltl-erm-erm": "*",
}  # fmt: skip


def title(method: str) -> str:
    """A method's name as the paper writes it: ``LTL SGD-SGD``."""
    kind, _, rest = method.upper().partition("-")
    return f"{kind} {rest}"


def draw(experiment: Experiment, curves: dict[str, Curves]) -> Figure:
    """Test loss against the number of observed tasks: means, and one standard deviation."""
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    for method, runs in curves.items():
        color = COLORS[METHODS[method].bias]
        mean, band = runs.loss.mean(axis=0), runs.loss.std(axis=0)
        axes.plot(
            runs.tasks, mean, color=color, linestyle=DASHES[method], linewidth=1.6,
            marker=MARKERS[method], markersize=5, markevery=max(1, len(runs.tasks) // 8),
            label=title(method),
        )  # fmt: skip
        axes.fill_between(runs.tasks, mean - band, mean + band, color=color, alpha=0.12, lw=0)
    axes.set_xlabel("number of training tasks")
    axes.set_ylabel(f"{experiment.loss} loss on new tasks")
    axes.set_title(f"{experiment.name.replace('-', ' ')}, {_runs(curves)} runs", fontsize=11)
    axes.set_xlim(0, experiment.n_tasks)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", frameon=False, ncols=4, fontsize=9)
    return figure


def _runs(curves: dict[str, Curves]) -> int:
    return max((len(runs.loss) for runs in curves.values()), default=0)


def save_figure(figure: Figure, folder: Path) -> None:
    """``figure.png`` and ``figure.svg``, the same bytes for the same curves."""
    with matplotlib.rc_context({"svg.hashsalt": "headstart"}):
        write_aside(folder / "figure.png", lambda p: figure.savefig(p, dpi=150))
        write_aside(
            folder / "figure.svg",
            lambda p: figure.savefig(p, format="svg", metadata={"Date": None}),
        )


def write_report(
    path: Path,
    results: dict[str, tuple[Experiment, dict[str, Curves]]],
    claims: list[Claim],
    figure_of: Callable[[str], Path],
    not_done: list[str],
) -> None:
    """One self-contained page: figures, final values, claims, settings and timings."""
    body = ["<h1>Learning-to-Learn SGD with Biased Regularization: the experiments</h1>"]
    body += [f"<p class=fails>Not done: {html.escape(line)}</p>" for line in not_done]
    body.append(_claims_table(claims))
    for name, (experiment, curves) in results.items():
        body.append(f"<h2>{html.escape(name.replace('-', ' '))}</h2>")
        body.append(picture(name, figure_of(name).read_bytes()))
        body.append(_values_table(experiment, curves))
        body.append(_settings(experiment))
    write_page(path, "headstart: the experiments", "".join(body))


def _claims_table(claims: list[Claim]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(c.experiment)}<td class=text>{html.escape(c.statement)}"
        f"<td class=text>{html.escape(c.numbers)}<td class={c.verdict}>{c.verdict}"
        for c in claims
    )
    return (
        "<h2>What the paper claims</h2><table><tr><th>experiment<th class=text>claim"
        f"<th class=text>numbers<th>verdict{rows}</table>"
    )


def _values_table(experiment: Experiment, curves: dict[str, Curves]) -> str:
    rows = []
    for method, runs in curves.items():
        cells = [_with_error(runs.loss[:, -1])]
        if runs.accuracy.shape[1]:
            cells.append(_with_error(runs.accuracy[:, -1]))
        cells.append(f"{runs.seconds.mean():.2f}")
        rows.append(f"<tr><td>{title(method)}" + "".join(f"<td>{c}" for c in cells))
    accuracy = "<th>accuracy" if experiment.loss == "hinge" else ""
    return (
        f"<table><tr><th>after {experiment.n_tasks} tasks<th>{experiment.loss} loss ± standard "
        f"error{accuracy}<th>seconds a run{''.join(rows)}</table>"
    )


def _with_error(values: Vector) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.4f} ± {error:.4f}"


def _settings(e: Experiment) -> str:
    return (
        f"<p>{e.n_tasks} training, {e.n_valid} validation and {e.n_test} test tasks; "
        f"{e.n_shots} rows to learn from and {e.n_queries} to test on; reg and step from "
        f"{e.grid_size} values each in [{e.grid_low:g}, {e.grid_high:g}], chosen online; "
        f"rows {'each once, in order' if e.order == 'stream' else 'drawn with replacement'}; "
        f"{e.seeds} repetitions.</p>"
    )
