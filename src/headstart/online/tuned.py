r"""A stream that chooses its own regularisation.

Within a task the weights take constant steps, :math:`w_{k+1} = w_k - \eta\, u_k x_k`, which is
the paper's regularisation with :math:`\lambda = 1/(\eta n)` in a task of n rows (Denevi,
Stamos, Ciliberto, Pontil, 2019): one :math:`\eta` for tasks of all sizes, and nothing to know
of a task but its rows. The candidates are free of scale: :math:`\eta = \kappa s/R^2`, with
:math:`R^2` the mean of :math:`\|x\|^2` and s the mean error of the bias on the first row of a
task (1 for margins), so that a row moves its own prediction by about :math:`\kappa s`.

Every task is gone through by all candidates from the averaged bias of the moment it opened.
The intercept begins at the first label, so that adding a constant to all labels changes
nothing else. What each lost before it saw a row is a fair estimate of what it would lose on
new tasks; the best so far leads. The bias is learned once, by the leader's meta-gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel
from headstart.losses import Objective
from headstart.losses.scalar import (
    ABSOLUTE,
    FIRST_MARGIN_CODE,
    HINGE,
    phi,
    score,
    sign_of,
    slope,
)
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
    count_row,
    lone_row,
    mean_square,
    meta_step,
    metric_now,
)
from headstart.sgd.one_pass import subgradient

KAPPAS = 10.0 ** np.arange(-2.5, 1.1, 0.5)  # how far a row moves its prediction, in errors
LANES = KAPPAS.size
DECAY = 3.0  # old tasks count for less: the weight of task t grows as a power of t


Tried = NDArray[np.float64]  # weights by slot and candidate


class Tuning(NamedTuple):
    """What the candidates have lost so far.

    Attributes
    ----------
    kappas : the candidates
    given : the step size eta, if it is not to be chosen, else 0
    losses : weighted mean over tasks of each candidate's loss before seeing a row
    squares : the same of squared differences, for each pair of candidates
    lead : position of the best
    scale : mean error of the bias on a task's first row
    """

    kappas: Vector
    given: Vector
    losses: Vector
    squares: Matrix
    lead: Counts
    scale: Vector


class TunedTasks(NamedTuple):
    """Open tasks: the leader's weights and their pull from the bias, all candidates' weights."""

    weights: Matrix
    pulls: Matrix
    tried: Tried
    losses: Matrix
    rows: Counts
    entity: Counts
    order: Counts
    born: Counts


class TunedEntities(NamedTuple):
    """Own weights, a row for each entity."""

    weights: FloatArray
    rows: Counts
    slot: Counts


@kernel
def _unit(tuning: Tuning, mean: float, d: int, metric: float) -> float:
    """The step size of kappa 1, when `mean` is the mean square of the inputs."""
    if tuning.given[0] > 0.0:
        return float(tuning.given[0])
    return float(tuning.scale[0] / (mean * d + metric))


@kernel
def close_task(
    bias: Bias, tasks: TunedTasks, tuning: Tuning, entities: TunedEntities, s: int, pace: Pace
) -> None:
    """Judge the candidates, move the bias, and put the last slot's task into slot s."""
    metric, n = metric_now(bias, pace), tasks.rows[s]
    share = (1.0 + DECAY) / (bias.counts[STEPS] + 1 + DECAY)
    weights = 0.5 * n * (n + 1)  # row k counts k times: late rows tell what all rows bring
    for q in range(LANES):
        tuning.losses[q] += share * (tasks.losses[s, q] / weights - tuning.losses[q])
        for r in range(LANES):
            gap = (tasks.losses[s, q] - tasks.losses[s, r]) / weights
            tuning.squares[q, r] += share * (gap * gap - tuning.squares[q, r])
    d = bias.h.size - 1
    unit = _unit(tuning, mean_square(bias.sums, bias.counts, d), d, metric)
    meta_step(bias, tasks.pulls, s, n, tasks.born[s], pace, n * unit, metric)
    if tuning.given[0] == 0.0:
        tuning.lead[0] = np.argmin(tuning.losses)
    e = tasks.entity[s]
    entities.slot[e] = CLOSED
    _keep_weights(entities.weights, e, tasks.tried, s, tuning.lead[0])
    bias.counts[OPEN] -= 1
    last = bias.counts[OPEN]
    if s != last:
        tasks.weights[s], tasks.pulls[s] = tasks.weights[last], tasks.pulls[last]
        tasks.tried[s], tasks.losses[s] = tasks.tried[last], tasks.losses[last]
        tasks.rows[s], tasks.order[s] = tasks.rows[last], tasks.order[last]
        tasks.entity[s], tasks.born[s] = tasks.entity[last], tasks.born[last]
        entities.slot[tasks.entity[s]] = s


