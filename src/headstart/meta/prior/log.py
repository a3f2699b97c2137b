"""Rows in the order in which they came, each linked to the one before it of the same entity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel

Counts = NDArray[np.int64]

NONE = -1  # no row before, and no entity: the row has left


class Table(NamedTuple):
    """Rows: inputs, labels, how often each counts, and the number of the entity it belongs to."""

    X: FloatArray
    y: FloatArray
    weight: Vector
    entity: Counts

    @classmethod
    def room(cls, count: int, width: int, dtype: DTypeLike) -> Table:
        """Room for so many rows."""
        numbers = np.empty(count), np.empty(count, np.int64)
        return cls(np.empty((count, width), dtype), np.empty(count, dtype), *numbers)

    def at(self, rows: slice | NDArray[np.bool_] | Counts) -> Table:
        """Some of the rows."""
        return Table(self.X[rows], self.y[rows], self.weight[rows], self.entity[rows])

    def put(self, place: slice, other: Table) -> None:
        """Write other rows to this place."""
        for mine, theirs in zip(self, other, strict=True):
            mine[place] = theirs


@kernel
def _link(entity: Counts, first: int, last: int, before: Counts, newest: Counts) -> None:
    for i in range(first, last):
        e = entity[i]
        before[i] = newest[e]
        newest[e] = i


@kernel
def _walk(numbers: Counts, before: Counts, newest: Counts, ends: Counts, rows: Counts) -> None:
    """Go back from each entity's newest row to its first, and take one from `ends` for each.

    The number of the row is put there, if there is room for any.
    """
    for t in range(len(numbers)):
        i = newest[numbers[t]]
        while i >= 0:
            ends[t] -= 1
            if rows.size > 0:
                rows[ends[t]] = i
            i = before[i]


class Log:
    """Rows that wait, with room for more. Those of one entity are found without a look at others'.

    A row that leaves is marked, and its place is used again when the log would have to grow.
    """

    def __init__(self, width: int) -> None:
        self._room, self._before = Table.room(0, width, np.float32), np.empty(0, np.int64)
        self._newest = np.empty(0, np.int64)  # of each entity
        self._count = self._gone = 0

    def __len__(self) -> int:
        return self._count - self._gone

    @property
    def nbytes(self) -> int:
        """Bytes of the rows there are."""
        each = sum(part.nbytes // max(len(part), 1) for part in (*self._room, self._before))
        return self._count * each

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The type of the inputs: float32 as long as all are."""
        return self._room.X.dtype

    @property
    def rows(self) -> Table:
        """All rows there are, in their order."""
        self._close_up()
        return self._room.at(slice(self._count))

    def first(self, most: int) -> Table:
        """The first rows there are."""
        return self._room.at(np.flatnonzero(self._room.entity[: self._count] != NONE)[:most])

    def append(self, new: Table, n_entities: int) -> None:
        """Rows that came now, of some of so many entities."""
        end = self._make_room(len(new.y), new.X, n_entities)
        self._room.put(slice(self._count, end), new)
        _link(self._room.entity, self._count, end, self._before, self._newest)
        self._count = end

    def append_one(
        self, x: FloatArray, y: float, weight: float, entity: int, n_entities: int
    ) -> None:
        """One row, with nothing done twice."""
        i = self._count
        room = self._room
        if i == len(room.y) or entity >= len(self._newest) or room.X.dtype != x.dtype:
            self._make_room(1, x[None], n_entities)
            i, room = self._count, self._room
        room.X[i] = x
        room.y[i] = y
        room.weight[i] = weight
        room.entity[i] = entity
        self._before[i] = self._newest[entity]
        self._newest[entity] = i
        self._count = i + 1

    def has(self, numbers: Counts) -> NDArray[np.bool_]:
        """Which of these entities have rows."""
        found = np.zeros(len(numbers), np.bool_)
        known = numbers < len(self._newest)
        found[known] = self._newest[numbers[known]] != NONE
        return found

    def chain(self, entity: int) -> tuple[Table, Counts, int]:
        """All places for rows, what leads from each to the one before, and an entity's newest."""
        known = entity < len(self._newest)
        return self._room, self._before, self._newest[entity] if known else NONE

    def find(self, numbers: Counts) -> tuple[Counts, Counts]:
        """Places of the rows of these entities, one's after the other's; where each one's begin."""
        sizes, links = np.zeros(len(numbers), np.int64), (self._before, self._newest)
        _walk(numbers, *links, sizes, np.empty(0, np.int64))
        offsets = np.append(0, np.cumsum(-sizes))
        places = np.empty(offsets[-1], np.int64)
        _walk(numbers, *links, offsets[1:].copy(), places)
        return places, offsets

    def at(self, places: Counts) -> Table:
        """The rows at these places."""
        return self._room.at(places)

    def sizes(self, n_entities: int) -> Counts:
        """How many rows each of so many entities has."""
        return np.bincount(self._room.entity[: self._count] + 1, minlength=n_entities + 1)[1:]

    def remove(self, places: Counts) -> None:
        """Take out these rows, which are the oldest of their entities, or all of them."""
        entities = np.unique(self._room.entity[places])
        self._room.entity[places] = NONE
        self._gone += len(places)
        left = self._newest[entities]
        self._newest[entities[self._room.entity[left] == NONE]] = NONE
        some_stay = bool(np.any(self._room.entity[left] != NONE))
        if some_stay or self._gone > self._count // 2:  # those that stay lead to some that left
            self._close_up()

    def _make_room(self, more: int, like: FloatArray, n_entities: int) -> int:
        if n_entities > len(self._newest):
            grown = np.full(max(64, n_entities, 2 * len(self._newest)), NONE)
            grown[: len(self._newest)] = self._newest
            self._newest = grown
        if self._gone > self._count // 2:
            self._close_up()
        end, kept = self._count + more, self._room.at(slice(self._count))
        kind = np.result_type(kept.X, like)
        if end > len(self._room.y) or kind != kept.X.dtype:
            count = max(64, end, 2 * self._count)
            self._room = Table.room(count, like.shape[1], kind)
            self._room.put(slice(self._count), kept)
            before = np.empty(count, np.int64)
            before[: self._count] = self._before[: self._count]
            self._before = before
        return end

    def _close_up(self) -> None:
        """Let the rows that stay close up."""
        if self._gone == 0:
            return
        staying = self._room.at(np.flatnonzero(self._room.entity[: self._count] != NONE))
        self._count, self._gone = len(staying.y), 0
        self._room.put(slice(self._count), staying)
        self._newest[:] = NONE
        _link(self._room.entity, 0, self._count, self._before, self._newest)
