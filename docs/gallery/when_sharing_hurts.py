"""When sharing hurts: a start that is wrong, and tasks that are too different.

On the left the paper's algorithm is handed a bias farther and farther from the right one. Soon it
costs more than no bias, and choosing the pull anew for each hardly helps: eight rows cannot undo a
wrong start. On the right the tasks themselves: one model for all fails where tasks differ, and each
alone, with a ridge of its own choice, where they are alike. A learned prior learns from the tasks
how far to trust them: it is as good as one model where tasks are the same, and better than both
where they differ.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV

from headstart import MetaRegressor, evaluate_bias, few_shot_score, select_reg
from headstart.environments import RegressionEnvironment

environment = RegressionEnvironment(n_features=10, center=1.0)
valid, test = (
    environment.draw(200, 40, random_state=seed).tasks.split_rows(8) for seed in (0, 1)
)  # fmt: skip
direction = np.tile([1.0, -1.0], 5) / np.sqrt(10.0)
distances, regs = np.linspace(0, 12, 13), np.geomspace(1e-3, 1e2, 26)
right_reg = select_reg(valid, test, environment.mean, regs).reg
alone = select_reg(valid, test, np.zeros(10), regs).test_loss
kept = [evaluate_bias(*test, environment.mean + r * direction, right_reg).mean() for r in distances]
chosen = [
    select_reg(valid, test, environment.mean + r * direction, regs).test_loss for r in distances
]

# %%
# Tasks that differ more and more, after four rows of a new one.

spreads = [0.0, 0.3, 1.0, 3.0, 10.0]
ways = {
    "each task alone": (RidgeCV(np.geomspace(1e-3, 1e3, 13)), "independent"),
    "all tasks pooled": (LinearRegression(), "pooled"),
    "headstart": (MetaRegressor(), None),
}
errors: dict[str, list[float]] = {name: [] for name in ways}
for spread in spreads:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(120), 10)
    own = 2.0 + spread * rng.normal(size=(120, 3))
    X = rng.normal(size=(1200, 3))
    y = np.sum(X * own[ids], axis=1) + rng.normal(size=1200)
    for name, (estimator, how) in ways.items():
        score = few_shot_score(estimator, X, y, ids, shots=4, how=how, folds=3)
        errors[name].append(score)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.plot(distances, kept, color="#d55e00", label="reg that suits the right bias")
left.plot(distances, chosen, color="#0072b2", label="reg chosen for this bias")
left.axhline(alone, color="#222222", ls="--", lw=1, label="bias 0")
left.set(xlabel="distance of the bias from the right one", ylabel="loss on new tasks")
left.legend(frameon=False)
places = np.arange(len(spreads))
for (name, values), color in zip(errors.items(), ("#e69f00", "#009e73", "#0072b2"), strict=True):
    right.plot(places, values, "o-", color=color, label=name)
right.set(yscale="log", xlabel="standard deviation of tasks' weights", ylabel="error on new tasks")
right.set_xticks(places, [f"{s:g}" for s in spreads])
right.legend(frameon=False)
plt.show()
