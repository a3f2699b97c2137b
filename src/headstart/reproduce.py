"""The paper's experiments from settings to report: what ``headstart reproduce`` does."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from pathlib import Path

import numpy as np

from headstart._files import write_aside
from headstart.claims import Claim, check_claims, check_gains
from headstart.datasets import DataUnavailableError
from headstart.experiments import (
    EXPERIMENTS,
    METHODS,
    Curve,
    Experiment,
    Piece,
    Store,
    draw_data,
    methods_of,
    run_pieces,
    settings,
)
from headstart.figures import Curves, draw, save_figure, write_report

SPREADS, ROWS = (0.5, 1.0, 2.0, 4.0), (10, 40, 160)
SWEEP_METHODS = ["itl-sgd", "ltl-sgd-sgd"]


@dataclass(frozen=True)
class Request:
    """What is to be run: experiments with their settings, methods, where to, on how many cores."""

    experiments: list[Experiment]
    methods: list[str]
    out: Path
    n_jobs: int = 1
    say: Callable[[str], None] = print
    advance: Callable[[float], None] = lambda _: None  # told the cost of what was done
    announce: Callable[[float], None] = lambda _: None  # told the cost of all of it
    executor: Executor | None = None  # who runs the pieces, if not threads of this process


@dataclass
class Outcome:
    """What came of it."""

    results: dict[str, tuple[Experiment, dict[str, Curves]]] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    not_done: list[str] = field(default_factory=list)


def configured(
    name: str, seeds: int | None, tasks: int | None, quick: bool, order: str
) -> Experiment:
    """An experiment of the paper with what the user changed of it."""
    experiment = replace(EXPERIMENTS[name], order=order)
    if quick and experiment.has_mean:
        experiment = replace(experiment, n_tasks=100, n_valid=30, n_test=50, seeds=2)
    elif quick:
        experiment = replace(experiment, grid_size=10, seeds=3)
    if tasks is not None:
        limit = EXPERIMENTS[name].n_tasks if not experiment.has_mean else tasks
        experiment = replace(experiment, n_tasks=min(tasks, limit))
    return experiment if seeds is None else replace(experiment, seeds=seeds)


def sweep(base: Experiment) -> list[Experiment]:
    """Small variants of the synthetic regression: tasks more or less alike, larger or smaller."""
    small = replace(base, n_tasks=min(200, base.n_tasks), seeds=min(3, base.seeds))
    variants = [replace(small, task_std=s) for s in SPREADS]
    return variants + [replace(small, n_shots=n) for n in ROWS if n != small.n_shots]


def reproduce(request: Request) -> Outcome:
    """Run everything asked for, write its files, and say what could not be done."""
    outcome = Outcome()
    ready = []
    for experiment in request.experiments:
        try:
            draw_data(experiment, 0)
            ready.append(experiment)
        except DataUnavailableError as error:
            outcome.not_done.append(f"{experiment.name}: {error}")
            request.say(outcome.not_done[-1])
    wanted = set(SWEEP_METHODS) <= set(request.methods)
    extra = [v for e in ready if e.name == "synthetic-regression" and wanted for v in sweep(e)]
    jobs = [(e, request.out / e.name, request.methods) for e in ready]
    jobs += [(v, request.out / "sweep", SWEEP_METHODS) for v in extra]

    stores = {e: Store(folder, e, request.say) for e, folder, _ in jobs}
    pieces = [
        Piece(e, m, seed) for e, _, ms in jobs for m in methods_of(e, ms) for seed in range(e.seeds)
    ]
    request.announce(sum(_cost(piece) for piece in pieces))
    curves: dict[Piece, Curve] = {}
    for piece, curve in run_pieces(pieces, stores, request.n_jobs, request.executor):
        curves[piece] = curve
        request.advance(_cost(piece))

    for e, folder, _ in jobs[: len(ready)]:
        methods = methods_of(e, request.methods)
        gathered = {m: _gather([curves[Piece(e, m, s)] for s in range(e.seeds)]) for m in methods}
        outcome.results[e.name] = e, gathered
        write_aside(folder / "curves.csv", partial(_write_curves, experiment=e, curves=gathered))
        text = json.dumps(settings(e, methods), indent=2) + "\n"
        write_aside(folder / "config.json", methodcaller("write_text", text))
        save_figure(draw(e, gathered), folder)
        outcome.claims += check_claims(e, {m: runs.loss for m, runs in gathered.items()})
    outcome.claims += _sweep_claims(extra, curves)
    write_report(
        request.out / "report.html",
        outcome.results,
        outcome.claims,
        lambda name: request.out / name / "figure.png",
        outcome.not_done,
    )
    return outcome


def _cost(piece: Piece) -> float:
    e = piece.experiment
    evaluations = e.n_tasks * e.n_valid * e.grid_size**2
    return METHODS[piece.method].cost * evaluations * (e.n_shots + e.n_queries) / 1e8


def _gather(curves: list[Curve]) -> Curves:
    return Curves(
        curves[0].tasks,
        np.array([c.loss for c in curves]),
        np.array([c.accuracy for c in curves]),
        np.array([c.seconds for c in curves]),
    )


def _write_curves(path: Path, experiment: Experiment, curves: dict[str, Curves]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["experiment", "method", "seed", "tasks", "metric", "value"])
        for method, runs in curves.items():
            for seed in range(len(runs.loss)):
                for metric, values in (("loss", runs.loss), ("accuracy", runs.accuracy)):
                    rows.writerows(
                        [experiment.name, method, seed, t, metric, repr(v)]
                        for t, v in zip(runs.tasks.tolist(), values[seed].tolist(), strict=False)
                    )


def _sweep_claims(variants: list[Experiment], curves: dict[Piece, Curve]) -> list[Claim]:
    if not variants:
        return []

    def gain(e: Experiment) -> float:
        itl, ltl = (
            np.mean([curves[Piece(e, m, s)].loss[-1] for s in range(e.seeds)])
            for m in SWEEP_METHODS
        )
        return float(itl - ltl)

    usual = next(e for e in variants if e.task_std == 1.0)
    spreads = {e.task_std: gain(e) for e in variants if e.n_shots == usual.n_shots}
    rows = {float(e.n_shots): gain(e) for e in variants if e.task_std == usual.task_std}
    return [
        check_gains("spread", "the gain grows as the tasks' spread shrinks", spreads),
        check_gains("n", "the gain grows as tasks get smaller", rows),
    ]