@kernel
def _keep_weights(weights: FloatArray, e: int, V: Tried, s: int, lead: int) -> None:
    """The leader's weights of the task in slot s are the own ones of entity e."""
    if len(weights) > 0:
        for j in range(weights.shape[1]):
            weights[e, j] = V[s, lead, j]


@kernel
def _predict_all(X: FloatArray, i: int, V: Tried, s: int, z: Vector) -> None:
    """All candidates' predictions of row i."""
    d = X.shape[1]
    for q in range(LANES):
        sum_ = V[s, q, d]
        for j in range(d):
            sum_ += X[i, j] * V[s, q, j]
        z[q] = sum_


@kernel
def _judge(code: int, c: float, z: Vector, y: float, losses: Matrix, s: int, k: int) -> None:
    sign = sign_of(code, y)
    for q in range(LANES):
        r = score(code, z[q], y)
        losses[s, q] += k * phi(code, c, r)
        z[q] = sign * slope(code, c, r)


@kernel
def _judge_all(code: int, c: float, z: Vector, y: float, losses: Matrix, s: int, k: int) -> None:
    """Add k times the candidates' losses, and put their subgradients in the predictions' place.

    The usual losses are named, because only a constant becomes vector instructions.
    """
    if code == ABSOLUTE:
        _judge(ABSOLUTE, c, z, y, losses, s, k)
    elif code == HINGE:
        _judge(HINGE, c, z, y, losses, s, k)
    else:
        _judge(code, c, z, y, losses, s, k)


