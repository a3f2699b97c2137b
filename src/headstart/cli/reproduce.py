"""``headstart reproduce``: the paper's experiments."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from headstart._core.checks import cores
from headstart._core.places import local
from headstart.cli.console import NOT_DONE, STOPPED, WRONG, console, mistakes, print_line, stop
from headstart.cli.dataset import workers_at
from headstart.cli.options import Scheduler, split_names
from headstart.cli.progress import progress_bar
from headstart.experiments import EXPERIMENTS, METHODS
from headstart.experiments.figures import title
from headstart.experiments.reproduce import Outcome, Request
from headstart.experiments.reproduce import reproduce as run_experiments
from headstart.experiments.settings import PAPER, configured, cut_short
from headstart.tasks import ORDERS


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help=f"Any of: {', '.join(EXPERIMENTS)}. The paper's four if none."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(help=f"Any of: {', '.join(METHODS)}; with commas, or given again."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions of each.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Training tasks.")] = None,
    quick: Annotated[bool, typer.Option(help="A look in about a minute.")] = False,
    order: Annotated[str, typer.Option(help="stream (the paper) or resample.")] = "stream",
    out: Annotated[str, typer.Option(help="Where to write.", metavar="FOLDER")] = "results",
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once; as many as cores.")] = None,
    scheduler: Scheduler = None,
) -> None:
    """The paper's experiments: curves, figures and a report.

    Started again with the same arguments it goes on from what is finished.
    """
    names = _chosen("experiment", experiments, list(EXPERIMENTS), list(PAPER))
    asked = _chosen("method", methods, list(METHODS), list(METHODS))
    if order not in ORDERS:
        stop(f"--order: expected one of {', '.join(ORDERS)}, found {order}", WRONG)
    with (
        mistakes(),
        workers_at(scheduler) as workers,
        progress_bar(console) as progress,
    ):
        folder = local("--out", out)
        bar = progress.add_task("experiments", total=None)
        chosen = [configured(name, seeds, tasks, quick, order) for name in names]
        request = Request(
            chosen,
            asked,
            folder,
            jobs or workers.threads or cores(),
            print_line,
            lambda cost: progress.advance(bar, cost),
            lambda total: progress.update(bar, total=total),
            workers.executor,
            tuple(note for e in chosen if (note := cut_short(e, tasks))),
        )
        try:
            outcome = run_experiments(request)
        except KeyboardInterrupt:
            stop(f"stopped; finished pieces are in {out}, the same command goes on", STOPPED)
        except OSError as error:
            place = error.filename or out
            stop(f"{place}: {error.strerror or error}; finished pieces are kept", WRONG)
    _print_outcome(outcome)
    print_line(f"report: {folder / 'report.html'}")
    if outcome.not_done:
        raise typer.Exit(NOT_DONE)


def _chosen(what: str, texts: list[str] | None, known: list[str], usual: list[str]) -> list[str]:
    """The names that the user asked for, in the order in which they are known; else the usual."""
    names = split_names(texts) or usual
    for name in names:
        if name not in known:
            stop(f"{what}: expected any of {', '.join(known)}, found {name}", WRONG)
    return [name for name in known if name in names]


def _print_outcome(outcome: Outcome) -> None:
    """A table of the final values, and the verdict on each of the paper's claims."""
    table = Table("experiment", "method", "tasks", "loss", "accuracy")
    for name, (experiment, curves) in outcome.results.items():
        for method, runs in curves.items():
            hits = f"{runs.accuracy[:, -1].mean():.3f}" if runs.accuracy.shape[1] else ""
            final = f"{runs.loss[:, -1].mean():.3f}"
            table.add_row(name, title(method), str(experiment.n_tasks), final, hits)
    console.print(table)
    for claim in outcome.claims:
        print_line(f"{claim.verdict:7}  {claim.experiment}: {claim.statement} ({claim.numbers})")
