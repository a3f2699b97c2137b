"""An environment of one's own: two kinds of tasks, and what it is worth to know the kind.

`Mixture` draws clusters of tasks. Here is the same by hand, to show that any function that gives a
`TaskSet` will do as an environment. A single bias lies between them, where no task is. Told the
kind of a task (`side`), the prior learns a start for each, and what is left to differ is small.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import TaskSet, learn_prior


def draw(count: int, rows: int, seed: int) -> tuple[TaskSet, np.ndarray, np.ndarray]:
    """Tasks of two kinds, their weights, and the kind of each as 0 or 1."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, count)
    own = np.where(kind[:, None], [3.0, -1.0], [-1.0, 2.0]) + rng.normal(0, 0.5, (count, 2))
    X = rng.normal(size=(count, rows, 2))
    y = np.einsum("tnd,td->tn", X, own) + rng.normal(0, 1.0, (count, rows))
    return TaskSet.from_list(list(zip(X, y, strict=True))), own, kind[:, None].astype(float)


old, weights, kinds = draw(300, 6, seed=0)
new, truth, new_kinds = draw(300, 6, seed=1)
plain, told = learn_prior(old), learn_prior(old, side=kinds)
print("starts of the two kinds:", told.start([0.0]).round(1), told.start([1.0]).round(1))

errors: dict[str, list[float]] = {"one start": [], "a start for each kind": []}
for k in range(1, 7):
    shots = new.subset(range(len(new)))
    rows = [(X[:k], y[:k]) for X, y in shots]
    first = [plain.posterior(X, y).weights for X, y in rows]
    second = [told.at(s).posterior(X, y).weights for (X, y), s in zip(rows, new_kinds, strict=True)]
    for name, found in zip(errors, (first, second), strict=True):
        errors[name].append(float(np.linalg.norm(np.array(found) - truth, axis=1).mean()))

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for value, color in ((0.0, "#e69f00"), (1.0, "#009e73")):
    left.plot(*weights[kinds[:, 0] == value].T, ".", color=color, alpha=0.6)
    left.plot(*told.start([value]), "*", color="#222222", markersize=14)
left.plot(*plain.bias, "x", color="#d55e00", markersize=12, mew=3)
left.annotate("the one start", plain.bias, (12, 8), textcoords="offset points", color="#d55e00")
left.set(xlabel="first weight", ylabel="second weight", aspect="equal")
for (name, values), color in zip(errors.items(), ("#d55e00", "#0072b2"), strict=True):
    right.plot(range(1, 7), values, "o-", color=color, label=name)
right.set(xlabel="rows of a new task", ylabel="distance from its weights", ylim=(0, None))
right.legend(frameon=False)
plt.show()
