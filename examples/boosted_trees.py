"""On top of boosted trees: their curve for everybody, and a line of one's own for each.

Buildings need power to heat when it is cold and to cool when it is hot, each as much as it is
large and badly insulated. A line has no such curve; trees find it, but know no building they have
not seen. ``MetaRegressor(base=...)`` gives what the trees say a weight of its own in each
building, from a shared start. The picture, ``pictures/boosted_trees.png``, compares all three.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingRegressor

from headstart import MetaRegressor, few_shot_curve, plot

BUILDINGS, DAYS, NEW, SHOWN = 120, 20, 7, 4
FEATURES = ["degrees", "workday"]
PICTURE = Path(__file__).parent / "pictures" / "boosted_trees.png"


def need(degrees: np.ndarray) -> np.ndarray:
    """What a usual building needs to heat below 16 °C and to cool above 22 °C, in kWh a day."""
    return 6.0 * np.maximum(16.0 - degrees, 0.0) + 9.0 * np.maximum(degrees - 22.0, 0.0)


def power(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Days of buildings, the kWh they took, and each building's level and multiple."""
    building = np.repeat(np.arange(BUILDINGS), DAYS)
    table = pd.DataFrame(
        {
            "building": building,
            "degrees": rng.uniform(-5.0, 35.0, building.size).round(1),
            "workday": rng.integers(0, 2, building.size),
        }
    )
    own = np.column_stack([rng.normal(60.0, 15.0, BUILDINGS), rng.normal(1.0, 0.4, BUILDINGS)])
    level, multiple = own[building].T
    kwh = level + multiple * need(table["degrees"].to_numpy()) + 20.0 * table["workday"]
    return table, kwh + rng.normal(0.0, 6.0, building.size), own


def main() -> None:
    """Errors for new buildings by all three, and one of them closely."""
    table, kwh, own = power(np.random.default_rng(0))
    trees = HistGradientBoostingRegressor(random_state=0)
    line = MetaRegressor(group="building")
    both = MetaRegressor(group="building", base=trees)
    shots = [0, 2, 4, 8]
    curves = {
        "a line for each": few_shot_curve(line, table, kwh, shots=shots),
        "trees for all": few_shot_curve(
            trees, table, kwh, group="building", how="pooled", shots=shots
        ),
        "headstart": few_shot_curve(both, table, kwh, shots=shots),
    }
    print("mean error in kWh a day, after 0, 2, 4 and 8 days of a new building")
    for name, curve in curves.items():
        print(f"  {name:16}" + "".join(f"{error:7.1f}" for error in curve.mean))
    others, new = table["building"] != NEW, table[table["building"] == NEW]
    first = new[:SHOWN]
    days = pd.DataFrame({"degrees": np.linspace(-5.0, 35.0, 161), "workday": 1})
    said = {
        "a line for each": line.fit(table[others], kwh[others])
        .adapt(first, kwh[first.index])
        .predict(days),
        "trees for all": trees.fit(table.loc[others, FEATURES], kwh[others]).predict(days),
    }


if __name__ == "__main__":
    main()
