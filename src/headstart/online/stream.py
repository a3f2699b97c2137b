r"""Algorithm 2 over a stream of rows, and the own weights of every entity in it.

A task opens at its first row with the bias of that moment and gives one meta-gradient when it
closes: after `task_size` rows, or when the stream moves on to another entity. Each entity's own
weights start from the averaged bias of the same moment and are trained by all its rows, also
those after its task has closed. A row without an id is a task of its own.

Every vector has one coordinate more than there are features, the intercept. It is that of a
constant column of value b in other units: :math:`\langle x, w\rangle + w_0` with
:math:`w_0` pulled by :math:`b^2 u` instead of :math:`b u`, where :math:`b^2` is the mean square
of the inputs so far. So b follows their scale without a second look.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from headstart._checks import FloatArray, Vector
from headstart._jit import run_blocks
from headstart.losses import Objective
from headstart.online.bias import (
    CURRENT,
    FOLLOW,
    NEW,
    OPEN,
    Bias,
    Counts,
    Pace,
    follow_runs,
    task_cuts,
)
from headstart.online.given import Entities, OpenTasks, close_task, learn_rows, train_rows
from headstart.sgd.one_pass import AVERAGE, LAST, POLY

PREDICTORS = {"average": AVERAGE, "last": LAST, "poly": POLY}


@dataclass
class Stream:
    """The state of a stream of rows: the bias, the open tasks, the entities' own weights."""

    bias: Bias
    tasks: OpenTasks
    entities: Entities
    predictor: str

    @classmethod
    def start(
        cls, initial: Vector, dtype: DTypeLike, step: float, predictor: str, n_entities: int = 0
    ) -> Stream:
        """The state before the first row, with room for so many entities."""
        entities = _no_entities(initial.size, dtype, n_entities)
        return cls(Bias.start(initial, step), _no_tasks(initial.size), entities, predictor)

    def take(
        self,
        X: FloatArray,
        y: FloatArray,
        entity: Counts,
        n_entities: int,
        objective: Objective,
        pace: Pace,
    ) -> None:
        """Go on with these rows; entities beyond those known so far are new ones."""
        self._make_room(n_entities, len(y))
        metrics = np.empty(len(y))
        known, starts = self.entities, self.entities.starts
        learn_rows(
            X, y, entity, objective, pace, self.bias, self.tasks, known.slot, starts, metrics
        )
        self.bias.check(pace.step)
        kind = PREDICTORS[self.predictor]
        train_rows(X, y, entity, metrics, objective, kind, known, 0, len(y))

    def finish(self, objective: Objective, pace: Pace) -> None:
        """Close the open tasks, the first opened first."""
        while n_open := int(self.bias.counts[OPEN]):
            first = int(np.argmin(self.tasks.order[:n_open]))
            close_task(self.bias, self.tasks, self.entities.slot, first, pace, objective.lam)
        self.bias.counts[CURRENT] = NEW
        self.bias.check(pace.step)

    def fit(
        self,
        X: FloatArray,
        y: FloatArray,
        entity: Counts,
        objective: Objective,
        pace: Pace,
        passes: int,
        n_jobs: int,
    ) -> None:
        """Learn the bias from rows lying together by entity; then train all of them from it."""
        self._open_slots(2)
        slot, metrics = self.entities.slot, np.empty(len(y))
        no_starts = np.empty((0, self.bias.h.size), X.dtype)
        state = self.bias, self.tasks, slot, no_starts, metrics
        for _ in range(passes):
            slot[:] = NEW
            learn_rows(X, y, entity, objective, pace, *state)
            self.finish(objective, pace)
        self.entities = self._train(X, y, entity, objective, pace, self.entities, n_jobs)

    def learn_runs(
        self,
        X: FloatArray,
        y: FloatArray,
        run: Counts,
        goes_on: bool,
        objective: Objective,
        pace: Pace,
    ) -> None:
        """Learn the bias alone from rows lying together, numbered by task from 0, or -1.

        The first task may be the one before that `goes_on`. No entity is remembered.
        """
        self._open_slots(2)
        entity, slot = follow_runs(run, goes_on, self.bias.counts, self.tasks.entity)
        self.entities = _no_entities(self.bias.h.size, X.dtype, 0)._replace(slot=slot)
        no_starts, metrics = np.empty((0, self.bias.h.size), X.dtype), np.empty(len(y))
        state = self.bias, self.tasks, slot, no_starts, metrics
        learn_rows(X, y, entity, objective, pace, *state)
        self.bias.check(pace.step)

    def forget(self) -> None:
        """Remember no entity."""
        self.entities = _no_entities(self.bias.h.size, self.entities.weights.dtype, 0)

    def adapted(
        self,
        X: FloatArray,
        y: FloatArray,
        offsets: Counts,
        objective: Objective,
        pace: Pace,
    ) -> FloatArray:
        """Weights of new entities after their rows: from ``offsets[k]`` to the next."""
        count = len(offsets) - 1
        new = _no_entities(self.bias.h.size, X.dtype, count)
        entity = np.repeat(np.arange(count), np.diff(offsets))
        return self._train(X, y, entity, objective, pace, new, n_jobs=1).weights

    def _train(
        self,
        X: FloatArray,
        y: FloatArray,
        entity: Counts,
        objective: Objective,
        pace: Pace,
        entities: Entities,
        n_jobs: int,
    ) -> Entities:
        """Train entities from the bias as it is now."""
        known = entities._replace(starts=self.bias.mean.astype(X.dtype)[None, :])
        metrics = np.full(len(y), self.bias.scale**2 if pace.metric == FOLLOW else pace.metric)
        kind = PREDICTORS[self.predictor]
        cuts = task_cuts(entity)
        run_blocks(
            lambda first, last: train_rows(
                X, y, entity, metrics, objective, kind, known, cuts[first], cuts[last]
            ),
            len(cuts) - 1,
            n_jobs,
        )
        return known

    def _make_room(self, n_entities: int, n_rows: int) -> None:
        known = self.entities
        room = len(known.rows)
        if n_entities > room or len(known.starts) < room:
            growth = 4 if room < 1 << 16 else 2  # room costs no memory until it is used
            more = max(n_entities, growth * room) if n_entities > room else room
            grown = _no_entities(self.bias.h.size, known.weights.dtype, more)
            for new, old in zip(grown, known, strict=True):
                new[:room] = old
            self.entities = grown
        self._open_slots(int(self.bias.counts[OPEN]) + min(n_rows, n_entities) + 1)

    def _open_slots(self, wanted: int) -> None:
        n_open = int(self.bias.counts[OPEN])
        if wanted > len(self.tasks.rows):
            grown = _no_tasks(self.bias.h.size, 2 * wanted)
            for new, old in zip(grown, self.tasks, strict=True):
                new[:n_open] = old[:n_open]
            self.tasks = grown


def _no_tasks(width: int, slots: int = 0) -> OpenTasks:
    h, pulls = np.zeros((2, slots, width))
    rows, entity, order, born = np.zeros((4, slots), np.int64)
    return OpenTasks(h, pulls, rows, entity, order, born)


def _no_entities(width: int, dtype: DTypeLike, count: int) -> Entities:
    weights, pulls, starts = (np.empty((count, width), dtype) for _ in range(3))
    return Entities(weights, pulls, starts, np.zeros(count, np.int64), np.full(count, NEW))
