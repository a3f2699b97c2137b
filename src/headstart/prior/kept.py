"""Rows and sums of entities that are known by number: what `Summaries` keeps of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart.columns import Columns
from headstart.losses import Loss
from headstart.posterior.evidence import Evidence, sum_rows
from headstart.prior.log import Log
from headstart.prior.sums import Sums

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

FIRST = 32  # rows whose middle is where all are seen from


class Kept:
    """Rows that wait, the sums of the others, and what both show in any units."""

    def __init__(self, loss: Loss, fit_intercept: bool) -> None:
        self.loss, self.fit_intercept = loss, fit_intercept
        self._line = np.empty(0, np.int64)  # of the sums of each entity, or -1
        self._owner: list[int] = []  # whose sums a line holds
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
                first = self._log.rows.at(slice(FIRST))
                level = 0.0 if self.loss.binary else float(np.median(first.y))
                self._look_from(np.median(first.X, axis=0).astype(np.float64), level)
        return self._placed

    def _sum_up(self) -> None:
        """Sum the rows of entities that have many, with the squared loss; the others' stay rows."""
        if self._place() and self.loss.is_squared and len(self._log):
            entity = self._log.rows.entity
            count = np.bincount(entity, minlength=len(self._line))
            many = (self._line >= 0) | (count >= self._sums.k / 2)
            self._open_lines(np.flatnonzero(many & (self._line < 0)))
            X, y, weight, entity = self._log.take(many[entity])
            inputs, labels = self._view.rows(X), self._view.labels(y)
            sum_rows(inputs, labels, weight, self._line[entity], *self._sums.parts)
        self._looked_through = len(self._log)

    def _open_lines(self, entities: Counts) -> None:
        self._line[entities] = self._sums.open(len(entities))
        self._owner += entities.tolist()

    def _units(self, numbers: Counts) -> Columns:
        """Mean and mean square of the columns, over what these entities have shown."""
        member = np.zeros(len(self._line), np.bool_)
        member[numbers] = True
        rows = self._log.rows.at(member[self._log.rows.entity])
        lines, d = self._line[numbers], self.n_features
        A, c, _, n = (part[lines[lines >= 0]].sum(axis=0) for part in self._sums.parts)
        X, y = self._view.rows(rows.X), self._view.labels(rows.y)
        i = np.arange(self._sums.k)
        square = A[i * (i + 3) // 2] + rows.weight @ np.square(X)
        if not self.fit_intercept:
            total = n + rows.weight.sum()
            return Columns.from_moments(np.zeros(d), square / total, 0.0, intercept=False)
        first = A[-self._sums.k :] + rows.weight @ X  # with the column of ones
        mean, level = first[:d] / first[d], 0.0
        if not self.loss.binary:
            level = float(c[d] + rows.weight @ y) / first[d] + self._view.level
        spread = square[:d] / first[d] - mean**2
        spread[spread < 1e-14 * square[:d] / first[d]] = 0.0  # the rounding of one value
        return Columns.from_moments(self._view.centre + mean, spread, level, intercept=True)

    def _evidence(self, numbers: Counts, columns: Columns) -> tuple[Evidence, Counts]:
        """What these entities have shown, in these units; and which rows of the log it has."""
        place = np.full(len(self._line), -1)
        place[numbers] = np.arange(len(numbers))
        at = place[self._log.rows.entity]
        order = np.argsort(at, kind="stable")[np.count_nonzero(at < 0) :]
        rows = self._log.rows.at(order)
        sizes = np.bincount(at[order], minlength=len(numbers))
        lines = self._line[numbers]
        summed = lines >= 0
        sums = self._sums.moved(lines[summed], *between(self._view, columns))
        return Evidence(
            columns.rows(rows.X),
            columns.labels(rows.y),
            rows.weight,
            np.append(0, np.cumsum(sizes)),
            np.where(summed, np.cumsum(summed) - 1, -1),
            *sums,
            np.ones((len(numbers), 1)),
        ), order


def between(one: Columns, other: Columns) -> tuple[Matrix, float]:
    """F and level: rows in the units of one are ``F x`` and ``y - level`` in those of the other."""
    F = np.diag(np.append(one.scale / other.scale, np.ones(int(one.intercept))))
    if one.intercept:
        F[:-1, -1] = (one.centre - other.centre) / other.scale
    return F, other.level - one.level
