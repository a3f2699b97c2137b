r"""Losses of the residual ``s = z - y``, each with all its parts.

A part is a static method of numbers that numba can compile; the loss's parameters follow its
arguments as ``a`` and ``b``, in the order of the fields.

The conjugate ``star(u) = sup_s u s - phi(s)`` is written for u in the loss's domain, the range of
its slopes; outside it is infinite, which `scalar.conjugate` adds. ``prox`` solves
``u + eta star'(u) = v`` and clips the root to the domain. Parabolas (``quadratic``) rest on
``|s| <= s^2 / (2 xi) + xi / 2``, which touches at ``s = +-xi``; its expectation is smallest for
``xi^2 = mean^2 + variance``. 1e-300 keeps xi from 0, where any parabola would do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headstart._core.checks import check_number
from headstart.losses.loss import Loss


@dataclass(frozen=True)
class Absolute(Loss):
    """``|z - y|``."""

    name = "absolute"

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return abs(s)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return 1.0 * (s > 0.0) - 1.0 * (s < 0.0)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        return 0.0

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return 0.0

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return min(max(v, -1.0), 1.0)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        xi = math.sqrt(mean * mean + variance) + 1e-300
        return 1.0 / xi, 0.0, 0.5 * xi

    def fit_noise(self, mean_loss: float) -> float:
        """The mean absolute residual."""
        return mean_loss

    def mean_loss(self, noise: float) -> float:
        """The mean absolute residual."""
        return noise

    def log_normaliser(self, noise: float) -> float:
        """Of the Laplace distribution."""
        return math.log(2.0 * noise)

    def noise_variance(self, noise: float) -> float:
        """Of the Laplace distribution."""
        return 2.0 * noise * noise


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """``max(|z - y| - epsilon, 0)``."""

    epsilon: float = 0.1
    name = "epsilon_insensitive"

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, at_least=0.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return max(abs(s) - a, 0.0)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return 1.0 * (s > a) - 1.0 * (s < -a)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        # u s - max(|s| - a, 0) grows until |s| = a, and falls after it as |u| <= 1.
        return a * abs(u)

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return a * (1.0 * (u > 0.0) - 1.0 * (u < 0.0))

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        # v moved toward 0 by eta a (soft thresholding), then clipped
        shrunk = max(abs(v) - eta * a, 0.0)
        return min(shrunk, 1.0) if v > 0.0 else -min(shrunk, 1.0)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0 * (u != 0.0)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # |s - a| / 2 + |s + a| / 2 - a, each half bounded by itself
        over = math.sqrt((mean - a) ** 2 + variance) + 1e-300
        under = math.sqrt((mean + a) ** 2 + variance) + 1e-300
        omega = 0.5 / over + 0.5 / under
        target = a * (under - over) / (under + over)
        rest = 0.25 * (over + under) - a + a * a / (over + under)
        return omega, target, rest

    def fit_noise(self, mean_loss: float) -> float:
        """The root of ``b^2 = L (b + epsilon)``, L being the mean loss."""
        return 0.5 * (mean_loss + math.sqrt(mean_loss * (mean_loss + 4.0 * self.epsilon)))

    def mean_loss(self, noise: float) -> float:
        """That of exponential tails, which residuals reach with probability b / (b + epsilon)."""
        return noise * (noise / (noise + self.epsilon))

    def log_normaliser(self, noise: float) -> float:
        """Of a uniform middle with exponential tails."""
        return math.log(2.0 * (self.epsilon + noise))


@dataclass(frozen=True)
class Pinball(Loss):
    """``max(tau (y - z), (tau - 1)(y - z))``, whose minimiser is the quantile `tau`."""

    tau: float = 0.5
    name = "pinball"

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0.0, below=1.0)

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        """The slopes of the two sides."""
        return -self.tau, 1.0 - self.tau

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return max(-a * s, (1.0 - a) * s)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return (1.0 - a) * (s > 0.0) - a * (s < 0.0)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        return 0.0

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return 0.0

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return min(max(v, -a), 1.0 - a)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # |s| / 2 + (1 / 2 - a) s
        xi = math.sqrt(mean * mean + variance) + 1e-300
        return 0.5 / xi, (2.0 * a - 1.0) * xi, a * (1.0 - a) * xi

    def fit_noise(self, mean_loss: float) -> float:
        """The mean loss."""
        return mean_loss

    def mean_loss(self, noise: float) -> float:
        """The noise itself."""
        return noise

    def log_normaliser(self, noise: float) -> float:
        """Of the asymmetric Laplace distribution."""
        return math.log(noise / (self.tau * (1.0 - self.tau)))


@dataclass(frozen=True)
class Huber(Loss):
    """``r^2 / (2 delta)`` up to ``|r| = delta``, then ``|r| - delta / 2``, with r = z - y."""

    delta: float = 1.0
    name = "huber"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, above=0.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return s * s / (2.0 * a) if abs(s) <= a else abs(s) - a / 2.0

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return min(max(s / a, -1.0), 1.0)

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        return a * u * u / 2.0

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return a * u

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return min(max(v / (1.0 + eta * a), -1.0), 1.0)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0 / (1.0 + eta * a)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        # Inside the width the loss is its own parabola; outside it is |s| - a / 2.
        xi = math.sqrt(mean * mean + variance)
        return 1.0 / max(a, xi), 0.0, max(0.5 * (xi - a), 0.0)


@dataclass(frozen=True)
class Squared(Loss):
    """``(z - y)^2 / 2``. It has no Lipschitz constant, so it is outside the paper's theory."""

    name = "squared"
    domain = (-math.inf, math.inf)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        return 0.5 * s * s

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return s

    @staticmethod
    def star(u: float, a: float, b: float) -> float:
        return 0.5 * u * u

    @staticmethod
    def star_slope(u: float, a: float, b: float) -> float:
        return u

    @staticmethod
    def prox(eta: float, v: float, a: float, b: float) -> float:
        return v / (1.0 + eta)

    @staticmethod
    def prox_slope(eta: float, u: float, a: float, b: float) -> float:
        return 1.0 / (1.0 + eta)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        return 1.0, 0.0, 0.0

    def fit_noise(self, mean_loss: float) -> float:
        """The mean square of the residuals."""
        return 2.0 * mean_loss

    def mean_loss(self, noise: float) -> float:
        """Half the mean square of the residuals."""
        return 0.5 * noise

    def log_normaliser(self, noise: float) -> float:
        """Of the normal distribution."""
        return 0.5 * math.log(2.0 * math.pi * noise)

    def noise_variance(self, noise: float) -> float:
        """The noise itself."""
        return noise
