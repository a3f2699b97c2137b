"""Validation loss over reg and step: where the paper's grid finds its minimum.

`select_online` learns a bias with every pair of reg and step at once and judges each by tasks that
are held out. After ten tasks only large steps have come anywhere. With more tasks the valley widens
toward smaller ones, which take longer, and gets deeper. It is open toward a strong pull: that keeps
a new task at the bias, which by then is good. The star is the pair that is chosen.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import select_online
from headstart.environments import RegressionEnvironment

environment, rng = RegressionEnvironment(), np.random.default_rng(0)
train = environment.draw(300, 10, rng).tasks
valid, test = (environment.draw(60, 60, rng).tasks.split_rows(10) for _ in range(2))
regs, steps = np.geomspace(1e-3, 1e2, 21), np.geomspace(1e-2, 1e3, 21)
found = select_online(train, valid, test, regs, steps, every=10)

# %%

figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharey=True, layout="constrained")
least = found.validation_loss.min()
for ax, seen in zip(axes, (10, 50, 300), strict=True):
    at = list(found.tasks).index(seen)
    image = ax.pcolormesh(
        steps, regs, found.validation_loss[at], vmin=least, vmax=2.5 * least, cmap="viridis_r"
    )
    ax.plot(found.step[at], found.reg[at], "*", color="#d55e00", markersize=14)
    ax.set(xscale="log", yscale="log", xlabel="step")
    ax.set_title(f"{seen} tasks: {found.test_loss[at]:.2f} on new ones")
axes[0].set_ylabel("reg")
figure.colorbar(image, ax=axes, label="validation loss", extend="max")
plt.show()
