"""The state of a stream that chooses its own regularisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from headstart._checks import FloatArray, Vector
from headstart._jit import run_blocks
from headstart.losses import Objective
from headstart.online.bias import (
    CLOSED,
    CURRENT,
    NEW,
    OPEN,
    Bias,
    Counts,
    Pace,
    follow_runs,
    metric_now,
    task_cuts,
)
from headstart.online.candidates import CANDIDATES, Tuning, choose_by_held_out, leading_step
from headstart.online.tuned import TunedEntities, TunedTasks, close_task, train_tasks, tune_rows


@dataclass
class TunedStream:
    """The state of a stream of rows that chooses its regularisation."""

    bias: Bias
    tasks: TunedTasks
    entities: TunedEntities
    tuning: Tuning

    @classmethod
    def start(
        cls,
        initial: Vector,
        dtype: DTypeLike,
        step: float,
        n_entities: int = 0,
        eta: float = 0.0,
    ) -> TunedStream:
        """The state before the first row; with `eta`, the step size is not chosen but given."""
        tuning = Tuning.start(eta)
        tasks = _no_tasks(initial.size)
        entities = _no_entities(initial.size, dtype, n_entities)
        return cls(Bias.start(initial, step), tasks, entities, tuning)

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
        known = self.entities
        room = len(known.rows)
        if n_entities > room:
            growth = 4 if room < 1 << 16 else 2  # room costs no memory until it is used
            grown = _no_entities(
                self.bias.h.size, known.weights.dtype, max(n_entities, growth * room)
            )
            for new, old in zip(grown, known, strict=True):
                new[:room] = old
            self.entities = grown
        self._open_slots(int(self.bias.counts[OPEN]) + min(len(y), n_entities) + 1)
        tune_rows(X, y, entity, objective, pace, self.bias, self.tasks, self.tuning, self.entities)
        self.bias.check(pace.step)

    def finish(self, objective: Objective, pace: Pace) -> None:  # noqa: ARG002
        """Close the open tasks, the first opened first."""
        while n_open := int(self.bias.counts[OPEN]):
            first = int(np.argmin(self.tasks.order[:n_open]))
            close_task(self.bias, self.tasks, self.tuning, self.entities.slot, first, pace)
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
        held_out: float = 0.0,
    ) -> None:
        """Learn from rows lying together by entity; then train all from the final bias.

        The last tasks, a share `held_out` of all, only choose the step size.
        """
        self._open_slots(2)
        cuts = task_cuts(entity)
        kept = len(cuts) - 1 - math.ceil(held_out * (len(cuts) - 1))
        end = cuts[kept]
        known, state = self.entities, (self.bias, self.tasks, self.tuning)
        self.entities = known._replace(weights=known.weights[:0])  # none are wanted yet
        for _ in range(passes):
            known.slot[:] = NEW
            tune_rows(X[:end], y[:end], entity[:end], objective, pace, *state, self.entities)
            self.finish(objective, pace)
        if held_out > 0.0:
            choose_by_held_out(self.tuning, self.bias, X, y, cuts[kept:], objective, pace)
        self.entities = known
        known.rows[:], known.slot[:] = 0, CLOSED
        self._train(X, y, cuts, entity[cuts[:-1]], objective, pace, known, n_jobs)

    def learn_runs(
        self,
        X: FloatArray,
        y: FloatArray,
        run: Counts,
        goes_on: bool,
        objective: Objective,
        pace: Pace,
    ) -> None:
        """Learn the bias alone, as `Stream.learn_runs`."""
        self._open_slots(2)
        entity, slot = follow_runs(run, goes_on, self.bias.counts, self.tasks.entity)
        empty = np.empty((0, self.bias.h.size), X.dtype)
        self.entities = TunedEntities(empty, np.zeros(len(slot), np.int64), slot)
        tune_rows(X, y, entity, objective, pace, self.bias, self.tasks, self.tuning, self.entities)
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
        self._train(X, y, offsets, np.arange(count), objective, pace, new, n_jobs=1)
        return new.weights

    def _train(
        self,
        X: FloatArray,
        y: FloatArray,
        cuts: Counts,
        owner: Counts,
        objective: Objective,
        pace: Pace,
        entities: TunedEntities,
        n_jobs: int,
    ) -> None:
        """Train the owner of each task from the bias as it is now."""
        start, metric = self.bias.mean, metric_now(self.bias, pace)
        eta = leading_step(self.bias, self.tuning, pace)
        run_blocks(
            lambda first, last: train_tasks(
                X, y, cuts, owner, objective, start, eta, metric, entities, first, last
            ),
            len(owner),
            n_jobs,
        )

    def _open_slots(self, wanted: int) -> None:
        n_open, old = int(self.bias.counts[OPEN]), self.tasks
        if wanted > len(old.rows):
            grown = _no_tasks(self.bias.h.size, 2 * wanted)
            for new, kept in zip(grown, old, strict=True):
                new[:n_open] = kept[:n_open]
            self.tasks = grown


def _no_tasks(width: int, slots: int = 0) -> TunedTasks:
    """Room for tasks, which costs no memory until it is used."""
    weights, pulls = np.zeros((2, slots, width))
    tried, losses = np.zeros((slots, CANDIDATES, width)), np.zeros((slots, CANDIDATES))
    return TunedTasks(weights, pulls, tried, losses, *np.zeros((5, slots), np.int64))


def _no_entities(width: int, dtype: DTypeLike, count: int) -> TunedEntities:
    weights = np.empty((count, width), dtype)
    return TunedEntities(weights, np.zeros(count, np.int64), np.full(count, NEW))
