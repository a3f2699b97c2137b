"""The losses as compiled functions of one score, chosen by an integer code.

Codes, because numba keeps their machine code on disk and loads it in milliseconds; function
arguments and closures would be compiled anew in every process.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from headstart._jit import kernel

ABSOLUTE, EPSILON_INSENSITIVE, PINBALL, HUBER, HINGE, SMOOTHED_HINGE, LOGISTIC = range(7)
FIRST_MARGIN_CODE = HINGE


class Objective(NamedTuple):
    """What kernels see of a task's regularised risk: reg, and the loss by code and parameter."""

    lam: float
    code: int
    c: float


@kernel
def score(code: int, z: float, y: float) -> float:
    """The number a prediction `z` is judged by: residual or margin."""
    return z - y if code < FIRST_MARGIN_CODE else y * z


@kernel
def sign_of(code: int, y: float) -> float:
    """Derivative of the score in the prediction: 1 for a residual, the label for a margin."""
    return 1.0 if code < FIRST_MARGIN_CODE else y


@kernel
def sign(t: float) -> float:
    """-1, 0 or 1."""
    return 1.0 * (t > 0.0) - 1.0 * (t < 0.0)


@kernel
def sigmoid(t: float) -> float:
    """``1 / (1 + exp(-t))``, without overflow."""
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@kernel
def phi(code: int, c: float, s: float) -> float:
    """Loss of score `s`."""
    if code == ABSOLUTE:
        return abs(s)
    if code == EPSILON_INSENSITIVE:
        return max(abs(s) - c, 0.0)
    if code == PINBALL:
        return max(-c * s, (1.0 - c) * s)
    if code == HUBER:
        return s * s / (2.0 * c) if abs(s) <= c else abs(s) - c / 2.0
    if code == HINGE:
        return max(1.0 - s, 0.0)
    if code == SMOOTHED_HINGE:
        r = 1.0 - s
        return 0.0 if r <= 0.0 else (r * r / (2.0 * c) if r <= c else r - c / 2.0)
    return max(-s, 0.0) + math.log1p(math.exp(-abs(s)))


@kernel
def slope(code: int, c: float, s: float) -> float:
    """The subgradient of `phi` at `s` taken throughout: 0 at every kink.

    Comparisons are multiplied, not branched on: a processor cannot guess the sign of a
    residual, and a wrong guess costs as much as the row's inner products.
    """
    if code == ABSOLUTE:
        return sign(s)
    if code == EPSILON_INSENSITIVE:
        return 1.0 * (s > c) - 1.0 * (s < -c)
    if code == PINBALL:
        return (1.0 - c) * (s > 0.0) - c * (s < 0.0)
    if code == HUBER:
        return min(max(s / c, -1.0), 1.0)
    if code == HINGE:
        return -1.0 * (s < 1.0)
    if code == SMOOTHED_HINGE:
        return -min(max((1.0 - s) / c, 0.0), 1.0)
    return -sigmoid(-s)


@kernel
def lower(code: int, c: float) -> float:
    """Left end of the conjugate's domain."""
    return -c if code == PINBALL else -1.0


@kernel
def upper(code: int, c: float) -> float:
    """Right end of the conjugate's domain."""
    if code >= FIRST_MARGIN_CODE:
        return 0.0
    return 1.0 - c if code == PINBALL else 1.0


@kernel
def conjugate(code: int, c: float, b: float) -> float:
    """``phi*(b) = sup_s b s - phi(s)``, infinite outside [`lower`, `upper`]."""
    if not lower(code, c) <= b <= upper(code, c):
        return math.inf
    if code == EPSILON_INSENSITIVE:
        return c * abs(b)
    if code == HUBER:
        return c * b * b / 2.0
    if code == HINGE:
        return b
    if code == SMOOTHED_HINGE:
        return b + c * b * b / 2.0
    if code == LOGISTIC:
        entropy = 0.0
        if b < 0.0:
            entropy -= b * math.log(-b)
        if b > -1.0:
            entropy += (1.0 + b) * math.log1p(b)
        return entropy
    return 0.0


@kernel
def conjugate_slope(code: int, c: float, b: float) -> float:
    """Derivative of `conjugate` inside its domain, away from its own kink."""
    if code == EPSILON_INSENSITIVE:
        return c * sign(b)
    if code == HUBER:
        return c * b
    if code == HINGE:
        return 1.0
    if code == SMOOTHED_HINGE:
        return 1.0 + c * b
    if code == LOGISTIC:
        return math.log1p(b) - math.log(-b)
    return 0.0


@kernel
def fenchel_gap(code: int, c: float, s: float, b: float) -> float:
    """``phi(s) + phi*(b) - b s``: never negative, 0 exactly when b is a subgradient at s."""
    return max(phi(code, c, s) + conjugate(code, c, b) - b * s, 0.0)


@kernel
def prox_conjugate(code: int, c: float, eta: float, a: float) -> float:
    """``argmin_b eta phi*(b) + (b - a)^2 / 2``."""
    if code == LOGISTIC:
        return _prox_logistic(eta, a)
    if code == EPSILON_INSENSITIVE:
        a = max(abs(a) - eta * c, 0.0) * sign(a)
    elif code == HUBER:
        a = a / (1.0 + eta * c)
    elif code == HINGE:
        a = a - eta
    elif code == SMOOTHED_HINGE:
        a = (a - eta) / (1.0 + eta * c)
    return min(max(a, lower(code, c)), upper(code, c))


@kernel
def _prox_logistic(eta: float, a: float) -> float:
    # b = -sigmoid(t) where t is the root of the increasing f(t) = eta t + sigmoid(t) + a:
    # Newton's method inside a bracket that shrinks at every step.
    left, right = (-a - 1.0) / eta, -a / eta
    t = min(max(0.0, left), right)
    if 0.0 < -a < 1.0:
        t = min(max(math.log(-a) - math.log1p(a), left), right)
    for _ in range(200):
        p = sigmoid(t)
        f = eta * t + p + a
        if f > 0.0:
            right = t
        else:
            left = t
        step = f / (eta + p * (1.0 - p))
        new = t - step
        if not left <= new <= right:
            new = 0.5 * (left + right)
        if abs(new - t) <= 1e-15 * abs(t) or new == t:
            break
        t = new
    return -sigmoid(t)


@kernel
def prox_slope(code: int, c: float, eta: float, b: float) -> float:
    """Derivative in `a` of ``prox_conjugate(eta, a)`` where its value is `b`; 0 at the corners."""
    if not lower(code, c) < b < upper(code, c):
        return 0.0
    if code == EPSILON_INSENSITIVE:
        return 1.0 if b != 0.0 else 0.0
    if code in (HUBER, SMOOTHED_HINGE):
        return 1.0 / (1.0 + eta * c)
    if code == LOGISTIC:
        spread = -b * (1.0 + b)
        return spread / (spread + eta)
    return 1.0
