r"""Where tasks start: the one notion of a bias, of a prior's mean, and of side information.

A task of which s is known starts from :math:`h(s) = A\phi(s)` with :math:`\phi(s) = (1, s)`. The
matrix A is called effects: a row for each weight, and a column for 1 and for each number that is
known. Where nothing is known it has one column, and that is the bias of the paper.

Kernels of the paper's algorithms are given h itself, since all their tasks have the same. Those
that meet tasks with starts of their own ask for it here, and nowhere else is A multiplied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import within

Matrix = NDArray[np.float64]


class Start(NamedTuple):
    """What kernels see of a prior: where tasks start, how far they go, how noisy rows are.

    Attributes
    ----------
    effects : the matrix A
    variances : the diagonal of the covariance
    covariance : the rest too, or (0, 0) if that is 0
    precision : its inverse, packed, or empty where the variances say it or no task needs it
    log_det : of the covariance
    noise : b
    """

    effects: Matrix
    variances: Vector
    covariance: Matrix
    precision: Vector
    log_det: float
    noise: float

    @property
    def bias(self) -> Vector:
        """The start of a task of which nothing is known."""
        return self.effects[:, 0]

    def of(self, known: Matrix) -> Matrix:
        """The starts of tasks, a row for each row of `known`, which are phi of their s."""
        return np.asarray(known @ self.effects.T)


@within
def start_weight(effects: Matrix, known: Matrix, t: int, j: int) -> float:
    """Weight j of the start of task t."""
    total = 0.0
    for s in range(effects.shape[1]):
        total += effects[j, s] * known[t, s]
    return total


def with_one(side: Matrix | None, n_tasks: int) -> Matrix:
    """Phi of what is known of tasks, a row for each; None if that is nothing."""
    if side is None:
        return np.ones((n_tasks, 1))
    return np.column_stack([np.ones(n_tasks), side])
