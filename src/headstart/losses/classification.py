"""Losses of the margin ``s = y z`` for labels -1 and +1, each with all its parts.

Parts are as in `regression`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headstart._checks import check_number
from headstart._jit import kernel
from headstart.losses.loss import Loss
from headstart.losses.smoothed import mean_absolute, parabola

PROBIT = 1.702  # the width of the normal distribution that is most like the logistic one


@dataclass(frozen=True)
class Hinge(Loss):
    """``max(1 - y z, 0)``."""

    name = "hinge"
    binary = True
    bounded = False
    domain = (-1.0, 0.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return max(1.0 - s, 0.0)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return -1.0 * (s < 1.0)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        return u

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return 1.0

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return min(max(v - eta, -1.0), 0.0)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # |1 - s| / 2 + (1 - s) / 2
        value, first, second = mean_absolute(mean - 1.0, variance)
        half = 0.5 * value + 0.5 * (1.0 - mean)
        return parabola(mean, variance, half, 0.5 * first - 0.5, 0.5 * second)


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with its corner rounded over a width `delta` below margin 1."""

    delta: float = 1.0
    name = "smoothed_hinge"
    binary = True
    domain = (-1.0, 0.0)

    def __post_init__(self) -> None:
        check_number("delta", self.delta, above=0.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        r = 1.0 - s
        return 0.0 if r <= 0.0 else (r * r / (2.0 * a) if r <= a else r - a / 2.0)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return -min(max((1.0 - s) / a, 0.0), 1.0)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        return u + a * u * u / 2.0

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return 1.0 + a * u

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return min(max((v - eta) / (1.0 + eta * a), -1.0), 0.0)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0 / (1.0 + eta * a)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # Half of Huber's loss of the distance to 1 - a / 2, with its width a / 2, and a slope.
        centre = 1.0 - 0.5 * a
        xi = math.sqrt((centre - mean) ** 2 + variance)
        width = 2.0 * max(0.5 * a, xi)
        return 1.0 / width, centre + 0.5 * width, 0.0


@dataclass(frozen=True)
class Logistic(Loss):
    """``log(1 + exp(-y z))``."""

    name = "logistic"
    binary = True
    bounded = False
    domain = (-1.0, 0.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return max(-s, 0.0) + math.log1p(math.exp(-abs(s)))

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return -sigmoid(-s)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        entropy = 0.0
        if u < 0.0:
            entropy -= u * math.log(-u)
        if u > -1.0:
            entropy += (1.0 + u) * math.log1p(u)
        return entropy

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return math.log1p(u) - math.log(-u)

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return _prox_logistic(eta, v)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        spread = -u * (1.0 + u)
        return spread / (spread + eta)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # The loss is within 0.027 of |s| / 2 - s / 2 smoothed by a normal distribution of
        # width PROBIT, and another one smooths it further.
        value, first, second = mean_absolute(mean, PROBIT * PROBIT + variance)
        half = 0.5 * value - 0.5 * mean
        return parabola(mean, variance, half, 0.5 * first - 0.5, 0.5 * second)


@kernel
def sigmoid(t: float) -> float:
    """``1 / (1 + exp(-t))``, without overflow."""
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@kernel
def _prox_logistic(eta: float, v: float) -> float:
    # u = -sigmoid(t) where t is the root of the increasing f(t) = eta t + sigmoid(t) + v:
    # Newton's method inside a bracket that shrinks at every step.
    left, right = (-v - 1.0) / eta, -v / eta
    t = min(max(0.0, left), right)
    if 0.0 < -v < 1.0:
        t = min(max(math.log(-v) - math.log1p(v), left), right)
    for _ in range(200):
        p = sigmoid(t)
        f = eta * t + p + v
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
