"""The weights of one entity from its sums and waiting rows, as quickly as that can be.

For the squared loss. In the units in which rows are summed nothing has to be moved or copied:
Cholesky's factor loses no digits by columns of other scales.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import kernel
from headstart.inner.posterior.evidence import unpacked
from headstart.meta.prior.log import Table
from headstart.meta.prior.prior import Prior
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


class Pull(NamedTuple):
    """A prior as it pulls weights of rows seen from somewhere.

    Attributes
    ----------
    P : the inverse of the covariance
    Ph : that, times the start
    centre, level : where rows and labels are seen from
    noise : b
    """

    P: Matrix
    Ph: Vector
    centre: Vector
    level: float
    noise: float

    @classmethod
    def of(cls, prior: Prior, view: Columns) -> Pull:
        """The pull of a prior in the units of a view, which have scale 1."""
        columns, start = prior.columns, prior.standard
        N = replace(columns, centre=columns.centre - view.centre).inverse_matrix.T
        P = np.diag(1.0 / start.variances)
        if len(start.precision):
            P = unpacked(start.precision)
        P = N @ P @ N.T
        return cls(P, P @ view.standard(prior.bias), view.centre, view.level, prior.noise)


@kernel
def predict_one(
    x: FloatArray, pull: Pull, sums: Matrix, line: int, rows: Table, before: Counts, newest: int
) -> float:
    """The prediction of a row by the entity whose sums are in `line`, if that is not -1.

    Its waiting rows are `newest` and those before it.
    """
    P, Ph, centre, level, noise = pull
    k, d, share = len(P), centre.size, 1.0 / noise
    A, w, z = np.empty((k, k)), np.empty(k), np.ones(k)
    place = 0
    for j in range(k):
        w[j] = Ph[j]
        for m in range(j + 1):
            A[j, m] = P[j, m]
    if line >= 0:
        cut = k * (k + 1) // 2
        for j in range(k):
            w[j] += share * sums[line, cut + j]
            for m in range(j + 1):
                A[j, m] += share * sums[line, place + m]
            place += j + 1
    while newest >= 0:
        weight, label = share * rows.weight[newest], rows.y[newest] - level
        for j in range(d):
            z[j] = rows.X[newest, j] - centre[j]
        for j in range(k):
            factor = weight * z[j]
            w[j] += factor * label
            for m in range(j + 1):
                A[j, m] += factor * z[m]
        newest = before[newest]
    for j in range(k):  # Cholesky's factor, and w through it on the way
        for m in range(j):
            total = A[j, m]
            for i in range(m):
                total -= A[j, i] * A[m, i]
            A[j, m] = total * A[m, m]
            w[j] -= A[j, m] * w[m]
        total = A[j, j]
        for i in range(j):
            total -= A[j, i] * A[j, i]
        A[j, j] = 1.0 / math.sqrt(total)
        w[j] *= A[j, j]
    prediction = level
    for back in range(k):
        j = k - 1 - back
        w[j] *= A[j, j]
        for m in range(j):
            w[m] -= A[j, m] * w[j]
        prediction += w[j] * (x[j] - centre[j] if j < d else 1.0)
    return prediction
