"""``headstart predict``: a prediction for every row of a table or a dataset."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from headstart.cli.console import mistakes, print_line
from headstart.cli.dataset import Source, adapt_dataset, check_target
from headstart.cli.options import (
    BatchRows,
    Data,
    Jobs,
    ModelFolder,
    ResultsFile,
    Scheduler,
    split_names,
)
from headstart.cli.tables import TableError, ids_of, numbers_of, read_table, write_table
from headstart.estimators import load_model
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
        str | None, typer.Option(help="For a dataset: columns to write too, with commas.")
    ] = None,
    batch_rows: BatchRows = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Predict every row: by its entity's own weights, or by the bias if the id is new."""
    source = Source(data, batch_rows, scheduler, jobs)
    with mistakes(data):
        loaded = load_model(model)
        if target is not None:
            check_target(loaded, target)
        if source.in_batches:
            if target is None:
                raise TableError(
                    "--target: a dataset's tasks are adapted to their rows with a label before "
                    "they are predicted; name the column"
                )
            columns = tuple(split_names(keep) or ())
            index = adapt_dataset(
                loaded, source, target, out, weights=False, predictions=True, keep=columns
            )
            print_line(f"{index.rows} predictions of {index.tasks} tasks: {out}")
            return
        group = str(loaded.group)
        if group == PREDICTION:
            raise TableError(f"the predictions are a column {PREDICTION!r} themselves")
        table = read_table(data, group)
        X = numbers_of(table, list(loaded.feature_names_in_))
        ids = table.select([])
        if group in table.column_names:
            ids = pa.table({group: ids_of(table, group)})
            X = X.append_column(group, ids[group])
        predictions = pa.array(loaded.predict(X))
        write_table(ids.append_column(PREDICTION, predictions), out)
    print_line(f"{len(X)} predictions: {out}")
