"""Where learning a prior begins when none is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.losses import Loss
from headstart.meta.prior.pooled import pooled_starts
from headstart.meta.prior.task_sums import TaskSums

Matrix = NDArray[np.float64]

LEAST_NOISE = 1e-10  # of the labels' mean square


def first_guess(tasks: TaskSums, loss: Loss) -> tuple[Matrix, float, float, float]:
    """Starts from all rows pooled; half of what they leave goes to the tasks, half to the noise.

    Gives the starts, the variance of every weight, the noise, and the least noise there may be.
    """
    size = tasks.size
    N, effects = size.n_rows, np.zeros((size.width, len(size.side)))
    if loss.binary:  # as the logistic loss is at margin 0: omega 1/4 and tau 2 y
        effects[:, 0], _, _ = tasks.pooled(2.0)
        return effects, 1.0 / size.norm, 1.0, 1.0
    effects[:, 0], squares, unexplained = tasks.pooled(1.0)
    square = squares / N or 1.0  # labels that are all 0 have no unit
    left = max(unexplained / N, LEAST_NOISE * square)
    least = _noise_of(loss, LEAST_NOISE * square)
    return effects, 0.5 * left / size.norm, _noise_of(loss, 0.5 * left), least


def sparse_guess(e: SparseEvidence, loss: Loss) -> tuple[Matrix, float, float, float]:
    """The same for sparse rows, whose labels have the start taken off if they are numbers."""
    if loss.binary:
        return pooled_starts(e, loss)[:, None], 1.0 / e.norm, 1.0, 1.0
    square = float(e.weight @ np.square(e.y)) / e.n_rows or 1.0
    guess = 0.5 * square / e.norm, _noise_of(loss, 0.5 * square)
    return np.zeros((e.width, 1)), *guess, _noise_of(loss, LEAST_NOISE * square)


def _noise_of(loss: Loss, variance: float) -> float:
    """The noise under which rows lose as much as normal residuals of this variance do."""
    return loss.fit_noise(max(loss.normal_loss(variance), 1e-300))
