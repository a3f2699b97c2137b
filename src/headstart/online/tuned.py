r"""A stream that chooses its own regularisation.

Within a task the weights take constant steps, :math:`w_{k+1} = w_k - \eta\, u_k x_k`, which is
the paper's regularisation with :math:`\lambda = 1/(\eta n)` in a task of n rows (Denevi,
Stamos, Ciliberto, Pontil, 2019): one :math:`\eta` for tasks of all sizes, and nothing to know
of a task but its rows. See `candidates` for how :math:`\eta` is chosen.

The bias is learned once, by the leading candidate's meta-gradients. An entity's own weights
start from the averaged bias of the moment its task opens and take the leader's steps. The
intercept begins at the first label, so that adding a constant to all labels changes nothing
else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headstart._checks import FloatArray, Vector
from headstart._jit import inlined, kernel
from headstart.losses import Objective
from headstart.online.bias import (
    CLOSED,
    CURRENT,
    FOLLOW,
    NEW,
    OPEN,
    OPENED,
    ORIGIN,
    ROWS,
    STEPS,
    WEIGHT,
    Bias,
    Counts,
    Matrix,
    Pace,
    count_square,
    mean_square,
    meta_step,
    metric_now,
)
from headstart.online.candidates import (
    CANDIDATES,
    DECAY,
    EVERY,
    FIRST_TRIALS,
    Tried,
    Tuning,
    judge_all,
    judge_trial,
    move_all,
    predict_all,
    unit_step,
)
from headstart.sgd.one_pass import subgradient


class TunedTasks(NamedTuple):
    """Open tasks, a slot for each.

    Attributes
    ----------
    weights, pulls : from the newest bias, by the leader's steps, and the sum of subgradients
    trial : whether the candidates go through it
    tried, losses : their weights and what they lost, row k counted k times
    rows, entity : number of rows, and whose they are
    order, born : number among all tasks opened, and meta-steps before that
    """

    weights: Matrix
    pulls: Matrix
    tried: Tried
    losses: Matrix
    trial: Counts
    rows: Counts
    entity: Counts
    order: Counts
    born: Counts


class TunedEntities(NamedTuple):
    """Own weights, a row for each entity."""

    weights: FloatArray
    rows: Counts
    slot: Counts


@inlined
def close_task(
    bias: Bias, tasks: TunedTasks, tuning: Tuning, slot: Counts, s: int, pace: Pace
) -> None:
    """Judge the candidates, move the bias, and put the last slot's task into slot s."""
    metric, n, d = metric_now(bias, pace), tasks.rows[s], bias.h.size - 1
    if tasks.trial[s]:
        judge_trial(tuning, tasks.losses, s, n)
    unit = unit_step(tuning, mean_square(bias.sums, bias.counts, d), d, metric)
    meta_step(bias, tasks.pulls, s, n, tasks.born[s], pace, n * unit, metric)
    slot[tasks.entity[s]] = CLOSED
    bias.counts[OPEN] -= 1
    last = bias.counts[OPEN]
    if s != last:
        for j in range(d + 1):
            tasks.weights[s, j], tasks.pulls[s, j] = tasks.weights[last, j], tasks.pulls[last, j]
        if tasks.trial[last]:
            for q in range(CANDIDATES):
                tasks.losses[s, q] = tasks.losses[last, q]
                for j in range(d + 1):
                    tasks.tried[s, q, j] = tasks.tried[last, q, j]
        tasks.trial[s], tasks.rows[s] = tasks.trial[last], tasks.rows[last]
        tasks.entity[s], tasks.order[s] = tasks.entity[last], tasks.order[last]
        tasks.born[s] = tasks.born[last]
        slot[tasks.entity[s]] = s


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


@inlined
def _open(
    bias: Bias, tasks: TunedTasks, slot: Counts, e: int, own: FloatArray, chosen: bool
) -> int:
    """Let entity e's task begin, as a trial if it is its turn, and give its slot."""
    h, total, counts, sums = bias
    s, number = counts[OPEN], counts[OPENED]
    counts[OPEN] += 1
    counts[OPENED] += 1
    slot[e], tasks.entity[s], tasks.order[s], tasks.rows[s] = s, e, number, 0
    tasks.born[s] = counts[STEPS]
    tasks.trial[s] = not chosen and (number < FIRST_TRIALS or number % EVERY == 0)
    for j in range(h.size):
        tasks.weights[s, j], tasks.pulls[s, j] = h[j], 0.0
    if len(own) > 0:
        for j in range(h.size):
            own[e, j] = total[j] / sums[WEIGHT] if sums[WEIGHT] > 0.0 else h[j]
    if tasks.trial[s]:
        for q in range(CANDIDATES):
            tasks.losses[s, q] = 0.0
        for j in range(h.size):
            start = total[j] / sums[WEIGHT] if sums[WEIGHT] > 0.0 else h[j]
            for q in range(CANDIDATES):
                tasks.tried[s, q, j] = start
    return int(s)


