"""Neighbouring rows as arrays, the runs of one task in them, and tasks that a batch's end cuts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart.parquet.columns import Array, all_integers, as_ids, is_null
from headstart.tasks import TaskSet

AHEAD = 2  # blocks that are made while one is used
Positions = NDArray[np.int64]


class Batch(NamedTuple):
    """Neighbouring rows as Arrow has them, one or more, and the number of the first if known."""

    columns: pa.RecordBatch
    first_row: int | None = None


class Block(NamedTuple):
    """Neighbouring rows, and the runs of one task in them.

    Attributes
    ----------
    X, y : inputs as floats, labels as they are
    starts : where each run begins
    keys, ids : by run: what tells neighbouring tasks apart, and whose rows they are
    missing : by run: whether it has no id
    unlabelled : by row: whether it has no label
    """

    X: FloatArray
    y: NDArray[np.generic]
    starts: Positions
    keys: Array
    ids: Array
    missing: NDArray[np.bool_]
    unlabelled: NDArray[np.bool_]

    @property
    def sizes(self) -> Positions:
        """Rows of each run."""
        return np.diff(self.starts, append=len(self.y))

    @property
    def runs(self) -> Positions:
        """The number of each row's run."""
        return self.by_row(np.arange(len(self.starts)))

    @property
    def row_ids(self) -> Array:
        """The id of each row, as Arrow has it."""
        return self.ids.take(pa.array(self.runs))

    def by_row(self, by_run: NDArray[Any]) -> NDArray[Any]:
        """A value for each run as one for each row."""
        return np.repeat(by_run, self.sizes)

    def continues(self, key: Array) -> bool:
        """Whether the first run is of the task with this key, the last of the block before."""
        return bool(key is not None and key.is_valid and key.equals(self.keys[0]))


class Buffers:
    """Room for inputs: a new array for each block, or so many in turn.

    Arrays in turn are overwritten, and cost no page faults.
    """

    def __init__(self, n_features: int, dtype: type[np.floating[Any]], in_turn: int = 0) -> None:
        self._width, self._dtype, self._in_turn = n_features, dtype, in_turn
        self._arrays: deque[FloatArray] = deque(maxlen=in_turn or 1)  # the newest last

    def next(self, rows: int, *, handed_on: bool = True) -> FloatArray:
        """Room for so many rows: in the newest array if that has not been handed on."""
        if handed_on or not self._arrays:
            if 0 < self._in_turn == len(self._arrays):
                self._arrays.rotate(-1)
            else:
                self._arrays.append(np.empty((0, self._width), self._dtype))
        if len(self._arrays[-1]) < rows:  # more than is asked for if it will grow or come again
            more = rows // 4 if self._in_turn or not handed_on else 0
            self._arrays[-1] = np.empty((rows + more, self._width), self._dtype)
        return self._arrays[-1][:rows]


def make_block(X: FloatArray, y: Array, ids: Array, keys: Array) -> Block:
    """A block of rows with these inputs and columns; ids and keys may be the same array."""
    starts = run_starts(keys)
    heads = pa.array(starts)
    first_keys = keys.take(heads)
    first_ids = first_keys if ids is keys else ids.take(heads)
    labels = y.to_numpy(zero_copy_only=False)
    return Block(X, labels, starts, first_keys, first_ids, is_null(first_ids), is_null(y))


def run_starts(keys: Array) -> Positions:
    """Where neighbours differ; rows without a key differ from all."""
    n = len(keys)
    if n < 2:
        return np.arange(n)
    if all_integers(keys):
        numbers = keys.to_numpy()
        return np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
    differ = pc.fill_null(pc.not_equal(keys.slice(1), keys.slice(0, n - 1)), True)
    return np.append(0, np.flatnonzero(differ.to_numpy(zero_copy_only=False)) + 1)


def whole_tasks(
    batches: Iterable[Batch],
    make: Callable[[Batch, FloatArray], Block],
    buffers: Buffers,
    *,
    multiple: int = 1,
    beside: tuple[str, ...] = (),
) -> Iterator[tuple[Block, pa.Table]]:
    """Blocks of whole tasks from batches, whose ends may cut tasks.

    The last task of a batch may go on in the next one, so its rows wait and are put before
    those of the next batch.

    Parameters
    ----------
    batches : neighbouring rows in order, each task's together
    make : gives the block of a batch, with its inputs put into the array
    buffers : where inputs go
    multiple : every block but the last has a multiple of so many tasks
    beside : columns that are wanted as tables too, cut as the blocks are
    """
    waiting: tuple[Block, pa.Table] | None = None
    ready = 1
    for batch in batches:
        n_waiting = 0 if waiting is None else len(waiting[0].y)
        n_rows = n_waiting + batch.columns.num_rows
        X = buffers.next(n_rows, handed_on=ready > 0)
        if waiting is not None:
            X[:n_waiting] = waiting[0].X  # first, because the new rows may overwrite them
        block = make(batch, X[n_waiting:])
        table = pa.Table.from_batches([batch.columns.select(list(beside))])
        del batch  # or else it would stay in memory while the next is made
        if waiting is not None:
            block = _joined(waiting[0], block, X)
            table = pa.concat_tables([waiting[1], table])
        ready = (len(block.starts) - 1) // multiple * multiple
        cut = int(block.starts[ready])
        if ready:
            yield _part_of(block, 0, ready, cut), table.slice(0, cut)
        rest = table.slice(cut).take(np.arange(n_rows - cut))  # a slice would hold all
        waiting = _part_of(block, ready, len(block.starts), n_rows), rest
        del block, table, rest
    if waiting is not None:
        yield waiting


def _joined(one: Block, other: Block, X: FloatArray) -> Block:
    """Neighbouring blocks with inputs X as one; a task cut by their border is one run again."""
    same = 1 if other.continues(one.keys[-1]) else 0
    return Block(
        X,
        np.concatenate([one.y, other.y]),
        np.append(one.starts, (other.starts + len(one.y))[same:]),
        pa.concat_arrays([one.keys, other.keys.slice(same)]),
        pa.concat_arrays([one.ids, other.ids.slice(same)]),
        np.append(one.missing, other.missing[same:]),
        np.append(one.unlabelled, other.unlabelled),
    )


def _part_of(block: Block, first: int, last: int, end: int) -> Block:
    """The runs from `first` to before `last`, which end at row `end`."""
    begin, runs = int(block.starts[first]), slice(first, last)
    return Block(
        block.X[begin:end],
        block.y[begin:end],
        block.starts[runs] - begin,
        block.keys[runs],
        block.ids[runs],
        block.missing[runs],
        block.unlabelled[begin:end],
    )


def as_task_set(block: Block) -> TaskSet:
    """The runs as tasks."""
    offsets = np.append(block.starts, len(block.y)).astype(np.int64)
    labels = np.asarray(block.y, block.X.dtype)
    return TaskSet.of(block.X, labels, offsets, as_ids(block.ids))
