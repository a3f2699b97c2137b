r"""Where tasks with sparse rows start: pooled rows, of which there may be as many as columns.

Starts that make all rows most likely would leave no noise there. They are taken to be spread as
:math:`N(0, \tau^2)` themselves, and are then the ridge solution

.. math:: h = (X^\top\Omega X + \tfrac{v}{\tau^2} I)^{-1}X^\top\Omega\tau,

for quadratic forms of the loss at h itself. Both variances are found by moments: with
:math:`G = X^\top X`,

.. math:: E\|y\|^2 = \tau^2\,\mathrm{tr}\,G + vN, \qquad
          E\|X^\top y\|^2 = \tau^2\,\mathrm{tr}\,G^2 + v\,\mathrm{tr}\,G,

and :math:`E\|Gz\|^2 = \mathrm{tr}\,G^2` for random signs z.
"""

from __future__ import annotations

import numpy as np

from headstart._core.checks import Vector
from headstart.inner.posterior.sparse_evidence import (
    SparseEvidence,
    gram_times,
    products_with,
    sum_of_rows,
)
from headstart.losses import Loss
from headstart.losses.many import quadratics

PROBES = 3  # random vectors by which a trace is found
ROUNDS, STEPS = 4, 30  # of quadratic forms, and of conjugate gradients for each: not more, since
# directions that rows hardly tell come last, and the ridge alone would hold them too loosely
SOLVED = 1e-5  # of the residual, as a share of the first


def pooled_starts(e: SparseEvidence, loss: Loss) -> Vector:
    """The start of all tasks; 0 where there are no rows to learn it from."""
    if e.n_rows == 0.0:
        return np.zeros(e.width)
    at_zero = quadratics(loss.form, np.zeros(len(e.y)), np.zeros(len(e.y)), e.y)
    variance, noise = _variances(e, at_zero[1])
    h, mean = np.zeros(e.width), np.zeros(len(e.y))
    for _ in range(1 if loss.is_squared else ROUNDS):
        omega, tau, _ = quadratics(loss.form, mean, np.zeros(len(e.y)), e.y)
        ridge = (1.0 if loss.binary else noise * float(omega.mean())) / variance
        h = _solved(e, e.weight * omega, tau, ridge, h)
        mean = products_with(e.X, h)
    return h


def without_starts(e: SparseEvidence, loss: Loss) -> SparseEvidence:
    """The tasks with their labels less what rows of other tasks say of them.

    The start of one half of the tasks is learned from the other half: what it leaves is as large
    as it will be for a new task. Halves go by the sums of labels, for which order does not matter.
    """
    task = np.repeat(np.arange(e.n_tasks), np.diff(e.offsets))  # some may have no rows
    sums = np.bincount(task, e.weight * e.y, e.n_tasks)
    halves = np.empty(e.n_tasks, np.int64)
    halves[np.argsort(sums, kind="stable")] = np.arange(e.n_tasks) % 2
    half, left = halves[task], e.y.copy()
    for which in (0, 1):
        others = e._replace(weight=e.weight * (half != which))
        left -= products_with(e.X, pooled_starts(others, loss)) * (half == which)
    return e._replace(y=left)


def _variances(e: SparseEvidence, labels: Vector) -> tuple[float, float]:
    """Those of starts and of labels around them.

    With a column of ones both are about means: it takes what columns and labels have in common,
    and starts that are all of one sign would seem to explain nothing.
    """
    N, others = e.n_rows, np.arange(e.width) < e.width - e.ones
    mean = np.zeros(e.width)
    if e.ones:
        mean = sum_of_rows(e.X, e.weight, e.width) * others / N
        labels = labels - float(e.weight @ labels) / N
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, e.width)) * others
    gram = [(gram_times(e.X, e.weight, z) - N * float(mean @ z) * mean) * others for z in signs]
    squared = float(np.mean(np.square(gram).sum(axis=1)))
    c = sum_of_rows(e.X, e.weight * labels, e.width) * others
    squares = e.X._replace(values=np.square(e.X.values))
    norms = products_with(squares, np.ones(e.width))
    trace = float(e.weight @ norms) - e.ones * N - N * float(mean @ mean)
    y = float(e.weight @ np.square(labels))
    if trace <= 0.0 or y == 0.0:
        return 1.0, max(y / N, 1e-300)
    share = (float(c @ c) - y * trace / N) / max(squared - trace**2 / N, 1e-300)
    variance = float(np.clip(share, 1e-6 * y / trace, 0.99 * y / trace))
    return variance, max((y - variance * trace) / N, 1e-300)


def _solved(e: SparseEvidence, omega: Vector, tau: Vector, ridge: float, h: Vector) -> Vector:
    """Conjugate gradients from h."""
    c = sum_of_rows(e.X, omega * tau, e.width)
    residual = c - gram_times(e.X, omega, h) - ridge * h
    h, p, before = h.copy(), residual.copy(), float(residual @ residual)
    enough = SOLVED * before
    for _ in range(STEPS):
        if before <= enough:
            break
        q = gram_times(e.X, omega, p) + ridge * p
        step = before / float(p @ q)
        h += step * p
        residual -= step * q
        now = float(residual @ residual)
        p, before = residual + (now / before) * p, now
    return h
