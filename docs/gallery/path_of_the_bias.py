"""The path of Algorithm 2: the bias walks to the middle of the tasks' weights.

Two features, so that biases can be drawn. Curves of equal height are those of the meta-objective,
the mean of the tasks' envelopes. A task moves the bias by step times its meta-gradient: a large
step comes quickly and then wanders, a small one is on its way for long. The mean of all biases,
which `learn_bias` returns, is calm, and with a small step it lags behind.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import learn_bias
from headstart.environments import RegressionEnvironment
from headstart.theory import meta_objective

reg, steps = 0.1, (3.0, 0.3)
tasks, weights = RegressionEnvironment(n_features=2).draw(200, 10, random_state=0)
some = tasks.subset(range(60))
axis = np.linspace(-1.0, 7.0, 41)
height = np.array([[meta_objective(some, np.array([a, b]), reg) for a in axis] for b in axis])

# %%
# The same 200 tasks with two steps.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), sharey=True, layout="constrained")
found = {}
for ax, step in zip(axes, steps, strict=True):
    found[step] = learn_bias(tasks, reg=reg, step=step, keep_path=True)
    path = np.asarray(found[step].path)
    ax.contour(axis, axis, height, levels=12, colors="#b0b0b0", linewidths=0.7)
    ax.plot(*weights.T, ".", color="#56b4e9", alpha=0.5, markersize=4, label="tasks' weights")
    ax.plot(*path.T, color="#e69f00", lw=1, label="biases")
    means = np.cumsum(path, axis=0) / np.arange(1, len(path) + 1)[:, None]
    ax.plot(*means.T, color="#d55e00", lw=2, label="their mean so far")
    ax.plot(*found[step].bias, "*", color="#d55e00", markersize=13)
    ax.plot(*weights.mean(axis=0), "x", color="#222222", markersize=9, label="mean of weights")
    ax.set(title=f"step {step}", xlabel="first weight", aspect="equal")
axes[0].set_ylabel("second weight")
axes[0].legend(frameon=False, loc="lower right")
plt.show()
