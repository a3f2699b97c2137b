"""Passes over many tasks: the same bits for any number of threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart._jit import run_blocks
from headstart.losses import Loss
from headstart.posterior.dense import LANES, dense_pass
from headstart.posterior.evidence import Evidence, packed_size
from headstart.posterior.low_rank import low_rank_pass
from headstart.posterior.state import Moments, Out, Start, Sums

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAST, CHUNKS = 8 * LANES, 64  # tasks summed by themselves, and parts that are added in order
PASSES, SETTLED = 100, 1e-7  # until no prediction moves by more, in its standard deviations


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


def plan(e: Evidence) -> Plan:
    """Tasks of few rows by the size of their rows, the others by that of their columns."""
    few = (e.slot < 0) & (np.diff(e.offsets) < e.X.shape[1] / 2)
    return Plan(_chunks(np.flatnonzero(~few)), _chunks(np.flatnonzero(few)))


def _chunks(tasks: Counts) -> list[Counts]:
    size = max(LEAST, LANES * -(-len(tasks) // (LANES * CHUNKS)))
    return [tasks[i : i + size] for i in range(0, len(tasks), size)]


def first_moments(e: Evidence, start: Start, loss: Loss) -> Moments:
    """Predictions of every row as the prior has them; none where they are not needed."""
    if loss.is_squared:
        return Moments(np.empty(0), np.empty(0), np.empty(0), 1.0)
    starts = np.repeat(e.side @ start.effects.T, np.diff(e.offsets), axis=0)
    spread = e.X * start.variances if len(start.covariance) == 0 else e.X @ start.covariance
    mean, variance = (np.einsum("ij,ij->i", e.X, other) for other in (starts, spread))
    return Moments(mean, variance, np.zeros(len(e.slot)), 1.0 if loss.bounded else 0.5)


def take_pass(
    e: Evidence,
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
    count = len(way.dense) + len(way.low_rank)
    sums = Sums(
        np.zeros((count, width)),
        np.zeros((count, width)),
        np.zeros((count, k, r)),
        np.zeros((count, 3)),
    )
    form = loss.form
    wanted = Out(np.empty((0, k)), np.empty((0, 0))) if out is None else out

    def work(first: int, last: int) -> None:
        for chunk in range(first, last):
            if chunk < len(way.dense):
                tasks = way.dense[chunk]
                dense_pass(e, start, form, moments, tasks, sums, chunk, wanted)
            else:
                tasks = way.low_rank[chunk - len(way.dense)]
                low_rank_pass(e, start, form, moments, tasks, sums, chunk, wanted)

    run_blocks(work, count, n_jobs)
    totals = sums.totals.sum(axis=0)
    return Totals(sums.V.sum(axis=0), sums.D.sum(axis=0), sums.F.sum(axis=0), *totals.tolist())


def settle(
    e: Evidence, way: Plan, start: Start, loss: Loss, moments: Moments, n_jobs: int = 1
) -> None:
    """Passes until the moments of all rows are those of the posterior."""
    if loss.is_squared:
        return
    for _ in range(PASSES):
        take_pass(e, way, start, loss, moments, n_jobs)
        if moments.change.max(initial=0.0) <= SETTLED:
            return


def posteriors(
    e: Evidence, start: Start, loss: Loss, *, covariance: bool = False, n_jobs: int = 1
) -> tuple[Matrix, Matrix, Moments]:
    """Weights of all tasks, their packed covariances if asked for, and the moments of the rows."""
    k, T = e.X.shape[1], len(e.slot)
    way, moments = plan(e), first_moments(e, start, loss)
    settle(e, way, start, loss, moments, n_jobs)
    out = Out(np.empty((T, k)), np.empty((T * covariance, packed_size(k))))
    take_pass(e, way, start, loss, moments, n_jobs, out)
    return out.W, out.V, moments
