"""Whether each task's rows follow each other: a look at all ids, by whoever reads partitions.

Who looks at a stretch of rows tells with which key it begins and ends, if keys only ever increase
in it. Stretches that follow each other are joined by these two keys alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headstart.parquet.blocks import run_starts
from headstart.parquet.columns import Array, all_integers, plain, stored
from headstart.parquet.engine import LocalEngine, in_blocks
from headstart.parquet.files import Decoding
from headstart.parquet.plan import Partition, plan_rows
from headstart.parquet.source import Source

Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]  # as `map` does

KEYS = Decoding(1 << 18, most_batches=16, threads=False)


class Stretch(NamedTuple):
    """Rows that follow each other, whose keys increase.

    Attributes
    ----------
    ends : the first key and the last one; empty if no row has a key
    begins_null, ends_null : whether a row without a key comes before the first, or after the last
    """

    ends: Array
    begins_null: bool
    ends_null: bool


def is_grouped(rows: Source, run: Run | None = None) -> bool:
    """Whether keys only ever increase, so that the rows of every task follow each other.

    The footers tell at once of most datasets that they do not. Else all keys are looked at, by
    threads of this process or by whoever `run` asks.
    """
    groups = rows.row_groups
    if len(groups) > 1 and not all(group.has_statistics for group in groups):
        return False
    known = [group for group in groups if group.low is not None]
    if any(later.low < one.high for one, later in pairwise(known)):
        return False
    blocks = [tuple(block) for block in in_blocks(plan_rows(rows))]
    return _joined((run or LocalEngine().map)(_Look(rows).read, blocks)) is not None


class _Look(NamedTuple):
    """Reads the keys of a dataset and nothing else."""

    rows: Source

    def read(self, partitions: tuple[Partition, ...]) -> Stretch | None:
        """Partitions that follow each other as a stretch, or None if keys do not increase."""
        return _joined(_stretch(keys) for partition in partitions for keys in self._keys(partition))

    def _keys(self, partition: Partition) -> Iterator[Array]:
        name = self.rows.task_key
        for place in partition.own:
            for table in self.rows.read(*place, [name], KEYS):
                if table.num_rows:
                    yield stored(plain(table.column(name)))


def _stretch(keys: Array) -> Stretch | None:
    if all_integers(keys):
        numbers = keys.to_numpy()
        if np.any(numbers[1:] < numbers[:-1]):
            return None
        return Stretch(keys.take(pa.array([0, len(keys) - 1])), False, False)
    heads = keys.take(pa.array(run_starts(keys)))
    absent = pc.is_null(heads, nan_is_null=True)
    present = heads.filter(pc.invert(absent))
    if len(present) > 1 and not pc.all(pc.less(present[:-1], present[1:])).as_py():
        return None
    ends = present.take(pa.array([0, len(present) - 1] if len(present) else [], pa.int64()))
    return Stretch(ends, absent[0].as_py(), absent[-1].as_py())


def _joined(stretches: Iterator[Stretch | None]) -> Stretch | None:
    """All of them as one, or None as soon as keys do not increase."""
    found = next(stretches, None)
    for later in stretches:
        if found is None or later is None:
            return None
        found = _join(found, later)
    return found


def _join(one: Stretch, other: Stretch) -> Stretch | None:
    if len(one.ends) == 0:
        return other._replace(begins_null=True)
    if len(other.ends) == 0:
        return one._replace(ends_null=True)
    last, first = one.ends[1], other.ends[0]
    goes_on = last.equals(first) and not (one.ends_null or other.begins_null)
    if not goes_on and not pc.less(last, first).as_py():
        return None
    ends = pa.concat_arrays([one.ends[:1], other.ends[1:]])
    return Stretch(ends, one.begins_null, other.ends_null)
