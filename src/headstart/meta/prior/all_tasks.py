"""All tasks of a dataset, which stay where their rows are: only sums of d² numbers travel.

Each partition has whole tasks. What they have shown is read once, in units of their own; when the
units of all rows are known it is turned into these, in place. For the squared loss alone: other
losses keep their rows.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.blas import one_blas_thread
from headstart._core.checks import Vector
from headstart.inner.posterior.evidence import (
    Evidence,
    packed,
    packed_size,
    together,
    unpacked,
)
from headstart.inner.posterior.passes import Plan, Totals, plan, take_pass
from headstart.inner.posterior.pooled import Pooled
from headstart.inner.posterior.state import Moments
from headstart.inner.start import Start
from headstart.losses import Loss
from headstart.meta.prior.dataset import Reading, refuse_other_side
from headstart.meta.prior.gathered import Gathered
from headstart.meta.prior.kept import FIRST, RowMoments
from headstart.meta.prior.sums import move
from headstart.meta.prior.task_sums import Size
from headstart.parquet import Block, Partition, read_partition
from headstart.parquet.blocks import Batch
from headstart.parquet.draw import LARGEST, nameless_hashes, runs_of, side_columns
from headstart.parquet.engine import Engine, Held, Parts
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]
Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]

NOTHING = Moments(np.empty(0), np.empty(0), np.empty(0), 1.0)


class Units(NamedTuple):
    """The units of rows, and of what is known of tasks."""

    columns: Columns
    side: Columns


class PartEvidence:
    """What the tasks of a partition have shown, in the units that were last asked for.

    `hashes` are those of their ids, of a row without one the largest.
    """

    def __init__(self, e: Evidence, units: Units, hashes: Hashes) -> None:
        self._e, self._units, self.hashes = e, units, hashes
        self.way: Plan = plan(e)
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of it."""
        return sum(part.nbytes for part in (*self._e, self.hashes))

    @property
    def n_nameless(self) -> int:
        """How many tasks are a row without an id."""
        return int(np.count_nonzero(self.hashes == LARGEST))

    def seen_in(self, units: Units) -> Evidence:
        """What they have shown, in these units."""
        with self._lock:
            now = self._units
            if not (_same(now.columns, units.columns) and _same(now.side, units.side)):
                self._turn(now, units)
            self._units = units
            return self._e

    def _turn(self, now: Units, then: Units) -> None:
        """Turn everything from the units that it has now into others."""
        e, (factor, shift, level) = self._e, now.columns.seen_from(then.columns)
        np.multiply(e.X, factor, out=e.X)
        np.add(e.X, shift, out=e.X)
        np.subtract(e.y, level, out=e.y)
        move(e.A, e.c, e.q, factor, shift, level)
        known = e.side[:, 1:]
        known *= now.side.scale / then.side.scale
        known += (now.side.centre - then.side.centre) / then.side.scale


def _same(one: Columns, other: Columns) -> bool:
    return (
        one.level == other.level
        and np.array_equal(one.centre, other.centre)
        and np.array_equal(one.scale, other.scale)
    )


