r"""Certificates beside a constant: how exact a meta-gradient is, from the data alone.

The meta-gradient of one pass is exact up to an :math:`\varepsilon`. The paper bounds it on average
by :math:`c_{n,\lambda}`, for which the size of inputs and slopes must be known.
`theory.certificate` computes one for the task at hand, and knows nothing but the rows. With the
exact solution at hand it is sharper still. On the right what it is good for: it bounds the
distance from the meta-gradient to the exact one, for every sample.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import biased_erm, biased_sgd
from headstart.environments import RegressionEnvironment
from headstart.theory import certificate, last_distance, sgd_regret

n, bias = 20, np.full(8, 3.0)
tasks = RegressionEnvironment(n_features=8).draw(40, n, random_state=0).tasks
regs = np.geomspace(0.01, 10, 13)
free, best, error, promised = (np.empty((len(regs), len(tasks))) for _ in range(4))

for i, reg in enumerate(regs):
    for j, (X, y) in enumerate(tasks):
        found, exact = biased_sgd(X, y, bias, reg), biased_erm(X, y, bias, reg, tol=1e-8)
        free[i, j] = certificate(X, y, found.dual, bias, reg)
        best[i, j] = certificate(X, y, found.dual, bias, reg, weights=exact.weights)
        error[i, j] = reg * np.linalg.norm(found.last - exact.weights)
        promised[i, j] = reg * last_distance(best[i, j], reg)
constant = [sgd_regret(n, reg) for reg in regs]

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.plot(regs, constant, "--", color="#222222", label=r"$c_{n,\lambda}$")
for values, color, label in (
    (free, "#e69f00", "certificate, last iterate"),
    (best, "#0072b2", "certificate, exact solution"),
):
    left.plot(regs, values.mean(axis=1), color=color, label=label)
    left.fill_between(regs, values.min(axis=1), values.max(axis=1), color=color, alpha=0.2)
left.set(xscale="log", yscale="log", xlabel="reg", ylabel=r"$\varepsilon$")
left.set_ylim(bottom=1e-4)
left.legend(frameon=False)
right.plot(promised.ravel(), error.ravel(), ".", color="#0072b2", alpha=0.4)
ends = np.array([0.0, promised.max()])
right.plot(ends, ends, color="#222222", lw=0.8)
right.set(xlabel="promised by the certificate", ylabel="error of the meta-gradient")
plt.show()
