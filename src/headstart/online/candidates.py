r"""The candidates for the step size within tasks, and how the best of them is found.

A row moves its own prediction by about :math:`\kappa s`, s being the mean error of the bias on
the first row of a task (1 for margins): the step size is :math:`\eta = \kappa s/R^2`, with
:math:`R^2` the mean of :math:`\|x\|^2`, so that the candidates are free of scale.

A trial is a task that all candidates go through, from the averaged bias of the moment it opened.
What each lost before it saw a row is a fair estimate of what it would lose on new tasks; the
best so far leads. The first tasks are all trials, later ones now and then. Or the candidates
are judged by tasks held out: the first half of the rows to learn from, the others to be judged by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel
from headstart.losses import Form, Objective
from headstart.losses.scalar import ABSOLUTE, HINGE, phi, score, sign_of, slope
from headstart.online.bias import Bias, Counts, Matrix, Pace, mean_square, metric_now
from headstart.sgd.one_pass import subgradient

KAPPAS = 10.0 ** np.arange(-2.5, 1.1, 0.5)  # how far a row moves its prediction, in errors
DECAY = 3.0  # old trials count for less: the weight of trial t grows as a power of t
FIRST_TRIALS, EVERY = 256, 8  # so many tasks are all trials, and then every eighth
WORTH = (2.0 * DECAY + 1.0) / (DECAY + 1.0) ** 2  # of a trial, in trials of equal weight
CANDIDATES = KAPPAS.size

Tried = NDArray[np.float64]  # weights by slot and candidate


class Tuning(NamedTuple):
    """What the candidates have lost so far.

    Attributes
    ----------
    kappas : the candidates
    given : the step size eta, if it is not to be chosen, else 0
    losses : weighted mean over trials of each candidate's loss before seeing a row
    squares : the same of squared differences, for each pair of candidates
    lead : position of the best
    trials : number of trials closed
    scale : mean error of the bias on a task's first row
    """

    kappas: Vector
    given: Vector
    losses: Vector
    squares: Matrix
    lead: Counts
    trials: Counts
    scale: Vector

    @classmethod
    def start(cls, eta: float) -> Tuning:
        """Before the first row; with `eta`, the step size is not chosen but given."""
        losses, squares = np.zeros(CANDIDATES), np.zeros((CANDIDATES, CANDIDATES))
        lead, trials = np.array([CANDIDATES // 2 - 1]), np.array([0])
        return cls(KAPPAS.copy(), np.array([eta]), losses, squares, lead, trials, np.zeros(1))


@kernel
def unit_step(tuning: Tuning, mean: float, d: int, metric: float) -> float:
    """The step size of kappa 1, when `mean` is the mean square of the inputs."""
    if tuning.given[0] > 0.0:
        return float(tuning.given[0])
    return float(tuning.scale[0] / (mean * d + metric))


@kernel
def judge_trial(tuning: Tuning, losses: Matrix, s: int, n: int) -> None:
    """Take a trial of n rows into the candidates' losses, and let the best lead."""
    share = (1.0 + DECAY) / (tuning.trials[0] + 1 + DECAY)
    weight = 2.0 / (n * (n + 1))  # row k counts k times: late rows tell what all rows bring
    tuning.trials[0] += 1
    for q in range(CANDIDATES):
        loss = losses[s, q]
        tuning.losses[q] += share * (weight * loss - tuning.losses[q])
        for r in range(CANDIDATES):
            gap = weight * (loss - losses[s, r])
            tuning.squares[q, r] += share * (gap * gap - tuning.squares[q, r])
    tuning.lead[0] = np.argmin(tuning.losses)


@kernel
def predict_all(X: FloatArray, i: int, tried: Tried, s: int, z: Vector) -> None:
    """All candidates' predictions of row i; four at once, so that it is read less often."""
    d = X.shape[1]
    for q in range(0, CANDIDATES, 4):
        z0, z1, z2, z3 = tried[s, q, d], tried[s, q + 1, d], tried[s, q + 2, d], tried[s, q + 3, d]
        for j in range(d):
            x = np.float64(X[i, j])
            z0 += x * tried[s, q, j]
            z1 += x * tried[s, q + 1, j]
            z2 += x * tried[s, q + 2, j]
            z3 += x * tried[s, q + 3, j]
        z[q], z[q + 1], z[q + 2], z[q + 3] = z0, z1, z2, z3


