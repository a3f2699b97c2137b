"""Learning from a dataset of sparse rows, which a prior keeps as they are."""

from __future__ import annotations

from headstart._core.answers import quietly
from headstart.estimators.inputs import Labels, as_numbers
from headstart.meta.prior.goal import Goal, learn_from
from headstart.meta.prior.shown import task_evidence
from headstart.online import PriorSettings, SparseStream
from headstart.online.own import warn_unsettled
from headstart.parquet import ParquetRows
from headstart.parquet.engine import Engine
from headstart.parquet.sparse_sample import read_sparse
from headstart.tasks import TaskSet


def learn_sparse(
    rows: ParquetRows,
    classes: Labels | None,
    settings: PriorSettings,
    goal: Goal,
    engine: Engine,
    partition_rows: int,
) -> SparseStream:
    """The prior of those entities with the smallest hashes, whose rows are kept while learning."""
    SparseStream(settings, rows.n_features, rows.dtype)  # refuses what sparse rows do not have
    X, y, ids = read_sparse(rows, goal.most, engine, partition_rows)
    tasks = TaskSet.from_arrays(X, as_numbers(y, classes, rows.dtype), ids)
    del X, y, ids  # which lie in another order
    n_tasks = len(tasks)
    with quietly():
        shown = task_evidence(tasks, settings.loss, settings.fit_intercept)
    del tasks  # its rows are not needed beside what they show
    prior = learn_from(shown, settings.loss, goal)
    warn_unsettled(prior)
    return SparseStream.of(prior, settings, rows.dtype, n_tasks)
