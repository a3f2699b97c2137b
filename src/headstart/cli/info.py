"""``headstart info``: what a model has learned, or what a run of ``adapt`` wrote."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from headstart._core.places import as_place
from headstart.cli.console import console, mistakes, print_line, shown
from headstart.cli.dataset import AnyMeta
from headstart.cli.options import Trust, Version
from headstart.cli.tables import TableError
from headstart.estimators import load_model
from headstart.estimators.state import run_of
from headstart.jobs import JobIndex, read_index
from headstart.jobs.notes import INDEX, JOB, read_runs
from headstart.store import read_versions
from headstart.store.version import PAGE

SHOWN = 5  # files of a kind


def info(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder made by fit, or by adapt or predict of a dataset.",
            metavar="PATH",
            show_default=False,
        ),
    ],
    version: Version = 0,
    trust: Trust = False,
) -> None:
    """What a model has learned, or a run over a dataset wrote, and the versions there are."""
    with mistakes():
        folder = as_place(model)
        if (folder / INDEX).exists() and not (folder / PAGE).exists():
            describe_run(read_index(folder, version))
            print_versions([index.run.started for index in read_runs(folder)])
        elif (folder / JOB).exists():
            raise TableError(f"{model}: a job is not finished; the same command goes on with it")
        else:
            describe(load_model(model, version, trust))
            runs = [run_of(about) for about in read_versions(folder)]
            print_versions(["" if run is None else run.started for run in runs])


def print_versions(started: list[str]) -> None:
    """Print the versions there are, by when their runs began, if there are several."""
    if len(started) > 1:
        shown = (f"{k} {text}".rstrip() for k, text in enumerate(started))
        print_line(f"{len(started)} versions: {', '.join(shown)}")


def describe_run(index: JobIndex) -> None:
    """Print what a run wrote, how it went, and which files of the dataset were not as before."""
    run = index.run
    print_line(f"run {run.number}, {run.started}: {index.tasks} tasks of {index.rows} rows")
    print_line(f"{run.adapted} partitions adapted, {run.kept} kept")
    if run.number > 1 and not any(part.input for part in index.parts):
        print_line("rows of a task lie apart: where a file has changed, all are adapted again")
    print_line(f"{run.seconds:.1f} s, at most {run.peak_mb:.0f} MB in this process")
    for what in ("new", "changed", "gone"):
        files = getattr(run, what)
        if files:
            more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
            print_line(f"{len(files)} files {what}: {', '.join(files[:SHOWN])}{more}")


def describe(model: AnyMeta) -> None:
    """Print a model, what is shared by feature, and how many entities have own weights."""
    print_line(repr(model))
    names = [*model.bias_by_feature(), "(intercept)"]
    columns = {"shared effect": np.append(model.bias_, model.intercept_)}
    if model.reg == "auto":
        prior = model.prior_
        columns["differs by"] = np.sqrt(prior.variances)
        columns["worth rows"] = prior.worth
        if prior.side_effects is not None:
            more = zip(model.side or (), prior.side_effects.T, strict=True)
            columns |= {f"per {name}": effects for name, effects in more}
    table = Table("feature", *columns)
    # not strict: a prior without an intercept has no entry for it
    for name, *values in zip(names, *columns.values(), strict=False):
        table.add_row(shown(name), *(f"{value:.4g}" for value in values))
    console.print(table)
    hint = "" if model.ids_ else "; headstart adapt writes those of a dataset"
    print_line(f"{len(model.ids_)} entities with own weights{hint}")
    if model.run_ is not None:
        print_line(f"fitted {model.run_}")
