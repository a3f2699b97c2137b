r"""Learning the prior from what tasks have shown.

The likelihood of all rows, or for other losses than the squared one its lower bound, is raised
by passes over the tasks (`posterior`), each followed by a step of the starts, the covariance and
the noise. Sums over tasks are all it needs, so order does not matter. A task's start is
:math:`B\varphi(s)`, with :math:`\varphi = (1, s)` and s what is known of the task; with nothing
known B is the bias h.

A diagonal covariance is shrunk to the best isotropic one, a full covariance to that diagonal one:
with :math:`\nu` tasks added that were told whole and are spread as the simpler D, it is
:math:`(1-\rho)C + \rho D` with :math:`\rho = \nu/(\nu + T)`. Shrinking a full covariance to its
own diagonal instead has no likelihood to rise, and where rows tell little of a task, the scale
may run away.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._blas import one_blas_thread
from headstart._checks import Vector
from headstart.losses import Loss
from headstart.posterior.evidence import Evidence
from headstart.posterior.passes import Plan, first_moments, plan, take_pass
from headstart.posterior.state import Moments, Start
from headstart.prior.accelerate import Step, climb
from headstart.prior.shapes import Diagonal, Full, Shape, Spread

Matrix = NDArray[np.float64]

LEAST_NOISE = 1e-10  # of the labels' mean square
SIDE_RIDGE = 1e-6  # what is known of tasks has mean squares 1


class Learned(NamedTuple):
    """A prior in standard units, how it was reached, and the moments of all rows under it."""

    start: Start
    n_iter: int
    converged: bool
    moments: Moments


class Learning:
    """The map from one prior to the next, and the coordinates in which priors are mixed.

    Coordinates are the starts in units of the first standard deviations, those of the
    covariance's shape, and the logarithm of the noise: none has a unit.
    """

    def __init__(self, e: Evidence, loss: Loss, shape: Shape, n_jobs: int = 1) -> None:
        self.e, self.loss, self.shape, self.n_jobs = e, loss, shape, n_jobs
        self.k, self.r = e.X.shape[1], e.side.shape[1]
        self.T, self.N = len(e.slot), e.n_rows
        self.way: Plan = plan(e)
        self.S = e.side.T @ e.side / self.T
        ridge = np.full(self.r, SIDE_RIDGE)
        ridge[0] = 0.0
        self.inverse = np.linalg.inv(self.S + np.diag(ridge))
        effects, variance, noise, self.least_noise = first_guess(e, loss)
        self.unit = math.sqrt(variance)
        self.first = self._point(effects, shape.coordinates(np.full(self.k, variance)), noise)
        self.moments = first_moments(e, self.prior(self.first)[0], loss)

    def go_on(self, found: Learned, shape: Shape) -> None:
        """Begin again at what was found, with another shape."""
        start = found.start
        self.shape, self.moments = shape, found.moments
        coordinates = shape.coordinates(start.variances)
        self.first = self._point(start.effects, coordinates, start.noise)

    def _point(self, effects: Matrix, coordinates: Vector, noise: float) -> Vector:
        return np.concatenate([effects.ravel() / self.unit, coordinates, [math.log(noise)]])

    def prior(self, point: Vector, *, precise: bool | None = None) -> tuple[Start, Spread]:
        """The prior at a point; with its precision where tasks or the caller need it."""
        cut = self.k * self.r
        effects = self.unit * point[:cut].reshape(self.k, self.r)
        noise = max(math.exp(min(point[-1], 600.0)), self.least_noise)
        noise = 1.0 if self.loss.binary else noise
        square = 1.0 if self.loss.binary else self.loss.noise_variance(noise)
        spread = self.shape.covariance(point[cut:-1], square * self.T / self.N)
        needed = bool(self.way.dense) if precise is None else precise
        precision = self.shape.precision(spread) if needed else np.empty(0)
        whole = spread.covariance
        start = Start(effects, spread.variances, whole, precision, spread.log_det, noise)
        return start, spread

    def take(self, point: Vector, before: Moments) -> Step:
        """One pass and one step.

        Where quadratic forms are not bounds, no likelihood is sure to rise: a point is the better
        the less a step from it promises.
        """
        start, spread = self.prior(point)
        now = before.copy()
        sums = take_pass(self.e, self.way, start, self.loss, now, self.n_jobs)
        b, T, shape = start.noise, self.T, self.shape
        V, F = shape.inward(spread, sums.V / T, sums.F / T)
        gone, _ = shape.inward(spread, sums.D / T, sums.F)
        told = shape.told(V)
        if not self.loss.binary:
            lost = sums.at_start / b - sums.fit + T * (shape.trace(told) - shape.trace(gone))
            b = max(self.loss.fit_noise(max(0.5 * b * lost / self.N, 1e-300)), self.least_noise)
        moved = F @ self.inverse
        gone = gone - shape.outer(moved, F - 0.5 * moved @ self.S)  # about the new starts
        effects = start.effects + shape.outward(spread, told, moved)
        image = self._point(effects, shape.step(spread, told, gone), b)
        if not self.loss.bounded:
            promised = shape.promise(spread, told, gone) + shape.norm(told, moved)
            left = T * min(promised, float(np.mean(np.square(image - point))))
            return Step(point, image, None, -left, left, now)

        def sure() -> Vector:
            effects = start.effects + shape.outward(spread, shape.told(0.0 * V), moved)
            return self._point(effects, shape.plain_step(spread, told, gone), b)

        value = sums.log_likelihood(start, self.loss, self.N) + T * shape.shrinking(spread)
        return Step(point, image, sure, value, 0.0, now)

    def climb(self, tol: float, max_iter: int) -> Learned:
        """Take steps until the likelihood has settled."""
        step, n_iter, converged = climb(self.take, self.first, self.moments, tol * self.T, max_iter)
        return Learned(self.prior(step.point, precise=True)[0], n_iter, converged, step.state)


def learn(
    e: Evidence,
    loss: Loss,
    metric: str,
    shrink: float | None,
    tol: float,
    max_iter: int,
    n_jobs: int,
) -> Learned:
    """The prior under which the rows are most likely, in that metric.

    A shape that is shrunk begins where the simpler one it is shrunk to has ended.
    """
    with one_blas_thread():
        stages: list[type[Diagonal | Full]] = [Diagonal, Full] if metric == "full" else [Diagonal]
        if metric == "isotropic":
            return Learning(e, loss, Diagonal(same=True), n_jobs).climb(tol, max_iter)
        if shrink == 0.0:
            return Learning(e, loss, stages[-1](), n_jobs).climb(tol, max_iter)
        learning = Learning(e, loss, Diagonal(same=True), n_jobs)
        found = learning.climb(tol, max(max_iter - len(stages), 1))
        for number, stage in enumerate(stages, 1):
            share = _share(stage, learning.k, learning.T)
            if shrink is not None:
                share = shrink / (1.0 - shrink) if stage is stages[-1] else 0.0
            learning.go_on(found, stage(share, found.start.variances))
            passes = max_iter - found.n_iter - (len(stages) - number)
            more = learning.climb(tol, max(passes, 1))
            found = more._replace(n_iter=found.n_iter + more.n_iter)
        return found


def _share(shape: type[Diagonal | Full], k: int, T: int) -> float:
    """Tasks that shrinking adds, over those there are.

    They make up for what there is more to learn: nothing tells variances, let alone covariances,
    of more columns than there are tasks.
    """
    return (2.0 if shape is Full else 0.25) * k * (1.0 + k / T) / T


def first_guess(e: Evidence, loss: Loss) -> tuple[Matrix, float, float, float]:
    """Starts from all rows pooled; half of what they leave goes to the tasks, half to the noise.

    Gives the starts, the variance of every weight, the noise, and the least noise there may be.
    """
    A, c, q = e.pooled()
    N, k = e.n_rows, len(c)
    A[np.diag_indices(k)] += 1e-8 * np.trace(A) / k + 1e-300
    effects = np.zeros((k, e.side.shape[1]))
    if loss.binary:  # as the logistic loss is at margin 0: omega 1/4 and tau 2 y
        effects[:, 0] = np.linalg.solve(A, 2.0 * c)
        return effects, 1.0 / k, 1.0, 1.0
    effects[:, 0] = np.linalg.solve(A, c)
    square = float(q / N) or 1.0  # labels that are all 0 have no unit
    left = max(float(q - effects[:, 0] @ c) / N, LEAST_NOISE * square)
    least = _noise_of(loss, LEAST_NOISE * square)
    return effects, 0.5 * left / k, _noise_of(loss, 0.5 * left), least


def _noise_of(loss: Loss, variance: float) -> float:
    """The noise under which rows lose as much as normal residuals of this variance do."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(32)
    mean = shares @ loss.value(math.sqrt(variance) * nodes, 0.0) / shares.sum()
    return loss.fit_noise(max(float(mean), 1e-300))
