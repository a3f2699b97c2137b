"""The paper's experiments from settings to report: what ``headstart reproduce`` does."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from pathlib import Path

import numpy as np

from headstart._core.files import write_aside
from headstart._core.leftovers import clear_asides
from headstart.datasets import DataUnavailableError
from headstart.experiments.claims import Claim, check_claims, check_gains
from headstart.experiments.figures import draw, save_figure, write_report
from headstart.experiments.pieces import (
    Curve,
    Curves,
    Piece,
    PieceFolder,
    draw_data,
    run_pieces,
)
from headstart.experiments.settings import Experiment, config_of, methods_of, sweep

SWEEP_METHODS = ["itl-sgd", "ltl-sgd-sgd"]


@dataclass(frozen=True)
class Request:
    """What is to be run: experiments with their settings, methods, where to, on how many cores."""

    experiments: list[Experiment]
    methods: list[str]
    out: Path
    n_jobs: int = 1
    say: Callable[[str], None] = print
    advance: Callable[[float], None] = lambda _: None  # called with the cost of what was done
    announce: Callable[[float], None] = lambda _: None  # called once with the cost of everything
    executor: Executor | None = None  # who runs the pieces, if not threads of this process


@dataclass
class Outcome:
    """What came of it."""

    results: dict[str, tuple[Experiment, dict[str, Curves]]] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    not_done: list[str] = field(default_factory=list)


def reproduce(request: Request) -> Outcome:
    """Run everything asked for, write its files, and say what could not be done."""
    outcome = Outcome()
    ready = []
    clear_asides(request.out)  # of a run that was killed
    for experiment in request.experiments:
        clear_asides(request.out / experiment.name)
        try:
            draw_data(experiment, 0)
            ready.append(experiment)
        except DataUnavailableError as error:
            outcome.not_done.append(f"{experiment.name}: {error}")
            request.say(outcome.not_done[-1])
    comparable = set(SWEEP_METHODS) <= set(request.methods)
    swept = [e for e in ready if e.name == "synthetic-regression" and comparable]
    variants = [variant for e in swept for variant in sweep(e)]

    curves = _compute(request, ready, variants)
    for experiment in ready:
        results = {
            method: Curves.of(_repetitions(curves, experiment, method))
            for method in methods_of(experiment, request.methods)
        }
        outcome.results[experiment.name] = experiment, results
        _write_results(request.out / experiment.name, experiment, results)
        outcome.claims += check_claims(experiment, {m: runs.loss for m, runs in results.items()})
    outcome.claims += _sweep_claims(variants, curves)
    write_report(
        request.out / "report.html",
        outcome.results,
        outcome.claims,
        lambda name: request.out / name / "figure.png",
        outcome.not_done,
    )
    return outcome


def _compute(
    request: Request, experiments: list[Experiment], variants: list[Experiment]
) -> dict[Piece, Curve]:
    """The curves of all pieces; those of the sweep's variants are in a folder of their own."""
    jobs = [(e, request.out / e.name, methods_of(e, request.methods)) for e in experiments]
    jobs += [(variant, request.out / "sweep", SWEEP_METHODS) for variant in variants]
    folders = {e: PieceFolder(folder, e, request.say) for e, folder, _ in jobs}
    asked = (
        Piece(e, method, seed)
        for e, _, methods in jobs
        for method in methods
        for seed in range(e.seeds)
    )
    pieces = list(dict.fromkeys(asked))  # in a small run a variant may be the experiment itself
    request.announce(sum(piece.cost for piece in pieces))
    curves = {}
    for piece, curve in run_pieces(pieces, folders, request.n_jobs, request.executor):
        curves[piece] = curve
        request.advance(piece.cost)
    return curves


def _repetitions(curves: dict[Piece, Curve], experiment: Experiment, method: str) -> list[Curve]:
    return [curves[Piece(experiment, method, seed)] for seed in range(experiment.seeds)]


def _write_results(folder: Path, experiment: Experiment, results: dict[str, Curves]) -> None:
    """``curves.csv``, ``config.json`` and the figures of one experiment."""
    write_curves = partial(_write_curves, experiment=experiment, results=results)
    write_aside(folder / "curves.csv", write_curves)
    text = json.dumps(config_of(experiment, list(results)), indent=2) + "\n"
    write_aside(folder / "config.json", methodcaller("write_text", text))
    save_figure(draw(experiment, results), folder)


def _write_curves(path: Path, experiment: Experiment, results: dict[str, Curves]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["experiment", "method", "seed", "tasks", "metric", "value"])
        for method, runs in results.items():
            for seed in range(len(runs.loss)):
                for metric, values in (("loss", runs.loss), ("accuracy", runs.accuracy)):
                    # not strict: a regression has no accuracies
                    rows.writerows(
                        [experiment.name, method, seed, t, metric, repr(v)]
                        for t, v in zip(runs.tasks.tolist(), values[seed].tolist(), strict=False)
                    )


def _sweep_claims(variants: list[Experiment], curves: dict[Piece, Curve]) -> list[Claim]:
    if not variants:
        return []

    def gain(e: Experiment) -> float:
        itl, ltl = (
            np.mean([curve.loss[-1] for curve in _repetitions(curves, e, method)])
            for method in SWEEP_METHODS
        )
        return float(itl - ltl)

    usual = next(e for e in variants if e.task_std == 1.0)
    by_std = {e.task_std: gain(e) for e in variants if e.n_shots == usual.n_shots}
    by_rows = {float(e.n_shots): gain(e) for e in variants if e.task_std == usual.task_std}
    return [
        check_gains("spread", "the gain grows as the tasks' spread shrinks", by_std),
        check_gains("n", "the gain grows as tasks get smaller", by_rows),
    ]
