"""What goes into a pass over the tasks, and what comes out of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import inlined, part
from headstart.inner.posterior.evidence import Evidence
from headstart.losses import Form
from headstart.losses.many import quadratic_at
from headstart.losses.scalar import SQUARED

Matrix = NDArray[np.float64]


class Moments(NamedTuple):
    """Predictions for every row, by which its quadratic form is chosen.

    Attributes
    ----------
    mean, variance : of the prediction
    change : by task, how far means last were from those of the posterior, in standard deviations
    pace : the share of the way to the posterior's moments that is gone in one pass: all of it
        where quadratic forms are bounds; otherwise half, since two forms may take turns
    """

    mean: Vector
    variance: Vector
    change: Vector
    pace: float

    def copy(self) -> Moments:
        """The same in memory of its own."""
        return Moments(self.mean.copy(), self.variance.copy(), self.change.copy(), self.pace)


@part
def move(moments: Moments, i: int, mean: float, variance: float) -> float:
    """Bring row i's moments nearer to those of the posterior; gives how far they were."""
    away = abs(mean - moments.mean[i]) / math.sqrt(variance + 1e-300)
    moments.mean[i] += moments.pace * (mean - moments.mean[i])
    moments.variance[i] += moments.pace * (variance - moments.variance[i])
    return float(away)


@inlined
def quadratic_row(
    weight: Vector, y: Vector, form: Form, moments: Moments, i: int
) -> tuple[float, float, float]:
    """omega, tau and c of row i, as often as it counts."""
    if form.code == SQUARED:
        return weight[i], y[i], 0.0
    omega, tau, rest = quadratic_at(form, moments.mean[i], moments.variance[i], y[i])
    return weight[i] * omega, tau, weight[i] * rest


@inlined
def row_form(e: Evidence, form: Form, moments: Moments, i: int) -> tuple[float, float, float]:
    """omega, tau and c of row i, as often as it counts."""
    return quadratic_row(e.weight, e.y, form, moments, i)


class Sums(NamedTuple):
    """Sums over tasks, a row for each chunk of them.

    Attributes
    ----------
    V : covariances; packed, or diagonals alone
    D : ``delta delta^T`` likewise, delta being how far a task went from its start
    F : ``delta side^T``; no rows from sparse tasks, whose starts stay
    totals : what rows lose at the start, ``u^T delta``, and ``log |Sigma| |V|^-1``
    """

    V: Matrix
    D: Matrix
    F: NDArray[np.float64]
    totals: Matrix


class Out(NamedTuple):
    """What is wanted of a pass beside its sums.

    Attributes
    ----------
    W, V : weights and packed covariances by task, or no rows where they are not wanted
    apart : whether what is found for a task must have the same bits whatever other tasks there are
    """

    W: Matrix
    V: Matrix
    apart: bool


def nothing_but_sums(k: int, *, apart: bool = False) -> Out:
    """A pass of which the sums are wanted, and the moments."""
    return Out(np.empty((0, k)), np.empty((0, 0)), apart)
