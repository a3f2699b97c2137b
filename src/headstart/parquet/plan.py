"""Whole tasks apart from each other: partitions of a dataset, planned from the footers alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headstart.parquet.blocks import Batch, Block, Buffers, whole_tasks
from headstart.parquet.columns import Array, plain, stored
from headstart.parquet.files import Decoding, ParquetError, batches
from headstart.parquet.footers import RowGroup
from headstart.parquet.source import Source

PARTITION_ROWS = 1 << 20
MOST_BATCHES = 4  # of a row group that is decoded at once, when several partitions are read
AFTER = Decoding(1 << 12, most_batches=0, threads=False)  # most likely a few rows are wanted

Place = tuple[str, tuple[int, ...]]  # row groups of a file


class Partition(NamedTuple):
    """Row groups that are read together. Its tasks are those that begin in them.

    Attributes
    ----------
    number : of the partition
    own : its row groups
    after : the row groups that follow, if the last task goes on there
    low : the key of the first task if it began earlier, or None
    high : the key of the last task if it goes on, or None
    """

    number: int
    own: tuple[Place, ...]
    after: tuple[Place, ...]
    low: Any
    high: Any


def plan_partitions(
    rows: Source,
    partition_rows: int = PARTITION_ROWS,
    before: Collection[tuple[str, int]] = (),
) -> list[Partition]:
    """Partitions of about so many rows with whole tasks in each, in the order of the keys.

    The keys of row groups may meet at their borders but not overlap, see `grouped`. There is a
    cut at the row groups `before` too, which are given by file and number: where an earlier plan
    cut, so that it is found again wherever files are as they were.
    """
    groups = [group for group in rows.row_groups if group.rows]
    _check_order(rows, groups)
    found = []
    for number, (first, last) in enumerate(pairwise(_cuts(groups, partition_rows, before))):
        low, high, end = groups[first].low, groups[last - 1].high, last
        while end < len(groups) and high is not None and groups[end].low == high:
            end += 1
        begun = first > 0 and low is not None and groups[first - 1].high == low
        found.append(
            Partition(
                number,
                _places(groups[first:last]),
                _places(groups[last:end]),
                low if begun else None,
                high if end > last else None,
            )
        )
    return found


def plan_rows(rows: Source, partition_rows: int = PARTITION_ROWS) -> list[Partition]:
    """Partitions of about so many rows, in their order in the files; tasks may be cut."""
    groups, ends, count = [group for group in rows.row_groups if group.rows], [0], 0
    for number, group in enumerate(groups, 1):
        count += group.rows
        if count >= partition_rows or number == len(groups):
            ends.append(number)
            count = 0
    return [
        Partition(number, _places(groups[first:last]), (), None, None)
        for number, (first, last) in enumerate(pairwise(ends))
    ]


def _check_order(rows: Source, groups: list[RowGroup]) -> None:
    """Raise if the keys of row groups overlap, or are not known."""
    for one, other in pairwise(groups):
        if one.high is not None and other.low is not None and other.low < one.high:
            raise ParquetError(
                f"{other.file}: row group {other.number} begins with {other.low!r}, the one "
                f"before ends with {one.high!r}: tasks would be cut; sort or cluster the data "
                f"by {rows.group!r} first"
            )
    unknown = next((group for group in groups if not group.has_statistics), None)
    if unknown is not None and len(groups) > 1:
        raise ParquetError(
            f"{unknown.file}: its footer has no statistics of {rows.task_key!r}; write it "
            "with statistics, or cluster the data first"
        )


def _cuts(
    groups: list[RowGroup], partition_rows: int, before: Collection[tuple[str, int]]
) -> Iterator[int]:
    """Where partitions begin: in row groups in which a task begins; and the end of all."""
    yield 0
    rows = 0
    for k, group in enumerate(groups):
        begins = k > 0 and group.high is not None and group.high != groups[k - 1].high
        if begins and (rows >= partition_rows or (group.file, group.number) in before):
            yield k
            rows = 0
        rows += group.rows
    yield len(groups)


def _places(groups: list[RowGroup]) -> tuple[Place, ...]:
    by_file: dict[str, list[int]] = {}
    for group in groups:
        by_file.setdefault(group.file, []).append(group.number)
    return tuple((file, tuple(numbers)) for file, numbers in by_file.items())


def read_partition(
    rows: Source,
    partition: Partition,
    more: tuple[str, ...] = (),
    *,
    columns: bool = False,
) -> Iterator[tuple[Block, pa.Table]]:
    """The rows of a partition and no others, whole tasks at a time.

    Beside each block comes a table of its rows with ids, labels, keys and the columns `more`.
    The inputs of a block are overwritten when the next is read. Where `columns` are taken, inputs
    are in the table as they are, lists if they are sparse, and the block has none.
    """
    more = (*more, *(rows.sparse or ()), *(rows.features or () if columns else ()))
    names = tuple(dict.fromkeys([rows.group, rows.target, rows.task_key, *more]))
    read = list(dict.fromkeys([*names, *(rows.features or ())]))
    own, after = _own(rows, partition, read), _after(rows, partition, read)
    found = map(Batch, filter(len, chain(own, after)))  # which hold on to no batch
    buffers = Buffers(0 if columns else rows.width, rows.dtype, in_turn=1)
    make = rows.labels_of if columns else rows.block
    return whole_tasks(found, make, buffers, beside=names)


def _own(rows: Source, partition: Partition, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows of the partition's row groups but for those of a task that began earlier."""
    begun = partition.low is not None
    decoding = Decoding(rows.batch_rows, MOST_BATCHES, threads=False)
    most = 2 * rows.batch_rows  # of those that are in memory anyway: each batch has its own cost
    for place in partition.own:
        for batch in batches(rows.read(*place, columns, decoding), most):
            if begun:
                theirs = _begins(_keys(rows, batch), partition.low)
                begun = theirs == len(batch)
                batch = batch.slice(theirs)
            yield batch
            del batch  # or else it would stay in memory while the next is made


def _after(rows: Source, partition: Partition, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rest of the last task: the first rows of the row groups that follow."""
    for path, numbers in partition.after:
        for number in numbers:
            count = 0
            for table in rows.read(path, [number], [rows.task_key], AFTER):
                mine = _begins(_keys(rows, table), partition.high)
                count += mine
                if mine < table.num_rows:
                    break
            first = AFTER._replace(first=count)
            yield from batches(rows.read(path, [number], columns, first), rows.batch_rows)


def _begins(keys: Array, key: object) -> int:
    """How many rows have this key, before any other."""
    same: Array = pc.fill_null(pc.equal(keys, pa.scalar(key, keys.type)), False)
    other = pc.index(same, pa.scalar(False)).as_py()
    return len(keys) if other < 0 else other


def _keys(rows: Source, batch: pa.RecordBatch | pa.Table) -> Array:
    return stored(plain(batch.column(rows.task_key)))
