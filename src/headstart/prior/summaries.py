r"""What a stream keeps of each entity, so that learning from it is learning from all rows.

A task enters its posterior only by sums over its rows (`headstart.posterior`). For the squared
loss these are the same whatever is learned later, so a row may go as soon as it is summed, and a
stream of rows in any order is the batch. For other losses a row's quadratic form is that of the
moment: the newest rows stay as rows, and one that leaves is summed as it is seen then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._checks import Vector, as_floats, as_labels, check_count, check_rows
from headstart.columns import Columns
from headstart.ids import Ids, hash_ids, id_array, read_ids
from headstart.losses import Loss, Squared, get_loss
from headstart.losses.many import quadratics
from headstart.posterior.evidence import Evidence, sum_rows
from headstart.posterior.passes import posteriors
from headstart.prior.log import Log
from headstart.prior.posterior import Posterior, Rows, row_weights
from headstart.prior.prior import Prior, check_side
from headstart.prior.sums import Sums

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

PENDING = 1 << 16  # rows that wait at the least before they are looked through


class Summaries:
    """What is kept of every entity of a stream: its newest rows, and sums over the others.

    Rows may come in any order, mixed in any way; any cutting of the same rows into calls gives
    the same bits. `learn_prior` takes it in place of tasks.

    With k columns, the column of ones included, sums take ``8 (k (k + 1) / 2 + k + 2)`` bytes an
    entity, a row 8 to 9 bytes a column. With the squared loss an entity has the smaller of the
    two: rows while there are fewer than k / 2, then sums. With other losses all rows stay until
    `settle` is called with a prior, which leaves the newest `keep` of each entity as rows.

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
        self.loss = get_loss(loss)
        self.loss.check_inner("posterior")
        self.fit_intercept = fit_intercept
        self.keep = None if keep is None else check_count("keep", keep, at_least=0)
        self._number: dict[Hashable, int] = {}  # of each entity
        self._free: list[int] = []  # numbers of entities that were forgotten
        self._line = np.empty(0, np.int64)  # of the sums of each entity, or -1
        self._owner: list[int] = []  # whose sums a line holds
        self._log: Log | None = None
        self._settled = 0

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, entity: Hashable) -> bool:
        return entity in self._number

    def __repr__(self) -> str:
        return f"Summaries({len(self)} entities, {self.nbytes} bytes, {self.loss.name} loss)"

    @property
    def ids(self) -> list[Hashable]:
        """The entities there are."""
        return list(self._number)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and sums that are kept."""
        return 0 if self._log is None else self._log.nbytes + 8 * self._sums.lines(self._all_lines).size

    @property
    def _all_lines(self) -> Counts:
        return np.arange(self._sums.count)

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
        weight = row_weights(sample_weight, len(labels))
        column = read_ids("ids", ids)
        if column.ids.size != len(labels):
            raise ValueError(f"ids: expected one id per row ({len(labels)}), found {column.ids.size}")
        if column.missing.any():
            row = column.starts[int(np.argmax(column.missing))]
            raise ValueError(f"ids: expected an id in every row, found none in row {row}")
        if self._log is None:
            self._begin(inputs[0].astype(np.float64), float(labels[0]), inputs.dtype)
        elif inputs.shape[1] != self._log.X.shape[1]:
            raise ValueError(
                f"X: expected {self._log.X.shape[1]} columns, found {inputs.shape[1]}"
            )
        entity = column.spread([self._known(key) for key in column.keys])
        used = weight > 0.0
        self._log.append(inputs[used], labels[used], weight[used], entity[used])
        if len(self._log) > max(PENDING, 2 * self._settled):
            self._sum_up()

    def _begin(self, x: Vector, y: float, dtype: np.dtype) -> None:
        """Rows are seen from the first one, so that sums of large numbers keep their digits."""
        k = x.size + self.fit_intercept
        self._log, self._sums = Log(x.size, dtype), Sums(k)
        self._origin = x if self.fit_intercept else np.zeros(x.size)
        self._level = y if self.fit_intercept and not self.loss.binary else 0.0

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

    @property
    def _view(self) -> Columns:
        """How rows are seen when they are summed: from the first one, and not scaled."""
        return Columns(self._origin, np.ones(self._origin.size), self._level, self.fit_intercept)

    def _sum_up(self) -> None:
        """Sum the rows of entities that have many, squared loss; the others' stay rows."""
        log = self._log
        if log is None:
            return
        if isinstance(self.loss, Squared) and len(log):
            count = np.bincount(log.entity, minlength=len(self._line))
            many = (self._line[: len(count)] >= 0) | (count >= self._sums.k / 2)
            leaving = many[log.entity]
            self._open_lines(np.flatnonzero(many & (self._line[: len(count)] < 0)))
            X, y, weight, entity = log.take(leaving)
            lines, view = self._line[entity], self._view
            sum_rows(view.rows(X), view.labels(y), weight, lines, *self._sums.parts)
        self._settled = len(log)

    def _open_lines(self, entities: Counts) -> None:
        self._line[entities] = self._sums.open(len(entities))
        self._owner += entities.tolist()

    def settle(self, prior: Prior) -> None:
        """Sum the rows that are older than the newest `keep` of each entity.

        Their quadratic forms are those under all that is known of the entity now, by `prior`.
        With the squared loss there is nothing to do.
        """
        self._sum_up()
        log = self._log
        if log is None or isinstance(self.loss, Squared) or len(log) == 0:
            return
        keep = self._sums.k if self.keep is None else self.keep
        count = np.bincount(log.entity, minlength=len(self._line))
        long = np.flatnonzero(count > keep)
        if long.size == 0:
            return
        columns = prior._rows.columns
        e, order = self._evidence_of(long, columns)
        _, _, moments = posteriors(e, prior._start, self.loss)
        rank = np.arange(len(order)) - np.repeat(e.offsets[:-1], np.diff(e.offsets))
        old = rank < np.repeat(np.diff(e.offsets) - keep, np.diff(e.offsets))
        forms = quadratics(self.loss.form, moments.mean[old], moments.variance[old], e.y[old])
        self._open_lines(long[self._line[long] < 0])
        leaving = np.zeros(len(log), np.bool_)
        leaving[order[old]] = True
        back = np.argsort(order[old], kind="stable")
        X, _, weight, entity = log.take(leaving)
        omega, tau, rest = forms[:, back]
        view, lines = self._view, self._line[entity]
        tau = tau + columns.level - self._level
        A, c, q, n = self._sums.parts
        counts = np.zeros(len(n))
        sum_rows(view.rows(X), tau, weight * omega, lines, A, c, q, counts)
        np.add.at(q, lines, 2.0 * weight * rest)
        np.add.at(n, lines, weight)
        self._settled = len(log)

    def forget(self, entity: Hashable) -> None:
        """Take an entity out, with all that is kept of it."""
        number = self._number.pop(entity, None)
        if number is None or self._log is None:
            raise KeyError(f"ids: there is no entity {entity!r}")
        self._log.take(self._log.entity == number)
        line = int(self._line[number])
        if line >= 0:
            last = self._sums.remove(line)
            self._owner[line] = self._owner[last]
            self._line[self._owner.pop()] = line
            self._line[number] = -1
        self._free.append(number)

    def merge(self, other: Summaries) -> None:
        """Take in what another has kept; of an entity in both, the other's rows are the newer."""
        if other.loss != self.loss or other.fit_intercept != self.fit_intercept:
            raise ValueError(
                f"other: expected the {self.loss.name} loss and fit_intercept="
                f"{self.fit_intercept}, found {other.loss.name} and {other.fit_intercept}"
            )
        if other._log is None:
            return
        if self._log is None:
            self._begin(other._origin, other._level, other._log.X.dtype)
        if self._log is None or other._origin.size != self._origin.size:
            raise ValueError(
                f"other: expected {self._origin.size} columns, found {other._origin.size}"
            )
        theirs = np.full(len(other._line), -1)
        for key, number in other._number.items():
            theirs[number] = self._known(key)
        summed = np.array(other._owner, np.int64)
        if summed.size:
            mine = theirs[summed]
            self._open_lines(mine[self._line[mine] < 0])
            F = np.eye(self._sums.k)
            if self.fit_intercept:
                F[:-1, -1] = other._origin - self._origin
            moved = other._sums.moved(np.arange(summed.size), F, self._level - other._level)
            self._sums.add(self._line[mine], np.column_stack(moved))
        log = other._log
        self._log.append(log.X, log.y, log.weight, theirs[log.entity])
        self._sum_up()

    def sample(self, most: int) -> np.uint64:
        """Keep the `most` entities with the smallest hashes; gives the largest of those."""
        keys = self.ids
        hashes = hash_ids(id_array("ids", keys))
        chosen = smallest(hashes, most)
        gone = np.ones(len(keys), np.bool_)
        gone[chosen] = False
        for place in np.flatnonzero(gone):
            self.forget(keys[place])
        return np.uint64(hashes[chosen].max())

    def posterior(self, prior: Prior, entity: Hashable, side: ArrayLike | None = None) -> Posterior:
        """What is known of an entity under a prior."""
        number = self._number.get(entity)
        if number is None:
            raise KeyError(f"ids: there is no entity {entity!r}")
        e, _ = self._evidence_of(np.array([number]), prior._rows.columns)
        e = e._replace(side=prior._side(side, 1))
        W, V, _ = posteriors(e, prior._start, self.loss, covariance=True)
        from headstart.posterior import unpacked

        return Posterior.of(prior._rows, W[0], unpacked(V[0]))

    def evidence(
        self, most: int | None = None, side: ArrayLike | None = None
    ) -> tuple[Evidence, Columns, Columns | None]:
        """What entities have shown, in units taken from all they have shown."""
        if self._log is None or not self._number:
            raise ValueError("tasks: these summaries are empty; add rows first")
        self._sum_up()
        numbers = np.array(list(self._number.values()))
        if most is not None and len(numbers) > most:
            numbers = numbers[smallest(hash_ids(id_array("ids", self.ids)), most)]
        known = None if side is None else check_side(side, len(self))
        units = None
        if known is not None:
            by_number = np.empty((len(self._line), known.shape[1]))
            by_number[list(self._number.values())] = known
            known = by_number[numbers]
            units = Columns.of(known, np.zeros(len(known)), intercept=True)
            known = units.rows(known)[:, :-1]
        e, _ = self._evidence_of(numbers, self._units(numbers))
        if known is not None:
            e = e._replace(side=np.column_stack([np.ones(len(numbers)), known]))
        return e, self._units(numbers), units

    def _units(self, numbers: Counts) -> Columns:
        """Mean and mean square of the columns of these entities."""
        log, view = self._log, self._view
        if log is None:
            raise ValueError("tasks: these summaries are empty; add rows first")
        member = np.zeros(len(self._line), np.bool_)
        member[numbers] = True
        lines = self._line[numbers]
        A, c, _, n = self._sums.moved(lines[lines >= 0], np.eye(self._sums.k), 0.0)
        rows = member[log.entity]
        X, y = view.rows(log.X[rows]), view.labels(log.y[rows])
        weight = log.weight[rows]
        k = self._sums.k
        i = np.arange(k)
        square = A.sum(axis=0)[i * (i + 3) // 2] + weight @ np.square(X)
        d = self._origin.size
        if not self.fit_intercept:
            total = n.sum() + weight.sum()
            return Columns.from_moments(np.zeros(d), square / total, 0.0, intercept=False)
        first = A.sum(axis=0)[-k:] + weight @ X
        mean = first[:d] / first[d]
        level = 0.0
        if not self.loss.binary:
            level = (c[:, d].sum() + weight @ y) / first[d] + self._level
        spread = np.maximum(square[:d] / first[d] - mean**2, 0.0)
        spread[spread < 1e-14 * square[:d] / first[d]] = 0.0
        return Columns.from_moments(self._origin + mean, spread, level, intercept=True)

    def _evidence_of(self, numbers: Counts, columns: Columns) -> tuple[Evidence, Counts]:
        """What these entities have shown, in these units; and which rows of the log it has."""
        log = self._log
        if log is None:
            raise ValueError("tasks: these summaries are empty; add rows first")
        place = np.full(len(self._line), -1)
        place[numbers] = np.arange(len(numbers))
        at = place[log.entity]
        order = np.argsort(at, kind="stable")[np.count_nonzero(at < 0) :]
        sizes = np.bincount(at[order], minlength=len(numbers))
        lines = self._line[numbers]
        summed = lines >= 0
        F = np.diag(np.append(1.0 / columns.scale, np.ones(int(self.fit_intercept))))
        if self.fit_intercept:
            F[:-1, -1] = (self._origin - columns.centre) / columns.scale
        sums = self._sums.moved(lines[summed], F, columns.level - self._level)
        return Evidence(
            columns.rows(log.X[order]),
            columns.labels(log.y[order]),
            log.weight[order],
            np.append(0, np.cumsum(sizes)),
            np.where(summed, np.cumsum(summed) - 1, -1),
            *sums,
            np.ones((len(numbers), 1)),
        ), order


def smallest(hashes: NDArray[np.uint64], most: int) -> Counts:
    """Places of the smallest hashes, in their order."""
    return np.sort(np.argpartition(hashes, most - 1)[:most])