@kernel
def tune_rows(
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
    """Learn from these rows; entities have own weights unless there is no room for any."""
    h, total, counts, sums = bias
    weights, pulls, tried, losses, trial, rows, _, _, _ = tasks
    own, own_rows, slot = entities
    kappas, lead, scale, given = tuning.kappas, tuning.lead, tuning.scale, tuning.given[0]
    d, form = h.size - 1, objective.form
    margins, chosen, z = form.margin, given > 0.0, np.empty(CANDIDATES)
    for i in range(len(y)):
        e, label = entity[i], y[i]
        if pace.moving_on and counts[OPEN] > 0 and counts[CURRENT] != e:
            close_task(bias, tasks, tuning, slot, counts[OPEN] - 1, pace)  # the only one
        counts[CURRENT] = e
        if counts[ROWS] == 0 and pace.metric != 0.0 and not margins and not chosen:
            h[d] = sums[ORIGIN] = label
            total[d] = sums[WEIGHT] * label
        s = counts[OPEN] if e < 0 else slot[e]
        if s == NEW:
            s = _open(bias, tasks, slot, e, own, chosen)
        if e < 0:
            for j in range(d + 1):
                weights[s, j], pulls[s, j] = h[j], 0.0
            rows[s], trial[s] = 0, 0
        at = max(s, 0)
        square, at_newest, at_mean = 0.0, weights[at, d], total[d]
        for j in range(d):
            x = np.float64(X[i, j])
            square += x * x
            at_newest += x * weights[at, j]
            at_mean += x * total[j]
        mean = count_square(sums, counts, square, d)
        metric = mean if pace.metric == FOLLOW else pace.metric
        if s >= 0 and (rows[s] == 0 or scale[0] == 0.0):
            at_mean = at_mean / sums[WEIGHT] if sums[WEIGHT] > 0.0 else at_newest
            _take_error(scale, counts[STEPS], margins, abs(at_mean - label))
        unit = given if chosen else scale[0] / (mean * d + metric)
        step = unit if chosen else kappas[lead[0]] * unit
        if s >= 0:
            u = subgradient(objective, at_newest, label)
            length = step * u
            for j in range(d):
                weights[s, j] -= length * X[i, j]
                pulls[s, j] += u * X[i, j]
            weights[s, d] -= length * metric
            pulls[s, d] += u * metric
            rows[s] += 1
        if e < 0:
            meta_step(bias, pulls, s, rows[s], counts[STEPS], pace, unit, metric)
            continue
        own_rows[e] += 1
        if len(own) > 0:
            u = subgradient(objective, _dot(X, i, own, e), label)
            _move(X, i, own, e, step * u, metric)
        if s >= 0 and trial[s]:
            predict_all(X, i, tried, s, z)
            judge_all(form, z, label, losses, s, rows[s])
            move_all(X, i, tried, s, kappas, unit, z, metric)
        if s >= 0 and rows[s] == pace.task_size:
            close_task(bias, tasks, tuning, slot, s, pace)


@kernel
def _take_error(scale: Vector, steps: int, margins: bool, error: float) -> None:
    """Take the bias's error on the first row of a task into the scale of the steps."""
    share = min(1.0, (1.0 + DECAY) / (steps + 1 + DECAY))
    scale[0] = 1.0 if margins else scale[0] + share * (error - scale[0])


@kernel
def train_tasks(
    X: FloatArray,
    y: FloatArray,
    cuts: Counts,
    owner: Counts,
    objective: Objective,
    start: Vector,
    eta: float,
    metric: float,
    entities: TunedEntities,
    first: int,
    last: int,
) -> None:
    """Train the owners of the tasks from `first` to before `last`, all from one start.

    A step is taken together with the next row's prediction, in weights that share no memory
    with what is given: so the compiler need not look whether they do.
    """
    weights, rows, _ = entities
    d = X.shape[1]
    w = np.empty(d)
    for k in range(first, last):
        e, begin, end = owner[k], cuts[k], cuts[k + 1]
        if e < 0:
            continue
        for j in range(d):
            w[j] = start[j]
        constant, length = float(start[d]), 0.0
        for i in range(begin, end):
            before, z = max(i - 1, begin), constant
            for j in range(d):
                w[j] -= length * X[before, j]
                z += w[j] * X[i, j]
            length = eta * subgradient(objective, z, y[i])
            constant -= length * metric
        for j in range(d):
            weights[e, j] = w[j] - length * X[end - 1, j]
        weights[e, d], rows[e] = constant, end - begin
