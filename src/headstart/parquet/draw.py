r"""The entities of a dataset with the smallest hashes of their ids, and their rows.

First the column of ids is read alone, which costs little: it tells how large the hash of the last
entity of the sample is, and how many rows the sample has. Then the rows up to that hash are read;
row groups that have none are left alone. The sample is the same for any order of the rows, and
for any files and partitions. Its rows are put in an order of their own, so that what is learned
from them has the same bits too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headstart.parquet.blocks import Batch, run_starts
from headstart.parquet.columns import Array, all_integers, as_labels, plain, to_float64
from headstart.parquet.engine import Engine, in_blocks
from headstart.parquet.files import Decoding, ParquetError
from headstart.parquet.plan import MOST_BATCHES, Partition, plan_rows
from headstart.parquet.rows import ParquetRows
from headstart.parquet.sample_order import Drawn, Hashes, Matrix
from headstart.tasks.ids import Positions, hash_ids, id_array, read_ids

LARGEST = np.uint64(2**64 - 1)
WAITING = 1 << 20  # ids that are looked through together, at the least
NAMELESS_AT_ONCE = 1 << 18
MOST_LABELS = 1 << 10  # that are told apart
BY_ROW_GROUP = Decoding(1, 1 << 62, threads=False)  # a table for each


class Entities(NamedTuple):
    """The entities with the smallest hashes.

    Attributes
    ----------
    hashes : in order, each once
    rows : how many rows each has
    nameless : by partition, how many rows have no id: each is an entity of its own
    """

    hashes: Hashes
    rows: Positions
    nameless: tuple[int, ...]

    def smallest(self, most: int) -> Entities:
        """The `most` first of them."""
        return Entities(self.hashes[:most], self.rows[:most], self.nameless)


class Draw(NamedTuple):
    """Which rows are drawn.

    Attributes
    ----------
    rows : the dataset
    side : columns of numbers that describe the entity
    bound : the largest hash of an entity of the sample
    """

    rows: ParquetRows
    side: tuple[str, ...] = ()
    bound: np.uint64 = LARGEST

    def read(self, partition: Partition, nameless: int) -> Iterator[Drawn]:
        """The rows of a partition that are drawn, after so many nameless rows of others."""
        for batch, hashes in self.batches(partition, nameless):
            drawn = self._drawn(batch, hashes)
            del batch
            yield drawn

    def batches(
        self, partition: Partition, nameless: int
    ) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
        """The same as Arrow has them, each batch with the hashes of its rows' entities."""
        rows = self.rows
        others = dict.fromkeys([*rows.columns, *self.side])
        columns = [name for name in others if name != rows.group]
        decoding = Decoding(rows.batch_rows, MOST_BATCHES, threads=False)
        for file, numbers in partition.own:
            found, used, names = [], [], []
            for number, ids in zip(
                numbers, rows.read(file, numbers, [rows.group], BY_ROW_GROUP), strict=True
            ):
                runs = runs_of(rows, ids.column(rows.group), nameless)
                nameless += runs.nameless
                if (runs.hashes <= self.bound).any():
                    found.append(runs.by_row)
                    used.append(number)
                    names.append(ids)
            if not used:
                continue
            hashes, first, whose = np.concatenate(found), 0, pa.concat_tables(names)
            for table in rows.read(file, used, columns, decoding):
                last = first + table.num_rows
                mine = whose.column(rows.group).slice(first, table.num_rows)
                chosen = self._chosen(table.append_column(rows.group, mine), hashes[first:last])
                del table  # or else it would stay in memory while the next is made
                if chosen is not None:
                    yield chosen
                del chosen
                first = last

    def _chosen(self, table: pa.Table, hashes: Hashes) -> tuple[pa.RecordBatch, Hashes] | None:
        inside = hashes <= self.bound
        if not inside.all():
            table, hashes = table.filter(pa.array(inside)), hashes[inside]
        if table.num_rows == 0:
            return None
        (batch,) = table.combine_chunks().to_batches()
        return batch, hashes

    def _drawn(self, batch: pa.RecordBatch, hashes: Hashes) -> Drawn:
        X = np.empty((batch.num_rows, self.rows.n_features), self.rows.dtype)
        block = self.rows.labelled(Batch(batch), X)
        return Drawn(hashes, X, block.y, side_columns(self.rows, batch, self.side))


def check_side(rows: ParquetRows, side: tuple[str, ...]) -> None:
    """Raise unless these are columns of numbers, and none of them is anything else."""
    for name in side:
        taken = {rows.group: "the group", rows.target: "the target"}.get(name)
        if name in (rows.features or ()):
            taken = "a feature"
        if taken is not None:
            raise ParquetError(f"{rows.known_as}: side: {name!r} is {taken}; name another column")
        rows.check_number_column("side", name)


def side_columns(
    rows: ParquetRows, batch: pa.RecordBatch | pa.Table, side: tuple[str, ...]
) -> Matrix:
    """What is known of each row's entity."""
    found = np.empty((batch.num_rows, len(side)))
    for j, name in enumerate(side):
        column: Array = to_float64(plain(batch.column(name)))
        found[:, j] = column.to_numpy(zero_copy_only=False)
        if not np.isfinite(found[:, j]).all():
            row = int(np.argmin(np.isfinite(found[:, j])))
            whose = batch.column(rows.group)[row].as_py()
            raise ParquetError(
                f"{rows.known_as}, a row of {rows.group!r} {whose!r}: side: column {name!r}: "
                f"expected finite numbers, found {found[row, j]:g}"
            )
    return found


