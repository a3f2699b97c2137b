"""The sample of a dataset from which its prior is learned.

The sample is the entities with the smallest hashes of their ids (`headstart.parquet.draw`). Few
rows come as they are and are put in an order of their own: what is learned from them has the same
bits for any order of the dataset, and for any files, partitions and workers. Many rows, where
entities have many, are summed where they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray
from headstart.losses import Loss
from headstart.meta.prior.summaries import Summaries
from headstart.parquet import PARTITION_ROWS, ParquetError, ParquetRows, Partition, plan_rows
from headstart.parquet.draw import LARGEST, Count, Draw, check_side
from headstart.parquet.engine import Engine, in_blocks, memory
from headstart.parquet.sample_order import Drawn, in_order
from headstart.tasks import TaskSet
from headstart.tasks.ids import read_ids

Matrix = NDArray[np.float64]
Hashes = NDArray[np.uint64]

FEW_BYTES = 1 << 28  # of rows that come as they are


class Reading(NamedTuple):
    """What is read of a dataset, and how.

    Attributes
    ----------
    rows : the dataset
    loss, intercept : as in `learn_prior`
    side : columns that describe the entity
    classes : the two labels of a classification, which become -1 and +1
    nameless : whether rows without an id, each a task of its own, are allowed
    partition_rows : about how many rows are read by one call
    """

    rows: ParquetRows
    loss: Loss
    intercept: bool
    side: tuple[str, ...] = ()
    classes: tuple[object, ...] = ()
    nameless: bool = False
    partition_rows: int = PARTITION_ROWS

    def labels(self, y: NDArray[np.generic], dtype: DTypeLike) -> FloatArray:
        """Labels as the loss takes them."""
        if self.classes:
            second = y == self.classes[1]
            if not np.all(second | (y == self.classes[0])):
                raise ParquetError(
                    f"{self.rows.known_as}: column {self.rows.target!r}: expected the classes "
                    f"{list(self.classes)}, found others; did the files change meanwhile?"
                )
            y = np.where(second, 1.0, -1.0)
        labels = np.asarray(y, np.float64).astype(dtype, copy=False)
        self.loss.check_labels(labels)
        return labels


class Sample(NamedTuple):
    """Entities by their hashes: as tasks, or as sums over their rows where there are many.

    Attributes
    ----------
    shown : the tasks, whose ids are their hashes; or what is kept of them, likewise
    side : what is known of each, or None
    n_tasks, n_nameless : entities, and how many rows of the dataset have no id
    """

    shown: TaskSet | Summaries
    side: Matrix | None
    n_nameless: int

    @property
    def n_tasks(self) -> int:
        """Number of entities."""
        return len(self.shown)


def draw_sample(reading: Reading, most: int | None, engine: Engine) -> Sample:
    """The entities with the smallest hashes, `most` of them; None for all."""
    rows = reading.rows
    check_side(rows, reading.side)
    if most is None and not reading.loss.is_squared:
        _check_room(reading)
    partitions = plan_rows(rows, reading.partition_rows)
    count = Count(rows, rows.n_rows if most is None else most)
    found = engine.tree(count.read, [tuple(block) for block in in_blocks(partitions)], count.merge)
    if sum(found.nameless) and not reading.nameless:
        rows.refuse_nameless()
    before = np.cumsum([0, *found.nameless])[:-1].tolist()
    parts = list(zip(partitions, before, strict=True))
    n_nameless, found = sum(found.nameless), count.with_nameless(found)
    bound = found.hashes[-1] if len(found.hashes) == count.most else LARGEST
    drawing = _Drawing(reading, Draw(rows, reading.side, bound))
    n_rows, asked = int(found.rows.sum()), [tuple(block) for block in in_blocks(parts)]
    if _size(reading, n_rows) <= FEW_BYTES or not reading.loss.is_squared:
        return Sample(*_tasks(reading, drawing.every(asked, engine), n_rows), n_nameless)
    summed = engine.tree(drawing.sums_of, asked, drawing.merge)
    if not reading.side:
        return Sample(summed.kept, None, n_nameless)
    order = np.searchsorted(summed.hashes, np.array(summed.kept.ids, np.uint64))
    return Sample(summed.kept, summed.side[order], n_nameless)


def _size(reading: Reading, n_rows: int) -> int:
    """How many bytes so many rows take."""
    return n_rows * (reading.rows.n_features + len(reading.side) + 2) * 8


def _check_room(reading: Reading) -> None:
    """Raise if all rows are more than there is room for."""
    rows, room = reading.rows, memory()
    size = _size(reading, rows.n_rows)
    if size > room:
        raise ParquetError(
            f"{rows.known_as}: max_tasks: expected a number, found None: with the "
            f"{reading.loss.name} loss all {rows.n_rows} rows come into memory, where they take "
            f"{size / 1e9:.1f} GB and there is room for {room / 1e9:.1f} GB; give a number, or use "
            "the squared loss, with which rows stay on disk"
        )


def _tasks(
    reading: Reading, arriving: Iterator[Drawn], n_rows: int
) -> tuple[TaskSet, Matrix | None]:
    """Rows as tasks, in their own order."""
    drawn = in_order(arriving, n_rows, reading.rows, len(reading.side))
    pa.default_memory_pool().release_unused()  # which learning has a use for
    starts = np.flatnonzero(np.append(True, drawn.hashes[1:] != drawn.hashes[:-1]))
    offsets = np.append(starts, len(drawn.y))
    if reading.side:
        _check_constant(reading, drawn, offsets)
    labels = reading.labels(drawn.y, drawn.X.dtype)
    tasks = TaskSet.of(drawn.X, labels, offsets, drawn.hashes[starts])
    return tasks, drawn.side[starts] if reading.side else None


def _check_constant(reading: Reading, drawn: Drawn, offsets: NDArray[np.int64]) -> None:
    """Raise if what is known of an entity is not the same in all its rows."""
    first = np.repeat(drawn.side[offsets[:-1]], np.diff(offsets), axis=0)
    differs = np.argwhere(drawn.side != first)
    if len(differs):
        row, j = differs[0]
        refuse_other_side(reading, int(j), first[row, j], drawn.side[row, j])


def refuse_other_side(reading: Reading, j: int, one: float, other: float) -> None:
    """Raise because a column of side has two values for an entity."""
    raise ParquetError(
        f"{reading.rows.known_as}: side: expected one value of {reading.side[j]!r} for each "
        f"entity, found {one:g} and {other:g} for one; what changes from row to row is a feature"
    )


class _Summed(NamedTuple):
    """What is kept of entities, which are known by their hashes; these in order, and side."""

    kept: Summaries
    hashes: Hashes
    side: Matrix


Block = tuple[tuple[Partition, int], ...]  # partitions, and nameless rows before each


class _Drawing(NamedTuple):
    """Reads blocks of partitions."""

    reading: Reading
    draw: Draw

    def every(self, asked: list[Block], engine: Engine) -> Iterator[Drawn]:
        """The rows of the sample as they come, and how far that is to who asks."""
        rows = self.reading.rows
        for done, block in enumerate(engine.map(self.rows_of, asked), 1):
            while block:
                yield block.pop(0)
            if rows.callback is not None:
                rows.callback(rows.n_rows * done // len(asked))

    def rows_of(self, block: Block) -> list[Drawn]:
        """The rows of the sample."""
        return [drawn for part in block for drawn in self.draw.read(*part)]

    def sums_of(self, block: Block) -> _Summed:
        """Sums over the rows of the sample."""
        reading = self.reading
        found = _Summed(self._nothing(), np.empty(0, np.uint64), np.empty((0, len(reading.side))))
        for part in block:
            for drawn in self.draw.read(*part):
                labels = reading.labels(drawn.y, drawn.X.dtype)
                ids = read_ids("ids", drawn.hashes)
                found.kept.take(drawn.X, labels, found.kept.number(ids, len(labels)), None)
                if reading.side:
                    found = self._with_side(found, drawn.hashes, drawn.side)
        return found

    def merge(self, one: _Summed, other: _Summed) -> _Summed:
        """Both together."""
        kept = self._nothing()
        kept.merge(one.kept)
        kept.merge(other.kept)
        both = copy(one)._replace(kept=kept)
        return self._with_side(both, other.hashes, other.side) if self.reading.side else both

    def _nothing(self) -> Summaries:
        return Summaries(self.reading.loss, fit_intercept=self.reading.intercept)

    def _with_side(self, found: _Summed, hashes: Hashes, side: Matrix) -> _Summed:
        """The same with what is known of more entities; raise if it is not what was known."""
        every = np.concatenate([found.hashes, hashes])
        values = np.concatenate([found.side, side])
        together, first, place = np.unique(every, return_index=True, return_inverse=True)
        differs = np.argwhere(values != values[first][place])
        if len(differs):
            row, j = differs[0]
            refuse_other_side(self.reading, int(j), values[first][place][row, j], values[row, j])
        return found._replace(hashes=together, side=values[first])
