r"""A loss of one's own: log cosh, for Algorithms 1 and 2 and for the prior.

A loss is a class with its parts as static methods of numbers, which are compiled. Its slope is
enough for Algorithms 1 and 2; a parabola above it is enough for a learned prior. Log cosh is a
square near zero and an absolute value far away. As a function of :math:`s^2` it is concave, so that
its tangent there is the parabola that is asked for: :math:`\omega = \tanh(\xi)/\xi`.
"""

import math
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from headstart import Loss, TaskSet, get_loss, learn_bias, learn_prior, register_loss


@register_loss
@dataclass(frozen=True)
class LogCosh(Loss):
    """log(cosh(residual)), without overflow."""

    name = "log_cosh"
    domain = (-1.0, 1.0)  # the range of its slopes

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        """The loss: abs(s) + log(1 + exp(-2 abs(s))) - log 2."""
        return abs(s) + math.log1p(math.exp(-2.0 * abs(s))) - math.log(2.0)

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        """Its derivative."""
        return math.tanh(s)

    @staticmethod
    def quadratic(mean: float, variance: float, a: float, b: float) -> tuple[float, float, float]:
        """The parabola omega (s - t)^2 / 2 + c that is above the loss and touches it at xi."""
        xi = math.sqrt(mean * mean + variance)
        omega = math.tanh(xi) / xi if xi > 1e-8 else 1.0
        loss = xi + math.log1p(math.exp(-2.0 * xi)) - math.log(2.0)
        return omega, 0.0, loss - 0.5 * omega * xi * xi


# %%
# Tasks of which one label in twenty is far off.

rng = np.random.default_rng(0)
own = rng.normal([2.0, -1.0, 1.0], 0.7, (200, 3))
X = rng.normal(size=(200, 8, 3))
noise = np.where(rng.random((200, 8)) < 0.05, 15.0, 0.5) * rng.normal(size=(200, 8))
y = np.einsum("tnd,td->tn", X, own) + noise
tasks = TaskSet.from_list(list(zip(X, y, strict=True)))

losses = ["squared", "absolute", "log_cosh"]
errors = {}
for loss in losses:
    weights = learn_prior(tasks, loss, fit_intercept=False).posteriors(tasks).weights
    errors[loss] = np.linalg.norm(weights - own, axis=1)
bias = learn_bias(tasks, reg=0.3, step=0.3, loss="log_cosh").bias
print("Algorithm 2 with log cosh finds", bias.round(2))

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
z = np.linspace(-4, 4, 401)
for loss, color in zip(losses, ("#e69f00", "#009e73", "#0072b2"), strict=True):
    left.plot(z, get_loss(loss).value(z, 0.0), color=color, label=loss)
omega, _, c = LogCosh.quadratic(1.5, 0.0, 0.0, 0.0)
left.plot(z, omega * z**2 / 2 + c, ":", color="#0072b2", label="its parabola at 1.5")
left.set(xlabel="residual", ylim=(0, 4), title="The losses")
left.legend(frameon=False)
right.boxplot([errors[loss] for loss in losses], tick_labels=losses, showfliers=False)
right.set(ylabel="distance from a task's weights", title="200 tasks with outliers", ylim=(0, None))
plt.show()
