"""Losses and slopes of many predictions for one label.

Compiled loops over predictions become vector instructions only where the loss is a
constant. So its code is looked at before the loop, and the paper's two losses are named.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._checks import FloatArray, Vector
from headstart._jit import kernel
from headstart.losses.scalar import ABSOLUTE, HINGE, phi, score, sign_of, slope

Matrix = NDArray[np.float64]


@kernel
def _sum_losses(
    code: int, c: float, Z: Matrix, y: FloatArray, begin: int, n: int, out: Vector
) -> None:
    out[:] = 0.0
    for i in range(n):
        label = y[begin + i]
        for q in range(out.size):
            out[q] += phi(code, c, score(code, Z[i, q], label))


@kernel
def sum_losses(
    code: int, c: float, Z: Matrix, y: FloatArray, begin: int, n: int, out: Vector
) -> None:
    """Column sums of the losses of predictions ``Z[:n]`` for the labels from `begin` on."""
    if code == ABSOLUTE:
        _sum_losses(ABSOLUTE, c, Z, y, begin, n, out)
    elif code == HINGE:
        _sum_losses(HINGE, c, Z, y, begin, n, out)
    else:
        _sum_losses(code, c, Z, y, begin, n, out)


@kernel
def _fill_slopes(code: int, c: float, z: Vector, label: float, U: Matrix, k: int) -> None:
    sign = sign_of(code, label)
    for q in range(z.size):
        U[k, q] = sign * slope(code, c, score(code, z[q], label))


@kernel
def fill_slopes(code: int, c: float, z: Vector, label: float, U: Matrix, k: int) -> None:
    """Row k of U: the subgradients of the losses of predictions `z` for one label."""
    if code == ABSOLUTE:
        _fill_slopes(ABSOLUTE, c, z, label, U, k)
    elif code == HINGE:
        _fill_slopes(HINGE, c, z, label, U, k)
    else:
        _fill_slopes(code, c, z, label, U, k)
