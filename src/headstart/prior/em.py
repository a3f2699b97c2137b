r"""Learning the prior from what tasks have shown.

The likelihood of all rows, or for other losses than the squared one its lower bound, is raised
by passes over the tasks (`posterior`), each followed by a step of the starts, the covariance and
the noise. Sums over tasks are all it needs, so order does not matter. A task's start is
:math:`B\varphi(s)`, with :math:`\varphi = (1, s)` and s what is known of the task; with nothing
known B is the bias h.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headstart._checks import Vector
from headstart.losses import Loss
from headstart.posterior.evidence import Evidence
from headstart.posterior.passes import Plan, first_moments, plan, take_pass
from headstart.posterior.state import Start
from headstart.prior.accelerate import Step, climb
from headstart.prior.shapes import Shape, Spread, shape_of

Matrix = NDArray[np.float64]

LEAST_NOISE = 1e-10  # of the labels' mean square
SIDE_RIDGE = 1e-6  # of the mean squares of what is known of tasks


class Learned(NamedTuple):
    """A prior in standard units, its log-likelihood, and how it was reached."""

    start: Start
    log_likelihood: float
    n_iter: int
    converged: bool


class Learning:
    """The map from one prior to the next, and the coordinates in which priors are mixed.

    Coordinates are the starts in units of the first standard deviations, those of the
    covariance's shape, and the logarithm of the noise: none has a unit.
    """

    def __init__(
        self, e: Evidence, loss: Loss, metric: str, shrink: float | None, n_jobs: int
    ) -> None:
        self.e, self.loss, self.n_jobs = e, loss, n_jobs
        self.k, self.r = e.X.shape[1], e.side.shape[1]
        self.T, self.N = len(e.slot), e.n_rows
        self.way: Plan = plan(e)
        self.shape: Shape = shape_of(metric, self.k)
        self.shrink = _shrinkage(shrink, self.k, self.T) if metric == "full" else 0.0
        self.S = e.side.T @ e.side / self.T
        ridge = SIDE_RIDGE * np.diag(self.S)
        ridge[0] = 0.0
        self.inverse = np.linalg.inv(self.S + np.diag(ridge))
        effects, variance, noise, self.least_noise = first_guess(e, loss)
        self.unit = math.sqrt(variance)
        variances = np.full(self.k, variance)
        spread = Spread(variances, np.empty((0, 0)), 0.0)
        self.moments = first_moments(e, self._start(effects, spread, noise, precise=False), loss)
        self.first = np.concatenate(
            [effects.ravel() / self.unit, self.shape.coordinates(variances), [math.log(noise)]]
        )

    def _start(self, effects: Matrix, spread: Spread, noise: float, *, precise: bool) -> Start:
        precision = self.shape.precision(spread) if precise else np.empty(0)
        return Start(
            effects, spread.variances, spread.covariance, precision, spread.log_det, noise
        )

    def prior(self, point: Vector, *, precise: bool | None = None) -> tuple[Start, Spread]:
        """The prior at a point; with its precision where tasks or the caller need it."""
        cut = self.k * self.r
        effects = self.unit * point[:cut].reshape(self.k, self.r)
        noise = max(math.exp(min(point[-1], 600.0)), self.least_noise)
        noise = 1.0 if self.loss.binary else noise
        spread = self.shape.covariance(point[cut:-1], noise * self.T / self.N)
        precise = bool(self.way.dense) if precise is None else precise
        return self._start(effects, spread, noise, precise=precise), spread

    def take(self, point: Vector) -> Step:
        """One pass and one step."""
        start, spread = self.prior(point)
        sums = take_pass(self.e, self.way, start, self.loss, self.moments, self.n_jobs)
        b, T = start.noise, self.T
        told, gone = self.shape.told(spread, sums.V, sums.D)
        lost = 0.5 * (sums.at_start - b * sums.fit - b * gone + b * (T * self.k - told))
        value = sums.log_likelihood(start, self.loss, self.N)
        if not self.loss.binary:
            b = max(self.loss.fit_noise(lost / self.N), self.least_noise)
        F = sums.F / T
        moved = F @ self.inverse
        D = self.shape.centred(sums.D / T, F, moved, self.S)
        image = np.concatenate(
            [
                (start.effects + moved).ravel() / self.unit,
                self.shape.step(spread, sums.V / T, D, self.shrink),
                [math.log(b)],
            ]
        )

        def gain_over(other: Step) -> float:
            # Shrinking pulls toward the diagonal of the moment, which no function has for its
            # gradient: what counts is the work done on the way, by the mean of both ends' pulls.
            there = self.prior(other.point)[1]
            pull = sum(
                self.shape.penalty(spread, at) - self.shape.penalty(there, at)
                for at in (spread, there)
            )
            return value - other.value + 0.5 * self.shrink * T * pull

        return Step(point, image, value, gain_over)


def learn(
    e: Evidence,
    loss: Loss,
    metric: str,
    shrink: float | None,
    tol: float,
    max_iter: int,
    n_jobs: int,
) -> Learned:
    """The prior under which the rows are most likely."""
    with threadpool_limits(1, user_api="blas"):  # threads cost more than such small matrices
        learning = Learning(e, loss, metric, shrink, n_jobs)
        step, n_iter, converged = climb(learning.take, learning.first, tol * learning.T, max_iter)
        start = learning.prior(step.point, precise=True)[0]
        return Learned(start, step.value, n_iter, converged)


def _shrinkage(shrink: float | None, k: int, T: int) -> float:
    """Tasks that shrinking adds, over those there are: ``rho / (1 - rho)``."""
    return 2.0 * k / T if shrink is None else shrink / (1.0 - shrink)


def first_guess(e: Evidence, loss: Loss) -> tuple[Matrix, float, float, float]:
    """Starts from all rows pooled; half of what they leave goes to the tasks, half to the noise.

    Also the least noise there may be.
    """
    A, c, q = e.pooled()
    N, k = e.n_rows, len(c)
    A[np.diag_indices(k)] += 1e-8 * max(np.trace(A) / k, 1e-300)
    if loss.binary:
        h = np.linalg.solve(A, 2.0 * c)  # the logistic loss at margin 0: omega 1/4, tau 2 y
        variance, noise, least = 1.0 / k, 1.0, 1.0
    else:
        h = np.linalg.solve(A, c)
        left = max((q - h @ c) / N, 0.0) + LEAST_NOISE * (q / N) + 1e-300
        nodes, shares = np.polynomial.hermite_e.hermegauss(32)
        mean = shares @ loss.value(math.sqrt(0.5 * left) * nodes, 0.0) / shares.sum()
        variance, noise = 0.5 * left / k, loss.fit_noise(float(mean))
        size = math.sqrt(LEAST_NOISE * (q / N) + 1e-300)
        least = loss.fit_noise(float(shares @ loss.value(size * nodes, 0.0) / shares.sum()))
    effects = np.zeros((k, e.side.shape[1]))
    effects[:, 0] = h
    return effects, variance, noise, least
