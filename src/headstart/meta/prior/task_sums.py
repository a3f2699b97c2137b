"""What learning asks of tasks: sums over all of them, wherever they are.

EM needs nothing else of its tasks: how many there are, all rows pooled, and after each pass the
sums of what was found for every task, of d² numbers. So tasks may lie in the memory of this
process (`LocalSums`) or in partitions that stay where their rows are (`headstart.meta.prior.all`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.inner.posterior.passes import (
    AnyEvidence,
    Totals,
    first_moments,
    plan,
    take_pass,
)
from headstart.inner.posterior.pooled import Pooled
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.posterior.state import Moments
from headstart.inner.start import Start
from headstart.losses import Loss

Matrix = NDArray[np.float64]


class Size(NamedTuple):
    """How much there is of tasks.

    Attributes
    ----------
    width : columns, that of ones included
    n_tasks, n_rows : rows by their weights
    side : ``(1, s)(1, s)^T`` of the tasks' side information s, its mean
    norm : about the mean square norm of a row
    precise : whether passes need the inverse of the covariance
    """

    width: int
    n_tasks: int
    n_rows: float
    side: Matrix
    norm: float
    precise: bool


class TaskSums(Protocol):
    """Tasks, of which sums can be asked."""

    @property
    def size(self) -> Size:
        """How much there is of them."""

    def pooled(self, width: int) -> Pooled:
        """As `Evidence.pooled`."""

    def first_moments(self, start: Start, loss: Loss) -> Moments:
        """Predictions of every row as a prior has them; none where they are not needed."""

    def take_pass(self, start: Start, loss: Loss, moments: Moments) -> Totals:
        """One pass over all tasks, which brings the moments up to date."""


class LocalSums:
    """Tasks in the memory of this process, passed over by so many threads."""

    def __init__(self, e: AnyEvidence, n_jobs: int = 1) -> None:
        self.e, self.n_jobs, self._plan = e, n_jobs, plan(e)

    @property
    def size(self) -> Size:
        """How much there is of them."""
        e = self.e
        side = e.side.T @ e.side / e.n_tasks
        return Size(e.width, e.n_tasks, e.n_rows, side, e.norm, bool(self._plan.dense))

    def pooled(self, width: int) -> Pooled:
        """As `Evidence.pooled`."""
        if isinstance(self.e, SparseEvidence):
            raise TypeError("e: expected dense rows; sparse ones are pooled by pooled_starts")
        return self.e.pooled(width)

    def first_moments(self, start: Start, loss: Loss) -> Moments:
        """Predictions of every row as a prior has them."""
        return first_moments(self.e, start, loss)

    def take_pass(self, start: Start, loss: Loss, moments: Moments) -> Totals:
        """One pass over all tasks."""
        return take_pass(self.e, self._plan, start, loss, moments, self.n_jobs)
