r"""The Moreau envelope: what a task costs from each start, and lines that stay below it.

With one feature everything can be drawn. A task's mean loss R(w) is a chain of straight pieces.
Its envelope L(h), the least of :math:`R(w) + \frac\lambda2(w-h)^2` over w, is what the task costs
that starts from h: smooth, never above R, and flatter where reg is small. Algorithm 2 descends the
mean of such envelopes. The meta-gradient of one pass is the slope of a line that is below the
envelope everywhere once it is lowered by the certificate :math:`\varepsilon`.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import biased_erm, biased_sgd
from headstart.theory import certificate, primal_value

rng = np.random.default_rng(3)
X = rng.uniform(0.5, 2.0, (12, 1))
y = 1.5 * X[:, 0] + rng.normal(0, 1.2, 12)
h = np.linspace(-2.5, 5.0, 301)


def envelope(start: float, reg: float) -> float:
    """The cost of the task from a start: the regularised loss of its exact solution."""
    best = biased_erm(X, y, [start], reg, tol=1e-10).weights
    return primal_value(X, y, best, [start], reg)


risk = np.abs(X * h - y[:, None]).mean(axis=0)

# %%
# Envelopes for three strengths, then lines of two starts for the middle one.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
left.plot(h, risk, color="#222222", label="mean loss R")
for reg, color in ((0.1, "#e69f00"), (0.5, "#0072b2"), (3.0, "#009e73")):
    left.plot(h, [envelope(one, reg) for one in h], color=color, label=f"envelope, reg {reg}")
left.legend(frameon=False)
left.set(xlabel="w, and the start h", ylabel="cost of the task", title="Three envelopes")

reg = 0.5
curve = np.array([envelope(one, reg) for one in h])
right.plot(h, curve, color="#0072b2", label=f"envelope, reg {reg}")
lines = []
for start, color in ((0.2, "#d55e00"), (3.0, "#cc79a7")):
    found = biased_sgd(X, y, [start], reg)
    exact = biased_erm(X, y, [start], reg, tol=1e-10)
    slope = float(X[:, 0] @ found.dual) / len(y)
    epsilon = certificate(X, y, found.dual, [start], reg, weights=exact.weights)
    here = envelope(start, reg)
    lines.append(here + slope * (h - start) - epsilon)
    right.plot([start], [here], "o", color=color)
    right.plot(h, here + slope * (h - start), ":", color=color)
    right.plot(h, lines[-1], color=color, label=rf"from {start}: $\varepsilon$ = {epsilon:.3f}")
right.set(xlabel="start h", ylim=(0, 5), title="ε-subgradients: dotted, then lowered by ε")
right.legend(frameon=False)
plt.show()
