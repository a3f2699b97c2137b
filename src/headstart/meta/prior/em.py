r"""Learning the prior from what tasks have shown.

The likelihood of all rows, or for other losses than the squared one its lower bound, is raised
by passes over the tasks (`posterior`), each followed by a step of the starts, the covariance and
the noise. Sums over tasks are all it needs, so order does not matter. A task's start is
:math:`B\varphi(s)`, with :math:`\varphi = (1, s)` and s what is known of the task; with nothing
known B is the bias h.

Starts are themselves taken to be spread around 0 in standard units, see `guess`: the level is not,
where labels are numbers. With many rows that changes nothing. But of as many columns as rows there
are starts that leave no noise at all, and classes that a line divides are the likelier the larger
the weights.

A diagonal covariance is shrunk to the best isotropic one, a full covariance to that diagonal one:
with :math:`\nu` tasks added whose weights are known exactly and spread as the simpler D, it is
:math:`(1-\rho)C + \rho D` with :math:`\rho = \nu/(\nu + T)`. Shrinking a full covariance to its
own diagonal instead has no likelihood to rise, and where rows tell little of a task, the scale
may run away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.blas import one_blas_thread
from headstart._core.checks import Vector
from headstart.inner.posterior.evidence import Evidence
from headstart.inner.posterior.passes import AnyEvidence
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.posterior.state import Moments
from headstart.inner.start import Start
from headstart.losses import Loss
from headstart.meta.prior.accelerate import Step, climb
from headstart.meta.prior.guess import MARGINS, first_guess, sparse_guess
from headstart.meta.prior.pooled import pooled_starts, without_starts
from headstart.meta.prior.shapes import Diagonal, Factored, Full, Shape
from headstart.meta.prior.task_sums import LocalSums, TaskSums

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

FLOOR = 1e-8  # of a variance, as a share of the largest and of what rows can tell
NEGLIGIBLE = 0.01  # a gain for each number that is learned: chance alone makes one of 1/2
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

    def __init__(
        self,
        e: AnyEvidence | TaskSums,
        loss: Loss,
        shape: Shape,
        n_jobs: int = 1,
        *,
        level: bool = False,
        pulled: bool = True,
    ) -> None:
        self.tasks: TaskSums = as_sums(e, n_jobs)
        self.loss, size = loss, self.tasks.size
        self.k, self.r, self.precise = size.width, len(size.side), size.precise
        self.T, self.N, self.S = size.n_tasks, size.n_rows, size.side
        ridge = np.full(self.r, SIDE_RIDGE)
        ridge[0] = 0.0
        self.inverse = np.linalg.inv(self.S + np.diag(ridge))
        self.longest, self.last_step = 1.0, np.zeros((self.k, self.r))
        self.still = isinstance(e, SparseEvidence)  # starts stay where pooled rows have them
        if isinstance(e, SparseEvidence):
            guess = sparse_guess(e, loss)
        else:
            guess = first_guess(self.tasks, loss, level=level)
        self.first_effects, self.variance, self.first_noise, self.least_noise, spread = guess
        # Of far fewer rows than columns the shortest start that fits them is as good.
        pulled = loss.binary or (pulled and self.k <= 2.0 * self.N)
        self.ridge = np.full(self.k, 1.0 / (spread * self.T) if pulled else 0.0)
        if level and not loss.binary:
            self.ridge[-1] = 0.0
        self.least_loss = 0.0 if loss.binary else loss.mean_loss(self.least_noise)
        self.unit = math.sqrt(self.variance)
        self.begin_with(shape)
        self.moments = self.tasks.first_moments(self.prior(self.first)[0], loss)

    def begin_with(self, shape: Shape) -> None:
        """Begin at the first guess, in this shape."""
        self.shape, effects, noise = shape, self.first_effects, self.first_noise
        variances = np.full(self.k, self.variance)
        coordinates = shape.coordinates(variances, np.empty((0, 0)))
        self._set_least(variances, noise)
        self.first = self._point(effects, coordinates, noise)

    def go_on(self, found: Learned, shape: Shape) -> None:
        """Begin again at what was found, with another shape."""
        start = found.start
        self.shape, self.moments = shape, found.moments
        coordinates = shape.coordinates(start.variances, start.covariance)
        self._set_least(start.variances, start.noise)
        self.first = self._point(start.effects, coordinates, start.noise)

    def begin_at(self, start: Start | None) -> None:
        """Begin at a prior that is known, as near as the shape comes to it; None: as it is."""
        if start is not None:
            variances = self.shape.nearest(start.variances)
            self._set_least(variances, start.noise)
            coordinates = self.shape.coordinates(variances, start.covariance)
            self.first = self._point(start.effects, coordinates, start.noise)

    def _set_least(self, variances: Vector, noise: float) -> None:
        """How small a variance may be, until the shape changes.

        The bound stays while the prior moves: with one that follows it, variances at the bound
        would pull at all others, and no step would be sure to raise the likelihood.
        """
        rows_tell = self._variance_of(noise) * self.T / self.N
        self.least = FLOOR * max(float(variances.max()), rows_tell)

    def _variance_of(self, noise: float) -> float:
        return 1.0 if self.loss.binary else self.loss.noise_variance(noise)

    def _point(self, effects: Matrix, coordinates: Vector, noise: float) -> Vector:
        return np.concatenate([effects.ravel() / self.unit, coordinates, [math.log(noise)]])

    def prior(self, point: Vector, *, precise: bool | None = None) -> tuple[Start, Factored]:
        """The prior at a point; with its precision where tasks or the caller need it."""
        cut = self.k * self.r
        effects = self.unit * point[:cut].reshape(self.k, self.r)
        noise = max(math.exp(min(point[-1], 600.0)), self.least_noise)
        noise = 1.0 if self.loss.binary else noise
        most = MARGINS**2 if self.loss.binary else math.inf
        sigma = self.shape.covariance(point[cut:-1], self.least, most)
        needed = self.precise if precise is None else precise
        precision = self.shape.precision(sigma) if needed else np.empty(0)
        whole = sigma.covariance
        start = Start(effects, sigma.variances, whole, precision, sigma.log_det, noise)
        return start, sigma

    def take(self, point: Vector, before: Moments) -> Step:
        """One pass and one step.

        Where quadratic forms are not bounds, no likelihood is sure to rise: a point is the better
        the less a step from it promises.
        """
        start, sigma = self.prior(point)
        now = before.copy()
        sums = self.tasks.take_pass(start, self.loss, now)
        b, T, shape = start.noise, self.T, self.shape
        V, F = shape.inward(sigma, sums.V / T, sums.F / T)
        gone, _ = shape.inward(sigma, sums.D / T, sums.F)
        info = shape.information(V)
        if not self.loss.binary:
            lost = sums.at_start / b - sums.fit + T * (shape.trace(info) - shape.trace(gone))
            mean = 0.5 * b * lost / self.N
            b = self.least_noise
            if mean > self.least_loss:
                b = max(self.loss.fit_noise(mean), b)
        pull = shape.inner(sigma, self.ridge[:, None] * start.effects)
        moved = (F - pull) @ self.inverse
        if self.still:
            moved = np.zeros_like(F)
        plain = shape.solved(sigma, shape.information(0.0 * V), moved, self.ridge)
        gone = gone - shape.outer(plain, F - 0.5 * plain @ self.S)  # about the new starts
        step = shape.outward(sigma, shape.solved(sigma, info, moved, self.ridge))
        effects = start.effects + (self._shortened(step) if self.loss.binary else step)
        image = self._point(effects, shape.step(sigma, info, gone), b)
        if not self.loss.bounded:
            promised = shape.promise(sigma, info, gone) + shape.norm(info, moved)
            left = T * min(promised, float(np.mean(np.square(image - point))))
            return Step(point, image, None, -left, left, now)

        def sure() -> Vector:
            effects = start.effects + shape.outward(sigma, plain)
            return self._point(effects, shape.plain_step(sigma, info, gone), b)

        value = sums.log_likelihood(start, self.loss, self.N) + T * shape.shrinking(sigma)
        value -= 0.5 * T * float(self.ridge @ np.square(start.effects).sum(axis=1))
        return Step(point, image, sure, value, 0.0, now)

    def _shortened(self, step: Matrix) -> Matrix:
        """A step of the starts that is not too long, and shorter where steps turn back.

        Rows far on their side of the margin tell next to nothing, and steps from them are wild.
        """
        turned = float(np.sum(step * self.last_step)) < 0.0
        self.longest = 0.5 * self.longest if turned else min(1.25 * self.longest, 1.0)
        self.last_step = step * min(1.0, self.longest / max(float(np.abs(step).max()), 1e-300))
        return self.last_step

    def climb(self, tol: float, max_iter: int) -> Learned:
        """Take steps until the likelihood has settled."""
        step, n_iter, converged = climb(self.take, self.first, self.moments, tol * self.T, max_iter)
        start, _ = self.prior(step.point, precise=not self.still)
        return Learned(start, n_iter, converged, step.state)


@dataclass(frozen=True)
class Aim:
    """What is learned of a covariance, and when learning ends; as in `learn_prior`, checked.

    With `initial`, a prior in the units of the tasks, each shape begins there. What a shape is
    shrunk to is learned all the same, so that learning ends where it does without. All tasks have
    the same weight of the column `shared`.
    """

    metric: str
    shrink: float | None
    tol: float
    max_iter: int
    n_jobs: int = 1
    initial: Start | None = None
    shared: int | None = None

    def first_shape(self, level: bool) -> Diagonal:
        """The simplest shape: one variance for all columns, and with `level` one for the ones."""
        own_level = level and self.metric != "isotropic"
        return Diagonal(shared=self.shared, same=True, level=own_level)


def learn(
    e: AnyEvidence | TaskSums,
    loss: Loss,
    aim: Aim,
    few: Counts | Evidence | None = None,
    *,
    level: bool = False,
) -> Learned:
    """The prior under which the rows are most likely, in that metric.

    A shape that is shrunk begins where the simpler one it is shrunk to has ended. With `few`, all
    that is learned from these tasks alone, and only the last from all of them: there is not far to
    go from there, and passes over few tasks cost little. With many tasks the likelihood tells what
    no longer matters; a gain far below that of chance is enough. With `level` the last column is
    that of ones: how far levels differ says nothing of slopes, which are not shrunk to it.
    """
    with one_blas_thread():
        if not isinstance(e, SparseEvidence) or loss.binary:
            return _learn(e, loss, aim, few, level)
        # Starts of sparse rows are those of pooled rows. Where labels are numbers, all else is
        # learned from what these leave.
        found = _learn(without_starts(e, loss), loss, aim, few, level)
        effects = pooled_starts(e, loss)[:, None]
        return found._replace(start=found.start._replace(effects=effects))


def _learn(
    e: AnyEvidence | TaskSums, loss: Loss, aim: Aim, few: Counts | Evidence | None, level: bool
) -> Learned:
    how = {"level": level, "pulled": aim.shrink != 0.0}
    begin = Learning(_begin_with(e, few), loss, aim.first_shape(level), aim.n_jobs, **how)
    found, shape = _in_stages(begin, aim)
    if few is None:
        return found
    learning = Learning(e, loss, shape, aim.n_jobs, **how)
    if aim.shrink is None and shape.shrink > 0.0:
        shape.shrink = _share(type(shape), learning.k, learning.T)
    start, enough = found.start, max(aim.tol, NEGLIGIBLE * learning.first.size / learning.T)
    if aim.initial is not None:  # so near that a pass gains little from the first on
        start, enough = aim.initial, aim.tol
    if learning.still:  # where the rows of all tasks have them; most columns are of few tasks
        start, enough = start._replace(effects=learning.first_effects), aim.tol
    moments = learning.tasks.first_moments(start, loss)
    learning.go_on(found._replace(start=start, moments=moments), shape)
    more = learning.climb(enough, max(aim.max_iter - found.n_iter, 1))
    return more._replace(n_iter=found.n_iter + more.n_iter)


def _begin_with(e: AnyEvidence | TaskSums, few: Counts | Evidence | None) -> AnyEvidence | TaskSums:
    """The few tasks to begin with; all, if none are named."""
    if few is None or isinstance(few, Evidence):
        return e if few is None else few
    if isinstance(e, Evidence | SparseEvidence):
        return e.at(few)
    raise TypeError("few: expected what they have shown, because the tasks are elsewhere")


def as_sums(e: AnyEvidence | TaskSums, n_jobs: int) -> TaskSums:
    """Tasks of which sums can be asked; evidence in this process is passed over by threads."""
    return LocalSums(e, n_jobs) if isinstance(e, Evidence | SparseEvidence) else e


def _in_stages(learning: Learning, aim: Aim) -> tuple[Learned, Shape]:
    """What is learned in one shape after the other, and the last of these."""
    stages: list[type[Diagonal | Full]] = [Diagonal, Full] if aim.metric == "full" else [Diagonal]
    shrink, tol, max_iter = aim.shrink, aim.tol, aim.max_iter
    if shrink == 0.0 and aim.metric != "isotropic":
        learning.begin_with(stages[-1](shared=aim.shared))
    learning.begin_at(aim.initial)
    if aim.metric == "isotropic" or shrink == 0.0:
        return learning.climb(tol, max_iter), learning.shape
    found = learning.climb(tol, max(max_iter - len(stages), 1))
    for number, stage in enumerate(stages, 1):
        share = _share(stage, learning.k, learning.T)
        if shrink is not None:
            share = shrink / (1.0 - shrink) if stage is stages[-1] else 0.0
        learning.go_on(found, stage(share, found.start.variances, aim.shared))
        learning.begin_at(aim.initial)
        passes = max_iter - found.n_iter - (len(stages) - number)
        more = learning.climb(tol, max(passes, 1))
        found = more._replace(n_iter=found.n_iter + more.n_iter)
    return found, learning.shape


def _share(shape: type[Diagonal | Full], k: int, T: int) -> float:
    """Tasks that shrinking adds, over those there are.

    They make up for what there is more to learn: nothing tells variances, let alone covariances,
    of more columns than there are tasks.
    """
    return (2.0 if shape is Full else 0.25) * k * (1.0 + k / T) / T
