"""What the learned metric sees: directions in which tasks differ, and directions in which not.

The tasks' weights lie along a line, nearly. One number for all directions is too small along the
line and too large across it; a variance for each column knows their sizes; the full covariance has
the shape itself.
What that is worth is on the right: the fewer rows a new task has shown, the more the shape decides.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from headstart import TaskSet, learn_prior

rng = np.random.default_rng(0)
spread = np.array([[6.0, 2.6], [2.6, 1.3]])


def draw(count: int, rows: int) -> tuple[TaskSet, np.ndarray]:
    """Tasks whose two weights go up and down together, and these weights."""
    own = rng.multivariate_normal([2.0, 1.0], spread, count)
    X = rng.normal(size=(count, rows, 2))
    y = np.einsum("tnd,td->tn", X, own) + rng.normal(size=(count, rows))
    return TaskSet.from_list(list(zip(X, y, strict=True))), own


old, weights = draw(400, 6)
new, truth = draw(400, 8)
colors = {"isotropic": "#e69f00", "diagonal": "#009e73", "full": "#0072b2"}
priors = {metric: learn_prior(old, metric=metric) for metric in colors}
print({metric: prior.covariance.round(1).tolist() for metric, prior in priors.items()})

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
left.plot(*weights.T, ".", color="#b0b0b0", markersize=4)
errors = {}
for metric, prior in priors.items():
    size, axes = np.linalg.eigh(prior.covariance)
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    wide, narrow = 4.0 * np.sqrt(size[1]), 4.0 * np.sqrt(size[0])  # two standard deviations
    first, second = prior.bias
    shape = Ellipse((first, second), wide, narrow, angle=angle, fill=False, lw=2)
    shape.set_edgecolor(colors[metric])
    left.add_patch(shape)
    errors[metric] = [
        np.linalg.norm(
            (prior.posteriors(new.split_rows(k)[0]).weights if k else prior.bias) - truth, axis=1
        ).mean()
        for k in range(6)
    ]
    right.plot(range(6), errors[metric], "o-", color=colors[metric], label=metric)
left.set(xlabel="first weight", ylabel="second weight", aspect="equal")
left.set_title("Weights of tasks, and two standard deviations")
right.set(xlabel="rows of a new task", ylabel="distance from its weights", ylim=(0, None))
right.legend(frameon=False)
plt.show()
