r"""Bounds beside what was measured: the order is right, the distance is large.

`headstart.theory` has the paper's prescribed parameters with the bounds that hold for them. Here
the tasks of an environment whose :math:`\mathrm{Var}_h` is known are learned with just these
parameters, and the excess risk of new tasks is measured: their loss less that of the weights that
made the labels. All bounds hold, and order the methods as measured; none is close. They hold for
every environment, also for far worse ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from headstart import evaluate_bias, learn_bias
from headstart.environments import RegressionEnvironment
from headstart.theory import fixed_bias, learned_bias

d, seen = 10, 500
environment = RegressionEnvironment(n_features=d)
zero, mean = np.zeros(d), environment.mean
var_0, var_m = environment.var_h(zero), environment.var_h(mean)
sizes = [4, 8, 16, 32, 64]
measured: dict[str, list[float]] = {"alone": [], "learned": [], "oracle": []}
bounds: dict[str, list[float]] = {"alone": [], "learned": [], "oracle": []}

for n in sizes:
    new, own = environment.draw(300, n + 200, random_state=n)
    shots, queries = new.split_rows(n)
    least = np.mean(
        [np.abs(X @ w - y).mean() for (X, y), w in zip(queries, own, strict=True)]
    )  # fmt: skip
    alone, oracle = fixed_bias(n, var_0), fixed_bias(n, var_m)
    learn = learned_bias(n, seen, var_m, float(np.linalg.norm(mean)), sharp=True)
    old = environment.draw(seen, n, random_state=1000 + n).tasks
    assert learn.step is not None
    bias = learn_bias(old, learn.reg, learn.step).bias
    for name, how, start in (
        ("alone", alone, zero),
        ("learned", learn, bias),
        ("oracle", oracle, mean),
    ):
        loss = evaluate_bias(shots, queries, start, how.reg).mean()
        measured[name].append(loss - least)
        bounds[name].append(how.bound)

# %%

figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
colors = {"alone": "#e69f00", "learned": "#0072b2", "oracle": "#009e73"}
words = {"alone": "bias 0", "learned": f"bias of {seen} tasks", "oracle": "the best bias"}
for name, color in colors.items():
    ax.plot(sizes, bounds[name], "--", color=color, label=f"{words[name]}: bound")
    ax.plot(sizes, measured[name], "o-", color=color, label=f"{words[name]}: measured")
ax.set(xscale="log", yscale="log", xlabel="rows of a task, n", ylabel="excess risk")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.minorticks_off()
figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize="small")
plt.show()
