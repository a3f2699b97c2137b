"""On top of boosted trees: their curve for everybody, and a line of one's own for each.

Buildings need electricity to heat when it is cold and to cool when it is hot, each as much as it is
large and badly insulated. A line has no such curve; trees find it, but know no building they have
not seen. ``MetaRegressor(base=...)`` gives what the trees say a weight of its own in each
building, from a shared start. The picture, ``pictures/boosted_trees.png``, compares all three.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingRegressor

from headstart import MetaRegressor, few_shot_curve, plot

BUILDINGS, DAYS, NEW, SHOWN = 90, 20, 8, 4
LINE, TREES, BOTH = "line for each", "trees for all", "headstart"
PICTURE = Path(__file__).parent / "pictures" / "boosted_trees.png"


def need(degrees: np.ndarray) -> np.ndarray:
    """What a usual building needs to heat below 16 °C and to cool above 22 °C, in kWh a day."""
    return 6.0 * np.maximum(16.0 - degrees, 0.0) + 9.0 * np.maximum(degrees - 22.0, 0.0)


def days(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Days of buildings, the kWh they took, and each building's level and multiple."""
    building = np.repeat(np.arange(BUILDINGS), DAYS)
    table = pd.DataFrame(
        {
            "building": building,
            "degrees": rng.uniform(-5.0, 35.0, building.size).round(1),
        }
    )
    own = np.column_stack([rng.normal(60.0, 15.0, BUILDINGS), rng.normal(1.0, 0.4, BUILDINGS)])
    level, multiple = own[building].T
    kwh = level + multiple * need(table["degrees"].to_numpy())
    return table, kwh + rng.normal(0.0, 8.0, building.size), own


def main() -> None:
    """Errors for new buildings by all three, and one of them closely."""
    table, kwh, own = days(np.random.default_rng(0))
    trees = HistGradientBoostingRegressor(
        max_iter=30, learning_rate=0.2, max_leaf_nodes=8, min_samples_leaf=60
    )
    line, both = MetaRegressor(group="building"), MetaRegressor(group="building", base=trees)
    how: dict[str, Any] = {"shots": [0, 2, 4, 8], "folds": 3}
    curves = {
        LINE: few_shot_curve(line, table, kwh, **how),
        TREES: few_shot_curve(trees, table, kwh, group="building", how="pooled", **how),
        BOTH: few_shot_curve(both, table, kwh, **how),
    }
    print("mean error in kWh a day, after 0, 2, 4 and 8 days of a new building")
    for name, curve in curves.items():
        print(f"  {name:18}" + "".join(f"{error:7.1f}" for error in curve.mean))

    others, new = table["building"] != NEW, table[table["building"] == NEW]
    first, later = new[:SHOWN], new[SHOWN:]
    weather = pd.DataFrame({"degrees": np.linspace(-5.0, 35.0, 161)})
    said: dict[str, Any] = {
        TREES: trees.fit(table.loc[others, ["degrees"]], kwh[others]).predict(weather)
    }
    for name, model in ((LINE, line), (BOTH, both)):
        one = model.fit(table[others], kwh[others]).adapt(first, kwh[first.index])
        said[name] = one.predict(weather)

    figure = Figure(figsize=(12.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set_ylim(0.0, 45.0)
    plot.few_shot_curve(curves, ax=left, error="mean error (kWh a day)")
    left.set_xlabel("days of a new building to learn from")
    left.set_title("Both are better than either", loc="left")
    for drawn in left.lines:  # the same colours at the right
        says = said[str(drawn.get_label())]
        right.plot(weather["degrees"], says, color=drawn.get_color(), linewidth=2.0)
    level, multiple = own[NEW]
    truth = level + multiple * need(weather["degrees"].to_numpy())
    right.plot(weather["degrees"], truth, "--", color="#222222", linewidth=1.0, label="the truth")
    for rows, size, name in (
        (first, 60, f"the {SHOWN} days it learned from"),
        (later, 12, "later"),
    ):
        right.scatter(rows["degrees"], kwh[rows.index], size, "#222222", label=name, zorder=3)
    right.set_title(f"A new building after {SHOWN} days", loc="left")
    right.set(xlabel="degrees outdoors (°C)", ylabel="electricity (kWh a day)")
    right.set_ylim(bottom=0.0)
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
