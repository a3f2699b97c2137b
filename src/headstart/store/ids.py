"""The ids of a model on disk, found without reading all of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from headstart._core.plain import from_plain, to_plain
from headstart.store.arrays import BLOCK, Array, StoredArray, StoreError, damaged
from headstart.tasks.ids import IdIndex, canonical

MAX_LOOKUPS = 256  # for more ids at once all are read
LAST_CHARACTER = 0x10FFFF


def pack_ids(keys: list[Hashable]) -> dict[str, Array]:
    """Ids by position as arrays: sorted with their positions, or as text if not sortable so.

    The fence has the first id of each block in order: with it an id is found by reading one block.
    """
    kinds = set(map(type, keys))
    ids: Array | None = None
    if kinds == {int}:
        numbers = np.array(keys)
        ids = numbers if numbers.dtype == np.int64 else None  # larger numbers go as text
    elif kinds == {str}:
        texts = [str(key) for key in keys]
        longest = max(map(len, texts))
        if longest * len(texts) <= 8 * sum(map(len, texts)) and not any(
            text.endswith("\0") for text in texts
        ):  # no padding to one long id, no id that ends like padding
            ids = np.array(texts)
    if ids is None:
        text = json.dumps([to_plain("ids", key) for key in keys]).encode()
        return {"mixed_ids": np.frombuffer(text, np.uint8)}
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    return {"ids": ranked, "positions": order, "fence": ranked[:: _fence_step(ids.dtype)]}


def _fence_step(kind: np.dtype[Any]) -> int:
    """How many ids of a type fit into a block: the fence has the first of each so many."""
    return max(1, BLOCK // kind.itemsize)


class StoredIds:
    """Positions of ids in a model on disk; the whole index is read only for many ids at once.

    Parameters
    ----------
    arrays : those of `pack_ids`, and others
    count : how many ids there must be, if that is known
    """

    def __init__(self, arrays: Mapping[str, StoredArray], count: int | None = None) -> None:
        self._arrays, self._count = arrays, count
        self._index: IdIndex | None = None
        self._fence: Array | None = None
        if "mixed_ids" in arrays:
            text = arrays["mixed_ids"]
            if text.dtype != np.uint8 or len(text.shape) != 1:
                raise StoreError(f"{text.path} is damaged: expected text, found {text.dtype}")
        else:
            self._fence = self._checked_fence()

    def _checked_fence(self) -> Array:
        """The fence, if it and the ids and positions are of the same length and kind."""
        missing = [name for name in ("ids", "positions", "fence") if name not in self._arrays]
        if missing:
            raise ValueError(f"{missing[0]}: expected an array of this name, found none")
        ids, positions, fence = (self._arrays[name] for name in ("ids", "positions", "fence"))
        kind, (n, *more) = ids.dtype, (*ids.shape, -1)
        right = kind == np.int64 or (kind.kind == "U" and kind.isnative)
        right = right and more == [-1] and self._count in (n, None)
        right = right and positions.dtype == np.int64 and positions.shape == (n,)
        if not right or fence.dtype != kind or fence.shape != (-(-n // _fence_step(ids.dtype)),):
            raise StoreError(f"{ids.path} is damaged: ids, positions and fence do not fit")
        found = fence.whole()
        _check_ranked(fence, found)
        return found

    def __len__(self) -> int:
        return len(self.index() if self._fence is None else self._arrays["ids"])

    def __contains__(self, key: Hashable) -> bool:
        return self.find([key]) != [-1]

    @property
    def keys(self) -> list[Hashable]:
        """The ids by position."""
        return self.index().keys

    @property
    def kinds(self) -> frozenset[str]:
        """Of what kinds the ids are."""
        if self._fence is None:
            return self.index().kinds
        return frozenset({"text" if self._fence.dtype.kind == "U" else "number"})

    def find(self, keys: list[Hashable]) -> list[int]:
        """Positions; -1 for an unknown or missing id."""
        different = set(keys)
        if self._index is None and self._fence is not None and len(different) <= MAX_LOOKUPS:
            position = {key: self._find_one(key, self._fence) for key in different}
            return [position[key] for key in keys]
        return self.index().find(keys)

    def index(self) -> IdIndex:
        """All ids, in memory."""
        if self._index is None:
            self._index = self._mixed() if self._fence is None else self._ranked()
        return self._index

    def _mixed(self) -> IdIndex:
        stored = self._arrays["mixed_ids"]
        with damaged(stored.path):
            keys = [from_plain(key) for key in json.loads(stored.whole().tobytes())]
            for key in keys:
                if not is_canonical(key):
                    raise ValueError(f"expected ids, found {key!r:.60}")
            if self._count not in (len(keys), None):
                raise ValueError(f"expected {self._count} ids, found {len(keys)}")
            return IdIndex(keys)

    def _ranked(self) -> IdIndex:
        stored, order = self._arrays["ids"], self._arrays["positions"].whole()
        ranked = stored.whole()
        _check_ranked(stored, ranked)
        n = ranked.size
        there = np.zeros(n, np.bool_)
        there[order[(order >= 0) & (order < n)]] = True
        if not there.all():
            raise StoreError(f"{self._arrays['positions'].path} is damaged: expected 0 to {n - 1}")
        ids = np.empty_like(ranked)
        ids[order] = ranked
        return IdIndex(ids.tolist())

    def _find_one(self, key: Hashable, fence: Array) -> int:
        """The position of one id, read from the one block it can be in; -1 if it is not there."""
        if isinstance(key, float | np.floating) and float(key).is_integer():
            key = int(key)
        wanted = str if fence.dtype.kind == "U" else int | np.integer
        if not isinstance(key, wanted) or (wanted is not str and not -(2**63) <= key < 2**63):  # type: ignore[operator]
            return -1
        ids, step = self._arrays["ids"], _fence_step(fence.dtype)
        block = int(np.searchsorted(fence, key, side="right")) - 1
        if block < 0:
            return -1
        near = ids.between(block * step, min((block + 1) * step, len(ids)))
        _check_ranked(ids, near)
        rank = int(np.searchsorted(near, key))
        if rank == near.size or near[rank] != key:
            return -1
        (position,) = self._arrays["positions"].rows(np.array([block * step + rank])).tolist()
        if not 0 <= position < len(ids):
            raise StoreError(f"{ids.path} is damaged: an id is at position {position}")
        return int(position)


def is_canonical(key: Hashable) -> bool:
    """Whether it is a value by which an id is known."""
    known = canonical(key)
    return known is not None and bool(known == key)


def _check_ranked(stored: StoredArray, ids: Array) -> None:
    """Raise if these ids of an array are not text or numbers, each larger than the one before."""
    if ids.dtype.kind == "U" and ids.view(np.uint32).max(initial=0) > LAST_CHARACTER:
        raise StoreError(f"{stored.path} is damaged: its text has characters that there are not")
    if not np.all(ids[1:] > ids[:-1]):
        raise StoreError(f"{stored.path} is damaged: its ids are not in order")
