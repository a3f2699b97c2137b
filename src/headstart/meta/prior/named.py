"""Entities by name: which number each has, and rows that are entities of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from headstart.losses import Loss
from headstart.meta.prior.kept import Kept
from headstart.meta.prior.sample import smallest
from headstart.tasks.ids import Column, IdIndex, canonical, hash_ids, id_array

Counts = NDArray[np.int64]

F = TypeVar("F", bound=Callable[..., Any])


def alone(method: F) -> F:
    """A method that no two threads are in at once."""

    @wraps(method)
    def alone(self: Named, *args: Any, **options: Any) -> Any:
        with self.lock:
            return method(self, *args, **options)

    return cast(F, alone)


class Named(Kept):
    """What is kept of entities that are known by their ids."""

    def __init__(self, loss: Loss, fit_intercept: bool) -> None:
        super().__init__(loss, fit_intercept)
        self.index = IdIndex()
        self._nameless = np.empty(0, np.int64)  # numbers of rows that are entities of their own
        self._ordinal = np.empty(0, np.int64)  # which of all such rows each of them is
        self._n_nameless = 0  # how many came
        self.lock = RLock()  # reading sums rows up too

    def __getstate__(self) -> dict[str, Any]:
        """Copies, because the arrays may move while who pickles reads them."""
        with self.lock:
            return {name: deepcopy(value) for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=RLock())

    def __len__(self) -> int:
        return len(self.index) + len(self._nameless)

    def __contains__(self, entity: Hashable) -> bool:
        return canonical(entity) in self.index

    @property
    def ids(self) -> list[Hashable]:
        """The entities there are, in the order in which they came."""
        return self.index.keys

    @alone
    def number(self, column: Column | None, n_rows: int) -> Counts:
        """The number of each row's entity, new ones being given the next.

        A row without an id is an entity of its own, which has a number and no name.
        """
        numbers = np.full(n_rows, -1)
        if column is not None:
            numbers = column.added_to(self.index)
        nobody = np.flatnonzero(numbers < 0)
        if nobody.size:
            numbers[nobody] = self._name_nobody(nobody.size)
        return numbers

    def _name_nobody(self, count: int) -> Counts:
        """Numbers of so many entities without a name."""
        numbers = np.array(self.index.reserve(count), np.int64)
        self._nameless = np.append(self._nameless, numbers)
        self._ordinal = np.append(self._ordinal, self._n_nameless + np.arange(count))
        self._n_nameless += count
        return numbers

    def _known(self, entity: Hashable) -> Hashable:
        key = canonical(entity)
        if key not in self.index:
            raise KeyError(f"ids: there is no entity {entity!r}")
        return key

    @alone
    def sample(self, most: int) -> np.uint64:
        """Keep the `most` entities with the smallest hashes; gives the largest of those."""
        hashes, numbers = self.hashes(), self.numbers()
        kept = np.zeros(len(numbers), np.bool_)
        kept[smallest(hashes, most)] = True
        named, ids = kept[: len(self.index)], self.index.keys
        self.index.remove([entity for entity, stays in zip(ids, named, strict=True) if not stays])
        nameless = kept[len(named) :]
        self.index.release(self._nameless[~nameless].tolist())
        self._nameless, self._ordinal = self._nameless[nameless], self._ordinal[nameless]
        self._remove(numbers[~kept])
        return np.uint64(hashes[kept].max())

    def numbers(self) -> Counts:
        """Numbers of all entities: in the order in which they came, those without a name last."""
        return np.append(self.index.positions, self._nameless)

    def hashes(self) -> NDArray[np.uint64]:
        """A hash of each, of its id, or of its number among those without one."""
        nobody = np.array([f"row {i} without an id" for i in self._ordinal.tolist()], object)
        return np.append(hash_ids(id_array("ids", self.ids)), hash_ids(nobody))
