"""Whole tasks apart from each other: partitions of a dataset, planned from the footers alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headstart.parquet.blocks import Block, make_block, part_of
from headstart.parquet.columns import plain
from headstart.parquet.files import ParquetError, batches
from headstart.parquet.footers import Piece
from headstart.parquet.rows import ParquetRows

PARTITION_ROWS = 1 << 20
FEW = 1 << 12  # rows, when most likely a few are wanted
WHOLE = 4  # batches of a row group that is decoded at once when several partitions are read

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


def plan_partitions(rows: ParquetRows, partition_rows: int = PARTITION_ROWS) -> list[Partition]:
    """Partitions of about so many rows with whole tasks in each, in the order of the keys.

    The keys of row groups may meet at their borders but not overlap, see `grouped`.
    """
    pieces = [piece for piece in rows.pieces if piece.rows]
    for one, other in pairwise(pieces):
        if one.high is not None and other.low is not None and other.low < one.high:
            raise ParquetError(
                f"{other.file}: row group {other.number} begins with {other.low!r}, the one "
                f"before ends with {one.high!r}: tasks would be cut; sort or cluster the data "
                f"by {rows.group!r} first"
            )
    blank = next((piece for piece in pieces if not piece.told), None)
    if blank is not None and len(pieces) > 1:
        raise ParquetError(
            f"{blank.file}: its footer has no statistics of {rows.key or rows.group!r}; write it "
            "with statistics, or cluster the data first"
        )
    cuts = list(_cuts(pieces, partition_rows))
    found = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        low, high, end = pieces[first].low, pieces[last - 1].high, last
        while end < len(pieces) and high is not None and pieces[end].low == high:
            end += 1
        begun = first > 0 and low is not None and pieces[first - 1].high == low
        found.append(
            Partition(
                number,
                _places(pieces[first:last]),
                _places(pieces[last:end]),
                low if begun else None,
                high if end > last else None,
            )
        )
    return found


def _cuts(pieces: list[Piece], partition_rows: int) -> Iterator[int]:
    """Where partitions begin: in row groups in which a task begins."""
    yield 0
    rows = 0
    for k, piece in enumerate(pieces):
        begins = k > 0 and piece.high is not None and piece.high != pieces[k - 1].high
        if rows >= partition_rows and begins:
            yield k
            rows = 0
        rows += piece.rows
    yield len(pieces)


def _places(pieces: list[Piece]) -> tuple[Place, ...]:
    by_file: dict[str, list[int]] = {}
    for piece in pieces:
        by_file.setdefault(piece.file, []).append(piece.number)
    return tuple((file, tuple(numbers)) for file, numbers in by_file.items())


def read_partition(
    rows: ParquetRows, partition: Partition, more: tuple[str, ...] = ()
) -> Iterator[tuple[Block, pa.Table]]:
    """The rows of a partition and no others, whole tasks at a time, with `more` columns as a table.

    The inputs of a block are overwritten when the next is read.
    """
    names = list(dict.fromkeys([rows.group, rows.target, rows.key or rows.group, *more]))
    columns = list(dict.fromkeys([*names, *(rows.features or ())]))
    X, kept = np.empty((0, rows.n_features), rows.dtype), 0
    waiting: list[pa.Table] = []
    for batch in chain(_own(rows, partition, columns), _after(rows, partition, columns)):
        if batch.num_rows == 0:
            continue
        total = kept + batch.num_rows
        if len(X) < total:
            X, old = np.empty((total + total // 4, rows.n_features), rows.dtype), X
            X[:kept] = old[:kept]
        rows.fill(X[kept:total], batch)
        table = pa.concat_tables([*waiting, pa.Table.from_batches([batch.select(names)])])
        block = make_block(X[:total], *rows.labels_and_ids(table))
        ready = int(block.starts[-1])  # the last may go on
        if ready:
            yield part_of(block, 0, len(block.starts) - 1, ready), table.slice(0, ready)
        kept, waiting = total - ready, [table.slice(ready)]
        X[:kept] = X[ready:total].copy()
    if kept:
        yield make_block(X[:kept], *rows.labels_and_ids(waiting[0])), waiting[0]


def _own(rows: ParquetRows, partition: Partition, columns: list[str]) -> Iterator[Any]:
    """Rows of the partition's row groups but for those of a task that began earlier."""
    begun = partition.low is not None
    for place in partition.own:
        tables = rows.read(*place, columns, rows.batch_rows, whole=WHOLE, threads=False)
        for batch in batches(tables, rows.batch_rows):
            if batch.num_rows == 0:
                continue
            keys = plain(batch.column(rows.key or rows.group)) if begun else None
            begun = keys is not None and keys[0].as_py() == partition.low
            if keys is None or not begun:
                yield batch
                continue
            mine = pc.not_equal(keys, pa.scalar(partition.low, keys.type))
            yield batch.filter(pc.fill_null(mine, True))


def _after(rows: ParquetRows, partition: Partition, columns: list[str]) -> Iterator[Any]:
    """The rest of the last task: the first rows of the row groups that follow."""
    for place in partition.after:
        for batch in batches(rows.read(*place, columns, FEW, whole=0, threads=False), FEW):
            keys = plain(batch.column(rows.key or rows.group))
            mine: Any = pc.equal(keys, pa.scalar(partition.high, keys.type))
            rest = batch.filter(mine)
            yield rest
            if rest.num_rows < batch.num_rows:
                return
