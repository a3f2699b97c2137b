"""The report: one self-contained page with figures, final values, claims, settings and timings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from headstart._core.checks import Vector
from headstart.evaluation.page import picture, write_page
from headstart.experiments.claims import VERDICTS, Claim
from headstart.experiments.figures import PAPER_FIGURES, Results, title
from headstart.experiments.pieces import Curves
from headstart.experiments.published import PUBLISHED
from headstart.experiments.settings import Experiment

CAPTIONS = {
    "figure-1": "Synthetic data: the paper's method, each task alone, and the tasks' mean.",
    "figure-2": "Lenk data: the paper's method, and each task alone.",
    "figure-3": "Synthetic data: one pass (SGD) against exact solutions (ERM).",
    "figure-4": "Lenk data: one pass (SGD) against exact solutions (ERM).",
}
BANDS = "Bands are one standard deviation of the runs to both sides."
METHODS_TEXT = """
<p><b>ITL</b> learns each task alone, from the bias 0. <b>MEAN</b> starts from the environment's
mean, which nobody knows. <b>LTL</b> learns the bias online (Algorithm 2); of its two names the
first is how meta-gradients are computed, the second how a new task is solved: SGD is one pass
(Algorithm 1), ERM the exact solution. reg and step are chosen by validation tasks at each number of
tasks. <b>Pooled</b> is one linear model of all training rows with the same loss; it takes no notice
of a new task's rows. <b>Ridge LTL</b> is the best bias for the squared loss in closed form.
<b>Learned prior</b> learns bias, covariance and noise together, as headstart does by default, with
the squared loss, or the logistic one for classes. For classes compare these two by accuracy: they
do not minimise the hinge loss that is drawn. All three are learned again at a few numbers of tasks
and held between.</p>
"""


def write_report(
    path: Path,
    results: Results,
    claims: list[Claim],
    pictures: set[Path],
    notes: Sequence[str],
    not_done: Sequence[str],
) -> None:
    """Write the page, with those pictures inside that this run has drawn beside it."""

    def shown(folder: Path, captions: dict[str, str]) -> str:
        return "".join(
            f"<figure>{picture(caption, png.read_bytes())}<figcaption>{escape(caption)}"
            "</figcaption></figure>"
            for name, caption in captions.items()
            if (png := folder / f"{name}.png") in pictures
        )

    folder = path.parent
    body = ["<h1>Learning-to-Learn SGD with Biased Regularization: the experiments</h1>"]
    body += [f"<p class=fails>Not done: {escape(line)}</p>" for line in not_done]
    body += [f"<p>{escape(line)}</p>" for line in notes]
    body += [_claims_table(claims), "<h2>The methods</h2>", METHODS_TEXT]
    body.append(shown(folder, {name: f"{CAPTIONS[name]} {BANDS}" for name in PAPER_FIGURES}))
    for name, (experiment, curves) in results.items():
        body.append(f"<h2>{escape(name.replace('-', ' '))}</h2>")
        body.append(f"<p>{escape(experiment.source.about)}</p>")
        body.append(shown(folder / name, {"figure": _bands(experiment)}))
        body.append(_values_table(experiment, curves))
        body.append(_published_table(experiment, curves))
        chosen = "What validation chose: medians, and where half of the runs are."
        body.append(shown(folder / name, {"chosen": chosen}))
        body.append(_settings(experiment))
    sweep = shown(folder / "sweep", {"gains": "Bars are 95 % intervals of the mean."})
    if sweep:
        body.append(f"<h2>When sharing pays: the gain of LTL over ITL</h2>{sweep}")
    write_page(path, "headstart: the experiments", "".join(body))


def _bands(experiment: Experiment) -> str:
    if experiment.seeds == 1:
        return "Test loss against training tasks; one run."
    return (
        f"Test loss against training tasks: means of {experiment.seeds} runs, and bands of one "
        "standard deviation of the runs to both sides. What leaves a frame is cut."
    )


def _claims_table(claims: list[Claim]) -> str:
    if not claims:
        return ""
    rows = "".join(
        f"<tr><td>{escape(c.experiment)}<td class=text>{escape(c.statement)}"
        f"<td class=text>{escape(c.allowed)}<td class=text>{escape(c.numbers)}"
        f"<td class={c.verdict}>{c.verdict}"
        for c in claims
    )
    words = "; ".join(f"<b>{word}</b>: {escape(text)}" for word, text in VERDICTS.items())
    return (
        "<h2>What the paper claims</h2><table><tr><th>experiment<th class=text>claim"
        "<th class=text>taken to mean<th class=text>numbers, after the last task<th>verdict"
        f"{rows}</table><p>Differences are taken run by run, and their mean has the 95 % interval "
        f"in brackets. {words}.</p>"
    )


def _values_table(experiment: Experiment, curves: dict[str, Curves]) -> str:
    rows = []
    for method, runs in curves.items():
        cells = [_with_error(runs.loss[:, -1])]
        if runs.accuracy.shape[1]:
            cells.append(_with_error(runs.accuracy[:, -1]))
        cells += [_chosen(runs.reg[:, -1]), _chosen(runs.step[:, -1])]
        cells.append(f"{runs.seconds.mean():.2f}")
        rows.append(f"<tr><td>{title(method)}" + "".join(f"<td>{c}" for c in cells))
    accuracy = "<th>accuracy" if experiment.classifies else ""
    error = " ± standard error" if experiment.seeds > 1 else ", one run"
    return (
        f"<table><tr><th>after {experiment.n_tasks} tasks<th>{escape(experiment.loss)} loss{error}"
        f"{accuracy}<th>reg<th>step<th>seconds a run{''.join(rows)}</table>"
        "<p>reg and step are the medians of what validation chose; seconds are without compiling."
        "</p>"
    )


def _with_error(values: Vector) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{values.mean():.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def _chosen(values: Vector) -> str:
    middle = float(np.quantile(values, 0.5, method="nearest"))
    return "" if math.isnan(middle) else f"{middle:.2g}"


def _published_table(experiment: Experiment, curves: dict[str, Curves]) -> str:
    """Ours beside the published values, at the same number of tasks."""
    rows = [
        f"<tr><td>{title(method)}<td>{'any' if tasks is None else tasks}<td>{value}"
        f"<td>{_with_error(curves[method].loss[:, tasks or 0])}"
        for method, tasks, value in PUBLISHED.get(experiment.name, [])
        if method in curves and (tasks or 0) <= experiment.n_tasks
    ]
    if not rows:
        return ""
    ours = (
        "so did this run"
        if experiment.order == "resample"
        else "this run took each row once, as the paper says, which changes ITL most"
    )
    return (
        f"<table><tr><th>published<th>tasks<th>theirs<th>ours{''.join(rows)}</table><p>Theirs were "
        "read off the published plots, which drew the rows of a task with replacement "
        f"(--order resample); {ours}.</p>"
    )


def _settings(e: Experiment) -> str:
    rows = (
        "as many rows to learn from and to test on as the data has"
        if e.n_shots is None
        else f"{e.n_shots} rows to learn from and {e.n_queries} to test on"
    )
    return (
        f"<p>{e.n_tasks} training, {e.n_valid} validation and {e.n_test} test tasks; {rows}; reg "
        f"and step from {e.grid_size} values each in [{e.grid_low:g}, {e.grid_high:g}], chosen "
        f"online; rows {'each once, in order' if e.order == 'stream' else 'drawn with replacement'}"
        f"; {e.seeds} {'repetitions' if e.seeds > 1 else 'repetition'}.</p>"
    )
