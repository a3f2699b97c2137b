"""The losses of many predictions.

A compiled loop over predictions becomes vector instructions only if the loss is a constant in it.
So the loss's code is looked at before the loop, and the paper's two losses have loops of their own.
Those are inlined: what is called as a function does not know that its argument is a constant, and
is fifteen times slower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import inlined, kernel
from headstart.losses.form import ABSOLUTE, ABSOLUTE_FORM, HINGE, HINGE_FORM, PARTS, Form
from headstart.losses.scalar import (
    conjugate,
    phi,
    prox_conjugate,
    quadratic,
    score,
    sign_of,
    slope,
    subgradient,
)

Matrix = NDArray[np.float64]

VALUE, SLOPE, STAR = (list(PARTS).index(part) for part in ("phi", "slope", "star"))


@kernel
def map_part(what: int, form: Form, points: Vector, labels: Vector, extra: float) -> Vector:
    """One part of the loss for every point and label.

    `extra` is eta for the prox; for the conjugate, how far outside its domain counts as its end.
    """
    out = np.empty(points.size)
    for i in range(points.size):
        v, y = points[i], labels[i]
        sign, offset = sign_of(form, y), 0.0 if form.margin else y
        if what == VALUE:
            out[i] = phi(form, score(form, v, y))
        elif what == SLOPE:
            out[i] = sign * slope(form, score(form, v, y))
        elif what == STAR:
            b = sign * v
            end = min(max(b, form.lower), form.upper)
            out[i] = v * offset + conjugate(form, end if abs(b - end) <= extra else b)
        else:
            out[i] = sign * prox_conjugate(form, extra, sign * v - extra * offset)
    return out


@kernel
def quadratic_at(form: Form, mean: float, variance: float, y: float) -> tuple[float, float, float]:
    """omega, tau and c for a prediction of this mean and variance."""
    omega, t, c = quadratic(form, score(form, mean, y), variance)
    return omega, y * t if form.margin else y + t, c


@kernel
def quadratics(form: Form, mean: Vector, variance: Vector, labels: Vector) -> Matrix:
    """omega, tau and c as rows, a column for each prediction."""
    out = np.empty((3, mean.size))
    for i in range(mean.size):
        out[0, i], out[1, i], out[2, i] = quadratic_at(form, mean[i], variance[i], labels[i])
    return out


@inlined
def _sum_losses(form: Form, Z: Matrix, y: FloatArray, begin: int, n: int, out: Vector) -> None:
    out[:] = 0.0
    for i in range(n):
        label = y[begin + i]
        for q in range(out.size):
            out[q] += phi(form, score(form, Z[i, q], label))


@kernel
def sum_losses(form: Form, Z: Matrix, y: FloatArray, begin: int, n: int, out: Vector) -> None:
    """Column sums of the losses of predictions ``Z[:n]`` for the labels from `begin` on."""
    if form.code == ABSOLUTE:
        _sum_losses(ABSOLUTE_FORM, Z, y, begin, n, out)
    elif form.code == HINGE:
        _sum_losses(HINGE_FORM, Z, y, begin, n, out)
    else:
        _sum_losses(form, Z, y, begin, n, out)


@inlined
def _fill_slopes(form: Form, z: Vector, label: float, U: Matrix, k: int) -> None:
    for q in range(z.size):
        U[k, q] = subgradient(form, z[q], label)


@kernel
def fill_slopes(form: Form, z: Vector, label: float, U: Matrix, k: int) -> None:
    """Row k of U: the subgradients of the losses of predictions `z` for one label."""
    if form.code == ABSOLUTE:
        _fill_slopes(ABSOLUTE_FORM, z, label, U, k)
    elif form.code == HINGE:
        _fill_slopes(HINGE_FORM, z, label, U, k)
    else:
        _fill_slopes(form, z, label, U, k)
