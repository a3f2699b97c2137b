"""Losses of the margin ``s = y z`` for labels -1 and +1, each with all its parts.

Parts are as in `regression`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headstart._core.checks import check_number
from headstart._core.jit import kernel
from headstart.losses.loss import Loss

PROBIT = 1.702  # the width of the normal distribution that is most like the logistic one


@dataclass(frozen=True)
class Hinge(Loss):
    """``max(1 - y z, 0)``."""

    name = "hinge"
    binary = True
    domain = (-1.0, 0.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return max(1.0 - s, 0.0)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return -1.0 * (s < 1.0)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        # sup_s u s - max(1 - s, 0) is reached at the corner s = 1 for every u in [-1, 0].
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
        xi = math.sqrt((1.0 - mean) ** 2 + variance) + 1e-300
        return 0.5 / xi, 1.0 + xi, 0.0


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
        # The hinge's, plus a u^2 / 2: rounding a loss adds a square to its conjugate.
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
        # p log p + (1 - p) log(1 - p) with p = -u, the probability of the other class; 0 log 0 = 0
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
        curve = -u * (1.0 + u)  # 1 / the second derivative of the conjugate
        return curve / (curve + eta)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # The loss is within 0.027 of a corner smoothed by a normal distribution of width PROBIT,
        # whose mean under another normal distribution has a closed form. The parabola has that
        # mean, and its slopes in mean and variance. Jaakkola and Jordan's bound, a parabola above
        # the loss, makes the weights a fifth too small and some variances zero: it lies far above
        # the loss wherever the margin varies.
        width = math.sqrt(PROBIT * PROBIT + variance)
        u = mean / width
        density = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        missed = 0.5 * math.erfc(u / math.sqrt(2.0))
        omega = density / width + 1e-12
        target = mean + missed / omega
        value = width * (density - u * missed)
        return omega, target, value - 0.5 * omega * ((mean - target) ** 2 + variance)


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
