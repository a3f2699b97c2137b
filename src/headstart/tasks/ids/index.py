"""Which ids are known, and at which position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.checks import warn_user
from headstart.tasks.ids.canonical import Key, kind_of, kinds_of


class IdIndex:
    """Which ids are known, and at which position: 0, 1, ... in the order in which they came.

    Ids are keys of `canonical`. A position is a row in arrays of what is known of entities; that
    of a removed id goes to a new one, the last freed first, so that the arrays stay dense.

    Parameters
    ----------
    keys : sequence of ids, all different
    positions : array of int, optional
        Where they are; 0, 1, ... by default. Positions between them are free.

    Examples
    --------
    >>> index = IdIndex(["a", "b"])
    >>> index.place("c"), index.remove(["a"]), index.place("d"), index.room
    (2, [0], 0, 3)
    >>> index.keys, index.positions.tolist()
    (['b', 'c', 'd'], [1, 2, 0])
    """

    def __init__(self, keys: Sequence[Key] = (), positions: ArrayLike | None = None) -> None:
        count = len(keys)
        places = range(count) if positions is None else np.asarray(positions, np.int64).tolist()
        self._position: dict[Key, int] = dict(zip(keys, places, strict=True))
        self._room = max(places, default=-1) + 1
        self._free = sorted(set(range(self._room)).difference(places), reverse=True)
        if len(self._position) != count or len(self._free) != self._room - count:
            raise ValueError("keys: expected ids and positions that are all different")
        self._kinds = dict.fromkeys(sorted(kinds_of(set(map(type, keys)))))

    def __len__(self) -> int:
        return len(self._position)

    def __contains__(self, key: Key) -> bool:
        return key in self._position

    @property
    def keys(self) -> list[Key]:
        """The ids in the order in which they came."""
        return list(self._position)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where they are, in that order."""
        return np.fromiter(self._position.values(), np.int64, len(self._position))

    @property
    def room(self) -> int:
        """One more than the largest position ever given."""
        return self._room

    @property
    def kinds(self) -> frozenset[str]:
        """Of what kinds the ids are that were ever added."""
        return frozenset(self._kinds)

    def find(self, keys: Iterable[Key]) -> list[int]:
        """Positions; -1 for an unknown or missing id."""
        get = self._position.get
        return [get(key, -1) for key in keys]

    def place(self, key: Key) -> int:
        """The position of one id, which is given one if it is new."""
        position = self._position.get(key)
        if position is None:
            self._kinds[kind_of(type(key))] = None
            if self._free:
                position = self._free.pop()
            else:
                position, self._room = self._room, self._room + 1
            self._position[key] = position
        return position

    def reserve(self, count: int) -> list[int]:
        """Positions that no id has, for what has no id; until they are released."""
        reused = [self._free.pop() for _ in range(min(len(self._free), count))]
        first, self._room = self._room, self._room + count - len(reused)
        return [*reused, *range(first, self._room)]

    def release(self, positions: Iterable[int]) -> None:
        """Free positions that were reserved."""
        self._free += positions

    def add(
        self,
        keys: Sequence[Key],
        missing: NDArray[np.bool_] | None = None,
        kinds: Iterable[str] | None = None,
    ) -> list[int]:
        """Positions, new ids being given the next ones; -1 where missing.

        `kinds` spares looking at each id, where they are known.
        """
        known, named = self._position, keys
        if missing is not None and missing.any():
            named = [key for key, absent in zip(keys, missing, strict=True) if not absent]
        fresh = known.keys().isdisjoint(named) and len(set(named)) == len(named)
        new = named if fresh else list(dict.fromkeys(key for key in named if key not in known))
        if new:
            found = kinds_of(set(map(type, new))) if kinds is None else kinds
            self._kinds.update(dict.fromkeys(sorted(found)))
        places = self.reserve(len(new))
        known.update(zip(new, places, strict=True))
        return places if len(new) == len(keys) else self.find(keys)

    def remove(self, keys: Sequence[Key]) -> list[int]:
        """Take ids out, all or none; gives the positions that are free now."""
        seen: set[Key] = set()
        for key in keys:
            if key not in self._position or key in seen:
                raise KeyError(f"ids: {key!r} is no known id")
            seen.add(key)
        freed = [self._position.pop(key) for key in keys]
        self._free += freed
        return freed


class Known(Protocol):
    """Ids that are known: in memory, or in a model on disk."""

    @property
    def kinds(self) -> frozenset[str]:
        """Of what kinds the ids are."""

    def __len__(self) -> int: ...

    def find(self, keys: list[Key]) -> list[int]:
        """Positions; -1 for an unknown or missing id."""


class HasKinds(Protocol):
    """A column of ids."""

    @property
    def kinds(self) -> frozenset[str]:
        """Of what kinds they are."""


_MANY = {"text": "text", "bytes": "bytes", "time of day": "times of day"}


def warn_other_kinds(name: str, column: HasKinds, index: Known) -> None:
    """Warn if there are ids of a kind that no known id has: text, say, and known are numbers."""
    unknown = column.kinds - index.kinds
    if unknown and len(index):
        some, none = ("some ", "of those") if len(unknown) < len(column.kinds) else ("", "of them")
        warn_user(
            f"{name}: {some}ids are {_listed(unknown)}, those learned from are "
            f"{_listed(index.kinds)}, so that none {none} is known; give ids of the same type",
            UserWarning,
        )


def _listed(kinds: frozenset[str]) -> str:
    return " and ".join(_MANY.get(kind, f"{kind}s") for kind in sorted(kinds))
