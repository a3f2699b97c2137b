r"""What a stream keeps of each entity, so that learning from it is learning from all rows.

A task enters its posterior only by sums over its rows (`headstart.inner.posterior`). For the
squared loss these are the same whatever is learned later, so a row may go as soon as it is summed,
and a stream of rows in any order is the batch. For other losses a row's quadratic form is that of
the moment: the newest rows stay as rows, and one that leaves is summed as it is seen then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.checks import (
    FloatArray,
    Vector,
    as_floats,
    as_labels,
    check_count,
    check_flag,
    check_kind,
    check_rows,
)
from headstart._core.saved import MANY, checked
from headstart._core.saved import Arrays as Saved
from headstart.inner.posterior.evidence import Evidence, sum_rows
from headstart.inner.posterior.passes import posteriors
from headstart.losses import Loss, get_loss
from headstart.losses.many import quadratics
from headstart.meta.prior.kept import PENDING, Arrays
from headstart.meta.prior.log import Table
from headstart.meta.prior.named import Named, alone
from headstart.meta.prior.one import Pull, predict_one
from headstart.meta.prior.posterior import Posterior, row_weights
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.sample import MANY_TASKS, Shown, sampled
from headstart.meta.prior.units import check_side
from headstart.tasks.columns import Columns
from headstart.tasks.ids import IdIndex, read_ids

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

AT_ONCE = 1 << 16  # rows that are taken together


class Summaries(Named):
    """What is kept of every entity of a stream: its newest rows, and sums over the others.

    Rows may come in any order, mixed in any way; any cutting of the same rows into calls gives
    the same bits. `learn_prior` takes it in place of tasks.

    With k columns, the column of ones included, sums take ``8 (k (k + 1) / 2 + k + 2)`` bytes an
    entity, and a row 8 bytes for each column of X and 32 more, or 4 and 28 in float32. With the
    squared loss an entity has the smaller of the two: rows while there are fewer than k / 2, then
    sums. With other losses all rows stay until `settle` is called with a prior, which leaves the
    newest `keep` of each entity as rows.

    Parameters
    ----------
    loss : str or Loss
    fit_intercept : bool
        Whether there is a column of ones beside those of X.
    keep : int, optional
        How many newest rows of an entity `settle` leaves as rows; by default as many as columns.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, ids = rng.standard_normal((2000, 2)), rng.integers(0, 100, 2000)
    >>> own = rng.normal([1.0, -1.0], 0.3, (100, 2))
    >>> y = (X * own[ids]).sum(axis=1) + rng.standard_normal(2000)
    >>> kept = Summaries()
    >>> for i in range(0, 2000, 300):
    ...     kept.add(X[i : i + 300], y[i : i + 300], ids[i : i + 300])
    >>> from headstart import TaskSet, learn_prior
    >>> batch = learn_prior(TaskSet.from_arrays(X, y, ids))
    >>> print(len(kept), bool(np.allclose(learn_prior(kept).bias, batch.bias)))
    100 True
    """

    def __init__(
        self, loss: str | Loss = "squared", *, fit_intercept: bool = False, keep: int | None = None
    ) -> None:
        chosen = get_loss(loss)
        chosen.check_inner("posterior")
        super().__init__(chosen, check_flag("fit_intercept", fit_intercept))
        self.keep = None if keep is None else check_count("keep", keep, at_least=0)

    def __repr__(self) -> str:
        return f"Summaries({len(self)} entities, {self.nbytes} bytes, {self.loss.name} loss)"

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and sums that are kept."""
        return self._log.nbytes + self._sums.table.nbytes

    def add(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ids: ArrayLike | Iterable[Hashable],
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Take rows into what is kept of the entities they belong to."""
        inputs = as_floats("X", X, 2)
        labels = as_labels("y", y, inputs.dtype)
        check_rows(inputs, labels)
        self.loss.check_labels(labels)
        weight, column = row_weights(sample_weight, len(labels)), read_ids("ids", ids)
        column.check_length("ids", len(labels))
        column.check_complete("ids")
        self.take(inputs, labels, self.number(column, len(labels)), weight)

    @alone
    def take(self, X: FloatArray, y: FloatArray, numbers: Counts, weight: Vector | None) -> None:
        """Take rows that are known to be right into what is kept of these entities."""
        if self.n_features == 0:
            self._begin(X.shape[1])
        if X.shape[1] != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, found {X.shape[1]}")
        share = np.ones(len(y)) if weight is None else weight
        for first in range(0, len(y), AT_ONCE):
            block = slice(first, first + AT_ONCE)
            rows = Table(X[block], y[block], share[block], numbers[block])
            used = rows.weight > 0.0
            self._append(rows if used.all() else rows.at(used), self.index.room)

    @alone
    def take_one(self, x: FloatArray, y: float, key: Hashable) -> int:
        """Take one row, as `take` does, and give the number of its entity."""
        number = self.index.place(key)
        if number >= len(self._line):
            self._make_lines(self.index.room)
        self._log.append_one(x, y, 1.0, number, len(self._line))
        if len(self._log) > PENDING and len(self._log) > 2 * self._looked_through:
            self._sum_up()
        return number

    @alone
    def settle(self, prior: Prior) -> None:
        """Sum the rows that are older than the newest `keep` of each entity.

        Their quadratic forms are those under all that is known of the entity now, by `prior`.
        With the squared loss, which has one form, there is nothing to do.
        """
        self._check(prior)
        keep = self._sums.k if self.keep is None else self.keep
        long = np.flatnonzero(self._log.sizes(len(self._line)) > keep)
        if self.loss.is_squared or long.size == 0 or not self._place():
            return
        columns = prior.columns
        e, order = self._evidence(long, columns)
        _, _, moments = posteriors(e, prior.standard, self.loss)
        sizes = np.diff(e.offsets)
        rank = np.arange(len(order)) - np.repeat(e.offsets[:-1], sizes)
        old = rank < np.repeat(sizes - keep, sizes)
        omega, tau, rest = quadratics(
            self.loss.form, moments.mean[old], moments.variance[old], e.y[old]
        )
        self._open_lines(long[self._line[long] < 0])
        rows = self._log.at(order[old])
        self._log.remove(order[old])
        lines, (A, c, q, n) = self._line[rows.entity], self._sums.parts
        labels = tau + columns.level - self._view.level
        counted = np.zeros(len(n))
        sum_rows(self._view.rows(rows.X), labels, rows.weight * omega, lines, A, c, q, counted)
        np.add.at(q, lines, 2.0 * rows.weight * rest)
        np.add.at(n, lines, rows.weight)
        self._looked_through = len(self._log)

    @alone
    def forget(self, entity: Hashable) -> None:
        """Take an entity out, with all that is kept of it."""
        self._remove(np.array(self.index.remove([self._known(entity)]), np.int64))

    @alone
    def merge(self, other: Summaries) -> None:
        """Take in what another has kept; of an entity in both, the other's rows are the newer."""
        check_kind("other", other, Summaries)
        if other is self:
            raise ValueError("other: expected other summaries, found these; rows would count twice")
        if other.loss != self.loss or other.fit_intercept != self.fit_intercept:
            raise ValueError(
                f"other: expected the {self.loss.name} loss and fit_intercept="
                f"{self.fit_intercept}, found {other.loss.name} and {other.fit_intercept}"
            )
        if other.n_features == 0:
            return
        if self.n_features == 0:
            self._begin(other.n_features)
        if other.n_features != self.n_features:
            raise ValueError(f"other: expected {self.n_features} columns, found {other.n_features}")
        if other._placed and not self._placed:
            self._placed, self._view = True, other._view
        mine = np.full(other.index.room, -1)
        keys = other.index.keys
        mine[other.index.positions] = self.index.add(keys, np.zeros(len(keys), np.bool_))
        mine[other._nameless] = self._name_nobody(len(other._nameless))
        self._make_lines(self.index.room)
        summed = mine[other._owner[: other._sums.count]]
        if summed.size:
            self._open_lines(summed[self._line[summed] < 0])
            moved = other._sums.moved(np.arange(summed.size), *other._view.seen_from(self._view))
            self._sums.add(self._line[summed], np.column_stack(moved))
        rows = other._log.rows
        self._append(rows._replace(entity=mine[rows.entity]), self.index.room)

    @alone
    def arrays(self) -> Arrays:
        """All that is kept but ids, as named arrays; entities are numbered as in `numbers`."""
        number = np.zeros(self.index.room, np.int64)
        number[self.numbers()] = np.arange(len(self))
        nameless = np.append(self._ordinal, self._n_nameless)
        return {**self._arrays(number), "nameless": nameless}

    @classmethod
    def from_arrays(
        cls, loss: Loss, index: IdIndex, arrays: Saved, *, n_features: int, fit_intercept: bool
    ) -> Summaries:
        """The summaries whose `arrays` these are; `index` has their ids, from 0 on."""
        kept = cls(loss, fit_intercept=fit_intercept)
        nameless = checked(arrays, "nameless", (None,), np.int64, at_least=0, below=MANY)
        if nameless.size == 0 or np.any(nameless[1:] <= nameless[:-1]):
            raise ValueError("nameless: expected numbers in order, and how many there were")
        kept.index, kept._ordinal = index, nameless[:-1].copy()
        kept._n_nameless = int(nameless[-1])
        kept._nameless = np.array(index.reserve(len(kept._ordinal)), np.int64)
        kept._restore(arrays, n_features, index.room)
        return kept

    @alone
    def posterior(self, prior: Prior, entity: Hashable, side: ArrayLike | None = None) -> Posterior:
        """What is known of an entity, under a prior."""
        self._check(prior)
        (number,) = self.index.find([self._known(entity)])
        e, _ = self._evidence(np.array([number]), prior.columns)
        return prior.posterior_of(e._replace(side=prior.known(side, 1)))

    @alone
    def shown(self, numbers: Counts, columns: Columns) -> Evidence:
        """What entities have shown, by their numbers, in these units."""
        return self._evidence(numbers, columns)[0]

    def pull(self, prior: Prior) -> Pull:
        """A prior in the units in which rows are summed."""
        return Pull.of(prior, self._view)

    def predict_one(self, x: FloatArray, pull: Pull, number: int) -> float:
        """The prediction for a row by an entity's weights, with the squared loss."""
        with self.lock:
            rows, before, newest = self._log.chain(number)
            line = self._line[number]
            return predict_one(x, pull, self._sums.table, line, rows, before, newest)

    def _check(self, prior: Prior) -> None:
        """Raise if a prior is not one of such rows."""
        check_kind("prior", prior, Prior, "as learn_prior gives it")
        ours = self.n_features, self.fit_intercept, self.loss
        if ours != (prior.n_features, prior.intercept, prior.loss):
            raise ValueError(
                f"prior: expected {self.n_features} columns, intercept={self.fit_intercept} and "
                f"{self.loss!r}, found {prior.n_features}, {prior.intercept} and {prior.loss!r}"
            )

    @alone
    def evidence(
        self, most: int | None = None, side: ArrayLike | None = None, *, hashed: bool = False
    ) -> Shown:
        """What entities have shown, in units taken from all they have shown.

        Where ids are `hashed`, they are hashes themselves, and entities go by them.
        """
        if len(self) == 0:
            raise ValueError("tasks: these summaries are empty; add rows first")
        self._sum_up()
        numbers = self.numbers()
        known = None if side is None else check_side(side, len(numbers))
        if hashed:
            by_hash = np.argsort(np.array(self.ids, np.uint64))
            numbers, known = numbers[by_hash], None if known is None else known[by_hash]
        chosen, few = np.flatnonzero(self._has_shown(numbers)), None
        if len(chosen) > min(MANY_TASKS, most or MANY_TASKS):
            hashes = np.arange(len(numbers), dtype=np.uint64) if hashed else self.hashes()
            chosen, few = sampled(chosen, hashes[chosen], most)
        numbers, known = numbers[chosen], None if known is None else known[chosen]
        columns = self._units(numbers)
        e, _ = self._evidence(numbers, columns)
        if known is None:
            return Shown(e, columns, None, few)
        units = Columns.of(known, np.zeros(len(known)), intercept=True)
        e = e._replace(side=np.roll(units.rows(known), 1, axis=1))
        return Shown(e, columns, units, few)
