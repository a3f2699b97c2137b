"""Ids of tasks: any column of hashable values, and the position each id has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._checks import first_row

Ids = NDArray[np.generic]
Positions = NDArray[np.int64]


class Column(NamedTuple):
    """A column of ids in runs of equal neighbours: where each begins, its key, if it is missing."""

    ids: Ids
    starts: Positions
    keys: list[Hashable]
    missing: NDArray[np.bool_]

    def spread(self, positions: list[int]) -> Positions:
        """A position for each run as one for each row."""
        ends = np.append(self.starts[1:], self.ids.size)
        return np.repeat(np.asarray(positions, np.int64), ends - self.starts)


def read_ids(name: str, groups: ArrayLike | Iterable[Hashable]) -> Column:
    """A column of ids; None and NaN in all their forms are missing ones."""
    ids = id_array(name, groups)
    if ids.dtype.kind == "O":  # comparing neighbours may not give a bool
        keys, starts = ids.tolist(), np.arange(ids.size)
        missing = np.fromiter(map(_is_missing, keys), np.bool_, ids.size)
    else:
        starts = np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)[: ids.size]
        heads = ids[starts]
        missing = np.asarray(heads != heads)
        if ids.dtype.kind == "M":
            heads = heads.astype("datetime64[us]")  # nanoseconds would turn into bare integers
        keys = heads.tolist()
    try:
        hash(tuple(keys))
    except TypeError as error:
        raise TypeError(f"{name}: expected hashable ids, found {error}") from None
    return Column(ids, starts, keys, missing)


def encode(name: str, groups: ArrayLike | Iterable[Hashable]) -> tuple[Ids, Positions]:
    """The different ids in order of first appearance, and each row's position among them."""
    column = read_ids(name, groups)
    if (run := first_row(column.missing)) is not None:
        row = column.starts[run]
        raise ValueError(
            f"{name}: expected an id in every row, found {column.ids[row]} in row {row}"
        )
    index = IdIndex()
    codes = np.asarray(index.add(column.keys, column.missing), np.int64)
    newest = np.maximum.accumulate(codes)
    first = column.starts[np.r_[True, newest[1:] > newest[:-1]][: codes.size]]
    return column.ids[first], column.spread(codes.tolist())


class IdIndex:
    """Which ids are known, and at which position: 0, 1, ... in the order in which they came."""

    def __init__(self, keys: Sequence[Hashable] = ()) -> None:
        self._position = dict(zip(keys, range(len(keys)), strict=True))

    def __len__(self) -> int:
        return len(self._position)

    @property
    def keys(self) -> list[Hashable]:
        """The ids by position."""
        return list(self._position)

    def find(self, keys: list[Hashable]) -> list[int]:
        """Positions; -1 for an unknown or missing id."""
        get = self._position.get
        return [get(key, -1) for key in keys]

    def add(self, keys: list[Hashable], missing: NDArray[np.bool_]) -> list[int]:
        """Positions, new ids being given the next ones; -1 where missing."""
        known = self._position
        named = keys
        if missing.any():
            named = [key for key, absent in zip(keys, missing, strict=True) if not absent]
        count = len(known)
        if known.keys().isdisjoint(named) and len(set(named)) == len(keys):
            places = range(count, count + len(keys))  # all new and different, as tasks in turn are
            known.update(zip(keys, places, strict=True))
            return list(places)
        new = dict.fromkeys([key for key in named if key not in known])
        known.update(zip(new, range(count, count + len(new)), strict=True))
        return self.find(keys)


def _is_missing(i: object) -> bool:
    try:
        return i is None or bool(i != i)
    except (TypeError, ValueError):  # pandas' NA will not say whether it equals itself
        return True


def id_array(name: str, ids: ArrayLike | Iterable[Hashable]) -> Ids:
    """A 1-D array holding the ids as they are: [1, "a"] is not made two strings."""
    if hasattr(ids, "__array__"):
        column = np.asarray(ids)
        if column.ndim != 1:
            raise ValueError(f"{name}: expected a 1-D array of ids, found shape {column.shape}")
        return column
    if isinstance(ids, str | Mapping | Set) or not isinstance(ids, Iterable):
        raise TypeError(f"{name}: expected a column of ids, found {type(ids).__name__}")
    items = list(ids)
    kinds = {type(i) for i in items}
    padded = kinds == {str} and "\0" in "".join(map(str, items))  # which numpy would cut off
    if len(kinds) == 1 and kinds <= {int, float, str, bool} and not padded:
        column = np.array(items)
        if kinds != {int} or column.dtype.kind in "iu":  # some integers only floats could hold
            return column
    return np.fromiter(items, object, len(items))


def hash_ids(ids: Ids) -> NDArray[np.uint64]:
    """A number for each id that looks random, and is the same on every machine and in every run.

    Ids that are equal have the same, whatever the type of their column.
    """
    if ids.dtype.kind in "iub":
        return _mixed(ids.astype(np.int64, copy=False).view(np.uint64))
    plain = ids.astype("datetime64[us]") if ids.dtype.kind == "M" else ids
    keys = plain.tolist()
    whole = np.array([_is_whole(key) for key in keys], np.bool_)
    hashes = np.empty(len(keys), np.uint64)
    numbers = [int(key) for key, number in zip(keys, whole, strict=True) if number]
    hashes[whole] = _mixed(np.array(numbers, np.int64).view(np.uint64))
    texts = [repr(key).encode() for key, number in zip(keys, whole, strict=True) if not number]
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    hashes[~whole] = np.frombuffer(digests, "<u8")
    return hashes


def _is_whole(key: object) -> bool:
    if isinstance(key, float) and not key.is_integer():
        return False
    return isinstance(key, int | float) and -(2**63) <= key < 2**63


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea, Flood, 2014)."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
