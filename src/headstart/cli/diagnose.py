"""``headstart diagnose``: whether sharing is worth it."""

from __future__ import annotations

from typing import Annotated

import typer

from headstart._core.files import clear_asides
from headstart._core.places import as_place
from headstart.cli.bases import on_base
from headstart.cli.console import error_console, mistakes, print_line
from headstart.cli.dataset import workers_at
from headstart.cli.options import (
    Base,
    Categorical,
    Classify,
    DataFile,
    Features,
    Group,
    Scheduler,
    Target,
    split_names,
)
from headstart.cli.progress import progress_bar
from headstart.cli.rows import Columns, read_rows
from headstart.cli.tables import are_classes, refuse_itself
from headstart.evaluation.advice import Source
from headstart.evaluation.diagnosis import diagnose as compare_ways
from headstart.evaluation.page import write_diagnosis


def diagnose(
    data: DataFile,
    group: Group,
    target: Target,
    features: Features = None,
    categorical: Categorical = None,
    classify: Classify = None,
    base: Base = None,
    shots: Annotated[int, typer.Option(min=1, help="Rows of a new task to learn from.")] = 8,
    out: Annotated[
        str | None, typer.Option(help="A page to write, *.html.", metavar="PATH")
    ] = None,
    scheduler: Scheduler = None,
) -> None:
    """Is sharing worth it here? Each task alone, all pooled, and headstart, on tasks held out."""
    with mistakes(data):
        refuse_itself(data, out)
        table = read_rows(data, Columns(group, target, features, None, categorical))
        classes = are_classes(target, table.y, classify)
        with progress_bar(error_console()) as progress, workers_at(scheduler) as workers:
            bar = progress.add_task("comparing", total=1.0 if out is None else 1.05)
            diagnosis = compare_ways(
                *(table.X, table.y, table.ids),
                shots=shots,
                classify=classes,
                estimators=on_base(base, binary=classes),
                callback=lambda done: progress.update(bar, completed=done),
                executor=workers.executor,
            )
            if out is not None:
                page = as_place(out)
                clear_asides(page.parent, page.name)  # of a command that was killed
                names = split_names(features), split_names(categorical)
                source = Source(str(data), group, target, *names, classes, base)
                write_diagnosis(page, diagnosis, source)
                progress.update(bar, completed=1.05)
    for line in str(diagnosis).splitlines():
        print_line(line)
    if out is not None:
        print_line(f"page: {out}")
