"""``headstart adapt``: weights of new entities from a few of their rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headstart.cli.console import mistakes, print_line
from headstart.cli.dataset import Source, adapt_dataset, check_target
from headstart.cli.options import BatchRows, Data, Jobs, ModelFolder, ResultsFile, Scheduler, Target
from headstart.cli.tables import (
    TableError,
    different_ids,
    read_columns,
    read_table,
    write_table,
)
from headstart.estimators import MetaClassifier, load_model
from headstart.estimators.inputs import as_signs
from headstart.tasks import TaskSet

INTERCEPT = "intercept"  # a column of the weights


def adapt(
    model: ModelFolder,
    data: Data,
    target: Target,
    out: ResultsFile,
    batch_rows: BatchRows = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Weights for new entities from a few of their rows; the model is left alone."""
    source = Source(data, batch_rows, scheduler, jobs)
    with mistakes(data):
        loaded = load_model(model)
        check_target(loaded, target)
        if source.in_batches:
            index = adapt_dataset(loaded, source, target, out)
            print_line(f"weights of {index.tasks} tasks: {out}")
            return
        group, names = str(loaded.group), list(loaded.feature_names_in_)
        table = read_columns(read_table(data, group), group, target, names)
        for name in (group, *names):
            if name == INTERCEPT:
                raise TableError(f"the weights have a column {INTERCEPT!r} of their own")
        ids, entity = different_ids(group, table.ids)
        X = np.column_stack([table.X[name] for name in names])
        y = table.y
        if isinstance(loaded, MetaClassifier):
            y = as_signs(y, loaded.classes_)
        elif y.dtype.kind not in "fiub":
            raise TableError(f"column {target!r}: expected numbers, found {y[0]!r}")
        W = loaded.adapt_tasks(TaskSet.from_arrays(X, y, entity))  # in the order of the ids
        weights = [ids, *map(pa.array, np.ascontiguousarray(W.T))]
        write_table(pa.table(weights, names=[group, *names, INTERCEPT]), out)
    print_line(f"weights of {len(ids)} entities: {out}")
