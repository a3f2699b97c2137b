"""The losses as compiled functions of one score: every algorithm's way to a loss.

The parts themselves, ``phi`` and its derivative, conjugate, prox and quadratic form, stand
with each loss in `regression` and `classification`; here they are chosen by the `Form`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from headstart._jit import kernel
from headstart.losses.classification import Hinge, Logistic, SmoothedHinge
from headstart.losses.form import Form, choice
from headstart.losses.regression import Absolute, EpsilonInsensitive, Huber, Pinball, Squared

BUILT_IN = (
    Absolute,
    EpsilonInsensitive,
    Pinball,
    Huber,
    Squared,
    Hinge,
    SmoothedHinge,
    Logistic,
)
ABSOLUTE, HINGE, SQUARED = (BUILT_IN.index(loss) for loss in (Absolute, Hinge, Squared))

phi: Callable[[Form, float], float] = choice("phi", BUILT_IN)
slope: Callable[[Form, float], float] = choice("slope", BUILT_IN)
conjugate_slope: Callable[[Form, float], float] = choice("star_slope", BUILT_IN)
prox_conjugate: Callable[[Form, float, float], float] = choice("prox", BUILT_IN)
quadratic: Callable[[Form, float, float], tuple[float, float, float]] = choice(
    "quadratic", BUILT_IN
)
_star = choice("star", BUILT_IN)
_prox_slope = choice("prox_slope", BUILT_IN)


@kernel
def score(form: Form, z: float, y: float) -> float:
    """The number a prediction `z` is judged by: residual or margin."""
    return y * z if form.margin else z - y


@kernel
def sign_of(form: Form, y: float) -> float:
    """Derivative of the score in the prediction: 1 for a residual, the label for a margin."""
    return y if form.margin else 1.0


@kernel
def conjugate(form: Form, b: float) -> float:
    """``phi*(b) = sup_s b s - phi(s)``, infinite outside [`lower`, `upper`]."""
    if not form.lower <= b <= form.upper:
        return math.inf
    return float(_star(form, b))


@kernel
def fenchel_gap(form: Form, s: float, b: float) -> float:
    """``phi(s) + phi*(b) - b s``: never negative, 0 exactly when b is a subgradient at s."""
    return max(phi(form, s) + conjugate(form, b) - b * s, 0.0)


@kernel
def prox_slope(form: Form, eta: float, b: float) -> float:
    """Derivative in `a` of ``prox_conjugate(eta, a)`` where its value is `b`; 0 at the corners."""
    if not form.lower < b < form.upper:
        return 0.0
    return float(_prox_slope(form, eta, b))
