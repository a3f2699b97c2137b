r"""The units of columns: centre, scale and the column of ones, in one place.

Learning works on :math:`x' = ((x - \text{centre})/\text{scale}, 1)` and
:math:`y' = y - \text{level}`, so that results do not depend on the units of the columns, nor,
where there is an intercept, on where their zeros are. The column of ones comes last and is there
only with an intercept; without one nothing is centred. Weights return to the user's units by

.. math:: w = M w' + m, \quad w_j = w'_j/s_j, \quad
          w_\text{intercept} = \text{level} + w'_\text{intercept} - \sum_j c_j w'_j/s_j .

The paper's algorithms learn in the user's units, and all weights are pulled alike. There the
column has not ones but the value b, a `Constant`: on the scale of the inputs, their root mean
square, so that the intercept is as free as any other weight. Outside it is kept in the units of
the prediction, :math:`w_0 = b\,w_b`: then :math:`\langle x, w\rangle + w_0` is the prediction, and
a subgradient u pulls :math:`w_0` by :math:`b^2 u`, so that b can follow the inputs while rows
arrive. That square is called the metric of the intercept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array

from headstart._core.answers import RangeError
from headstart._core.checks import ROWS_AT_ONCE, FloatArray, Vector
from headstart.tasks.sparse import Csr

Matrix = NDArray[np.float64]
Array = TypeVar("Array", bound=NDArray[np.floating])  # of either float type

LEAST_SQUARE = 1e-290  # below it digits are lost
FOLLOW = -1.0  # as a metric: the mean square of the inputs so far


@dataclass(frozen=True, eq=False)
class Columns:
    """Centre and scale of each column, the labels' level, and whether there is a column of ones.

    Examples
    --------
    >>> X, y = np.array([[1990.0], [2010.0]]), np.array([5.0, 7.0])
    >>> columns = Columns.of(X, y, intercept=True)
    >>> print(columns.rows(X), columns.labels(y))
    [[-1.  1.]
     [ 1.  1.]] [-1.  1.]
    >>> print(columns.weights(np.array([1.0, 0.0])).tolist())  # y = 6 + (x - 2000) / 10
    [0.1, -194.0]
    """

    centre: Vector
    scale: Vector
    level: float
    intercept: bool

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        *,
        intercept: bool,
        margin: bool = False,
        weight: Vector | None = None,
    ) -> Columns:
        """The units of these rows; labels that are classes are left as they are."""
        share = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        centre, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        blocks = [slice(i, i + ROWS_AT_ONCE) for i in range(0, len(X), ROWS_AT_ONCE)]
        if intercept:
            for rows in blocks:
                centre += share[rows] @ X[rows]
        for rows in blocks:
            square += share[rows] @ np.square(X[rows] - centre)
        level = float(share @ y) if intercept and not margin else 0.0
        scale = _scale(square, centre)
        constant = intercept & (scale != np.sqrt(square))
        centre[constant] = X[0, constant]  # exactly, so that nothing is left of it
        for j in np.flatnonzero(square < LEAST_SQUARE):
            if np.any(X[:, j] != (X[0, j] if intercept else 0.0)):
                refuse_tiny(int(j))
        return cls(centre, scale, level, intercept)

    @classmethod
    def of_sparse(
        cls,
        X: Csr,
        y: FloatArray,
        *,
        intercept: bool,
        margin: bool = False,
        weight: Vector | None = None,
    ) -> Columns:
        """The units of sparse rows, which stay sparse: nothing is centred.

        The scale is the root mean square of a column's non-zeros, so that a column of ones here
        and there has scale 1, however rare they are.
        """
        width = X.shape[1]
        there = np.bincount(X.indices, minlength=width)
        square = np.bincount(X.indices, np.square(X.data, dtype=np.float64), width)
        scale = np.sqrt(square / np.maximum(there, 1))
        level = 0.0
        if intercept and not margin:
            level = float(np.average(y, weights=weight))
        return cls(np.zeros(width), np.where(scale > 0.0, scale, 1.0), level, intercept)

    @classmethod
    def from_moments(
        cls, mean: Vector, square: Vector, level: float, *, intercept: bool
    ) -> Columns:
        """The units of columns with this mean and mean square about the mean."""
        return cls(mean, _scale(square, mean), level, intercept)

    @property
    def width(self) -> int:
        """Number of weights: one for each column, and one for the column of ones."""
        return int(self.centre.size + self.intercept)

    def rows(self, X: FloatArray) -> Matrix:
        """``x'`` of every row, in float64."""
        out = np.empty((len(X), self.width))
        d = self.centre.size
        np.subtract(X, self.centre, out=out[:, :d])
        out[:, :d] /= self.scale
        out[:, d:] = 1.0
        return out

    def labels(self, y: FloatArray) -> Vector:
        """``y'`` of every label, in float64."""
        return np.asarray(y, np.float64) - self.level

    @property
    def matrix(self) -> Matrix:
        """M, which turns weights of ``x'`` into weights in the user's units."""
        M = np.diag(np.append(1.0 / self.scale, np.ones(int(self.intercept))))
        if self.intercept:
            M[-1, :-1] = -self.centre / self.scale
        return M

    @property
    def sparse_matrix(self) -> csr_array:
        """The same as a sparse matrix, which has about two numbers for each column."""
        moved = np.flatnonzero(self.centre)
        M = diags_array(np.append(1.0 / self.scale, np.ones(int(self.intercept))))
        last = np.full(moved.size, self.width - 1), moved
        return (M + coo_array((-(self.centre / self.scale)[moved], last), M.shape)).tocsr()

    def weights(self, standard: NDArray[np.floating]) -> Vector:
        """Weights in the user's units, the intercept last; leading axes are kept."""
        d = self.centre.size
        w = np.array(standard, np.float64)
        w[..., :d] /= self.scale
        if self.intercept:
            # einsum, because a product's bits depend on how many rows it has
            w[..., d] += self.level - np.einsum("...j,j->...", w[..., :d], self.centre)
        return w

    def standard(self, weights: NDArray[np.floating]) -> Vector:
        """What `weights` was given."""
        d = self.centre.size
        w = np.array(weights, np.float64)
        if self.intercept:
            w[..., d] += w[..., :d] @ self.centre - self.level
        w[..., :d] *= self.scale
        return w

    def covariance(self, standard: Matrix) -> Matrix:
        """A covariance of weights in the user's units."""
        return self._turned(standard, 1.0 / self.scale, -self.centre / self.scale)

    @property
    def inverse_matrix(self) -> Matrix:
        """The inverse of M."""
        N = np.diag(np.append(self.scale, np.ones(int(self.intercept))))
        if self.intercept:
            N[-1, :-1] = self.centre
        return N

    def standard_covariance(self, covariance: Matrix) -> Matrix:
        """What `covariance` was given."""
        return self._turned(covariance, self.scale, self.centre)

    def _turned(self, S: Matrix, factor: Vector, last: Vector) -> Matrix:
        """``M S M^T``, M being diagonal but for the row of the intercept: d² steps, not d³.

        Leading axes are kept.
        """
        d = factor.size
        found = np.array(S, np.float64)
        if self.intercept:
            row = last @ S[..., :d, :] + S[..., d, :]
            found[..., d, d] = row[..., :d] @ last + row[..., d]
            found[..., d, :d] = found[..., :d, d] = row[..., :d]
        found[..., :d, :] *= factor[:, None]
        found[..., :d] *= factor
        return found

    def seen_from(self, other: Columns) -> tuple[Vector, Vector, float]:
        """What turns rows in these units into those of the other: factor, shift and level."""
        ones = int(self.intercept)
        factor = np.append(self.scale / other.scale, np.ones(ones))
        shift = np.append((self.centre - other.centre) / other.scale, np.zeros(ones))
        return factor, shift, other.level - self.level