@kernel
def _judge(form: Form, z: Vector, y: float, losses: Matrix, s: int, k: int) -> None:
    sign = sign_of(form, y)
    for q in range(CANDIDATES):
        r = score(form, z[q], y)
        losses[s, q] += k * phi(form, r)
        z[q] = sign * slope(form, r)


@kernel
def judge_all(form: Form, z: Vector, y: float, losses: Matrix, s: int, k: int) -> None:
    """Add k times the candidates' losses, and put their subgradients in the predictions' place.

    The usual losses are named, because only a constant becomes vector instructions.
    """
    if form.code == ABSOLUTE:
        _judge(Form(ABSOLUTE, 0.0, 0.0, False, -1.0, 1.0, 0), z, y, losses, s, k)
    elif form.code == HINGE:
        _judge(Form(HINGE, 0.0, 0.0, True, -1.0, 0.0, 0), z, y, losses, s, k)
    else:
        _judge(form, z, y, losses, s, k)


@kernel
def move_all(
    X: FloatArray,
    i: int,
    tried: Tried,
    s: int,
    kappas: Vector,
    unit: float,
    u: Vector,
    metric: float,
) -> None:
    """Move candidate q's weights by ``-kappas[q] * unit * u[q]`` times row i."""
    d = X.shape[1]
    for q in range(CANDIDATES):
        length = kappas[q] * unit * u[q]
        for j in range(d):
            tried[s, q, j] -= length * X[i, j]
        tried[s, q, d] -= length * metric


def leading_step(bias: Bias, tuning: Tuning, pace: Pace) -> float:
    """Step size eta of the leader at this moment; the paper's reg is 1 / (eta n)."""
    d = bias.h.size - 1
    unit = unit_step(tuning, mean_square(bias.sums, bias.counts, d), d, metric_now(bias, pace))
    return unit if tuning.given[0] > 0.0 else float(unit * tuning.kappas[tuning.lead[0]])


def sureness(tuning: Tuning) -> float:
    """Probability, by the normal distribution, that the leader is better than the next best."""
    losses, lead = tuning.losses, int(tuning.lead[0])
    if tuning.given[0] > 0.0:
        return 1.0
    gaps = losses - losses[lead]
    spread = np.maximum(tuning.squares[lead] - gaps**2, 0.0)
    seen = tuning.trials[0] * WORTH
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.delete(gaps / np.sqrt(spread / seen), lead)
    return float(ndtr(np.nan_to_num(z, nan=0.0).min()))


@kernel
def _lose_on_rest(
    X: FloatArray,
    y: FloatArray,
    cuts: Counts,
    objective: Objective,
    start: Vector,
    etas: Vector,
    metric: float,
    losses: Matrix,
) -> None:
    """Mean loss of every step size on the second half of each task's rows, after the first."""
    d = X.shape[1]
    w: Vector = start.copy()
    for t in range(len(cuts) - 1):
        first, last = cuts[t], cuts[t + 1]
        middle = (first + last + 1) // 2
        for q in range(etas.size):
            w[:] = start
            loss = 0.0
            for i in range(first, last):
                z = float(w[d])
                for j in range(d):
                    z += X[i, j] * w[j]
                if i < middle:
                    length = etas[q] * subgradient(objective, z, y[i])
                    for j in range(d):
                        w[j] -= length * X[i, j]
                    w[d] -= length * metric
                else:
                    loss += phi(objective.form, score(objective.form, z, y[i]))
            losses[t, q] = loss / (last - middle)


def choose_by_held_out(
    tuning: Tuning,
    bias: Bias,
    X: FloatArray,
    y: FloatArray,
    cuts: Counts,
    objective: Objective,
    pace: Pace,
) -> None:
    """Let the candidate lead that is best on these tasks, which the bias has not learned from."""
    metric, d = metric_now(bias, pace), X.shape[1]
    unit = unit_step(tuning, mean_square(bias.sums, bias.counts, d), d, metric)
    losses = np.empty((len(cuts) - 1, CANDIDATES))
    _lose_on_rest(X, y, cuts, objective, bias.mean, tuning.kappas * unit, metric, losses)
    able = losses[np.diff(cuts) > 1]
    if len(able) == 0:
        raise ValueError(
            "validation_fraction: expected held-out tasks of two rows or more, found none"
        )
    gaps = able[:, :, None] - able[:, None, :]
    tuning.losses[:], tuning.squares[:] = able.mean(axis=0), (gaps**2).mean(axis=0)
    tuning.lead[0], tuning.trials[0] = np.argmin(tuning.losses), round(len(able) / WORTH)
