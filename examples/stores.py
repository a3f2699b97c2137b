"""New stores that have sold nothing yet: they start from their description.

What a store sells in a day depends on its floor space and on whether it stands in the centre of a
town; so does what a weekend changes. `side` names the columns that describe the store; the others
describe the day. The picture, ``pictures/stores.png``, shows what that is worth, day by day.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from headstart import MetaRegressor, few_shot_curve, plot

STORES, DAYS, OLD = 240, 20, 180
DESCRIPTION = ["floor", "centre"]
PICTURE = Path(__file__).parent / "pictures" / "stores.png"


def sales(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    """Days of stores: rain, weekend, the store's description, and thousands of euros sold."""
    floor = rng.uniform(200.0, 2000.0, STORES).round()  # square metres
    centre = rng.integers(0, 2, STORES)
    level = 2.0 + 0.012 * floor + 4.0 * centre + rng.normal(0.0, 2.0, STORES)
    weekend = 8.0 - 6.0 * centre + rng.normal(0.0, 1.0, STORES)
    store = np.repeat(np.arange(STORES), DAYS)
    table = pd.DataFrame(
        {
            "store": store,
            "weekend": np.tile(np.arange(DAYS) % 7 >= 5, STORES).astype(float),
            "rain": rng.exponential(3.0, store.size).round(1),  # millimetres
            "floor": floor[store],
            "centre": centre[store],
        }
    )
    sold = level[store] + weekend[store] * table["weekend"] - 0.4 * table["rain"]
    return table, sold + rng.normal(0.0, 1.5, store.size)


def main() -> None:
    """Errors for stores that were held out, with and without their descriptions."""
    table, sold = sales(np.random.default_rng(0))
    bare = table.drop(columns=DESCRIPTION)
    described = MetaRegressor(group="store", side=DESCRIPTION)
    curves = {
        "own description": few_shot_curve(described, table, sold),
        "common start": few_shot_curve(MetaRegressor(group="store"), bare, sold),
    }
    print("mean error in thousands of euros a day, after 0, 1, 2, 4 and 8 days of a new store")
    for name, curve in curves.items():
        print(f"  {name:24}" + "".join(f"{error:6.2f}" for error in curve.mean))

    old = table["store"] < OLD
    described.fit(table[old], sold[old])
    print("what the description changes, in thousands of euros")
    effects = np.asarray(described.prior_.side_effects)  # a row for each weight, the level last
    for name, (weekend, _, level) in zip(DESCRIPTION, effects.T, strict=True):
        print(f"  {name:8} a day {level:+.3f}, a weekend's day more {weekend:+.3f}")

    new = table[~old]
    guess = described.predict(new)  # nothing is known of these stores but what they are
    means = pd.DataFrame({"said": guess, "sold": sold[~old]}).groupby(new["store"]).mean()
    town = new.groupby("store")["centre"].first() == 1
    plain = MetaRegressor(group="store").fit(bare[old], sold[old])
    common = float(np.mean(plain.predict(bare[~old])))

    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set_ylim(0.0, 7.0)
    plot.few_shot_curve(curves, ax=left, error="mean error (thousand € a day)")
    left.set_title("What a description is worth", loc="left")
    left.set_xlabel("days of a new store to learn from")
    for place, color, marker, name in (
        (town, "#0072b2", "o", "town centre"),
        (~town, "#d55e00", "^", "outskirts"),
    ):
        right.plot(means["said"][place], means["sold"][place], marker, color=color, label=name)
    ends = [means.to_numpy().min() - 1.0, means.to_numpy().max() + 1.0]
    right.plot(ends, ends, color="#222222", linewidth=0.8)
    right.axvline(common, color="#8a8a8a", linestyle="--", linewidth=1.2)
    right.text(common - 0.4, ends[1], "without\ndescription", ha="right", va="top", color="#666666")
    right.set_title(f"{len(means)} new stores before their first day", loc="left")
    right.set(
        xlabel="expected from the description (thousand € a day)",
        ylabel="sold (thousand € a day)",
    )
    right.legend(loc="lower right", frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