class _Labels(NamedTuple):
    """Looks for the different labels."""

    rows: ParquetRows

    def read(self, partitions: tuple[Partition, ...]) -> Array:
        """Those of some partitions."""
        rows, target = self.rows, self.rows.target
        found = as_labels(pa.array([], rows.schema.field(target).type))
        for partition in partitions:
            for file, numbers in partition.own:
                for table in rows.read(file, numbers, [target], BY_ROW_GROUP):
                    found = self.merge(found, pc.unique(as_labels(table.column(target))))
        return found

    def merge(self, one: Array, other: Array) -> Array:
        """Those of both, as many as are enough to say that there are too many."""
        return pc.unique(pa.concat_arrays([one, other])).slice(0, MOST_LABELS)


def all_labels(rows: ParquetRows, engine: Engine) -> NDArray[np.generic]:
    """The different labels there are, or a good many of them."""
    look, blocks = _Labels(rows), in_blocks(plan_rows(rows))
    found = engine.tree(look.read, [tuple(block) for block in blocks], look.merge)
    return np.asarray(found.drop_null().to_numpy(zero_copy_only=False))


class Runs(NamedTuple):
    """Neighbouring rows of one entity: where they begin, the entity's hash; how many are nameless.

    A row without an id is a run of its own.
    """

    size: int
    starts: Positions
    hashes: Hashes
    nameless: int

    @property
    def sizes(self) -> Positions:
        """How many rows each has."""
        return np.diff(self.starts, append=self.size)

    @property
    def by_row(self) -> Hashes:
        """The hash of each row's entity."""
        return np.repeat(self.hashes, self.sizes)


def runs_of(rows: ParquetRows, ids: Array, nameless: int | None = None) -> Runs:
    """The runs of a column of ids; rows without one have hashes if so many were before them."""
    ids = plain(ids)
    if all_integers(ids):
        starts = run_starts(ids)
        return Runs(len(ids), starts, hash_ids(ids.to_numpy()[starts]), 0)
    column = read_ids(rows.group, ids)
    values = hash_ids(id_array("ids", column.values)) if column.values else np.empty(0, np.uint64)
    hashes = np.append(values, LARGEST)[column.codes]
    nobody = np.flatnonzero(column.missing)
    if nobody.size and nameless is not None:
        hashes[nobody] = nameless_hashes(nameless, nameless + nobody.size)
    return Runs(column.size, column.starts, hashes, nobody.size)


def nameless_hashes(first: int, last: int) -> Hashes:
    """Those of rows without an id, by their numbers among all such rows."""
    return hash_ids(np.array([f"row {i} without an id" for i in range(first, last)], object))


class Count(NamedTuple):
    """Looks for the `most` entities with the smallest hashes."""

    rows: ParquetRows
    most: int

    def read(self, partitions: tuple[Partition, ...]) -> Entities:
        """Those of some partitions that have an id."""
        found, waiting, enough = Entities(_NO_HASHES, _NO_ROWS, ()), [], 0
        bound, limit = LARGEST, max(WAITING, 2 * self.most)
        for partition in partitions:
            nameless = 0
            for file, numbers in partition.own:
                for ids in self.rows.read(file, numbers, [self.rows.group], BY_ROW_GROUP):
                    runs = runs_of(self.rows, ids.column(self.rows.group))
                    nameless += runs.nameless
                    inside = runs.hashes <= bound
                    if runs.nameless:
                        inside[runs.hashes == LARGEST] = False
                    waiting.append(Entities(runs.hashes[inside], runs.sizes[inside], ()))
                    enough += int(np.count_nonzero(inside))
                    if enough > limit:
                        found, waiting, enough = self._together([found, *waiting]), [], 0
                        if len(found.hashes) == self.most:
                            bound = found.hashes[-1]
            found = found._replace(nameless=(*found.nameless, nameless))
        return self._together([found, *waiting])

    def merge(self, one: Entities, other: Entities) -> Entities:
        """The smallest of both, whose partitions follow each other."""
        return self._together([one, other])

    def with_nameless(self, found: Entities) -> Entities:
        """The same with rows without an id among them."""
        for first in range(0, sum(found.nameless), NAMELESS_AT_ONCE):
            last = min(first + NAMELESS_AT_ONCE, sum(found.nameless))
            more = nameless_hashes(first, last)
            found = self._together([found, Entities(more, np.ones(len(more), np.int64), ())])
        return found

    def _together(self, parts: list[Entities]) -> Entities:
        every = np.concatenate([part.hashes for part in parts])
        hashes, place = np.unique(every, return_inverse=True)
        rows = np.zeros(len(hashes), np.int64)
        np.add.at(rows, place, np.concatenate([part.rows for part in parts]))
        nameless = tuple(count for part in parts for count in part.nameless)
        return Entities(hashes, rows, nameless).smallest(self.most)


_NO_HASHES, _NO_ROWS = np.empty(0, np.uint64), np.empty(0, np.int64)
