"""A data set of one's own: eleven firms over twenty years, from a table to a decision.

All that is needed is a table with a column that says whose row it is. This one (Grunfeld's, which
statsmodels carries) has what firms invested each year, with their value and their capital. The
questions are always the same: does sharing help, what is shared, and who is unusual?
"""

from textwrap import fill

import matplotlib.pyplot as plt
from statsmodels.datasets import grunfeld

from headstart import MetaRegressor, diagnose, plot

table = grunfeld.load_pandas().data
X, invested = table[["firm", "value", "capital"]], table["invest"]
print(table.head(3).to_string(index=False))

# %%
# Does it help? With eleven firms the answer is as sure as eleven firms allow.

found = diagnose(X, invested, group="firm", shots=6)
print(fill(found.headline, 75))
print("verdict:", found.verdict)

# %%
# What is shared, and how do firms differ?

model = MetaRegressor(group="firm").fit(X, invested)
print(model.summary().round(3).to_string())

axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")[1]
_ = plot.entities(model, ax=axes, target="investment")

# %%
# Errors on firms held out, by the years that are known of them.

axes = plt.subplots(figsize=(8.5, 4.8), layout="constrained")[1]
plot.few_shot_curve(found.curves, ax=axes, error="error in millions of dollars")
plt.show()
