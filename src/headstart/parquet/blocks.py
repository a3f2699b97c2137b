"""Neighbouring rows as arrays, and the runs of one task in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headstart._checks import FloatArray
from headstart.parquet.columns import Array, is_null, is_whole
from headstart.tasks import TaskSet

AHEAD = 2  # blocks that are made while one is used
Positions = NDArray[np.int64]


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

    def spread(self, by_run: NDArray[Any]) -> NDArray[Any]:
        """A value for each run as one for each row."""
        return np.repeat(by_run, self.sizes)


class Buffers:
    """Room for inputs: new for each block, or a few in turn, which costs no page faults."""

    def __init__(self, n_features: int, dtype: type[np.floating[Any]], reuse: bool) -> None:
        self._shape, self._dtype, self._reuse = n_features, dtype, reuse
        self._turn: list[FloatArray] = []

    def next(self, rows: int, *, in_turn: bool = True) -> FloatArray:
        """Room for so many rows; not one of the few if the last has not been handed on."""
        if not in_turn or not self._reuse:
            return np.empty((rows, self._shape), self._dtype)
        if len(self._turn) <= AHEAD or len(self._turn[0]) < rows:
            self._turn.append(np.empty((rows + rows // 4, self._shape), self._dtype))
            del self._turn[: -AHEAD - 1]
        else:
            self._turn.append(self._turn.pop(0))
        return self._turn[-1][:rows]


def make_block(X: FloatArray, y: Array, ids: Array, keys: Array) -> Block:
    """A block of rows with these inputs and columns; ids and keys may be the same array."""
    starts = run_starts(keys)
    heads = pa.array(starts)
    first = keys.take(heads)
    whose = first if ids is keys else ids.take(heads)
    labels = y.to_numpy(zero_copy_only=False)
    return Block(X, labels, starts, first, whose, is_null(whose), is_null(y))


def run_starts(keys: Array) -> Positions:
    """Where neighbours differ; rows without a key differ from all."""
    n = len(keys)
    if n < 2:
        return np.arange(n)
    if is_whole(keys):
        numbers = keys.to_numpy()
        return np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
    differ = pc.fill_null(pc.not_equal(keys.slice(1), keys.slice(0, n - 1)), True)
    return np.append(0, np.flatnonzero(differ.to_numpy(zero_copy_only=False)) + 1)


def joined(one: Block, other: Block, X: FloatArray) -> Block:
    """Neighbouring blocks with inputs X as one; a task cut by their border is one run again."""
    goes_on = 1 if one.keys[-1].is_valid and one.keys[-1].equals(other.keys[0]) else 0
    return Block(
        X,
        np.concatenate([one.y, other.y]),
        np.append(one.starts, (other.starts + len(one.y))[goes_on:]),
        pa.concat_arrays([one.keys, other.keys.slice(goes_on)]),
        pa.concat_arrays([one.ids, other.ids.slice(goes_on)]),
        np.append(one.missing, other.missing[goes_on:]),
        np.append(one.unlabelled, other.unlabelled),
    )


def part_of(block: Block, first: int, last: int, end: int) -> Block:
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
    return TaskSet(block.X, labels, offsets, block.ids.to_numpy(zero_copy_only=False))
