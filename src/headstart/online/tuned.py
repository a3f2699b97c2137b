r"""A stream that chooses its own regularisation.

Within a task the weights take constant steps, :math:`w_{k+1} = w_k - \eta\, u_k x_k`, which is
the paper's regularisation with :math:`\lambda = 1/(\eta n)` in a task of n rows (Denevi,
Stamos, Ciliberto, Pontil, 2019): one :math:`\eta` for tasks of all sizes, and nothing to know
of a task but its rows. The candidates are free of scale: :math:`\eta = \kappa s/R^2`, with
:math:`R^2` the mean of :math:`\|x\|^2` and s the mean error of the bias on the first row of a
task (1 for margins), so that a row moves its own prediction by about :math:`\kappa s`.

Every task is gone through by all candidates from the averaged bias of the moment it opened.
What each lost before it saw a row is a fair estimate of what it would lose on new tasks; the
best so far leads. The bias is learned once, by the leader's meta-gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import ndtr

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel, run_blocks
from headstart.losses import Objective
from headstart.losses.scalar import FIRST_MARGIN_CODE, phi, score
from headstart.online.bias import (
    CLOSED,
    CURRENT,
    NEW,
    OPEN,
    OPENED,
    ROWS,
    SQUARES,
    STEPS,
    WEIGHT,
    Bias,
    Counts,
    Matrix,
    Pace,
    count_row,
    lone_row,
    mean_square,
    meta_step,
    metric_now,
)
from headstart.sgd.one_pass import subgradient

KAPPAS = 10.0 ** np.arange(-2.5, 0.6, 0.5)  # how far a row moves its prediction, in errors
REACH_OF = 1.0  # the kappa of the first meta-step
DECAY = 3.0  # old tasks count for less: the weight of task t grows as a power of t


class Tuning(NamedTuple):
    """What the candidates have lost so far.

    Attributes
    ----------
    kappas : the candidates; or one step size eta, to be taken as it is
    losses : weighted mean over tasks of each candidate's loss before seeing a row
    squares : the same of squared differences, for each pair of candidates
    lead : position of the best
    scale : mean error of the bias on a task's first row
    """

    kappas: Vector
    losses: Vector
    squares: Matrix
    lead: Counts
    scale: Vector


class TunedTasks(NamedTuple):
    """Open tasks: the leader's weights and their pull from the bias, all candidates' weights."""

    weights: Matrix
    pulls: Matrix
    tried: NDArray[np.float64]  # (slots, candidates, width)
    losses: Matrix
    rows: Counts
    entity: Counts
    order: Counts


class TunedEntities(NamedTuple):
    """Own weights, a row for each entity."""

    weights: FloatArray
    rows: Counts
    slot: Counts


@kernel
def _eta(bias: Bias, tuning: Tuning, q: int, metric: float) -> float:
    """Step size of candidate q at this moment."""
    if tuning.kappas.size == 1:
        return float(tuning.kappas[0])
    radius = mean_square(bias.sums[SQUARES], bias.counts[ROWS]) + metric
    return float(tuning.kappas[q] * tuning.scale[0] / radius)


@kernel
def _first_reach(bias: Bias, tuning: Tuning, metric: float) -> float:
    """How far the first meta-gradient would take a row's weights: DoG begins with that."""
    eta = _eta(bias, tuning, 0, metric)
    return eta * REACH_OF / tuning.kappas[0] if tuning.kappas.size > 1 else eta


@kernel
def _close(
    bias: Bias, tasks: TunedTasks, tuning: Tuning, entities: TunedEntities, s: int, pace: Pace
) -> None:
    """Judge the candidates, move the bias, and put the last slot's task into slot s."""
    metric, n = metric_now(bias, pace), tasks.rows[s]
    share = (1.0 + DECAY) / (bias.counts[STEPS] + 1 + DECAY)
    C = tuning.kappas.size
    weights = 0.5 * n * (n + 1)  # row k counts k times: late rows tell what all rows bring
    for q in range(C):
        tuning.losses[q] += share * (tasks.losses[s, q] / weights - tuning.losses[q])
        for r in range(C):
            gap = (tasks.losses[s, q] - tasks.losses[s, r]) / weights
            tuning.squares[q, r] += share * (gap * gap - tuning.squares[q, r])
    meta_step(bias, tasks.pulls, s, n, pace, n * _first_reach(bias, tuning, metric), metric)
    tuning.lead[0] = np.argmin(tuning.losses)
    e = tasks.entity[s]
    for j in range(bias.h.size):
        entities.weights[e, j] = tasks.tried[s, tuning.lead[0], j]
    entities.slot[e] = CLOSED
    bias.counts[OPEN] -= 1
    last = bias.counts[OPEN]
    if s != last:
        tasks.weights[s], tasks.pulls[s] = tasks.weights[last], tasks.pulls[last]
        tasks.tried[s], tasks.losses[s] = tasks.tried[last], tasks.losses[last]
        tasks.rows[s], tasks.order[s] = tasks.rows[last], tasks.order[last]
        tasks.entity[s] = tasks.entity[last]
        entities.slot[tasks.entity[s]] = s


