"""The ids of a model on disk, found without reading all of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping

import numpy as np

from headstart._core.plain import from_plain, to_plain
from headstart.store.arrays import BLOCK, Array, StoredArray
from headstart.tasks.ids import IdIndex

MAX_LOOKUPS = 256  # for more ids at once all are read


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
    return {"ids": ranked, "positions": order, "fence": ranked[:: _fence_step(ids)]}


def _fence_step(ids: Array) -> int:
    """How many of these ids fit into a block: the fence has the first of each so many."""
    return max(1, BLOCK // ids.dtype.itemsize)


class StoredIds:
    """Positions of ids in a model on disk; the whole index is read only for many ids at once."""

    def __init__(self, arrays: Mapping[str, StoredArray]) -> None:
        self._arrays = arrays
        self._index: IdIndex | None = None
        self._fence = arrays["fence"].whole() if "fence" in arrays else None

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
            if self._fence is None:
                text = self._arrays["mixed_ids"].whole().tobytes()
                keys = [from_plain(key) for key in json.loads(text)]
            else:
                ranked, order = self._arrays["ids"].whole(), self._arrays["positions"].whole()
                ids = np.empty_like(ranked)
                ids[order] = ranked
                keys = ids.tolist()
            self._index = IdIndex(keys)
        return self._index

    def _find_one(self, key: Hashable, fence: Array) -> int:
        """The position of one id, read from the one block it can be in; -1 if it is not there."""
        if isinstance(key, float | np.floating) and float(key).is_integer():
            key = int(key)
        wanted = str if fence.dtype.kind == "U" else int | np.integer
        if not isinstance(key, wanted) or (wanted is not str and not -(2**63) <= key < 2**63):  # type: ignore[operator]
            return -1
        ids, step = self._arrays["ids"], _fence_step(fence)
        block = int(np.searchsorted(fence, key, side="right")) - 1
        if block < 0:
            return -1
        near = ids.between(block * step, min((block + 1) * step, len(ids)))
        rank = int(np.searchsorted(near, key))
        if rank == near.size or near[rank] != key:
            return -1
        return int(self._arrays["positions"].rows(np.array([block * step + rank]))[0])
