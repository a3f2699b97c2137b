"""The experiments from beginning to end: what ``headstart reproduce`` does.

`run` is for one's own: an experiment of any tasks, with the same curves, figures and report.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from pathlib import Path

import numpy as np

from headstart._core.checks import Vector, check_count
from headstart._core.files import clear_asides, write_aside
from headstart._core.places import local
from headstart.datasets import DataUnavailableError
from headstart.experiments.claims import Claim, Interval, check_claims, check_gains
from headstart.experiments.figures import (
    PAPER_FIGURES,
    draw,
    draw_chosen,
    draw_paper,
    draw_sweep,
    save_figure,
)
from headstart.experiments.methods import METHODS, Method, check_methods, get_method, methods_of
from headstart.experiments.pieces import Curve, Curves, Piece, PieceFolder, run_pieces
from headstart.experiments.report import write_report
from headstart.experiments.settings import PAPER, Experiment, config_of, draw_data, sweep

SWEEP_METHODS: list[str | Method] = ["itl-sgd", "ltl-sgd-sgd"]
SPREAD, ROWS = "standard deviation of tasks", "rows of a task"

Variants = list[tuple[float, Experiment]]


@dataclass(frozen=True)
class Request:
    """What is to be run: experiments with their settings, methods, where to, on how many cores."""

    experiments: list[Experiment]
    methods: Sequence[str | Method]
    out: Path
    n_jobs: int = 1
    say: Callable[[str], None] = print
    advance: Callable[[float], None] = lambda _: None  # called with the cost of what was done
    announce: Callable[[float], None] = lambda _: None  # called once with the cost of everything
    executor: Executor | None = None  # who runs the pieces, if not threads of this process
    notes: tuple[str, ...] = ()  # for the report


@dataclass
class Outcome:
    """What came of it."""

    results: dict[str, tuple[Experiment, dict[str, Curves]]] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    not_done: list[str] = field(default_factory=list)
    pictures: set[Path] = field(default_factory=set)


def run(
    experiments: Experiment | Iterable[Experiment],
    methods: Sequence[str | Method] | None = None,
    out: str | Path = "results",
    n_jobs: int = 1,
) -> Outcome:
    """Run experiments of one's own: curves, figures and a report in the folder `out`.

    Started again with the same arguments it goes on from what is finished.

    Parameters
    ----------
    experiments : Experiment, or several with names of their own
    methods : sequence of str or Method, optional
        Names in `METHODS`, and methods of one's own; all of `METHODS` if not given.
    out : str or Path
    n_jobs : int
        Pieces at once.

    Returns
    -------
    Outcome
        ``results`` has for each experiment the `Curves` of every method.

    Examples
    --------
    >>> import tempfile
    >>> from headstart.environments import RegressionEnvironment
    >>> from headstart.experiments import Drawn, Experiment
    >>> uneven = RegressionEnvironment(n_features=2, center=(4.0, 0.0), task_std=(0.1, 2.0))
    >>> mine = Experiment("uneven", "huber", Drawn(uneven), 20, 10, 10, seeds=1, grid_size=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = run(mine, ["itl-sgd", "prior"], folder)
    >>> _, curves = outcome.results["uneven"]
    >>> print(curves["itl-sgd"].loss[0, -1] > curves["prior"].loss[0, -1])
    True

    A method may be one's own: here one that leaves each new task where it starts.

    >>> from headstart.experiments import Method
    >>> def stay(X, y, bias, reg, loss):
    ...     return bias, [loss.subgradient(x @ bias, label) for x, label in zip(X, y)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = run(mine, ["ltl-sgd-sgd", Method("stay", "ltl", "sgd", stay)], folder)
    >>> _, curves = outcome.results["uneven"]
    >>> print(curves["stay"].loss[0, -1] > curves["ltl-sgd-sgd"].loss[0, -1])
    True
    """
    asked = [experiments] if isinstance(experiments, Experiment) else list(experiments)
    names = [e.name for e in asked]
    if not asked or len(set(names)) < len(names):
        raise ValueError(f"experiments: expected some, each with its own name, found {names}")
    chosen = check_methods(methods or METHODS)
    return reproduce(Request(asked, chosen, local("out", out), check_count("n_jobs", n_jobs)))


def reproduce(request: Request) -> Outcome:
    """Run everything asked for, write its files, and say what could not be done."""
    outcome = Outcome()
    ready = []
    for folder in ("", "sweep", *(e.name for e in request.experiments)):
        clear_asides(request.out / folder)  # of a run that was killed
    for experiment in request.experiments:
        try:
            draw_data(experiment, 0)
            ready.append(experiment)
        except DataUnavailableError as error:
            outcome.not_done.append(f"{experiment.name}: {error}")
            request.say(outcome.not_done[-1])
    for note in request.notes:
        request.say(note)
    comparable = set(SWEEP_METHODS) <= set(request.methods)
    swept = [e for e in ready if e.name == "synthetic-regression" and comparable]
    variants = [variant for e in swept for variant in sweep(e)]

    curves = _compute(request, ready, [e for _, e in variants])
    for experiment in ready:
        results = {
            get_method(method).name: Curves.of(_repetitions(curves, experiment, method))
            for method in methods_of(experiment, request.methods)
        }
        outcome.results[experiment.name] = experiment, results
        outcome.pictures |= _write_results(request.out / experiment.name, experiment, results)
        if experiment.name in PAPER:
            losses = {m: runs.loss for m, runs in results.items()}
            outcome.claims += check_claims(experiment, losses)
    if variants:
        found = _gains(variants, curves)
        outcome.pictures.add(_write_sweep(request.out / "sweep", found))
        outcome.claims += [
            check_gains("spread", "the gain grows as the tasks' spread shrinks", found[SPREAD]),
            check_gains("n", "the gain grows as tasks get smaller", found[ROWS]),
        ]
    for name in PAPER_FIGURES:
        figure = draw_paper(name, outcome.results)
        if figure is not None:
            outcome.pictures.add(save_figure(figure, request.out, name))
    write_report(
        request.out / "report.html",
        outcome.results,
        outcome.claims,
        outcome.pictures,
        request.notes,
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


def _repetitions(
    curves: dict[Piece, Curve], experiment: Experiment, method: str | Method
) -> list[Curve]:
    return [curves[Piece(experiment, method, seed)] for seed in range(experiment.seeds)]


def _write_results(folder: Path, experiment: Experiment, results: dict[str, Curves]) -> set[Path]:
    """``curves.csv``, ``chosen.csv``, ``config.json`` and the figures, which are returned."""
    for name, write in (("curves.csv", _write_curves), ("chosen.csv", _write_chosen)):
        write_aside(folder / name, partial(write, experiment=experiment, results=results))
    config = {**config_of(experiment), "methods": list(results)}
    text = json.dumps(config, indent=2) + "\n"
    write_aside(folder / "config.json", methodcaller("write_text", text))
    pictures = {save_figure(draw(experiment, results), folder)}
    chosen = draw_chosen(experiment, results)
    return pictures if chosen is None else pictures | {save_figure(chosen, folder, "chosen")}


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


def _write_chosen(path: Path, experiment: Experiment, results: dict[str, Curves]) -> None:
    """What validation chose; an empty cell where a method has no such thing."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["experiment", "method", "seed", "tasks", "reg", "step"])
        for method, runs in results.items():
            for seed, (regs, steps) in enumerate(zip(runs.reg, runs.step, strict=True)):
                rows.writerows(
                    [experiment.name, method, seed, t, *("" if v != v else repr(v) for v in pair)]
                    for t, *pair in zip(
                        runs.tasks.tolist(), regs.tolist(), steps.tolist(), strict=True
                    )
                )


def _gains(variants: Variants, curves: dict[Piece, Curve]) -> dict[str, dict[float, Vector]]:
    """By how much LTL is below ITL in each run, by what varies and how much of it there is."""

    def gains(e: Experiment) -> Vector:
        itl, ltl = (
            np.array([curve.loss[-1] for curve in _repetitions(curves, e, method)])
            for method in SWEEP_METHODS
        )
        return np.asarray(itl - ltl, np.float64)

    usual = next(e for std, e in variants if std == 1.0)
    return {
        SPREAD: {std: gains(e) for std, e in variants if e.n_shots == usual.n_shots},
        ROWS: {float(e.n_shots or 0): gains(e) for std, e in variants if std == 1.0},
    }


def _write_sweep(folder: Path, found: dict[str, dict[float, Vector]]) -> Path:
    """``gains.csv`` and its figure."""

    def write(path: Path) -> None:
        with path.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["varies", "at", "seed", "gain"])
            for what, values in found.items():
                for key, runs in values.items():
                    rows.writerows([what, key, i, repr(v)] for i, v in enumerate(runs.tolist()))

    write_aside(folder / "gains.csv", write)
    intervals = {
        what: {key: Interval.of(runs) for key, runs in values.items()}
        for what, values in found.items()
    }
    return save_figure(draw_sweep(intervals), folder, "gains")
