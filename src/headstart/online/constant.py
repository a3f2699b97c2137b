r"""The intercept of the paper's algorithms: the weight of a constant column.

The column has the value b, and its weight is pulled to its bias as the others are. With b on the
scale of the inputs, their root mean square, the intercept is as free as any other weight.
Everywhere else the intercept is kept in the units of the prediction, :math:`w_0 = b\,w_b`: then
:math:`\langle x, w\rangle + w_0` is the prediction, and a subgradient u pulls :math:`w_0` by
:math:`b^2 u`. So b can follow the inputs while rows arrive.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headstart._core.checks import FloatArray

FOLLOW = -1.0  # as a metric: the mean square of the inputs so far


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
    def of(cls, square: float) -> Constant:
        """The column whose value has this square, which is that of the prediction's units."""
        return cls(math.sqrt(square))

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

    def outward(self, wide: FloatArray) -> FloatArray:
        """What `inward` was given; the intercept is 0 if there is none."""
        if self.b == 0.0:
            return np.concatenate([wide, np.zeros_like(wide[..., :1])], axis=-1)
        weights = wide.copy()
        weights[..., -1] *= wide.dtype.type(self.b)
        return weights


def given_metric(fit_intercept: bool, scaling: float | None) -> float:
    """The square of the column's value: 0 for no intercept, `FOLLOW` if the value is not given."""
    if not fit_intercept:
        return 0.0
    return FOLLOW if scaling is None else scaling * scaling
