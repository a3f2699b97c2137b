"""Passes over many tasks: the same bits for any number of threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, run_blocks
from headstart.inner.posterior.dense import LANES, dense_pass
from headstart.inner.posterior.evidence import Evidence, packed_size
from headstart.inner.posterior.low_rank import low_rank_pass
from headstart.inner.posterior.sparse import side_by_side, sparse_pass, start_moments
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.posterior.state import Moments, Out, Sums, nothing_but_sums
from headstart.inner.start import Start
from headstart.losses import Loss

AnyEvidence = Evidence | SparseEvidence

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAST, CHUNKS = 8 * LANES, 64  # tasks summed by themselves, and parts that are added in order
WIDE_CHUNKS = 8  # parts where sums are as long as there are columns, which are many
SETTLING_PASSES, SETTLED = (
    100,
    1e-7,
)  # until no prediction moves by more, in its standard deviations


class Totals(NamedTuple):
    """Sums over all tasks, see `Sums`."""

    V: Vector
    D: Vector
    F: Matrix
    at_start: float
    fit: float
    log_det: float

    def log_likelihood(self, start: Start, loss: Loss, n_rows: float) -> float:
        """Of all labels, or its bound."""
        value = -0.5 * (self.at_start / start.noise - self.fit + self.log_det)
        return value if loss.binary else value - n_rows * loss.log_normaliser(start.noise)


class Plan(NamedTuple):
    """Which tasks are taken which way, and the chunks they are summed in."""

    dense: list[Counts]
    low_rank: list[Counts]
    sparse: list[Counts]


def plan(e: AnyEvidence) -> Plan:
    """Tasks of few rows by the size of their rows, the others by that of their columns."""
    if isinstance(e, SparseEvidence):
        return Plan([], [], _chunks(np.arange(e.n_tasks), WIDE_CHUNKS))
    few = (e.slot < 0) & (np.diff(e.offsets) < e.width / 2)
    return Plan(_chunks(np.flatnonzero(~few)), _chunks(np.flatnonzero(few)), [])


def _chunks(tasks: Counts, most: int = CHUNKS) -> list[Counts]:
    size = max(LEAST, LANES * -(-len(tasks) // (LANES * most)))
    return [tasks[i : i + size] for i in range(0, len(tasks), size)]


def first_moments(e: AnyEvidence, start: Start, loss: Loss) -> Moments:
    """Predictions of every row as the prior has them; none where they are not needed."""
    if loss.is_squared:
        return Moments(np.empty(0), np.empty(0), np.empty(0), 1.0)
    pace = 1.0 if loss.bounded else 0.5
    if isinstance(e, SparseEvidence):
        mean, variance = np.empty(len(e.y)), np.empty(len(e.y))
        start_moments(e, start, mean, variance)
        return Moments(mean, variance, np.zeros(e.n_tasks), pace)
    starts = np.repeat(start.of(e.side), np.diff(e.offsets), axis=0)
    scaled = e.X * start.variances if len(start.covariance) == 0 else e.X @ start.covariance
    mean, variance = (np.einsum("ij,ij->i", e.X, other) for other in (starts, scaled))
    return Moments(mean, variance, np.zeros(e.n_tasks), pace)


def take_pass(
    e: AnyEvidence,
    way: Plan,
    start: Start,
    loss: Loss,
    moments: Moments,
    n_jobs: int = 1,
    out: Out | None = None,
) -> Totals:
    """One pass: posteriors under the moments as they are, which are then brought up to date."""
    k, r = start.effects.shape
    width = k if len(start.covariance) == 0 else packed_size(k)
    count = sum(map(len, way))
    sparse = isinstance(e, SparseEvidence)
    both = np.zeros((count, width, 2) if sparse else (2, count, width))
    V, D = (both[..., 0], both[..., 1]) if sparse else both  # see `side_by_side`
    sums = Sums(V, D, np.zeros((0 if sparse else count, k, r)), np.zeros((count, 3)))
    start = side_by_side(start) if sparse else start
    form, seen = loss.form, None if loss.is_squared else moments
    wanted = nothing_but_sums(k) if out is None else out

    def work(first: int, last: int) -> None:
        for chunk in range(first, last):
            if isinstance(e, SparseEvidence):
                sparse_pass(e, start, form, moments, way.sparse[chunk], sums, chunk, wanted)
            elif chunk < len(way.dense):
                tasks = way.dense[chunk]
                dense_pass(e, start, form, seen, tasks, sums, chunk, wanted)
            else:
                tasks = way.low_rank[chunk - len(way.dense)]
                low_rank_pass(e, start, form, seen, tasks, sums, chunk, wanted)

    run_blocks(work, count, n_jobs)
    totals = sums.totals.sum(axis=0)
    return Totals(sums.V.sum(axis=0), sums.D.sum(axis=0), sums.F.sum(axis=0), *totals.tolist())


def settle(
    e: AnyEvidence, way: Plan, start: Start, loss: Loss, moments: Moments, n_jobs: int = 1
) -> None:
    """Passes until the moments of all rows are those of the posterior.

    A task that has settled is left alone, so that its moments do not depend on the others'.
    """
    if loss.is_squared:
        return
    for _ in range(SETTLING_PASSES):
        take_pass(e, way, start, loss, moments, n_jobs, nothing_but_sums(e.width, apart=True))
        way = Plan(*(_moving(chunks, moments) for chunks in way))
        if not any(way):
            return


def _moving(chunks: list[Counts], moments: Moments) -> list[Counts]:
    """The tasks whose moments have not settled."""
    left = [tasks[moments.change[tasks] > SETTLED] for tasks in chunks]
    return [tasks for tasks in left if tasks.size]


def posteriors(
    e: Evidence, start: Start, loss: Loss, *, covariance: bool = False, n_jobs: int = 1
) -> tuple[Matrix, Matrix, Moments]:
    """Weights of all tasks, their packed covariances if asked for, and the moments of the rows."""
    k, T = e.X.shape[1], len(e.slot)
    way, moments = plan(e), first_moments(e, start, loss)
    settle(e, way, start, loss, moments, n_jobs)
    out = Out(np.empty((T, k)), np.empty((T * covariance, packed_size(k))), True)
    take_pass(e, way, start, loss, moments, n_jobs, out)
    return out.W, out.V, moments


def sparse_posteriors(
    e: SparseEvidence, start: Start, loss: Loss, n_jobs: int = 1
) -> tuple[Vector, Moments]:
    """How far each task's columns went from the start, as `e.columns` has them; and the moments."""
    way, moments = plan(e), first_moments(e, start, loss)
    settle(e, way, start, loss, moments, n_jobs)
    out = Out(np.empty((1, len(e.columns))), np.empty((0, 0)), True)
    take_pass(e, way, start, loss, moments, n_jobs, out)
    return out.W[0], moments


@kernel
def quadratic_forms(X: Matrix, V: Matrix, task: Counts) -> Vector:
    """``x^T V x`` of every row, with the packed matrix of its task."""
    out = np.empty(len(X))
    for i in range(len(X)):
        t, place, total = task[i], 0, 0.0
        for j in range(X.shape[1]):
            off = 0.0
            for m in range(j):
                off += V[t, place + m] * X[i, m]
            total += X[i, j] * (2.0 * off + V[t, place + j] * X[i, j])
            place += j + 1
        out[i] = max(total, 0.0)
    return out
