"""The command line: ``headstart reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from headstart._checks import cores
from headstart.experiments import EXPERIMENTS, METHODS
from headstart.figures import title
from headstart.reproduce import Outcome, Request, configured, reproduce
from headstart.tasks import ORDERS

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()
NOT_DONE, WRONG, STOPPED = 1, 2, 130


@app.callback()
def main() -> None:
    """Learn one starting point from many small tasks, and give every new task that head start."""


@app.command("reproduce")
def reproduce_command(
    experiments: Annotated[
        list[str] | None, typer.Argument(help=f"Any of: {', '.join(EXPERIMENTS)}. All if none.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(help=f"Any of: {', '.join(METHODS)}; with commas, or given again."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions of each.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Training tasks.")] = None,
    quick: Annotated[bool, typer.Option(help="A look in about a minute.")] = False,
    order: Annotated[str, typer.Option(help="stream (the paper) or resample.")] = "stream",
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(min=1, help="Pieces at once; all cores.")] = None,
) -> None:
    """The paper's experiments: curves, figures and a report.

    Started again with the same arguments it goes on from what is finished.
    """
    names = _chosen("experiment", experiments, list(EXPERIMENTS))
    asked = _chosen("method", methods, list(METHODS))
    if order not in ORDERS:
        _stop(f"--order: expected one of {', '.join(ORDERS)}, found {order}", WRONG)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        bar = progress.add_task("experiments", total=None)
        request = Request(
            [configured(name, seeds, tasks, quick, order) for name in names],
            asked,
            out,
            cores() if jobs is None else jobs,
            lambda line: progress.console.print(line, highlight=False, soft_wrap=True),
            lambda cost: progress.advance(bar, cost),
            lambda total: progress.update(bar, total=total),
        )
        try:
            outcome = reproduce(request)
        except KeyboardInterrupt:
            _stop(f"stopped; finished pieces are in {out}, the same command goes on", STOPPED)
        except OSError as error:
            where = error.filename or out
            _stop(f"{where}: {error.strerror or error}; finished pieces are kept", WRONG)
    _print(outcome)
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)
    if outcome.not_done:
        raise typer.Exit(NOT_DONE)


def _chosen(what: str, given: list[str] | None, known: list[str]) -> list[str]:
    names = [name for text in given or [] for name in text.split(",") if name] or known
    for name in names:
        if name not in known:
            _stop(f"{what}: expected any of {', '.join(known)}, found {name}", WRONG)
    return [name for name in known if name in names]


def _print(outcome: Outcome) -> None:
    table = Table("experiment", "method", "tasks", "loss", "accuracy")
    for name, (experiment, curves) in outcome.results.items():
        for method, runs in curves.items():
            hits = f"{runs.accuracy[:, -1].mean():.3f}" if runs.accuracy.shape[1] else ""
            final = f"{runs.loss[:, -1].mean():.3f}"
            table.add_row(name, title(method), str(experiment.n_tasks), final, hits)
    console.print(table)
    for claim in outcome.claims:
        line = f"{claim.verdict:5}  {claim.experiment}: {claim.statement} ({claim.numbers})"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _stop(line: str, code: int) -> NoReturn:
    Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(code)
