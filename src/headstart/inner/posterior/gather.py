"""The evidence of a task set: its rows in standard units, or their sums where those are smaller."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import ROWS_AT_ONCE, FloatArray, Vector
from headstart.inner.posterior.evidence import Evidence, packed_size, sum_rows
from headstart.inner.posterior.sparse_evidence import SparseEvidence, sparse_evidence
from headstart.inner.start import with_one
from headstart.losses import Loss
from headstart.tasks.columns import Columns
from headstart.tasks.sparse import Csr, kernel_view

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


def any_evidence(
    X: FloatArray | Csr,
    y: FloatArray,
    offsets: Counts,
    columns: Columns,
    loss: Loss,
    side: Matrix | None = None,
    weight: Vector | None = None,
) -> Evidence | SparseEvidence:
    """What these tasks have shown, whether their rows are dense or sparse."""
    if isinstance(X, np.ndarray):
        return evidence_of(X, y, offsets, columns, loss, side, weight)
    return sparse_evidence(kernel_view(X), y, offsets, columns, side, weight)


def evidence_of(
    X: FloatArray,
    y: FloatArray,
    offsets: Counts,
    columns: Columns,
    loss: Loss,
    side: Matrix | None = None,
    weight: Vector | None = None,
) -> Evidence:
    """What these tasks have shown. Rows of the squared loss are summed where there are many."""
    k, sizes = columns.width, np.diff(offsets)
    summed = (sizes >= k / 2) if loss.is_squared else np.zeros(len(sizes), np.bool_)
    slot = np.where(summed, np.cumsum(summed) - 1, -1)
    S = int(summed.sum())
    sums = np.zeros((S, packed_size(k))), np.zeros((S, k)), np.zeros(S), np.zeros(S)
    task = np.repeat(slot, sizes)
    kept = np.flatnonzero(task < 0)
    shares = np.ones(len(y)) if weight is None else weight
    for rows in _blocks(np.flatnonzero(task >= 0)):
        sum_rows(columns.rows(X[rows]), columns.labels(y[rows]), shares[rows], task[rows], *sums)
    inputs = np.empty((kept.size, k))
    for rows in _blocks(np.arange(kept.size)):
        inputs[rows] = columns.rows(X[kept[rows]])
    starts = np.append(0, np.cumsum(np.where(summed, 0, sizes)))
    known = with_one(side, len(sizes))
    return Evidence(inputs, columns.labels(y[kept]), shares[kept], starts, slot, *sums, known)


def _blocks(rows: Counts) -> list[Counts]:
    return [rows[i : i + ROWS_AT_ONCE] for i in range(0, len(rows), ROWS_AT_ONCE)]
