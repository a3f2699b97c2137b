"""``headstart predict``: a prediction for every row of a table or a dataset."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from headstart._core.checks import check_number
from headstart.cli.console import mistakes, print_line
from headstart.cli.dataset import AnyMeta, Source, adapt_dataset, check_target, only_of_datasets
from headstart.cli.options import (
    BatchRows,
    Data,
    Jobs,
    ModelFolder,
    ResultsFile,
    Scheduler,
    Trust,
    Version,
    Versions,
    split_names,
)
from headstart.cli.rows import read_for
from headstart.cli.tables import ArrowColumn, TableError, refuse_itself, write_table
from headstart.estimators import MetaClassifier, load_model
from headstart.jobs import PREDICTION


def predict(
    model: ModelFolder,
    data: Data,
    out: ResultsFile,
    target: Annotated[
        str | None,
        typer.Option(help="For a dataset: every task is adapted to its rows that have it."),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="For a dataset: columns to write too, with commas.")
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Also the ends that hold this share of labels, such as 0.9."),
    ] = None,
    trust: Trust = False,
    batch_rows: BatchRows = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    version: Version = 0,
    versions: Versions = None,
) -> None:
    """Predict every row: by its entity's own weights, or by the bias if the id is new.

    Two classes come with their probabilities.
    """
    source = Source(data, batch_rows, scheduler, jobs)
    with mistakes(data):
        refuse_itself(data, out)
        loaded = load_model(model, version, trust)
        if target is not None:
            check_target(loaded, target)
        if source.in_batches:
            _check_interval(loaded, interval)
            if target is None:
                raise TableError(
                    "--target: a dataset's tasks are adapted to their rows with a label before "
                    "they are predicted; name the column"
                )
            columns = tuple(split_names(keep) or ())
            shares = isinstance(loaded, MetaClassifier) and hasattr(loaded, "predict_proba")
            index = adapt_dataset(
                *(loaded, source, target, out, versions),
                weights=False,
                predictions=True,
                std=shares,
                interval=interval,
                keep=columns,
            )
            print_line(f"{index.rows} predictions of {index.tasks} tasks: {out}")
            return
        only_of_datasets(keep=keep, versions=versions)
        if target is not None:
            print_line(
                "--target: is not looked at in a table; of a dataset tasks are adapted to it"
            )
        group, rows = str(loaded.group), read_for(loaded, data)
        found = _answers(loaded, rows.with_ids(group), interval)
        if group in found:
            raise TableError(f"the predictions have a column {group!r} themselves")
        ids = {} if rows.ids is None else {group: rows.ids}
        write_table(pa.table({**ids, **found}), out)
    start = "" if loaded.ids_ else ", all from the start: the model knows no entity"
    print_line(f"{len(rows.X)} predictions{start}: {out}")


def _answers(model: AnyMeta, X: pa.Table, interval: float | None) -> dict[str, ArrowColumn]:
    """Predictions by name of column, with ends of intervals or probabilities."""
    _check_interval(model, interval)
    found: dict[str, ArrowColumn] = {PREDICTION: pa.array(model.predict(X))}
    if isinstance(model, MetaClassifier):
        if hasattr(model, "predict_proba"):  # other losses than the logistic give none
            columns = zip(model.classes_.tolist(), model.predict_proba(X).T, strict=True)
            found |= {f"probability of {label}": pa.array(share) for label, share in columns}
    elif interval is not None:
        low, high = model.predict_interval(X, coverage=interval).T
        found |= {"low": pa.array(low), "high": pa.array(high)}
    return found


def _check_interval(model: AnyMeta, interval: float | None) -> None:
    """Raise if intervals are asked for that the model has not."""
    if interval is None:
        return
    check_number("--interval", interval, above=0.0, below=1.0)
    if isinstance(model, MetaClassifier):
        raise TableError("--interval: classes have probabilities, which are written anyway")
    if not hasattr(model, "predict_interval"):
        raise TableError("--interval: the model was fitted with a number for reg, without one")