@kernel
def _move_all(X: FloatArray, i: int, V: Tried, s: int, a: Vector, metric: float) -> None:
    """Move candidate q's weights by ``-a[q]`` times row i."""
    d = X.shape[1]
    for q in range(LANES):
        length = a[q]
        for j in range(d):
            V[s, q, j] -= length * X[i, j]
        V[s, q, d] -= length * metric


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
def _open(bias: Bias, tasks: TunedTasks, slot: Counts, e: int) -> None:
    """Let entity e's task begin."""
    h, total, counts, sums = bias
    s = counts[OPEN]
    counts[OPEN] += 1
    counts[OPENED] += 1
    slot[e], tasks.entity[s], tasks.order[s], tasks.rows[s] = s, e, counts[OPENED], 0
    tasks.born[s] = counts[STEPS]
    tasks.losses[s] = 0.0
    for j in range(h.size):
        tasks.weights[s, j], tasks.pulls[s, j] = h[j], 0.0
        start = total[j] / sums[WEIGHT] if sums[WEIGHT] > 0.0 else h[j]
        for q in range(LANES):
            tasks.tried[s, q, j] = start


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
    """Go through these rows with all candidates."""
    h, total, counts, sums = bias
    leading, pulls, tried, losses, rows, _, _, _ = tasks
    own, own_rows, slot = entities
    kappas, given, lead = tuning.kappas, tuning.given[0] > 0.0, tuning.lead
    d, code, c = h.size - 1, objective.code, objective.c
    z = np.empty(LANES)
    for i in range(len(y)):
        e, label = entity[i], y[i]
        if pace.moving_on and counts[OPEN] > 0 and counts[CURRENT] != e:
            close_task(bias, tasks, tuning, entities, 0, pace)
        counts[CURRENT] = e
        mean = count_row(sums, counts, X, i)
        metric = mean if pace.metric == FOLLOW else pace.metric
        if counts[ROWS] == 1 and metric > 0.0 and code < FIRST_MARGIN_CODE and not given:
            h[d] = sums[ORIGIN] = label
            total[d] = sums[WEIGHT] * label
        if e < 0:
            at_h, at_mean = h[d], total[d]
            for j in range(d):
                at_h += X[i, j] * h[j]
                at_mean += X[i, j] * total[j]
            at_mean = at_mean / sums[WEIGHT] if sums[WEIGHT] > 0.0 else at_h
            u = subgradient(objective, at_h, label)
            _take_error(bias, tuning, code, abs(at_mean - label))
            unit = _unit(tuning, mean, d, metric)
            lone_row(bias, X, i, u, pace, unit, pulls, counts[OPEN])
            continue
        s = slot[e]
        if s == CLOSED:
            u = subgradient(objective, _dot(X, i, own, e), label)
            kappa = 1.0 if given else kappas[lead[0]]
            _move(X, i, own, e, kappa * _unit(tuning, mean, d, metric) * u, metric)
            own_rows[e] += 1
            continue
        if s == NEW:
            _open(bias, tasks, slot, e)
            s = slot[e]
        _predict_all(X, i, tried, s, z)
        if rows[s] == 0 or tuning.scale[0] == 0.0:
            _take_error(bias, tuning, code, abs(z[0] - label))
        unit = _unit(tuning, mean, d, metric)
        rows[s] += 1
        _judge_all(code, c, z, label, losses, s, rows[s])
        for q in range(LANES):
            z[q] *= unit * (1.0 if given else kappas[q])
        _move_all(X, i, tried, s, z, metric)
        u = subgradient(objective, _dot(X, i, leading, s), label)
        kappa = 1.0 if given else kappas[lead[0]]
        _move(X, i, leading, s, kappa * unit * u, metric)
        _move(X, i, pulls, s, -u, metric)
        _keep_weights(own, e, tried, s, lead[0])
        own_rows[e] += 1
        if rows[s] == pace.task_size:
            close_task(bias, tasks, tuning, entities, s, pace)


@kernel
def _take_error(bias: Bias, tuning: Tuning, code: int, error: float) -> None:
    """Take the bias's error on the first row of a task into the scale of the steps."""
    share = min(1.0, (1.0 + DECAY) / (bias.counts[STEPS] + 1 + DECAY))
    change = share * (error - tuning.scale[0])
    tuning.scale[0] = tuning.scale[0] + change if code < FIRST_MARGIN_CODE else 1.0


@kernel
def train_rows(
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
    d = bias.h.size - 1
    unit = _unit(tuning, mean_square(bias.sums, bias.counts, d), d, metric_now(bias, pace))
    return unit if tuning.given[0] > 0.0 else float(unit * tuning.kappas[tuning.lead[0]])


def sureness(bias: Bias, tuning: Tuning) -> float:
    """Probability, by the normal distribution, that the leader is better than the next best."""
    losses, lead = tuning.losses, int(tuning.lead[0])
    if tuning.given[0] > 0.0:
        return 1.0
    gaps = losses - losses[lead]
    spread = np.maximum(tuning.squares[lead] - gaps**2, 0.0)
    seen = bias.counts[STEPS] * (2.0 * DECAY + 1.0) / (DECAY + 1.0) ** 2  # of equal weight
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.delete(gaps / np.sqrt(spread / seen), lead)
    return float(ndtr(np.nan_to_num(z, nan=0.0).min()))
