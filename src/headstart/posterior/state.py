"""What goes into a pass over the tasks, and what comes out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector

Matrix = NDArray[np.float64]


class Start(NamedTuple):
    """What kernels see of a prior: where tasks start, how far they go, how noisy rows are.

    Attributes
    ----------
    effects : the start of a task is ``effects @ side``, side being 1 and what is known of it
    variances : the diagonal of the covariance
    covariance : the rest too, or (0, 0) if that is 0
    precision : its inverse, packed, or empty where no task needs it
    log_det : of the covariance
    noise : b
    """

    effects: Matrix
    variances: Vector
    covariance: Matrix
    precision: Vector
    log_det: float
    noise: float


class Moments(NamedTuple):
    """Mean and variance of the prediction for every row; by task, how far means moved last."""

    mean: Vector
    variance: Vector
    change: Vector


class Sums(NamedTuple):
    """Sums over tasks, a row for each chunk of them.

    Attributes
    ----------
    V : covariances; packed, or diagonals alone
    D : ``delta delta^T`` likewise, delta being how far a task went from its start
    F : ``delta side^T``
    totals : what rows lose at the start, ``u^T delta``, and ``log |Sigma| |V|^-1``
    """

    V: Matrix
    D: Matrix
    F: NDArray[np.float64]
    totals: Matrix


class Out(NamedTuple):
    """Weights and packed covariances by task, or no rows where they are not wanted."""

    W: Matrix
    V: Matrix
