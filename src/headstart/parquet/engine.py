"""Who runs a function over partitions: threads of this process, or the workers of a cluster.

Partitions are numbered, and neighbours form blocks: at most `BLOCKS` of them, however many
partitions there are. Whoever computes a block adds up its partitions in their order, and blocks
are added in theirs. So what is computed has the same bits for any number of threads or workers,
and who asks has to do with blocks alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import cores
from headstart.parquet.plan import Partition

BLOCKS = 256
MOST_THREADS = 8  # that read: each has a row group in memory
SHARE = 0.4  # of the memory there is, for partitions that stay
LIMITS = (  # of a container's memory, in the second and first version of Linux' control groups
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

Item = TypeVar("Item")
Result = TypeVar("Result")
Loaded = TypeVar("Loaded")
Vector = NDArray[np.float64]


def in_blocks(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Neighbours together, in at most `BLOCKS` blocks of one size."""
    size = -(-len(items) // BLOCKS) or 1
    return [items[first : first + size] for first in range(0, len(items), size)]


def in_pairs(items: Iterable[Item], merge: Callable[[Item, Item], Item]) -> Item:
    """All items as one: neighbours are merged, then pairs of them, and so on, by their number."""
    waiting: list[tuple[int, Item]] = []
    for item in items:
        size = 1
        while waiting and waiting[-1][0] == size:
            size, item = 2 * size, merge(waiting.pop()[1], item)
        waiting.append((size, item))
    _, found = waiting.pop()
    while waiting:
        found = merge(waiting.pop()[1], found)
    return found


class Parts(Generic[Loaded]):
    """Partitions that are loaded when they are first needed, and kept as far as there is room.

    Those that find no room are loaded again whenever they are needed. A copy in another process
    has nothing loaded.

    Parameters
    ----------
    load : gives what is wanted of a partition
    partitions : list of Partition
    weigh : how many bytes that takes
    room : bytes that may be kept in each process; by default a share of its memory
    """

    def __init__(
        self,
        load: Callable[[Partition], Loaded],
        partitions: Sequence[Partition],
        weigh: Callable[[Loaded], int],
        room: int | None = None,
    ) -> None:
        self._load, self._weigh, self.room = load, weigh, room
        self.partitions, self.blocks = partitions, in_blocks(range(len(partitions)))
        self._kept: dict[int, Loaded] = {}
        self._bytes, self._lock = 0, Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Parts, (self._load, self.partitions, self._weigh, self.room)

    def __getitem__(self, number: int) -> Loaded:
        found = self._kept.get(number)
        if found is None:
            found = self._load(self.partitions[number])
            size = self._weigh(found)
            with self._lock:
                room = memory() if self.room is None else self.room
                if number not in self._kept and self._bytes + size <= room:
                    self._kept[number] = found
                    self._bytes += size
        return found

    def each(self, block: int, function: Callable[..., Result], *args: Any) -> list[Result]:
        """What a function of a partition, its number and more gives for each of a block."""
        return [function(self[number], number, *args) for number in self.blocks[block]]

    def sum(self, block: int, function: Callable[..., Vector], *args: Any) -> Vector:
        """The sum of what it gives, in the order of the partitions."""
        first, *others = self.blocks[block]
        total = function(self[first], first, *args)
        for number in others:
            total = total + function(self[number], number, *args)
        return total


class Held(Protocol):
    """Partitions that stay where they are loaded."""

    def each(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """What a function of a partition, its number and more gives for each, in order."""

    def sum(self, function: Callable[..., Vector], *args: Any) -> Vector:
        """The sum of what it gives, by blocks."""


class Engine(Protocol):
    """Who runs functions. A function may be run twice: it must not change what it is given."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """What a function gives for each item, in order."""

    def tree(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """The same, merged as `in_pairs` does."""

    def hold(self, parts: Parts[Loaded]) -> Held:
        """Partitions that stay with who loaded them."""


class LocalEngine:
    """Threads of this process: as many as there are cores, or `threads`."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or min(cores(), MOST_THREADS)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """What a function gives for each item, in order."""
        if self.threads == 1:
            yield from map(function, items)
            return
        pool = ThreadPoolExecutor(self.threads)
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)  # nothing more is begun after a fault

    def tree(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """The same, merged as `in_pairs` does."""
        return in_pairs(self.map(function, items), merge)

    def hold(self, parts: Parts[Loaded]) -> LocalHeld:
        """Partitions in the memory of this process."""
        return LocalHeld(parts, self)


class LocalHeld:
    """Partitions in the memory of this process."""

    def __init__(self, parts: Parts[Any], engine: Engine) -> None:
        self._parts, self._engine = parts, engine

    def each(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """What a function of a partition, its number and more gives for each, in order."""
        blocks = range(len(self._parts.blocks))
        return list(
            chain(*self._engine.map(lambda b: self._parts.each(b, function, *args), blocks))
        )

    def sum(self, function: Callable[..., Vector], *args: Any) -> Vector:
        """The sum of what it gives, by blocks."""
        blocks = range(len(self._parts.blocks))
        return added(self._engine.map(lambda b: self._parts.sum(b, function, *args), blocks))


def added(blocks: Iterable[Vector]) -> Vector:
    """The sum of blocks, in their order."""
    first, *others = blocks
    total = first.copy()
    for block in others:
        total += block
    return total


def memory() -> int:
    """Bytes that may be kept in this process: a share of its machine's or container's memory."""
    known = [size for size in (_physical(), *map(_limit, LIMITS)) if size is not None]
    return int(SHARE * min(known)) if known else 1 << 32


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def _limit(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # there is none, or it says "max"
        return None
