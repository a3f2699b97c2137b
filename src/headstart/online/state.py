"""Tables of open tasks and of entities: a row for each, and room for more."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray
from headstart._core.saved import MANY, Arrays, checked, float_kind, named
from headstart.online.bias import CLOSED, NEW, Bias, Counts, Matrix


class OpenTasks(NamedTuple):
    """Tasks that have not given their meta-gradient: a slot for each.

    Attributes
    ----------
    h, pulls : the bias it opened with, and the sum of its subgradients
    rows, entity : number of rows, and whose they are
    order, born : number among all tasks opened, and meta-steps before that
    """

    h: Matrix
    pulls: Matrix
    rows: Counts
    entity: Counts
    order: Counts
    born: Counts

    @classmethod
    def room(cls, width: int, slots: int = 0) -> OpenTasks:
        """Room for so many tasks, which costs no memory until it is used."""
        return cls(*np.zeros((2, slots, width)), *np.zeros((4, slots), np.int64))

    @classmethod
    def from_arrays(cls, arrays: Arrays, bias: Bias, slot: Counts) -> OpenTasks:
        """The tasks saved under ``open_``; `slot` is that of the entities, which they must fit."""
        n_open, width, last = bias.n_open, bias.h.size, MANY
        vectors = (
            _writable(checked(arrays, f"open_{name}", (n_open, width), np.float64))
            for name in ("h", "pulls")
        )
        limits = {"rows": (1, last), "entity": (0, slot.size), "order": (0, last),
                  "born": (0, bias.steps + 1)}  # fmt: skip
        numbers = (
            _writable(
                checked(arrays, f"open_{name}", (n_open,), np.int64, at_least=low, below=high)
            )
            for name, (low, high) in limits.items()
        )
        tasks = cls(*vectors, *numbers)
        whose = tasks.entity
        if np.any(slot[whose] != np.arange(n_open)) or np.count_nonzero(slot >= 0) != n_open:
            raise ValueError("own_slot: expected the places of the open tasks")
        return tasks

    def with_room(self, n_open: int, more: int) -> OpenTasks:
        """These tasks with room for so many more than are open."""
        if n_open + more <= len(self.rows):
            return self
        grown = OpenTasks.room(self.h.shape[1], 2 * (n_open + more))
        for new, old in zip(grown, self, strict=True):
            new[:n_open] = old[:n_open]
        return grown

    def by_opening(self, n_open: int) -> Counts:
        """The entities whose tasks are open, the first opened first."""
        return self.entity[np.argsort(self.order[:n_open])]


class Entities(NamedTuple):
    """Own weights in progress, a row for each entity; `starts` may have one row for all.

    Weights, pulls and starts of an entity are written when its first row comes.

    Attributes
    ----------
    weights : own weights
    pulls, starts : the sum of subgradients, and the bias it began with; no rows where weights
        are exact solutions, which have no way that led to them
    rows : number of rows seen
    slot : where its open task is, or `NEW` or `CLOSED`
    """

    weights: FloatArray
    pulls: FloatArray
    starts: FloatArray
    rows: Counts
    slot: Counts

    @classmethod
    def room(cls, width: int, dtype: DTypeLike, count: int, *, exact: bool = False) -> Entities:
        """Room for so many entities."""
        weights = np.empty((count, width), dtype)
        pulls, starts = (np.empty((0 if exact else count, width), dtype) for _ in range(2))
        return cls(weights, pulls, starts, np.zeros(count, np.int64), np.full(count, NEW))

    @classmethod
    def from_arrays(cls, arrays: Arrays, width: int, count: int, *, exact: bool) -> Entities:
        """The entities saved under ``own_``."""
        kind = float_kind(arrays, "own_weights")
        ways = 0 if exact else count
        begins = 1 if len(named(arrays, "own_starts")) == 1 else ways
        sizes = {"weights": count, "pulls": ways, "starts": begins}
        weights, pulls, starts = (
            _writable(checked(arrays, f"own_{name}", (size, width), kind))
            for name, size in sizes.items()
        )
        rows, slot = (
            _writable(checked(arrays, f"own_{name}", (count,), np.int64, at_least=low, below=MANY))
            for name, low in {"rows": 0, "slot": CLOSED}.items()
        )
        return cls(weights, pulls, starts, rows, slot)

    def with_room(self, count: int) -> Entities:
        """These entities, each with a start of its own, and room for so many."""
        room = len(self.rows)
        if count <= room == len(self.starts):
            return self
        growth = 4 if room < 1 << 16 else 2  # room costs no memory until it is used
        more = max(count, growth * room) if count > room else room
        grown = Entities.room(self.weights.shape[1], self.weights.dtype, more)
        for new, old in zip(grown, self, strict=True):
            new[:room] = old
        return grown


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.flags.writeable else array.copy()
