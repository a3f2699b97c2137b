"""Intervals that cover: nine in ten means nine in ten, after no row and after many.

A prior knows how much tasks differ and how noisy rows are, so a prediction comes with a standard
deviation: large for a task that has shown nothing, and smaller with each row. On the left it
shrinks; on the right how far the share of labels inside is from the coverage that was asked for.
Where the model is wrong this fails, and `plot.intervals` shows it: look at yours.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from headstart import MetaRegressor

rng = np.random.default_rng(0)
ids = np.repeat(np.arange(600), 12)
own = rng.normal([10.0, 3.0, -1.0], [4.0, 1.0, 0.2], (600, 3))  # a level and two slopes
X = rng.normal(size=(len(ids), 2))
y = own[ids, 0] + np.sum(own[ids, 1:] * X, axis=1) + rng.normal(0, 2.0, len(ids))

known = ids < 300
model = MetaRegressor().fit(X[known], y[known], groups=ids[known])
coverages, shots = np.linspace(0.05, 0.95, 19), [0, 1, 2, 4, 8]

widths, inside = {}, {}
for k in shots:
    wide, hits = [], []
    for task in range(300, 600):
        rows = np.flatnonzero(ids == task)
        seen, later = rows[:k], rows[8:]
        adapted = model.adapt(X[seen], y[seen]) if k else model
        wide.append(np.diff(adapted.predict_interval(X[later], coverage=0.9)).mean())
        mean, std = adapted.predict(X[later], return_std=True)
        hits.append(np.abs(y[later] - mean) / std)
    widths[k] = float(np.mean(wide))
    inside[k] = np.concatenate(hits)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.bar([str(k) for k in shots], [widths[k] for k in shots], color="#56b4e9")
left.axhline(2 * norm.ppf(0.95) * 2.0, color="#222222", ls="--", lw=1, label="the noise alone")
left.legend(frameon=False)
left.set(xlabel="rows of a new task", ylabel="width of 90 % intervals")
covered = {}
for k, color in zip(shots, ("#e69f00", "#009e73", "#56b4e9", "#0072b2", "#cc79a7"), strict=True):
    covered[k] = [float(np.mean(inside[k] <= norm.ppf(0.5 + c / 2))) for c in coverages]
    right.plot(
        coverages, covered[k] - coverages, "o-", markersize=3, color=color, label=f"after {k} rows"
    )
right.axhline(0.0, color="#222222", lw=0.8)
right.set(xlabel="coverage asked for", ylabel="share of labels inside, less that", ylim=(-0.1, 0.1))
right.legend(frameon=False)
plt.show()
