r"""A stream that learns a prior: what an entity has shown is kept, and EM runs again now and then.

Rows of entities may be mixed in any way. The prior is learned whenever the number of rows is a
power of two, and at `finish`, from `Summaries` of all entities; an entity's own weights are those
under the newest prior, found when they are asked for. With the squared loss a stream of rows in
any order, and `finish`, is `fit`.

Two locks: `lock` is held by who learns, that of the summaries by who reads or writes them. So
predicting goes on while the prior is being learned.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray
from headstart._core.saved import MANY, checked, float_kind, named
from headstart._core.saved import Arrays as Saved
from headstart.meta.prior import Prior, Summaries
from headstart.meta.prior.learn import find_prior
from headstart.meta.prior.saved import prior_arrays, prior_from
from headstart.online.own import OwnWeights, PriorSettings, warn_unsettled
from headstart.online.stream import Arrays, Chunk, Positions
from headstart.tasks.ids import IdIndex

Matrix = NDArray[np.float64]


class PriorStream(OwnWeights):
    """A prior in progress, what is kept of every entity, and its own weights."""

    def __init__(self, settings: PriorSettings, n_features: int, dtype: DTypeLike) -> None:
        super().__init__(settings, n_features, dtype)
        self._rows = self._learned = 0  # rows seen, and seen when the prior was learned
        self._tasks = 0  # it was learned from

    @property
    def n_tasks(self) -> int:
        """Number of entities, rows without an id among them."""
        return self._tasks if self.summaries is None else len(self.summaries)

    @property
    def n_rows(self) -> int:
        """Number of rows seen."""
        return self._rows

    def _positions(self, chunk: Chunk) -> Positions:
        kept = self.kept
        if chunk.side is not None:
            self._check_side(chunk, chunk.side)
        with kept.lock:
            numbers = kept.number(chunk.ids, len(chunk.y))
            self._make_room()
            if chunk.side is not None:
                self._side[numbers] = chunk.side
        return numbers

    def _check_side(self, chunk: Chunk, side: Matrix) -> None:
        """Raise if what is known of an entity is not the same in all its rows."""
        if chunk.ids is None:
            return
        local = IdIndex()
        entity = chunk.ids.added_to(local)
        rows = np.flatnonzero(entity >= 0)
        _, first = np.unique(entity[rows], return_index=True)
        wanted = side[rows[first]]
        known = np.array(self.ids.find(local.keys), np.int64)
        wanted[known >= 0] = self._side[known[known >= 0]]
        differs = side[rows] != wanted[entity[rows]]
        if differs.any():
            i, j = (int(place[0]) for place in np.nonzero(differs))
            key, one = local.keys[entity[rows[i]]], wanted[entity[rows[i]], j]
            raise ValueError(
                f"side: expected one value of {self.settings.side[j]!r} for each entity, found "
                f"{one:g} and {side[rows[i], j]:g} for {key!r}; what changes from row to row is a "
                "feature"
            )

    def _add(self, chunk: Chunk, entity: Positions, rows: slice) -> None:
        weight = None if chunk.weight is None else chunk.weight[rows]
        kept, numbers = self.kept, entity[rows]
        with kept.lock:
            kept.take(chunk.X[rows], chunk.y[rows], numbers, weight)
            self._fresh[numbers] = False
        self._rows += len(numbers)

    def take_one(self, x: FloatArray, y: float, key: Hashable) -> None:
        """Go on with one row, as `take` does."""
        with self.lock:
            kept = self.kept
            with kept.lock:
                number = kept.take_one(x, y, key)
                if number >= len(self._fresh):
                    self._make_room()
                self._fresh[number] = False
            self._rows += 1
            if self._rows & (self._rows - 1) == 0:
                self._learn_midway()

    def _finish(self) -> None:
        if len(self.kept) == 0:
            return  # all were forgotten
        if self._learned != self._rows:
            self._learn(warns=True)
        self._refresh(self.kept.numbers())

    def _learn(self, *, warns: bool) -> None:
        kept, side = self.kept, None
        if self._side.shape[1]:
            side = self._side[kept.numbers()]
        wanted = self.settings
        prior = find_prior(
            kept, kept.loss, wanted.metric, side=side, n_jobs=self.n_jobs, base=wanted.base
        )
        with kept.lock:
            self._prior, self._learned, self._tasks = prior, self._rows, len(kept)
            self._fresh[:] = False
            kept.settle(prior)
        if warns:
            warn_unsettled(prior)

    def forget(self, key: Hashable) -> None:
        """Take an entity out, with all that is kept of it; the prior learns of it at the next."""
        with self.lock:
            self.kept.forget(key)
            self._learned = -1

    def merge(self, other: PriorStream) -> None:
        """Take in what another stream has kept; of an entity in both, its rows are the newer."""
        one, two = sorted((self, other), key=id)  # two that merge each other do not wait for ever
        with one.lock, two.lock:
            self._check_other(other)
            self.kept.merge(other.kept)
            with self.kept.lock:
                self._make_room()
                self._fresh[:] = False
                numbers = np.array(self.ids.find(other.ids.keys), np.int64)
                self._side[numbers] = other._side[other.ids.positions]
            self._rows += other._rows
            self._learned = -1
            self._finish()

    def _check_other(self, other: PriorStream) -> None:
        """Raise if another stream cannot be taken in."""
        if self.kept is other.kept or other.settings != self.settings:
            raise ValueError(
                "other: expected another model with the same loss, metric, fit_intercept and side"
            )
        mine = np.array(self.ids.find(other.ids.keys), np.int64)
        both = mine >= 0
        differs = np.any(self._side[mine[both]] != other._side[other.ids.positions[both]], axis=1)
        if differs.any():
            key = [k for k, known in zip(other.ids.keys, both, strict=True) if known]
            raise ValueError(
                f"other: {key[int(np.argmax(differs))]!r} has other values in the columns of side"
            )

    def drop_summaries(self) -> None:
        """Keep of each entity its weights alone."""
        with self.lock:
            if self._learned != self._rows:
                self._learn(warns=True)
            self._refresh(self.ids.positions)
            self._own = self._own[: self.ids.room].copy()
            self._side, self.summaries = self._side[:0], None

    def arrays(self) -> Arrays:
        """All that is known but ids and settings, as named arrays."""
        with self.lock:
            named = self.ids.positions
            self._refresh(named)
            found = {"own_weights": self._own[named], **prior_arrays(self.prior)}
            found["rows"] = np.array([self._rows, self._learned, self._tasks], np.int64)
            if self.summaries is not None:
                found["side"] = self._side[self.kept.numbers()]
                found |= self.kept.arrays()
            return found

    @classmethod
    def from_arrays(cls, settings: PriorSettings, ids: IdIndex, arrays: Saved) -> Self:
        """The stream whose `arrays` these are."""
        d, n_side = named(arrays, "own_weights").shape[-1] - 1, len(settings.side)
        own = checked(arrays, "own_weights", (len(ids), d + 1), float_kind(arrays, "own_weights"))
        stream = cls(settings, d, own.dtype)
        stream._prior = prior_from(
            arrays, settings.loss, n_features=d, intercept=settings.fit_intercept, n_side=n_side
        )
        counts = checked(arrays, "rows", (3,), np.int64, at_least=-1, below=MANY)
        stream._rows, stream._learned, stream._tasks = counts.tolist()
        if min(stream._rows, stream._tasks) < 0:
            raise ValueError(f"rows: expected counts, found {counts.tolist()}")
        stream.ids, stream.summaries = ids, None
        if "sums" in arrays:
            stream.summaries = Summaries.from_arrays(
                settings.loss, ids, arrays, n_features=d, fit_intercept=settings.fit_intercept
            )
        stream._make_room()
        stream._own[: len(own)], stream._fresh[: len(own)] = own, True
        if stream.summaries is not None:
            count = len(stream.summaries)
            stream._side[:count] = checked(arrays, "side", (count, n_side), np.float64)
        return stream

    def without_entities(self) -> Self:
        """A copy that knows the prior and no entity."""
        return self.of(self.prior, self.settings, self._own.dtype, self.n_rows, self.n_tasks)

    @classmethod
    def of(
        cls, prior: Prior, settings: PriorSettings, dtype: DTypeLike, n_rows: int, n_tasks: int
    ) -> Self:
        """A stream that knows a prior, learned from so many rows and tasks, and no entity."""
        stream = cls(settings, prior.n_features, dtype)
        stream._prior, stream.summaries = prior, None
        stream._rows = stream._learned = n_rows
        stream._tasks = n_tasks
        return stream
