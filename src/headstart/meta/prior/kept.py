"""Rows and sums of entities that are known by number: what `Summaries` keeps of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.saved import Arrays as Saved
from headstart._core.saved import check_different, checked, float_kind, named
from headstart.inner.posterior.evidence import Evidence, sum_rows
from headstart.losses import Loss
from headstart.meta.prior.log import Log, Table
from headstart.meta.prior.sums import Sums
from headstart.tasks.columns import LEAST_SQUARE, Columns, refuse_tiny

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]  # of any kind: numbers by name, as they are saved

FIRST = 32  # rows whose middle is where all are seen from
PENDING = 1 << 16  # rows that wait at the least before all are looked through


class RowMoments(NamedTuple):
    """Sums over rows, by which their units are chosen.

    Attributes
    ----------
    total, labels : how many rows there are, and the sum of their labels
    first, square : sums of columns and of their squares, the column of ones last if it is there
    seen : whether a column has anything but 0
    """

    total: float
    labels: float
    first: Vector
    square: Vector
    seen: NDArray[np.bool_]

    def units(self, view: Columns, *, binary: bool) -> Columns:
        """Mean and mean square of the columns, of rows in the units `view`, which has scale 1."""
        total, labels, first, square, seen = self
        for column in np.flatnonzero(seen & (square < LEAST_SQUARE * total)):
            refuse_tiny(int(column))
        d = view.centre.size
        if not view.intercept:
            return Columns.from_moments(np.zeros(d), square / total, 0.0, intercept=False)
        mean = first[:d] / first[d]
        level = 0.0 if binary else labels / first[d] + view.level
        variance = square[:d] / first[d] - mean**2
        variance[variance < 1e-14 * square[:d] / first[d]] = 0.0  # the rounding of one value
        return Columns.from_moments(view.centre + mean, variance, level, intercept=True)


class Kept:
    """Rows that wait, the sums of the others, and what both show in any units.

    What an entity shows depends on its rows alone, not on when they were summed: with the squared
    loss they are sums from k / 2 rows on whenever they are looked at, and rows until then.
    """

    def __init__(self, loss: Loss, fit_intercept: bool) -> None:
        self.loss, self.fit_intercept = loss, fit_intercept
        self._line = np.empty(0, np.int64)  # of the sums of each entity, or -1
        self._owner = np.empty(0, np.int64)  # whose sums a line holds
        self._looked_through = 0  # rows that were left when rows were last summed
        self._begin(0)

    def _begin(self, n_features: int) -> None:
        self.n_features, self._placed = n_features, False
        self._log, self._sums = Log(n_features), Sums(n_features + self.fit_intercept)
        self._look_from(np.zeros(n_features), 0.0)

    def _look_from(self, centre: Vector, level: float) -> None:
        """Where rows are seen from when they are summed."""
        self._view = Columns(centre, np.ones(centre.size), level, self.fit_intercept)

    def _place(self) -> bool:
        """Choose where rows are seen from: the middle of the first ones, once there are enough.

        So sums of large numbers keep their digits, and no outlier among the first rows costs the
        others theirs.
        """
        if not self._placed and len(self._log) >= FIRST:
            self._placed = True
            if self.fit_intercept:
                first = self._log.first(FIRST)
                level = 0.0 if self.loss.binary else float(np.median(first.y))
                self._look_from(np.median(first.X, axis=0).astype(np.float64), level)
        return self._placed

    def _append(self, rows: Table, n_entities: int) -> None:
        self._make_lines(n_entities)
        self._log.append(rows, n_entities)
        if len(self._log) >= max(PENDING, 2 * self._looked_through):
            self._sum_up()

    def _make_lines(self, n_entities: int) -> None:
        if n_entities > len(self._line):
            grown = np.full(max(64, n_entities, 2 * len(self._line)), -1)
            grown[: len(self._line)] = self._line
            self._line = grown

    def _sum_up(self) -> None:
        """Sum the rows of all entities that have many, with the squared loss."""
        if self.loss.is_squared and len(self._log):
            self._sum_rows_of(np.unique(self._log.rows.entity))
        self._looked_through = len(self._log)

    def _sum_rows_of(self, numbers: Counts) -> None:
        """Sum the rows of those of these entities that have many; the others' stay rows."""
        if not self._place() or not self.loss.is_squared:
            return
        places, offsets = self._log.find(numbers)
        sizes = np.diff(offsets)
        many = (sizes > 0) & ((self._line[numbers] >= 0) | (sizes >= self._sums.k / 2))
        places = places[np.repeat(many, sizes)]
        if places.size == 0:
            return
        self._open_lines(numbers[many & (self._line[numbers] < 0)])
        for block in _blocks(places):
            X, y, weight, entity = self._log.at(block)
            inputs, labels = self._view.rows(X), self._view.labels(y)
            sum_rows(inputs, labels, weight, self._line[entity], *self._sums.parts)
        self._log.remove(places)

    def _open_lines(self, entities: Counts) -> None:
        self._line[entities] = self._sums.open(len(entities))
        if self._sums.count > len(self._owner):
            self._owner = np.resize(self._owner, max(64, self._sums.count * 9 // 8))
        self._owner[self._line[entities]] = entities

    def _remove(self, numbers: Counts) -> None:
        """Take out all that is kept of these entities."""
        self._log.remove(self._log.find(numbers)[0])
        for number in numbers[self._line[numbers] >= 0].tolist():
            line = int(self._line[number])
            last = self._sums.remove(line)  # which takes its place
            self._owner[line] = self._owner[last]
            self._line[self._owner[line]] = line
            self._line[number] = -1

    def _has_shown(self, numbers: Counts) -> NDArray[np.bool_]:
        """Which of these entities have rows or sums."""
        self._make_lines(int(numbers.max(initial=-1)) + 1)
        return (self._line[numbers] >= 0) | self._log.has(numbers)

    def _arrays(self, number: Counts) -> Arrays:
        """All that is kept, entities having these numbers instead of theirs."""
        rows, view = self._log.rows, self._view
        return {
            "log_X": rows.X,
            "log_y": rows.y,
            "log_weight": rows.weight,
            "log_entity": number[rows.entity],
            "sums": self._sums.table,
            "sums_entity": number[self._owner[: self._sums.count]],
            "view": np.concatenate([view.centre, [view.level, self._placed]]),
        }

    def _restore(self, arrays: Saved, n_features: int, n_entities: int) -> None:
        """Keep what these arrays hold, of so many columns and entities."""
        *centre, level, placed = checked(arrays, "view", (n_features + 2,), np.float64).tolist()
        self._begin(n_features)
        rows = self._checked_rows(arrays, n_entities)
        table = checked(arrays, "sums", (None, self._sums.table.shape[1]), np.float64)
        owner = checked(
            arrays, "sums_entity", (len(table),), np.int64, at_least=0, below=n_entities
        )
        check_different("sums_entity", owner, n_entities)
        if placed not in (0.0, 1.0) or (len(table) and not placed):
            raise ValueError(f"view: expected 1 where rows were summed, or 0, found {placed:g}")
        if not self.fit_intercept and (any(centre) or level):
            raise ValueError("view: expected 0 without an intercept")
        if table[:, -1].min(initial=0.0) < 0.0:
            raise ValueError("sums: expected counts of rows in the last column")
        self._placed = bool(placed)
        self._look_from(np.array(centre), level)
        self._make_lines(n_entities)
        self._open_lines(owner)
        self._sums.table[:] = table
        self._append(rows, n_entities)

    def _checked_rows(self, arrays: Saved, n_entities: int) -> Table:
        """The rows that wait."""
        kind, count = float_kind(arrays, "log_X"), len(named(arrays, "log_X"))
        rows = Table(
            checked(arrays, "log_X", (count, self.n_features), kind),
            checked(arrays, "log_y", (count,), kind),
            checked(arrays, "log_weight", (count,), np.float64, above=0.0),
            checked(arrays, "log_entity", (count,), np.int64, at_least=0, below=n_entities),
        )
        self.loss.check_labels(rows.y)
        return rows

    def _units(self, numbers: Counts) -> Columns:
        """Mean and mean square of the columns, over what these entities have shown."""
        lines = self._line[numbers]
        A, c, _, n = (part[lines[lines >= 0]] for part in self._sums.parts)
        i, labels, total = np.arange(self._sums.k), c[:, -1].sum(), n.sum()
        square, first = A[:, i * (i + 3) // 2].sum(axis=0), A[:, -self._sums.k :].sum(axis=0)
        seen = c.any(axis=0)
        for places in _blocks(np.sort(self._log.find(numbers)[0])):
            rows = self._log.at(places)
            X = self._view.rows(rows.X)
            seen |= X.any(axis=0)
            first += rows.weight @ X
            square += rows.weight @ np.square(X, out=X)
            labels += rows.weight @ self._view.labels(rows.y)
            total += rows.weight.sum()
        moments = RowMoments(total, float(labels), first, square, np.asarray(seen))
        return moments.units(self._view, binary=self.loss.binary)

    def _evidence(self, numbers: Counts, columns: Columns) -> tuple[Evidence, Counts]:
        """What these entities have shown, in these units; and which rows of the log it has."""
        self._sum_rows_of(numbers)
        places, offsets = self._log.find(numbers)
        lines = self._line[numbers]
        summed = lines >= 0
        X, y, weight = np.empty((len(places), columns.width)), *np.empty((2, len(places)))
        for first, block in enumerate(_blocks(places)):
            rows, there = self._log.at(block), slice(first * PENDING, first * PENDING + len(block))
            X[there], y[there] = columns.rows(rows.X), columns.labels(rows.y)
            weight[there] = rows.weight
        sums = self._sums.moved(lines[summed], *self._view.seen_from(columns))
        return Evidence(
            X,
            y,
            weight,
            offsets,
            np.where(summed, np.cumsum(summed) - 1, -1),
            *sums,
            np.ones((len(numbers), 1)),
        ), places


def _blocks(places: Counts) -> list[Counts]:
    """Places of rows that are looked at together: no copy is as large as all of them."""
    return [places[i : i + PENDING] for i in range(0, len(places), PENDING)]
