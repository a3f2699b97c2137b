"""The command line: the paper's experiments, and models on tables in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from headstart._checks import cores
from headstart.cli_jobs import (
    AnyMeta,
    adapt_dataset,
    cluster_of,
    fit_dataset,
    is_dataset,
    open_dataset,
    progress_bar,
)
from headstart.diagnosis import diagnose
from headstart.estimators import MetaClassifier, MetaRegressor, load_model
from headstart.estimators.dataset import start_only, weights_after
from headstart.experiments import EXPERIMENTS, METHODS
from headstart.figures import title, write_diagnosis
from headstart.ids import encode
from headstart.parquet import ParquetRows
from headstart.reproduce import Outcome, Request, configured, reproduce
from headstart.tables import TableError, numbers_of, read_columns, read_table, write_table
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
    scheduler: Scheduler = None,
) -> None:
    """The paper's experiments: curves, figures and a report.

    Started again with the same arguments it goes on from what is finished.
    """
    names = _chosen("experiment", experiments, list(EXPERIMENTS))
    asked = _chosen("method", methods, list(METHODS))
    if order not in ORDERS:
        _stop(f"--order: expected one of {', '.join(ORDERS)}, found {order}", WRONG)
    with (
        _mistakes(),
        cluster_of(scheduler) as (client, executor),
        progress_bar(console) as progress,
    ):
        bar = progress.add_task("experiments", total=None)
        if client is not None and jobs is None:
            jobs = sum(client.nthreads().values())
        request = Request(
            [configured(name, seeds, tasks, quick, order) for name in names],
            asked,
            out,
            cores() if jobs is None else jobs,
            lambda line: progress.console.print(line, highlight=False, soft_wrap=True),
            lambda cost: progress.advance(bar, cost),
            lambda total: progress.update(bar, total=total),
            executor,
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


Group = Annotated[str, typer.Option(help="The column that says whose row it is.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
Features = Annotated[
    str | None, typer.Option(help="Columns to predict from, with commas; all others if none.")
]
Classify = Annotated[bool, typer.Option(help="The target is two classes, though numbers.")]
Data = Annotated[
    Path,
    typer.Argument(help="Parquet, CSV or Arrow; or a folder of Parquet.", show_default=False),
]
Folder = Annotated[Path, typer.Argument(help="A folder made by fit.", show_default=False)]
BatchRows = Annotated[
    int | None, typer.Option(min=1, help="Read Parquet in batches of so many rows.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Partitions at once; all cores.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Of a Dask cluster to run on, tcp://...; else this machine.")
]


@app.command()
def fit(
    data: Data,
    group: Group,
    target: Target,
    out: Annotated[Path, typer.Option(help="The folder to write the model to.")],
    features: Features = None,
    classify: Classify = False,
    passes: Annotated[int, typer.Option(min=1, help="Times through the tasks.")] = 1,
    force: Annotated[bool, typer.Option(help="Replace a model that is there.")] = False,
    batch_rows: BatchRows = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Tasks of a round, with --scheduler.")
    ] = 256,
    scheduler: Scheduler = None,
) -> None:
    """Learn the bias and every entity's own weights; reg and step are chosen on the way.

    From a folder, with --batch-rows and with --scheduler, only the bias: adapt writes weights.
    """
    with _mistakes():
        if out.exists() and any(out.iterdir() if out.is_dir() else [out]) and not force:
            raise TableError(f"{out} exists; give another folder, or --force to replace a model")
        if is_dataset(data, batch_rows, scheduler):
            rows = open_dataset(data, group, target, _split(features), batch_rows)
            kind = MetaClassifier if classify or _is_text(rows.labels()) else MetaRegressor
            model = fit_dataset(kind(group=group, passes=passes), rows, scheduler, batch_size, out)
            model.save(out)
        else:
            table = read_columns(read_table(data), group, target, _split(features))
            kind = MetaClassifier if classify or _is_text(table.y) else MetaRegressor
            model = kind(group=group, passes=passes)
            model.fit(table.X.append_column(group, pa.array(table.ids)), table.y)
            model.save(out)
            sizes = np.unique(table.ids.astype(str), return_counts=True)[1]
            if lone := int(np.sum(sizes == 1)):
                told = f"{lone} of {sizes.size} groups have one row: their weights say little"
                console.print(told)
    _describe(model)
    console.print(f"model: {out}", highlight=False, soft_wrap=True)


@app.command()
def predict(
    model: Folder,
    data: Data,
    out: Annotated[Path, typer.Option(help="The file, or for a dataset the folder, to write.")],
    target: Annotated[
        str | None,
        typer.Option(help="For a dataset: every task is adapted to its rows that have it."),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="For a dataset: columns to write too, with commas.")
    ] = None,
    batch_rows: BatchRows = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Predict every row: by its entity's own weights, or by the bias if the id is new."""
    with _mistakes():
        loaded = load_model(model)
        if is_dataset(data, batch_rows, scheduler):
            if target is None:
                raise TableError(
                    "--target: a dataset's tasks are adapted to their rows with a label before "
                    "they are predicted; name the column"
                )
            rows = _dataset(loaded, data, target, batch_rows)
            what = {"weights": False, "predictions": True, "keep": tuple(_split(keep) or ())}
            index = adapt_dataset(loaded, rows, out, scheduler, jobs or cores(), **what)
            console.print(f"{index.rows} predictions of {index.tasks} tasks: {out}", soft_wrap=True)
            return
        table = read_table(data)
        X = numbers_of(table, list(loaded.feature_names_in_))
        kept = [name for name in (loaded.group,) if name in table.column_names]
        for name in kept:
            X = X.append_column(str(name), table[str(name)])
        found = pa.array(loaded.predict(X))
        write_table(table.select(kept).append_column("prediction", found), out)
    console.print(f"{len(X)} predictions: {out}", highlight=False, soft_wrap=True)


