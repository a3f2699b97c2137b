"""A stream of sparse rows that learns a prior: what is kept of an entity is its rows.

An entity's weights are those of the start but for the columns its rows have: own weights are kept
as what differs, a sparse matrix with a row for each entity. As in `PriorStream` the prior is
learned whenever the number of rows is a power of two, and at `finish`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from headstart._core.checks import FloatArray, Vector
from headstart._core.saved import MANY, checked, float_kind, named
from headstart._core.saved import Arrays as Saved
from headstart.inner.posterior.passes import sparse_posteriors
from headstart.inner.posterior.sparse_evidence import sparse_evidence
from headstart.meta.prior import Prior
from headstart.meta.prior.learn import find_prior
from headstart.meta.prior.saved import prior_arrays, prior_from
from headstart.meta.prior.sparse_posterior import standard
from headstart.online.doubling import Doubling
from headstart.online.own import PriorSettings, warn_unsettled
from headstart.online.stream import Arrays, Chunk, Positions
from headstart.tasks import TaskSet
from headstart.tasks.columns import with_intercept
from headstart.tasks.ids import IdIndex
from headstart.tasks.sparse import Csr, kernel_view, stack

ROWS = ("values", "columns", "starts", "y", "weight", "entity")


class SparseStream(Doubling):
    """A prior in progress, all rows, and what differs in every entity's own weights."""

    def __init__(self, settings: PriorSettings, n_features: int, dtype: DTypeLike) -> None:
        super().__init__(IdIndex())
        if settings.side:
            raise ValueError("side: expected None with sparse rows")
        self.settings, self.dtype, self.n_jobs = settings, dtype, 1
        self.n_features = n_features
        self._X: Csr = csr_array((0, n_features), dtype=dtype)
        self._y, self._weight = np.empty(0, dtype), np.empty(0)
        self._entity = np.empty(0, np.int64)  # -1, -2, ... for rows without an id
        self._prior: Prior | None = None
        self._own: Csr = csr_array((0, n_features + 1))
        self._learned = 0  # rows seen when the prior was learned
        self._tasks = 0  # it was learned from, if their rows are not kept

    @property
    def prior(self) -> Prior:
        """The newest prior."""
        if self._prior is None:
            raise ValueError("prior: expected rows first, found none")
        return self._prior

    @property
    def start(self) -> Vector:
        """Where a task starts of which nothing is known: d + 1 numbers."""
        return with_intercept(self.prior.bias, self.settings.fit_intercept)

    @property
    def n_tasks(self) -> int:
        """Number of entities, rows without an id among them."""
        return self._tasks + len(self.ids) + int(np.count_nonzero(self._entity < 0))

    @property
    def n_rows(self) -> int:
        """Number of rows seen."""
        return len(self._y)

    def _add(self, chunk: Chunk, entity: Positions, rows: slice) -> None:
        weight = np.ones(len(chunk.y)) if chunk.weight is None else chunk.weight
        new, nobody = entity[rows].copy(), entity[rows] < 0
        new[nobody] = -1 - np.count_nonzero(self._entity < 0) - np.arange(np.count_nonzero(nobody))
        self._X = csr_array(stack([self._X, csr_array(chunk.X[rows])]))
        self._y = np.append(self._y, chunk.y[rows])
        self._weight = np.append(self._weight, weight[rows])
        self._entity = np.append(self._entity, new)

    def _finish(self) -> None:
        if self._learned != self.n_rows and self.n_rows:
            self._learn(warns=True)

    def _learn(self, *, warns: bool) -> None:
        """Learn the prior from all rows, and every entity's own weights under it."""
        settings = self.settings
        tasks = TaskSet.from_arrays(self._X, self._y, self._entity)
        order = np.argsort(self._first_seen(), kind="stable")  # as the tasks have their rows
        prior = find_prior(
            tasks, settings.loss, settings.metric, n_jobs=self.n_jobs,
            fit_intercept=settings.fit_intercept, sample_weight=self._weight[order],
        )  # fmt: skip
        self._learned = self.n_rows
        self._know(prior, tasks, self._weight[order])
        if warns:
            warn_unsettled(prior)

    def _first_seen(self) -> Positions:
        """For each row, the number of its entity among all in the order of their first rows."""
        _, first, entity = np.unique(self._entity, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[entity]

    def _know(self, prior: Prior, tasks: TaskSet, weight: Vector) -> None:
        self._prior = prior
        owner = np.asarray(tasks.ids, np.int64)
        named = owner >= 0
        own = self.differing(tasks, weight)[named].tocoo()
        shape = self.ids.room, self.n_features + 1
        self._own = csr_array((own.data, (owner[named][own.row], own.col)), shape=shape)

    def differing(self, tasks: TaskSet, weight: Vector | None = None) -> Csr:
        """How far the weights of tasks are from the start, a row of d + 1 for each."""
        prior, X = self.prior, kernel_view(csr_array(tasks.inputs))
        e = sparse_evidence(X, tasks.y, tasks.offsets, prior.columns, None, weight)
        went, _ = sparse_posteriors(e, prior.standard, prior.loss, self.n_jobs)
        went /= np.append(prior.columns.scale, 1.0)[e.columns]
        shape = len(tasks), self.n_features + 1
        return csr_array((went, e.columns.view(np.int32), e.touched), shape=shape)

    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Own weights as rows of d + 1, and for each position the row among them."""
        known = np.where(positions < self._own.shape[0], positions, -1)
        numbers, place = np.unique(known, return_inverse=True)
        unknown = int(np.searchsorted(numbers, 0))
        own = self._own[numbers[unknown:]].toarray() + self.start
        return own.astype(self.dtype), place - unknown

    def predicted(self, X: Csr, positions: Positions) -> FloatArray:
        """The prediction of every row, by its entity's own weights if it is known."""
        start, own = self.start, self._own
        out = X @ start[:-1] + start[-1]
        known = np.flatnonzero((positions >= 0) & (positions < own.shape[0]))
        differs = own[positions[known]]
        out[known] += X[known].multiply(differs[:, :-1]).sum(axis=1)
        out[known] += differs[:, [self.n_features]].toarray()[:, 0]
        return np.asarray(out, self.dtype)

    def variance(self, X: Csr, positions: Positions) -> Vector:
        """The variance of the predictions of rows, given all that is known."""
        out, prior, loss = np.empty(X.shape[0]), self.prior, self.settings.loss
        noise = 0.0 if loss.binary else loss.noise_variance(prior.noise)
        new = positions < 0
        asked = standard(prior.columns, X[new])
        out[new] = asked.power(2) @ prior.standard.variances
        for number in np.unique(positions[~new]):
            rows, own = positions == number, self._entity == number
            known = prior.sparse_posterior(self._X[own], self._y[own], self._weight[own])
            out[rows] = known.variance(X[rows]) - noise
        return out

    def adapted(
        self,
        X: FloatArray,
        y: FloatArray,
        offsets: Positions,
        side: NDArray[np.float64] | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """Weights of new tasks, shape (tasks, d + 1)."""
        tasks = TaskSet.of(csr_array(X), y, offsets, np.arange(len(offsets) - 1))
        found = self.prior.posteriors(tasks).weights
        return found if self.settings.fit_intercept else with_intercept(found, False)

    def forget(self, key: Hashable) -> None:
        """Take an entity out, with all that is kept of it; the prior learns of it at the next."""
        with self.lock:
            (number,) = self.ids.remove([key])
            stays = self._entity != number
            self._X, self._y = self._X[stays], self._y[stays]
            self._weight, self._entity = self._weight[stays], self._entity[stays]
            self._learned = -1

    def arrays(self) -> Arrays:
        """All that is known but ids and settings, as named arrays."""
        with self.lock:
            number = np.full(self.ids.room, -1)
            number[self.ids.positions] = np.arange(len(self.ids))
            entity = np.where(self._entity < 0, self._entity, number[self._entity])
            X = self._X
            parts: list[NDArray[Any]] = [X.data, X.indices, X.indptr, self._y, self._weight, entity]
            rows = {f"sparse_{name}": part for name, part in zip(ROWS, parts, strict=True)}
            counts = {"rows": np.array([self._learned]), "tasks": np.array([self._tasks])}
            return {**rows, **prior_arrays(self.prior), **counts}

    @classmethod
    def from_arrays(cls, settings: PriorSettings, ids: IdIndex, arrays: Saved) -> Self:
        """The stream whose `arrays` these are."""
        d, n = len(named(arrays, "prior_scale")), len(named(arrays, "sparse_y"))
        prior = prior_from(
            arrays, settings.loss, n_features=d, intercept=settings.fit_intercept, sparse=True
        )
        stream = cls(settings, d, float_kind(arrays, "sparse_values"))
        stream.ids, stream._X = ids, _checked_matrix(arrays, n, d)
        y = checked(arrays, "sparse_y", (n,), stream.dtype)
        settings.loss.check_labels(y)
        weight = checked(arrays, "sparse_weight", (n,), np.float64, above=0.0)
        entity = checked(arrays, "sparse_entity", (n,), np.int64, at_least=-n, below=len(ids))
        if np.unique(entity[entity >= 0]).size != len(ids):
            raise ValueError("sparse_entity: expected rows of every id")
        stream._y, stream._weight, stream._entity = y, weight, entity
        for name, least in (("rows", -1), ("tasks", 0)):
            checked(arrays, name, (1,), np.int64, at_least=least, below=MANY)
        stream._learned, stream._tasks = int(arrays["rows"][0]), int(arrays["tasks"][0])
        stream._prior = prior
        if n:  # else it knows the prior and no entity
            order = np.argsort(stream._first_seen(), kind="stable")
            tasks = TaskSet.from_arrays(stream._X, y, entity)
            stream._know(prior, tasks, weight[order])
        return stream

    def without_entities(self) -> Self:
        """A copy that knows the prior and no entity."""
        return self.of(self.prior, self.settings, self.dtype, self.n_tasks)

    @classmethod
    def of(cls, prior: Prior, settings: PriorSettings, dtype: DTypeLike, n_tasks: int) -> Self:
        """A stream that knows a prior, learned from so many tasks, and no entity."""
        stream = cls(settings, prior.n_features, dtype)
        stream._prior, stream._tasks = prior, n_tasks
        return stream


def _checked_matrix(arrays: Saved, n: int, d: int) -> Csr:
    """The rows of a saved stream: columns in order, and no column twice in a row."""
    count = named(arrays, "sparse_values").size
    values = checked(arrays, "sparse_values", (count,), float_kind(arrays, "sparse_values"))
    indices = ("sparse_columns", count, d), ("sparse_starts", n + 1, count + 1)
    columns, starts = (
        checked(arrays, name, (length,), _index_kind(arrays, name), at_least=0, below=last)
        for name, length, last in indices
    )
    if starts[0] != 0 or starts[-1] != count or np.any(starts[1:] < starts[:-1]):
        raise ValueError("sparse_starts: expected where each row begins, in order")
    new_row = np.zeros(count + 1, np.bool_)
    new_row[starts] = True
    if np.any((columns[1:] <= columns[:-1]) & ~new_row[1:-1]):
        raise ValueError("sparse_columns: expected columns of a row in order")
    return csr_array((values, columns, starts), shape=(n, d))


def _index_kind(arrays: Saved, name: str) -> type[np.signedinteger[Any]]:
    """int32 or int64: SciPy takes what is enough."""
    return np.int32 if named(arrays, name).dtype == np.int32 else np.int64
