"""``headstart adapt``: weights of new entities from a few of their rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart.cli.console import mistakes, print_line
from headstart.cli.dataset import AnyMeta, Source, adapt_dataset, check_target, only_of_datasets
from headstart.cli.options import (
    BatchRows,
    Data,
    Jobs,
    ModelFolder,
    ResultsFile,
    Scheduler,
    Target,
    Trust,
    Version,
    Versions,
)
from headstart.cli.rows import read_for
from headstart.cli.tables import TableError, different_ids, refuse_itself, write_table
from headstart.estimators import MetaClassifier, load_model
from headstart.estimators.inputs import Labels, as_signs
from headstart.tasks import TaskSet
from headstart.tasks.ids import Positions

INTERCEPT = "intercept"  # a column of the weights


def adapt(
    model: ModelFolder,
    data: Data,
    target: Target,
    out: ResultsFile,
    trust: Trust = False,
    batch_rows: BatchRows = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    version: Version = 0,
    versions: Versions = None,
) -> None:
    """Weights for new entities from a few of their rows; the model is left alone."""
    source = Source(data, batch_rows, scheduler, jobs)
    with mistakes(data):
        refuse_itself(data, out)
        loaded = load_model(model, version, trust)
        check_target(loaded, target)
        if source.in_batches:
            index = adapt_dataset(loaded, source, target, out, versions)
            print_line(f"weights of {index.tasks} tasks: {out}")
            return
        only_of_datasets(versions=versions)
        group, names = str(loaded.group), list(loaded.bias_by_feature())
        if INTERCEPT in (group, *names):
            raise TableError(f"the weights have a column {INTERCEPT!r} of their own")
        rows = read_for(loaded, data, target)
        ids, entity = different_ids(group, rows.ids)
        X = np.column_stack([rows.X[str(name)] for name in loaded.feature_names_in_])
        y = _numbers(loaded, rows.y, target)
        tasks = TaskSet.from_arrays(X, y, entity)  # in the order of the ids
        W = loaded.adapt_tasks(tasks, _side(rows.X, loaded.side, entity))
        weights = [ids, *map(pa.array, np.ascontiguousarray(W.T))]
        write_table(pa.table(weights, names=[group, *names, INTERCEPT]), out)
    print_line(f"weights of {len(ids)} {'entity' if len(ids) == 1 else 'entities'}: {out}")


def _numbers(model: AnyMeta, labels: Labels | None, target: str) -> NDArray[np.float64]:
    """Labels as numbers, -1 and +1 for the two classes."""
    if labels is None:
        raise TableError(f"--target: there is no column {target!r}")
    if isinstance(model, MetaClassifier):
        return as_signs(labels, model.classes_)
    if labels.dtype.kind not in "fiub":
        raise TableError(f"column {target!r}: expected numbers, found {labels[0]!r}")
    return labels.astype(np.float64)


def _side(
    X: pa.Table, columns: Sequence[str | int] | None, entity: Positions
) -> NDArray[np.float64] | None:
    """What describes each entity, which its rows must agree on."""
    if columns is None:
        return None
    by_row = np.column_stack([X[str(name)] for name in columns])
    first = np.unique(entity, return_index=True)[1]
    differs = np.any(by_row != by_row[first][entity], axis=0)
    if differs.any():
        name = list(columns)[int(np.argmax(differs))]
        raise TableError(
            f"column {name!r}: expected one value for each entity, because it describes entities, "
            "found different ones"
        )
    return np.asarray(by_row[first])