@app.command()
def adapt(
    model: Folder,
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(help="The file, or for a dataset the folder, to write.")],
    batch_rows: BatchRows = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Weights for new entities from a few of their rows; the model is left alone."""
    with _mistakes():
        loaded = load_model(model)
        if is_dataset(data, batch_rows, scheduler):
            rows = _dataset(loaded, data, target, batch_rows)
            index = adapt_dataset(loaded, rows, out, scheduler, jobs or cores())
            console.print(f"weights of {index.tasks} tasks: {out}", soft_wrap=True)
            return
        table = read_table(data)
        names = list(loaded.feature_names_in_)
        columns = read_columns(table, str(loaded.group), target, names)
        ids, entity = encode(str(loaded.group), columns.ids)
        sizes = np.bincount(entity[entity >= 0], minlength=len(ids))
        order = np.argsort(entity, kind="stable")[len(entity) - sizes.sum() :]
        X = np.ascontiguousarray(np.column_stack([columns.X[name] for name in names])[order])
        W = weights_after(start_only(loaded), X, columns.y[order], sizes)
        weights = [pa.array(ids), *map(pa.array, np.ascontiguousarray(W.T))]
        write_table(pa.table(weights, names=[str(loaded.group), *names, "intercept"]), out)
    console.print(f"weights of {len(ids)} entities: {out}", highlight=False, soft_wrap=True)


def _dataset(model: AnyMeta, data: Path, target: str, batch_rows: int | None) -> ParquetRows:
    names = [str(name) for name in model.feature_names_in_]
    return open_dataset(data, str(model.group), target, names, batch_rows)


@app.command("diagnose")
def diagnose_command(
    data: Data,
    group: Group,
    target: Target,
    features: Features = None,
    classify: Classify = False,
    shots: Annotated[int, typer.Option(min=1, help="Rows of a new task to learn from.")] = 8,
    out: Annotated[Path | None, typer.Option(help="A page to write, *.html.")] = None,
    scheduler: Scheduler = None,
) -> None:
    """Is sharing worth it here? Each task alone, all pooled, and headstart, on tasks held out."""
    with _mistakes():
        table = read_columns(read_table(data), group, target, _split(features))
        binary = classify or _is_text(table.y)
        with progress_bar(Console(stderr=True)) as progress, cluster_of(scheduler) as (_, workers):
            bar = progress.add_task("tasks held out", total=1.0)
            found = diagnose(
                *(table.X, table.y, table.ids),
                shots=shots,
                classify=binary,
                callback=lambda done: progress.update(bar, completed=done),
                executor=workers,
            )
        if out is not None:
            write_diagnosis(out, found, f"{data.name}: {target} by {group}")
    console.print(str(found), highlight=False, markup=False, soft_wrap=True)
    if out is not None:
        console.print(f"page: {out}", highlight=False, soft_wrap=True)


@app.command()
def info(model: Folder) -> None:
    """What a model has learned."""
    with _mistakes():
        _describe(load_model(model))


def _describe(model: AnyMeta) -> None:
    console.print(repr(model), highlight=False, markup=False, soft_wrap=True)
    table = Table("feature", "bias")
    for name, value in {**model.bias_by_feature(), "(intercept)": model.intercept_}.items():
        table.add_row(name, f"{value:.4g}")
    console.print(table)
    told = f"{len(model.ids_)} entities with own weights"
    hint = "" if model.ids_ else "; headstart adapt writes those of a dataset"
    console.print(told + hint, highlight=False, soft_wrap=True)


def _is_text(labels: NDArray[np.generic]) -> bool:
    return labels.dtype.kind in "OUSb"


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name for name in names.split(",") if name]


@contextmanager
def _mistakes() -> Iterator[None]:
    """A user's mistake, or a full disk, is one line and exit code 2."""
    try:
        yield
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        _stop(told, WRONG)
    except (ValueError, TypeError, RuntimeError) as error:
        _stop(str(error), WRONG)


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