class LoadEvidence(NamedTuple):
    """How partitions are loaded: in the units of the first rows."""

    reading: Reading
    units: Units

    def load(self, partition: Partition) -> PartEvidence:
        """What the tasks of a partition have shown."""
        rows, names = self.reading.rows, self.reading.side
        found, known = Gathered(self.units.columns), [np.empty((0, len(names)))]
        hashes = [np.empty(0, np.uint64)]
        for block, table in read_partition(rows, partition, names, columns=True):
            if block.missing.any() and not self.reading.nameless:
                rows.refuse_nameless()
            rows.refuse_unlabelled(block)
            labels = self.reading.labels(block.y, block.X.dtype)
            lines, last = found.open(block.sizes), 0
            for batch in map(Batch, table.to_batches()):  # two where a task was cut
                first, last = last, last + batch.columns.num_rows
                runs, offsets = _within(block.starts, first, last)
                columns = rows.inputs(batch)
                if not found.add(columns, labels[first:last], offsets, lines[runs]):
                    rows.refuse_wrong(batch, columns)
            known.append(self._known(block, table))
            hashes.append(runs_of(rows, block.ids).by_row)
            del block, table, batch, columns  # or else they would stay while the next are made
        side = np.concatenate(known)
        e = found.evidence(np.concatenate([np.ones((len(side), 1)), side], axis=1))
        pa.default_memory_pool().release_unused()  # or else the room of every thread's rows stays
        return PartEvidence(e, self.units, np.concatenate(hashes))

    def _known(self, block: Block, table: Any) -> Matrix:
        side = side_columns(self.reading.rows, table, self.reading.side)
        first = side[block.starts]
        differs = np.argwhere(side != np.repeat(first, block.sizes, axis=0))
        if len(differs):
            row, j = differs[0]
            run = int(np.searchsorted(block.starts, row, side="right")) - 1
            refuse_other_side(self.reading, int(j), first[run, j], side[row, j])
        return np.asarray(first - self.units.side.centre)


def _within(starts: NDArray[np.int64], first: int, last: int) -> tuple[slice, NDArray[np.int64]]:
    """The runs with rows from `first` to before `last`, and where they begin and end there."""
    begin = int(np.searchsorted(starts, first, side="right")) - 1
    end = int(np.searchsorted(starts, last))
    cuts = np.clip(np.append(starts[begin:end], last), first, last) - first
    return slice(begin, end), cuts.astype(np.int64)


