r"""Algorithm 1 and its dual: one pass over the rows closes the gap between them.

Algorithm 1 goes through the rows of a task once. Its subgradients, divided by their number, are a
point of the dual problem, so every pass comes with a lower bound of what it tried to minimise. On
the left the two values after k rows of one task, and the exact minimum between them. On the right
the gap of thirty tasks: its mean falls, and here no gap exceeds the paper's :math:`c_{k,\lambda}`.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import biased_erm, biased_sgd
from headstart.environments import RegressionEnvironment
from headstart.theory import certificate, dual_value, primal_value, sgd_regret

reg, bias, rows = 0.05, np.full(5, 3.0), np.unique(np.geomspace(1, 300, 40).astype(int))
tasks = RegressionEnvironment(n_features=5).draw(30, 300, random_state=0).tasks

# %%
# One task. The objective is that of the first k rows, so that it moves a little with k.

X, y = tasks[0]
above, below, exact = [], [], []
for k in rows:
    found = biased_sgd(X[:k], y[:k], bias, reg)
    above.append(primal_value(X[:k], y[:k], found.last, bias, reg))
    below.append(-dual_value(X[:k], y[:k], found.dual / k, bias, reg))
    best = biased_erm(X[:k], y[:k], bias, reg).weights
    exact.append(primal_value(X[:k], y[:k], best, bias, reg))

# %%
# All tasks. The gap is what `certificate` gives.

gaps = np.array(
    [
        [certificate(X[:k], y[:k], biased_sgd(X[:k], y[:k], bias, reg).dual, bias, reg)
         for k in rows]
        for X, y in tasks
    ]
)  # fmt: skip
bound = np.array([sgd_regret(int(k), reg) for k in rows])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.fill_between(rows, below, above, color="#56b4e9", alpha=0.3, label="the gap")
left.plot(rows, above, color="#0072b2", label="primal value of the last iterate")
left.plot(rows, below, color="#d55e00", label="dual value of the subgradients")
left.plot(rows, exact, "--", color="#222222", label="exact minimum")
left.set(xscale="log", xlabel="rows of the task, k", ylabel="objective")
left.legend(frameon=False)
right.plot(rows, gaps.T, color="#56b4e9", alpha=0.4, lw=0.8)
right.plot(rows, gaps.mean(axis=0), color="#0072b2", lw=2, label="mean gap of 30 tasks")
right.plot(rows, bound, "--", color="#222222", label=r"$c_{k,\lambda}$ of the paper")
right.set(xscale="log", yscale="log", ylim=(1e-4, None), xlabel="rows of the task, k")
right.legend(frameon=False)
plt.show()
