r"""All rows of many tasks as one problem of least squares, seen along its principal axes.

With :math:`X^\top X = Q\Lambda Q^\top` and :math:`z = Q^\top X^\top y`, the ridge solution is
:math:`Q(\Lambda + r)^{-1}z` for every r at once. And with weights spread as
:math:`N(0, \tau^2)` and noise v, for :math:`a = \tau^2/v`,

.. math:: -2\log p(y) = \sum_i\log(1 + a\lambda_i) + N\log v + \frac1v\Bigl(\|y\|^2 -
          \sum_i\frac{a z_i^2}{1 + a\lambda_i}\Bigr) + \text{const},

so that the best v for a given a is the bracket over N.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector

Matrix = NDArray[np.float64]

RIDGE = 1e-8  # of the columns' mean square
# Ratios of both variances that are tried, rows being of length 1 along an axis on average. Steps
# are coarse on purpose: rounding, and with it the order of rows, does not choose between them.
RATIOS = np.exp2(np.arange(-20.0, 31.0))
LEAST = 1e-12  # of the labels' square, that no weights explain


class Pooled(NamedTuple):
    """Rows of all tasks together.

    Attributes
    ----------
    values : sums of squares of the rows along each axis
    along : ``X^T y`` along each axis, for labels whose sum of squares is 1
    axes : the axes, as columns
    square : the labels' sum of squares
    n_rows : how many rows there are, by their weights
    """

    values: Vector
    along: Vector
    axes: Matrix
    square: float
    n_rows: float

    @classmethod
    def of_gram(cls, A: Matrix, c: Vector, square: float, n_rows: float) -> Pooled:
        """From ``X^T X`` and ``X^T y``."""
        values, axes = np.linalg.eigh(A)
        size = np.sqrt(square) or 1.0
        return cls(np.maximum(values, 0.0), axes.T @ (c / size), axes, square, n_rows)

    @classmethod
    def of_rows(cls, X: Matrix, y: Vector, n_rows: float) -> Pooled:
        """From fewer rows than columns, by a matrix of the size of the rows."""
        square = float(y @ y)
        values, sides = np.linalg.eigh(X @ X.T)
        there = values > RIDGE**2 * max(values[-1], 1e-300) if len(values) else values > 0.0
        values, sides = values[there], sides[:, there]
        lengths = np.sqrt(values)
        along = lengths * (sides.T @ (y / (np.sqrt(square) or 1.0)))
        return cls(values, along, X.T @ (sides / lengths), square, n_rows)

    def weights(self, ridge: float) -> Vector:
        """The ridge solution; with a trace of a ridge at least, where columns are alike."""
        least = RIDGE * float(self.values.sum()) / max(len(self.axes), 1) + 1e-300
        return np.asarray(
            np.sqrt(self.square) * (self.axes @ (self.along / (self.values + max(ridge, least))))
        )

    def variances(self) -> tuple[float, float]:
        """Those of weights and of noise under which the labels are most likely."""
        if self.square == 0.0 or not self.values.any():
            return 0.0, self.square / self.n_rows
        ratios = RATIOS / float(self.values.mean())
        lost = 1.0 + np.outer(ratios, self.values)
        left = 1.0 - ratios * (self.along**2 / lost).sum(axis=1)
        noise = np.maximum(left, LEAST) / self.n_rows
        best = int(np.argmin(np.log(lost).sum(axis=1) + self.n_rows * np.log(noise)))
        return float(ratios[best] * noise[best]) * self.square, float(noise[best]) * self.square
