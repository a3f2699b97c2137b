"""Kernels of a stream whose regularisation is given: Algorithms 1 and 2 row by row."""

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
    STEPS,
    WEIGHT,
    Bias,
    Counts,
    Matrix,
    Pace,
    count_row,
    lone_row,
    meta_step,
    metric_now,
)
from headstart.sgd.one_pass import AVERAGE, LAST, subgradient


class OpenTasks(NamedTuple):
    """Tasks that have not given their meta-gradient: a slot for each."""

    h: Matrix
    pulls: Matrix
    rows: Counts
    entity: Counts
    order: Counts
    born: Counts


class Entities(NamedTuple):
    """Own weights in progress, a row for each entity; `starts` may have one row for all.

    Weights, pulls and starts of an entity are written when its first row comes.
    """

    weights: FloatArray
    pulls: FloatArray
    starts: FloatArray
    rows: Counts
    slot: Counts


@inlined
def close_task(bias: Bias, tasks: OpenTasks, slot: Counts, s: int, pace: Pace, lam: float) -> None:
    """Take the meta-step of the task in slot s, and put the last slot's task there."""
    n, born = tasks.rows[s], tasks.born[s]
    meta_step(bias, tasks.pulls, s, n, born, pace, 1.0 / lam, metric_now(bias, pace))
    slot[tasks.entity[s]] = CLOSED
    bias.counts[OPEN] -= 1
    last = bias.counts[OPEN]
    if s != last:
        for j in range(bias.h.size):
            tasks.h[s, j], tasks.pulls[s, j] = tasks.h[last, j], tasks.pulls[last, j]
        tasks.rows[s], tasks.order[s] = tasks.rows[last], tasks.order[last]
        tasks.entity[s], tasks.born[s] = tasks.entity[last], tasks.born[last]
        slot[tasks.entity[s]] = s


@kernel
def learn_rows(
    X: FloatArray,
    y: FloatArray,
    entity: Counts,
    objective: Objective,
    pace: Pace,
    bias: Bias,
    tasks: OpenTasks,
    slot: Counts,
    starts: FloatArray,
    metrics: Vector,
) -> None:
    """Algorithm 2 over these rows. Fills the metric of each row and the starts of new entities."""
    h, total, counts, sums = bias
    opened, pulls, rows = tasks.h, tasks.pulls, tasks.rows
    d = h.size - 1
    for i in range(len(y)):
        e = entity[i]
        if pace.moving_on and counts[OPEN] > 0 and counts[CURRENT] != e:
            close_task(bias, tasks, slot, counts[OPEN] - 1, pace, objective.lam)  # the only one
        counts[CURRENT] = e
        mean = count_row(sums, counts, X, i)
        metric = mean if pace.metric == FOLLOW else pace.metric
        metrics[i] = metric
        if e < 0:
            z = h[d]
            for j in range(d):
                z += X[i, j] * h[j]
            u = subgradient(objective, z, y[i])
            lone_row(bias, X, i, u, pace, 1.0 / objective.lam, pulls, counts[OPEN])
            continue
        if slot[e] == NEW:
            s = counts[OPEN]
            counts[OPEN] += 1
            counts[OPENED] += 1
            slot[e], tasks.entity[s], tasks.order[s], rows[s] = s, e, counts[OPENED], 0
            tasks.born[s] = counts[STEPS]
            for j in range(d + 1):
                opened[s, j], pulls[s, j] = h[j], 0.0
            if len(starts) > 0:
                for j in range(d + 1):
                    starts[e, j] = total[j] / sums[WEIGHT] if sums[WEIGHT] > 0.0 else h[j]
        s = slot[e]
        if s < 0:
            continue
        xh, xp = opened[s, d], pulls[s, d]
        for j in range(d):
            x = np.float64(X[i, j])
            xh += x * opened[s, j]
            xp += x * pulls[s, j]
        scale = 1.0 / (rows[s] * objective.lam) if rows[s] > 0 else 0.0
        u = subgradient(objective, xh - scale * xp, y[i])
        for j in range(d):
            pulls[s, j] += u * X[i, j]
        pulls[s, d] += u * metric
        rows[s] += 1
        if rows[s] == pace.task_size:
            close_task(bias, tasks, slot, s, pace, objective.lam)


@kernel
def train_rows(
    X: FloatArray,
    y: FloatArray,
    entity: Counts,
    metrics: Vector,
    objective: Objective,
    predictor: int,
    entities: Entities,
    first: int,
    last: int,
) -> None:
    """Algorithm 1 of each entity over its rows from `first` to before `last`."""
    weights, pulls, starts, rows, _ = entities
    d = X.shape[1]
    for i in range(first, last):
        e = entity[i]
        if e < 0:
            continue
        a, k = min(e, len(starts) - 1), rows[e]
        if k == 0:
            for j in range(d + 1):
                weights[e, j], pulls[e, j] = starts[a, j], 0.0
        scale = 1.0 / (k * objective.lam) if k > 0 else 0.0
        xa, xp = np.float64(starts[a, d]), np.float64(pulls[e, d])
        for j in range(d):
            xa += np.float64(X[i, j]) * starts[a, j]
            xp += np.float64(X[i, j]) * pulls[e, j]
        u = subgradient(objective, xa - scale * xp, y[i])
        rows[e] = k + 1
        if predictor == LAST:
            scale = 1.0 / ((k + 1) * objective.lam)
            for j in range(d):
                pulls[e, j] += u * X[i, j]
                weights[e, j] = starts[a, j] - scale * pulls[e, j]
            pulls[e, d] += u * metrics[i]
            weights[e, d] = starts[a, d] - scale * pulls[e, d]
        else:
            share = 1.0 / (k + 1) if predictor == AVERAGE else 2.0 / (k + 2)
            for j in range(d):
                iterate = starts[a, j] - scale * pulls[e, j]
                weights[e, j] += share * (iterate - weights[e, j])
                pulls[e, j] += u * X[i, j]
            weights[e, d] += share * (starts[a, d] - scale * pulls[e, d] - weights[e, d])
            pulls[e, d] += u * metrics[i]


@kernel
def predictions(
    X: FloatArray, entity: Counts, weights: FloatArray, bias: FloatArray, out: FloatArray
) -> None:
    """``<x, w> + w_0`` of every row with its entity's weights, or the bias where that is -1."""
    d = bias.size - 1
    for i in range(len(X)):
        e, z = entity[i], 0.0
        if e >= 0:
            for j in range(d):
                z += np.float64(X[i, j]) * weights[e, j]
            z += weights[e, d]
        else:
            for j in range(d):
                z += np.float64(X[i, j]) * bias[j]
            z += bias[d]
        out[i] = z
