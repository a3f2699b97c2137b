"""The losses as compiled functions of one score: every algorithm's way to a loss.

The parts themselves, ``phi`` and its derivative, conjugate, prox and quadratic form, stand
with each loss in `regression` and `classification`; here they are chosen by the `Form`.
All functions of this module are for compiled code.
"""

from __future__ import annotations

import math

from headstart._core.jit import kernel
from headstart.losses.form import SQUARED as SQUARED  # for kernels that name it
from headstart.losses.form import Form
from headstart.losses.switch import by_form


@by_form("phi")
def phi(form: Form, s: float) -> float:
    """The loss of a score."""
    raise NotImplementedError


@by_form("slope")
def slope(form: Form, s: float) -> float:
    """Its derivative; 0 at a kink."""
    raise NotImplementedError


@by_form("star")
def star(form: Form, u: float) -> float:
    """The conjugate, of a `u` inside its domain; see `conjugate`."""
    raise NotImplementedError


@by_form("star_slope")
def conjugate_slope(form: Form, u: float) -> float:
    """The derivative of the conjugate inside its domain."""
    raise NotImplementedError


@by_form("prox")
def prox_conjugate(form: Form, eta: float, v: float) -> float:
    """``argmin_u eta phi*(u) + (u - v)^2 / 2``."""
    raise NotImplementedError


@by_form("prox_slope")
def inner_prox_slope(form: Form, eta: float, u: float) -> float:
    """The prox's derivative where its value `u` is inside the domain; see `prox_slope`."""
    raise NotImplementedError


@by_form("quadratic")
def quadratic(form: Form, mean: float, variance: float) -> tuple[float, float, float]:
    """omega, t and c of the parabola that stands for the loss of a score of these moments."""
    raise NotImplementedError


@kernel
def score(form: Form, z: float, y: float) -> float:
    """The number a prediction `z` is judged by: residual or margin."""
    return y * z if form.margin else z - y


@kernel
def sign_of(form: Form, y: float) -> float:
    """Derivative of the score in the prediction: 1 for a residual, the label for a margin."""
    return y if form.margin else 1.0


@kernel
def subgradient(form: Form, z: float, y: float) -> float:
    """The subgradient u of the loss in the prediction `z`; NaN if that is beyond all numbers.

    Without a branch: slopes of most losses are numbers everywhere, and would hide it.
    """
    s = score(form, z, y)
    return sign_of(form, y) * slope(form, s) + 0.0 * s


@kernel
def conjugate(form: Form, u: float) -> float:
    """``phi*(u) = sup_s u s - phi(s)``, infinite outside [`lower`, `upper`]."""
    if not form.lower <= u <= form.upper:
        return math.inf
    return float(star(form, u))


@kernel
def fenchel_gap(form: Form, s: float, u: float) -> float:
    """``phi(s) + phi*(u) - u s``: never negative, 0 exactly when u is a subgradient at s."""
    return max(phi(form, s) + conjugate(form, u) - u * s, 0.0)


@kernel
def prox_slope(form: Form, eta: float, u: float) -> float:
    """Derivative in `v` of ``prox_conjugate(eta, v)`` where its value is `u`; 0 at the corners."""
    if not form.lower < u < form.upper:
        return 0.0
    return float(inner_prox_slope(form, eta, u))
