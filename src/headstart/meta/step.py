r"""The meta-step: how a meta-gradient moves the bias, and what is kept to average all iterates.

The estimate is the mean of the iterates :math:`h_0, \dots, h_T`, so that their sum is kept. With
sparse rows that sum is not touched in all its entries at every step. There, with
:math:`h_t = h_{t-1} - g_t`,

.. math:: \sum_{s=0}^T h_s = (T + 1)h_T + \sum_{t=1}^T t\,g_t ,

and the second term is kept instead, to which a step adds where its gradient is not 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headstart._core.checks import FloatArray, Vector
from headstart._core.doors import door, text_for
from headstart._core.jit import kernel
from headstart.tasks import Inputs
from headstart.tasks.rows import Sparse


class Iterates(NamedTuple):
    """What the steps of Algorithm 2 update.

    Attributes
    ----------
    h : the newest iterate
    total : the sum of all iterates so far
    S : room for the gradient of one task, 0 between tasks
    path : the iterates as rows, or no rows
    """

    h: Vector
    total: Vector
    S: Vector
    path: FloatArray

    @classmethod
    def of(cls, h: Vector, total: Vector, path: FloatArray, X: Inputs) -> Iterates:
        """Copies of these, for rows X.

        Sparse rows meet entries far from each other. There h and S lie side by side, so that
        memory is asked for a column once, not twice.
        """
        if not isinstance(X, Sparse):
            return cls(h.copy(), total.copy(), np.zeros(h.size), path)
        beside = np.zeros((h.size, 2))
        beside[:, 0] = h
        return cls(beside[:, 0], total.copy(), beside[:, 1], path)


@kernel
def descend(rate: float, gradient: Vector, h: Vector, total: Vector) -> None:
    """``h -= rate gradient``, and the new iterate is added to the sum of all."""
    for j in range(h.size):
        h[j] -= rate * gradient[j]
        total[j] += h[j]


@door
def open_total(X: Inputs, number: int, h: Vector, total: Vector) -> None:
    """From the sum of the first `number` iterates, of which h is the last, to what is kept."""
    raise NotImplementedError


@door
def close_total(X: Inputs, number: int, h: Vector, total: Vector) -> None:
    """From what is kept to the sum of the first `number` iterates, of which h is the last."""
    raise NotImplementedError


@door
def step_along(
    X: Inputs, begin: int, end: int, rate: float, number: int, S: Vector, h: Vector, total: Vector
) -> None:
    """Step `number`, from 1 on: by ``rate S``, a sum of rows from `begin` to `end`; then S is 0."""
    raise NotImplementedError


@text_for(open_total, np.ndarray)
def _(X: FloatArray, number: int, h: Vector, total: Vector) -> None:  # noqa: ARG001
    return


@text_for(close_total, np.ndarray)
def _(X: FloatArray, number: int, h: Vector, total: Vector) -> None:  # noqa: ARG001
    return


@text_for(step_along, np.ndarray)
def _(
    X: FloatArray,  # noqa: ARG001
    begin: int,  # noqa: ARG001
    end: int,  # noqa: ARG001
    rate: float,
    number: int,  # noqa: ARG001
    S: Vector,
    h: Vector,
    total: Vector,
) -> None:
    descend(rate, S, h, total)
    S[:] = 0.0


@text_for(open_total, Sparse)
def _(X: Sparse, number: int, h: Vector, total: Vector) -> None:  # noqa: ARG001
    for j in range(h.size):
        total[j] -= number * h[j]


@text_for(close_total, Sparse)
def _(X: Sparse, number: int, h: Vector, total: Vector) -> None:  # noqa: ARG001
    for j in range(h.size):
        total[j] += number * h[j]


@text_for(step_along, Sparse)
def _(
    X: Sparse, begin: int, end: int, rate: float, number: int, S: Vector, h: Vector, total: Vector
) -> None:
    for p in range(X.starts[begin], X.starts[end]):
        j = X.columns[p]
        moved = rate * S[j]  # 0 where the column was met before
        h[j] -= moved
        total[j] += number * moved
        S[j] = 0.0
