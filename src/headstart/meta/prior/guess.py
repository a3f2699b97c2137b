"""Where learning a prior begins when none is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.losses import Loss
from headstart.meta.prior.pooled import pooled_starts
from headstart.meta.prior.task_sums import TaskSums

Matrix = NDArray[np.float64]

LEAST_NOISE = 1e-10  # of the labels' mean square
MARGINS = 10.0  # how large starts are where labels are -1 and +1


class Guess(NamedTuple):
    """Where learning begins, in standard units.

    Attributes
    ----------
    effects : the starts
    variance : of every weight of a task around them
    noise, least_noise : of the rows, and how small it may become
    spread : the variance of the starts themselves around 0, which pulls them there
    """

    effects: Matrix
    variance: float
    noise: float
    least_noise: float
    spread: float


def first_guess(tasks: TaskSums, loss: Loss, *, level: bool) -> Guess:
    """Starts from all rows pooled; half of what they leave goes to the tasks, half to the noise.

    With `level` the last column is that of ones, and labels are about their mean already.

    How widely starts are spread is what makes the pooled labels most likely. But tasks that differ
    are noise to pooled rows, and hide effects that are small beside it and yet well known. So it
    is no less than where columns that have nothing in common, each with an equal share, explain
    all that labels differ by.
    """
    size = tasks.size
    N, effects = size.n_rows, np.zeros((size.width, len(size.side)))
    if loss.binary:  # as the logistic loss is at margin 0: omega 1/4 and tau 2 y
        effects[:, 0] = 2.0 * tasks.pooled(size.width).weights(0.0)
        return Guess(effects, 1.0 / size.norm, 1.0, 1.0, MARGINS**2)
    width = size.width - level
    pooled = tasks.pooled(width)
    square = pooled.square / N or 1.0  # labels that are all 0 have no unit
    spread, left = pooled.variances()
    spread, left = max(spread, square / max(width, 1)), max(left, LEAST_NOISE * square)
    effects[:width, 0] = pooled.weights(left / spread)
    least = _noise_of(loss, LEAST_NOISE * square)
    return Guess(effects, 0.5 * left / size.norm, _noise_of(loss, 0.5 * left), least, spread)


def sparse_guess(e: SparseEvidence, loss: Loss) -> Guess:
    """The same for sparse rows, whose labels have the start taken off if they are numbers."""
    if loss.binary:
        return Guess(pooled_starts(e, loss)[:, None], 1.0 / e.norm, 1.0, 1.0, MARGINS**2)
    square = float(e.weight @ np.square(e.y)) / e.n_rows or 1.0
    variance, noise = 0.5 * square / e.norm, _noise_of(loss, 0.5 * square)
    least = _noise_of(loss, LEAST_NOISE * square)
    return Guess(np.zeros((e.width, 1)), variance, noise, least, math.inf)


def _noise_of(loss: Loss, variance: float) -> float:
    """The noise under which rows lose as much as normal residuals of this variance do."""
    return loss.fit_noise(max(loss.normal_loss(variance), 1e-300))
