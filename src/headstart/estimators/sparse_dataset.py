"""Learning from a dataset of sparse rows, which a prior keeps as they are."""

from __future__ import annotations

from headstart._core.checks import FloatArray
from headstart.estimators.inputs import Labels, as_numbers
from headstart.meta.prior.goal import MAX_TASKS
from headstart.online import PriorSettings, SparseStream
from headstart.online.stream import Chunk
from headstart.parquet import ParquetRows
from headstart.parquet.sparse_sample import read_sparse
from headstart.tasks.ids import read_ids


def learn_sparse(
    rows: ParquetRows, classes: Labels | None, settings: PriorSettings, n_jobs: int
) -> SparseStream:
    """The prior of those entities with the smallest hashes, whose rows are kept while learning."""
    X, y, ids = read_sparse(rows, MAX_TASKS)
    labels = as_numbers(y, classes, rows.dtype)
    settings.loss.check_labels(labels)
    stream = SparseStream(settings, rows.n_features, rows.dtype)
    inside: FloatArray = X  # type: ignore[assignment]
    stream.fit(Chunk(inside, labels, read_ids(rows.group, ids)), n_jobs)
    return stream.without_entities()