class Constant(NamedTuple):
    """A constant column of value b; 0 for none.

    Examples
    --------
    >>> column = Constant(2.0)
    >>> print(column.rows(np.array([[5.0]])), column.inward(np.array([3.0, 4.0])))
    [[5. 2.]] [3. 2.]
    >>> print(column.outward(np.array([3.0, 2.0])))
    [3. 4.]
    """

    b: float

    @classmethod
    def of(cls, metric: float) -> Constant:
        """The column whose value has this square."""
        return cls(math.sqrt(metric))

    def rows(self, X: FloatArray) -> FloatArray:
        """The inputs with the column, which comes last."""
        if self.b == 0.0:
            return X
        return np.column_stack([X, np.full(len(X), self.b, X.dtype)])

    def inward(self, weights: FloatArray) -> FloatArray:
        """Weights of the rows with the column, from those of a prediction, intercept last."""
        if self.b == 0.0:
            return weights[..., :-1].copy()
        wide = weights.copy()
        wide[..., -1] /= self.b
        return wide

    def outward(self, wide: Array) -> Array:
        """What `inward` was given; the intercept is 0 if there is none."""
        weights = with_intercept(wide, self.b != 0.0)
        weights[..., -1] *= wide.dtype.type(self.b)
        return weights


def given_metric(fit_intercept: bool, scaling: float | None) -> float:
    """The square of the column's value: 0 for no intercept, `FOLLOW` if the value is not given."""
    if not fit_intercept:
        return 0.0
    return FOLLOW if scaling is None else scaling * scaling


def with_intercept(weights: Array, there: bool) -> Array:
    """A copy of weights that has an intercept last, which is 0 if it is not `there`."""
    none = np.zeros_like(weights[..., : not there])
    return cast(Array, np.concatenate([weights, none], axis=-1))


def units_of(
    X: FloatArray | Csr,
    y: FloatArray,
    *,
    intercept: bool,
    margin: bool = False,
    weight: Vector | None = None,
) -> Columns:
    """The units of rows, whether they are dense or sparse."""
    if isinstance(X, np.ndarray):
        return Columns.of(X, y, intercept=intercept, margin=margin, weight=weight)
    return Columns.of_sparse(X, y, intercept=intercept, margin=margin, weight=weight)


def refuse_tiny(column: int) -> NoReturn:
    """Raise because no number of a column, which are not all the same, can be squared."""
    raise RangeError(
        f"X: column {column}: expected numbers of at least {LEAST_SQUARE**0.5:g}, found none but "
        "smaller ones, too small to square; use other units"
    )


def _scale(square: Vector, centre: Vector) -> Vector:
    """Root mean squares; 1 for a column of one value, whose square is rounding or 0."""
    scale = np.sqrt(square)
    return np.where(scale > 1e-14 * np.abs(centre), scale, 1.0)
