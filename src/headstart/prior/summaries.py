r"""What a stream keeps of each entity, so that learning from it is learning from all rows.

A task enters its posterior only by sums over its rows (`headstart.posterior`). For the squared
loss these are the same whatever is learned later, so a row may go as soon as it is summed, and a
stream of rows in any order is the batch. For other losses a row's quadratic form is that of the
moment: the newest rows stay as rows, and one that leaves is summed as it is seen then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._checks import (
    FloatArray,
    Vector,
    as_floats,
    as_labels,
    check_count,
    check_rows,
    first_row,
)
from headstart.columns import Columns
from headstart.ids import Column, hash_ids, id_array, read_ids
from headstart.losses import Loss, get_loss
from headstart.losses.many import quadratics
from headstart.posterior.evidence import Evidence, sum_rows
from headstart.posterior.passes import posteriors
from headstart.prior.kept import Kept, between
from headstart.prior.log import Table
from headstart.prior.posterior import Posterior, row_weights
from headstart.prior.prior import Prior, check_side

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

PENDING = 1 << 16  # rows that wait at the least before they are looked through

F = TypeVar("F", bound=Callable[..., Any])


def _alone(method: F) -> F:
    """A method that no two threads are in at once."""

    @wraps(method)
    def alone(self: Summaries, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return cast(F, alone)


class Summaries(Kept):
    """What is kept of every entity of a stream: its newest rows, and sums over the others.

    Rows may come in any order, mixed in any way; any cutting of the same rows into calls gives
    the same bits. `learn_prior` takes it in place of tasks.

    With k columns, the column of ones included, sums take ``8 (k (k + 1) / 2 + k + 2)`` bytes an
    entity, and a row 8 bytes for each column of X and 24 more, or 4 and 20 in float32. With the
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
        super().__init__(chosen, fit_intercept)
        self.keep = None if keep is None else check_count("keep", keep, at_least=0)
        self._number: dict[Hashable, int] = {}  # of each entity
        self._free: list[int] = []  # numbers of entities that were forgotten
        self._lock = RLock()  # reading sums rows up too

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, entity: Hashable) -> bool:
        return entity in self._number

    def __repr__(self) -> str:
        return f"Summaries({len(self)} entities, {self.nbytes} bytes, {self.loss.name} loss)"

    @property
    def ids(self) -> list[Hashable]:
        """The entities there are, in the order in which they came."""
        return list(self._number)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and sums that are kept."""
        return sum(part.nbytes for part in (*self._log.rows, *self._sums.parts))

    def add(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ids: ArrayLike | Iterable[Hashable],
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Take rows into what is kept of the entities they belong to."""
        inputs = as_floats("X", X, 2)
        labels = as_labels("y", y, inputs)
        check_rows(inputs, labels)
        self.loss.check_labels(labels)
        weight, column = row_weights(sample_weight, len(labels)), read_ids("ids", ids)
        if column.ids.size != len(labels):
            raise ValueError(
                f"ids: expected one id per row ({len(labels)}), found {column.ids.size}"
            )
        if (run := first_row(column.missing)) is not None:
            raise ValueError(
                f"ids: expected an id in every row, found {column.ids[column.starts[run]]} "
                f"in row {column.starts[run]}"
            )
        with self._lock:
            self._take(inputs, labels, weight, column)

    def _take(self, inputs: FloatArray, labels: FloatArray, weight: Vector, column: Column) -> None:
        if self.n_features == 0:
            self._begin(inputs.shape[1])
        if inputs.shape[1] != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, found {inputs.shape[1]}")
        entity = column.spread([self._known(key) for key in column.keys])
        self._log.append(Table(inputs, labels, weight, entity).at(weight > 0.0))
        if len(self._log) > max(PENDING, 2 * self._looked_through):
            self._sum_up()

    def _known(self, key: Hashable) -> int:
        number = self._number.get(key)
        if number is None:
            number = self._free.pop() if self._free else len(self._number)
            self._number[key] = number
            if number >= len(self._line):
                grown = np.full(max(64, 2 * len(self._line)), -1)
                grown[: len(self._line)] = self._line
                self._line = grown
        return number

    @_alone
    def settle(self, prior: Prior) -> None:
        """Sum the rows that are older than the newest `keep` of each entity.

        Their quadratic forms are those under all that is known of the entity now, by `prior`.
        With the squared loss, which has one form, there is nothing to do.
        """
        self._check(prior)
        self._sum_up()
        keep = self._sums.k if self.keep is None else self.keep
        count = np.bincount(self._log.rows.entity, minlength=len(self._line))
        long = np.flatnonzero(count > keep)
        if self.loss.is_squared or long.size == 0 or not self._placed:
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
        rows = self._log.rows.at(order[old])
        leaving = np.zeros(len(self._log), np.bool_)
        leaving[order[old]] = True
        self._log.take(leaving)
        lines, (A, c, q, n) = self._line[rows.entity], self._sums.parts
        labels = tau + columns.level - self._view.level
        counted = np.zeros(len(n))
        sum_rows(self._view.rows(rows.X), labels, rows.weight * omega, lines, A, c, q, counted)
        np.add.at(q, lines, 2.0 * rows.weight * rest)
        np.add.at(n, lines, rows.weight)
        self._looked_through = len(self._log)

    @_alone
    def forget(self, entity: Hashable) -> None:
        """Take an entity out, with all that is kept of it."""
        if entity not in self._number:
            raise KeyError(f"ids: there is no entity {entity!r}")
        self._drop([entity])

    def _drop(self, entities: list[Hashable]) -> None:
        numbers = np.array([self._number.pop(entity) for entity in entities], np.int64)
        gone = np.zeros(len(self._line), np.bool_)
        gone[numbers] = True
        self._log.take(gone[self._log.rows.entity])
        for number in numbers[self._line[numbers] >= 0].tolist():
            line = int(self._line[number])
            last = self._sums.remove(line)  # which takes its place
            self._owner[line] = self._owner[last]
            self._line[self._owner.pop()] = line
            self._line[number] = -1
        self._free += numbers.tolist()

    @_alone
    def merge(self, other: Summaries) -> None:
        """Take in what another has kept; of an entity in both, the other's rows are the newer."""
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
        mine = np.full(len(other._line), -1)
        for key, number in other._number.items():
            mine[number] = self._known(key)
        summed = mine[np.array(other._owner, np.int64)]
        if summed.size:
            self._open_lines(summed[self._line[summed] < 0])
            moved = other._sums.moved(np.arange(summed.size), *between(other._view, self._view))
            self._sums.add(self._line[summed], np.column_stack(moved))
        rows = other._log.rows
        self._log.append(rows._replace(entity=mine[rows.entity]))
        self._sum_up()

    @_alone
    def sample(self, most: int) -> np.uint64:
        """Keep the `most` entities with the smallest hashes; gives the largest of those."""
        ids = self.ids
        hashes = hash_ids(id_array("ids", ids))
        kept = np.zeros(len(ids), np.bool_)
        kept[smallest(hashes, most)] = True
        self._drop([entity for entity, stays in zip(ids, kept, strict=True) if not stays])
        return np.uint64(hashes[kept].max())

    @_alone
    def posterior(self, prior: Prior, entity: Hashable, side: ArrayLike | None = None) -> Posterior:
        """What is known of an entity, under a prior."""
        if entity not in self._number:
            raise KeyError(f"ids: there is no entity {entity!r}")
        self._check(prior)
        self._sum_up()
        e, _ = self._evidence(np.array([self._number[entity]]), prior.columns)
        return prior.posterior_of(e._replace(side=prior.known(side, 1)))

    def _check(self, prior: Prior) -> None:
        """Raise if a prior is not one of such rows."""
        ours = self.n_features, self.fit_intercept, self.loss
        if ours != (prior.n_features, prior.intercept, prior.loss):
            raise ValueError(
                f"prior: expected {self.n_features} columns, intercept={self.fit_intercept} and "
                f"{self.loss!r}, found {prior.n_features}, {prior.intercept} and {prior.loss!r}"
            )

    @_alone
    def evidence(
        self, most: int | None = None, side: ArrayLike | None = None
    ) -> tuple[Evidence, Columns, Columns | None]:
        """What entities have shown, in units taken from all they have shown; units of `side`."""
        if not self._number:
            raise ValueError("tasks: these summaries are empty; add rows first")
        self._sum_up()
        numbers = np.array(list(self._number.values()))
        known = None if side is None else check_side(side, len(numbers))
        if most is not None and len(numbers) > most:
            chosen = smallest(hash_ids(id_array("ids", self.ids)), most)
            numbers, known = numbers[chosen], None if known is None else known[chosen]
        columns = self._units(numbers)
        e, _ = self._evidence(numbers, columns)
        if known is None:
            return e, columns, None
        units = Columns.of(known, np.zeros(len(known)), intercept=True)
        return e._replace(side=np.roll(units.rows(known), 1, axis=1)), columns, units


def smallest(hashes: NDArray[np.uint64], most: int) -> Counts:
    """Places of the smallest hashes, in their order."""
    return np.sort(np.argpartition(hashes, most - 1)[:most])