@kernel
def _dot(X: FloatArray, i: int, w: FloatArray, s: int) -> float:
    z = np.float64(w[s, X.shape[1]])
    for j in range(X.shape[1]):
        z += np.float64(X[i, j]) * w[s, j]
    return z


@kernel
def _move(X: FloatArray, i: int, w: FloatArray, s: int, length: float, metric: float) -> None:
    for j in range(X.shape[1]):
        w[s, j] -= length * X[i, j]
    w[s, X.shape[1]] -= length * metric


@kernel
def _open(bias: Bias, tasks: TunedTasks, entities: TunedEntities, e: int) -> None:
    """Let entity e's task begin."""
    h, total, counts, sums = bias
    s = counts[OPEN]
    counts[OPEN] += 1
    counts[OPENED] += 1
    entities.slot[e], tasks.entity[s], tasks.order[s], tasks.rows[s] = s, e, counts[OPENED], 0
    tasks.losses[s] = 0.0
    for j in range(h.size):
        tasks.weights[s, j], tasks.pulls[s, j] = h[j], 0.0
        start = total[j] / sums[WEIGHT] if sums[WEIGHT] > 0.0 else h[j]
        for q in range(tasks.tried.shape[1]):
            tasks.tried[s, q, j] = start


@kernel
def _tune_rows(
    X: FloatArray,
    y: FloatArray,
    entity: Counts,
    objective: Objective,
    pace: Pace,
    bias: Bias,
    tasks: TunedTasks,
    tuning: Tuning,
    entities: TunedEntities,
) -> None:
    """Go through these rows with all candidates."""
    h, counts, rows = bias.h, bias.counts, tasks.rows
    d, C = h.size - 1, tuning.kappas.size
    margins = objective.code >= FIRST_MARGIN_CODE
    for i in range(len(y)):
        e = entity[i]
        if pace.moving_on and counts[OPEN] > 0 and counts[CURRENT] != e:
            _close(bias, tasks, tuning, entities, 0, pace)
        counts[CURRENT] = e
        count_row(bias, X, i)
        metric = metric_now(bias, pace)
        if e < 0:
            z = h[d]
            for j in range(d):
                z += X[i, j] * h[j]
            _take_error(bias, tuning, margins, abs(z - y[i]))
            u = subgradient(objective, z, y[i])
            reach = _first_reach(bias, tuning, metric)
            lone_row(bias, X, i, u, pace, reach, tasks.pulls, counts[OPEN])
            continue
        if entities.slot[e] == NEW:
            _open(bias, tasks, entities, e)
            s = entities.slot[e]
            _take_error(bias, tuning, margins, abs(_dot(X, i, tasks.tried[s], 0) - y[i]))
        s = entities.slot[e]
        lead = tuning.lead[0]
        if s < 0:
            u = subgradient(objective, _dot(X, i, entities.weights, e), y[i])
            eta = _eta(bias, tuning, lead, metric)
            _move(X, i, entities.weights, e, eta * u, metric)
            entities.rows[e] += 1
            continue
        rows[s] += 1
        tried = tasks.tried[s]
        for q in range(C):
            z = _dot(X, i, tried, q)
            loss = phi(objective.code, objective.c, score(objective.code, z, y[i]))
            tasks.losses[s, q] += rows[s] * loss
            u = subgradient(objective, z, y[i])
            _move(X, i, tried, q, _eta(bias, tuning, q, metric) * u, metric)
        u = subgradient(objective, _dot(X, i, tasks.weights, s), y[i])
        _move(X, i, tasks.weights, s, _eta(bias, tuning, lead, metric) * u, metric)
        _move(X, i, tasks.pulls, s, -u, metric)
        for j in range(d + 1):
            entities.weights[e, j] = tried[lead, j]
        entities.rows[e] += 1
        if rows[s] == pace.task_size:
            _close(bias, tasks, tuning, entities, s, pace)


@kernel
def _take_error(bias: Bias, tuning: Tuning, margins: bool, error: float) -> None:
    """Take the bias's error on the first row of a task into the scale of the steps."""
    share = min(1.0, (1.0 + DECAY) / (bias.counts[STEPS] + 1 + DECAY))
    tuning.scale[0] = 1.0 if margins else tuning.scale[0] + share * (error - tuning.scale[0])