def _count(part: PartEvidence, _: int, units: Units) -> Vector:
    """Sums that say how much there is of the tasks of a partition, and in which units."""
    e = part.seen_in(units)
    k, T = e.width, e.n_tasks
    i = np.arange(k)
    A, c = e.A.sum(axis=0), e.c.sum(axis=0)  # each line is a task's
    dense = float(sum(map(len, part.way.dense)))
    labels = c[-1] + e.weight @ e.y
    first, square = A[-k:] + e.weight @ e.X, A[i * (i + 3) // 2] + e.weight @ np.square(e.X)
    seen = (e.c.any(axis=0) | e.X.any(axis=0)).astype(np.float64)
    side = e.side.T @ e.side
    counts = [T, e.n_rows, dense, part.n_nameless, labels]
    return np.concatenate([counts, first, square, seen, side.ravel()])


def _pool(part: PartEvidence, _: int, units: Units) -> Vector:
    """All rows of a partition pooled."""
    A, c, square = part.seen_in(units).gram()
    return np.concatenate([packed(A), c, [square]])


def _pass(part: PartEvidence, _: int, units: Units, start: Start, loss: Loss) -> Vector:
    """One pass over the tasks of a partition."""
    totals = take_pass(part.seen_in(units), part.way, start, loss, NOTHING)
    return np.concatenate([totals.V, totals.D, totals.F.ravel(), totals[3:]])


def _smallest(
    part: PartEvidence, number: int, units: Units, bound: np.uint64, nameless: Counts | None
) -> tuple[Hashes, Evidence]:
    """The tasks of a partition with hashes up to a bound, after so many nameless rows of others."""
    hashes = part.hashes.copy()
    if nameless is not None:
        first = int(nameless[number])
        hashes[hashes == LARGEST] = nameless_hashes(first, first + part.n_nameless)
    tasks = np.flatnonzero(hashes <= bound)
    return hashes[tasks], part.seen_in(units).at(tasks)


def _count_nameless(part: PartEvidence, _: int) -> int:
    return part.n_nameless


class AllSums:
    """All tasks of a dataset, of which sums can be asked; see `TaskSums`."""

    def __init__(
        self, reading: Reading, partitions: list[Partition], engine: Engine, room: int | None = None
    ) -> None:
        view = _first_units(reading, partitions[0])
        load = LoadEvidence(reading, view).load
        parts = Parts(load, partitions, _weigh, room)
        self._held: Held = engine.hold(parts)
        self._k = k = view.columns.width
        with one_blas_thread():  # others would wait for work in a loop, beside who reads
            found = self._held.sum(_count, view)
        self.n_nameless = int(found[3])
        first, square, seen = found[5 : 5 + 3 * k].reshape(3, k)
        moments = RowMoments(found[1], found[4], first, square, seen > 0.0)
        columns = moments.units(view.columns, binary=False)
        self.units = Units(columns, _side_units(view.side, found[5 + 3 * k :], found[0]))
        self._size: Size | None = None

    @property
    def size(self) -> Size:
        """How much there is of them."""
        if self._size is None:
            T, N, dense, *_ = found = self._held.sum(_count, self.units)
            r = 1 + self.units.side.centre.size
            side = found[5 + 3 * self._k :].reshape(r, r) / T
            self._size = Size(self._k, int(T), float(N), side, float(self._k), dense > 0.0)
        return self._size

    def few(self, count: int) -> Evidence:
        """What the tasks with the smallest hashes have shown, so many of them.

        Hashes are spread evenly, so that their number tells about the largest of the few.
        """
        nameless = None
        if self.n_nameless:
            nameless = np.append(0, np.cumsum(self._held.each(_count_nameless)))
        found: list[tuple[Hashes, Evidence]] = []
        wanted = count
        while sum(len(hashes) for hashes, _ in found) < count:
            wanted = min(wanted + wanted // 4 + 8, self.size.n_tasks)
            bound = np.uint64(((wanted << 64) - 1) // self.size.n_tasks)
            found = self._held.each(_smallest, self.units, bound, nameless)
        first = np.argsort(np.concatenate([hashes for hashes, _ in found]))[:count]
        return together([shown for _, shown in found]).at(first)

    def pooled(self, width: int) -> Pooled:
        """As `Evidence.pooled`."""
        found, cut = self._held.sum(_pool, self.units), packed_size(self._k)
        A, c, square = unpacked(found[:cut]), found[cut:-1], float(found[-1])
        return Pooled.of_gram(A[:width, :width], c[:width], square, self.size.n_rows)

    def first_moments(self, start: Start, loss: Loss) -> Moments:  # noqa: ARG002 - none are needed
        """None, with the squared loss."""
        return NOTHING

    def take_pass(self, start: Start, loss: Loss, moments: Moments) -> Totals:  # noqa: ARG002
        """One pass over all tasks."""
        found = self._held.sum(_pass, self.units, start, loss)
        k, r = start.effects.shape
        width = k if len(start.covariance) == 0 else packed_size(k)
        V, D, F = found[:width], found[width : 2 * width], found[2 * width : -3]
        return Totals(V, D, F.reshape(k, r), *found[-3:].tolist())


def _weigh(part: PartEvidence) -> int:
    return part.nbytes


def _first_units(reading: Reading, partition: Partition) -> Units:
    """Where rows are seen from until all are read: the middle of the first ones."""
    rows = reading.rows
    block, table = next(read_partition(rows, partition, reading.side))
    d, p = rows.n_features, len(reading.side)
    centre, level = np.zeros(d), 0.0
    if reading.intercept:
        rows.refuse_unlabelled(block)
        labels = reading.labels(block.y[:FIRST], block.X.dtype)
        centre = np.median(block.X[:FIRST], axis=0).astype(np.float64)
        level = float(np.median(labels))
    first = side_columns(rows, table.slice(0, 1), reading.side)[0]
    return Units(
        Columns(centre, np.ones(d), level, reading.intercept),
        Columns(first, np.ones(p), 0.0, intercept=True),
    )


def _side_units(view: Columns, squares: Vector, n_tasks: float) -> Columns:
    """The units of what is known of tasks, from the sum of ``(1, s)(1, s)^T``."""
    r = 1 + view.centre.size
    sums = squares.reshape(r, r) / n_tasks
    mean = sums[0, 1:]
    variance = np.diag(sums)[1:] - mean**2
    variance[variance < 1e-14 * np.diag(sums)[1:]] = 0.0  # the rounding of one value
    return Columns.from_moments(view.centre + mean, variance, 0.0, intercept=True)
