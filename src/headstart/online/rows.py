r"""Algorithms 1 and 2 row by row.

Within a task that started from h, with :math:`S_k = \sum_{i\le k} u_i x_i`, the iterate after k
rows is :math:`h - S_k/(k\lambda)` in Algorithm 1 and :math:`h - S_k/\lambda` with constant steps,
and the meta-gradient of its n rows is :math:`S_n/n` in both.
"""

from __future__ import annotations

import numpy as np

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel, within
from headstart.inner.sgd.one_pass import AVERAGE, LAST
from headstart.inner.sgd.rule import scale_after
from headstart.losses.scalar import subgradient
from headstart.online.bias import CLOSED, NEW, Bias, Counts, begin_now, meta_step, metric_now
from headstart.online.settings import Rules
from headstart.online.state import Entities, OpenTasks
from headstart.tasks.rows import add_at, dots_at, square


@within
def _scale(rules: Rules, k: int) -> float:
    """Of the pulls in the iterate after k rows, of which nobody knows how many they will be."""
    return scale_after(k, 1, rules.constant, rules.objective.lam)


@within
def _take_row(
    X: FloatArray,
    i: int,
    label: float,
    rules: Rules,
    k: int,
    starts: FloatArray,
    a: int,
    pulls: FloatArray,
    e: int,
    metric: float,
) -> None:
    """Row i's step of Algorithm 1, k rows being done: it adds to the pulls of a task, row e.

    The task started from row `a` of `starts`. A subgradient pulls the intercept by the metric.
    """
    d = X.shape[1]
    xa, xp = dots_at(X, i, starts, a, pulls, e)
    z = xa + starts[a, d] - _scale(rules, k) * (xp + pulls[e, d])
    u = subgradient(rules.objective.form, z, label)
    add_at(X, i, u, pulls, e)
    pulls[e, d] += u * metric


@within
def _close(bias: Bias, rules: Rules, tasks: OpenTasks, slot: Counts, s: int) -> None:
    """Take the meta-step of the task in slot s, and put the last slot's task there."""
    tally, e = bias.tally[0], tasks.entity[s]
    metric = metric_now(rules, tally.squares, tally.rows * (bias.h.size - 1))
    meta_step(bias, rules, tasks.pulls, s, tasks.rows[s], tasks.born[s], metric)
    if e >= 0:
        slot[e] = CLOSED
    tally.n_open -= 1
    last = tally.n_open
    if s != last:
        for j in range(bias.h.size):
            tasks.h[s, j], tasks.pulls[s, j] = tasks.h[last, j], tasks.pulls[last, j]
        tasks.rows[s], tasks.order[s] = tasks.rows[last], tasks.order[last]
        tasks.entity[s], tasks.born[s] = tasks.entity[last], tasks.born[last]
        slot[tasks.entity[s]] = s


@kernel
def train_rows(
    X: FloatArray,
    y: FloatArray,
    entity: Counts,
    metrics: Vector,
    rules: Rules,
    entities: Entities,
    first: int | np.int64,
    last: int | np.int64,
) -> None:
    """Own weights of each entity by its rows from `first` to before `last`."""
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
        if rules.predictor != LAST:  # means of the iterates that the rows met, not of the last
            scale = _scale(rules, k)
            share = 1.0 / (k + 1) if rules.predictor == AVERAGE else 2.0 / (k + 2)
            for j in range(d + 1):
                iterate = starts[a, j] - scale * pulls[e, j]
                weights[e, j] += share * (iterate - weights[e, j])
        _take_row(X, i, y[i], rules, k, starts, a, pulls, e, metrics[i])
        rows[e] = k + 1
        if rules.predictor == LAST:
            scale = _scale(rules, k + 1)
            for j in range(d + 1):
                weights[e, j] = starts[a, j] - scale * pulls[e, j]


@kernel
def learn_rows(
    X: FloatArray,
    y: FloatArray,
    entity: Counts,
    rules: Rules,
    bias: Bias,
    tasks: OpenTasks,
    entities: Entities,
    closing: Counts,
) -> tuple[Vector, float, bool]:
    """Algorithm 2 over these rows, and own weights of their entities unless there is no room.

    A row without an id is a task of its own. Before the first row the open tasks of the entities
    `closing` close, one after another. Gives what new tasks begin with after the last.
    """
    tally = bias.tally[0]
    starts, slot = entities.starts, entities.slot
    h, total, opened, pulls, rows = bias.h, bias.total, tasks.h, tasks.pulls, tasks.rows
    d, owned = h.size - 1, len(entities.weights) > 0
    metrics = np.empty(len(y) if owned else 0)
    due = -1  # the slot of a task that closes now, in one place because that is compiled sooner
    for i in range(-len(closing), len(y) + 1):
        e = entity[i] if 0 <= i < len(y) else tally.current
        if i < 0:
            due = slot[closing[i]]
        elif rules.moving_on and due < 0 and tally.current != e:
            due = tally.n_open - 1  # the only one, or none
        if due >= 0:
            _close(bias, rules, tasks, slot, due)
            due = -1
        if i < 0 or i == len(y):
            continue
        tally.current = e
        tally.rows += 1
        tally.squares += square(X, i)
        metric = metric_now(rules, tally.squares, tally.rows * d)
        if owned:
            metrics[i] = metric
        s = NEW if e < 0 else slot[e]
        if s == NEW:
            s = tally.n_open
            tally.n_open += 1
            tally.n_opened += 1
            rows[s], tasks.entity[s] = 0, e
            tasks.order[s], tasks.born[s] = tally.n_opened, tally.steps
            for j in range(d + 1):
                opened[s, j], pulls[s, j] = h[j], 0.0
            if e >= 0:
                slot[e] = s
            if owned and e >= 0:
                weight = tally.weight
                for j in range(d + 1):
                    starts[e, j] = total[j] / weight if weight > 0.0 else h[j]
        if s < 0:
            continue
        _take_row(X, i, y[i], rules, rows[s], opened, s, pulls, s, metric)
        rows[s] += 1
        if e < 0 or rows[s] == rules.task_size:
            due = s
    if owned:
        nothing = np.int64(0)  # a bare 0 would be a type of its own
        train_rows(X, y, entity, metrics, rules, entities, nothing, len(y))
    return begin_now(bias, rules)