@kernel
def _train_rows(
    X: FloatArray,
    y: FloatArray,
    entity: Counts,
    objective: Objective,
    start: Vector,
    eta: float,
    metric: float,
    entities: TunedEntities,
    first: int,
    last: int,
) -> None:
    """Train each entity on its rows from `first` to before `last`, from one start."""
    weights, rows, _ = entities
    for i in range(first, last):
        e = entity[i]
        if e < 0:
            continue
        if rows[e] == 0:
            for j in range(start.size):
                weights[e, j] = start[j]
        u = subgradient(objective, _dot(X, i, weights, e), y[i])
        _move(X, i, weights, e, eta * u, metric)
        rows[e] += 1


def leading_step(bias: Bias, tuning: Tuning, pace: Pace) -> float:
    """Step size eta of the leader at this moment; the paper's reg is 1 / (eta n)."""
    return float(_eta(bias, tuning, int(tuning.lead[0]), metric_now(bias, pace)))


def sureness(bias: Bias, tuning: Tuning) -> float:
    """Probability, by the normal distribution, that the leader is better than the next best."""
    losses, lead = tuning.losses, int(tuning.lead[0])
    if losses.size == 1:
        return 1.0
    gaps = losses - losses[lead]
    spread = np.maximum(tuning.squares[lead] - gaps**2, 0.0)
    seen = bias.counts[STEPS] * (2.0 * DECAY + 1.0) / (DECAY + 1.0) ** 2  # of equal weight
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.delete(gaps / np.sqrt(spread / seen), lead)
    return float(ndtr(np.nan_to_num(z, nan=0.0).min()))


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
        kappas: Vector = KAPPAS,
    ) -> TunedStream:
        """The state before the first row; one kappa is a step size to be taken as it is."""
        C = kappas.size
        tuning = Tuning(
            kappas.copy(), np.zeros(C), np.zeros((C, C)), np.array([C // 2]), np.zeros(1)
        )
        tasks = _no_tasks(initial.size, C)
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
        _tune_rows(X, y, entity, objective, pace, self.bias, self.tasks, self.tuning, self.entities)
        self.bias.check(pace.step)

    def finish(self, objective: Objective, pace: Pace) -> None:  # noqa: ARG002
        """Close the open tasks, the first opened first."""
        while n_open := int(self.bias.counts[OPEN]):
            first = int(np.argmin(self.tasks.order[:n_open]))
            _close(self.bias, self.tasks, self.tuning, self.entities, first, pace)
        self.bias.counts[CURRENT] = NEW
        self.bias.check(pace.step)

    def fit(
        self,
        X: FloatArray,
        y: FloatArray,
        entity: Counts,
        objective: Objective,
        pace: Pace,
        n_jobs: int,
    ) -> None:
        """Learn from rows lying together by entity; then train all from the final bias."""
        self._open_slots(2)
        _tune_rows(X, y, entity, objective, pace, self.bias, self.tasks, self.tuning, self.entities)
        self.finish(objective, pace)
        self.entities.rows[:] = 0
        start = self.bias.mean
        eta, metric = leading_step(self.bias, self.tuning, pace), metric_now(self.bias, pace)
        cuts = np.flatnonzero(np.r_[True, entity[1:] != entity[:-1], True])
        run_blocks(
            lambda first, last: _train_rows(
                *(X, y, entity, objective, start, eta, metric, self.entities),
                *(cuts[first], cuts[last]),
            ),
            len(cuts) - 1,
            n_jobs,
        )

    def _open_slots(self, wanted: int) -> None:
        n_open, old = int(self.bias.counts[OPEN]), self.tasks
        if wanted > len(old.rows):
            C = self.tuning.kappas.size
            grown = _no_tasks(self.bias.h.size, C, 2 * wanted)
            for new, kept in zip(grown, old, strict=True):
                new[:n_open] = kept[:n_open]
            self.tasks = grown


def _no_tasks(width: int, candidates: int, slots: int = 0) -> TunedTasks:
    weights, pulls = np.empty((2, slots, width))
    tried = np.empty((slots, candidates, width))
    rows, entity, order = np.zeros((3, slots), np.int64)
    return TunedTasks(weights, pulls, tried, np.zeros((slots, candidates)), rows, entity, order)


def _no_entities(width: int, dtype: DTypeLike, count: int) -> TunedEntities:
    weights = np.empty((count, width), dtype)
    return TunedEntities(weights, np.zeros(count, np.int64), np.full(count, NEW))
