"""A shop's customers: what the next purchase will be worth, and how sure that is.

A third of the customers is new. The 90 % intervals of known customers, of new ones, and of new
ones after three purchases should each hold nine purchases of ten: wide for a stranger, narrower
with every purchase. The picture, ``pictures/customers.png``, shows all three.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from headstart import MetaRegressor, plot

CUSTOMERS, PURCHASES, KNOWN, SHOWN = 300, 10, 200, 3
PICTURE = Path(__file__).parent / "pictures" / "customers.png"

Forecast = tuple[np.ndarray, np.ndarray, np.ndarray]  # euros seen, predicted, and how surely


def purchases(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    """Items bought, days since the last purchase, and the euros spent, by customer."""
    who = np.repeat(np.arange(CUSTOMERS), PURCHASES)
    table = pd.DataFrame(
        {
            "customer": [f"customer {number}" for number in who],
            "items": rng.integers(1, 11, who.size),
            "days": rng.uniform(1.0, 60.0, who.size).round(),
        }
    )
    own = rng.normal([10.0, 12.0, 0.5], [6.0, 4.0, 0.3], (CUSTOMERS, 3))[who]
    euros = own[:, 0] + own[:, 1] * table["items"] + own[:, 2] * table["days"]
    return table, euros + rng.normal(0.0, 8.0, who.size)


def newcomers(model: MetaRegressor, table: pd.DataFrame, euros: pd.Series) -> Forecast:
    """What is predicted for new customers after the first purchases of each."""
    parts = []
    for _, rows in table.groupby("customer"):
        first, later = rows[:SHOWN], rows[SHOWN:]
        one = model.adapt(first, euros[first.index])
        mean, std = one.predict(later[["items", "days"]], return_std=True)
        parts.append((euros[later.index].to_numpy(), mean, std))
    seen, mean, std = (np.concatenate(part) for part in zip(*parts, strict=True))
    return seen, mean, std


def main() -> None:
    """Learn from the first seven purchases of known customers; predict all others."""
    table, euros = purchases(np.random.default_rng(0))
    turn = table.groupby("customer").cumcount()
    known = table.index < KNOWN * PURCHASES
    learned, later = known & (turn < 7), known & (turn >= 7)
    model = MetaRegressor(group="customer").fit(table[learned], euros[learned])

    asked = ~known & (turn >= SHOWN)
    forecasts: dict[str, Forecast] = {}
    for name, rows in (("known customers", later), ("new customers", asked)):
        mean, std = model.predict(table[rows], return_std=True)
        forecasts[name] = euros[rows].to_numpy(), mean, std
    name = f"new customers after {SHOWN} purchases"
    forecasts[name] = newcomers(model, table[~known], euros[~known])

    print("90 % intervals for the next purchase")
    figure = Figure(figsize=(13.0, 4.6), layout="constrained")
    for (name, (seen, mean, std)), ax in zip(
        forecasts.items(), figure.subplots(1, 3, sharex=True, sharey=True), strict=True
    ):
        half = 1.645 * std  # what `predict_interval` has by default
        inside, reach = np.mean(np.abs(seen - mean) <= half), half.mean()
        print(f"  {name:32} held {inside:4.0%} ± {reach:.0f} euros")
        plot.intervals_of(seen, mean, std, ax=ax)
        held = f"± {reach:.0f} € on average, held {100 * inside:.0f} %"
        ax.set_title(f"{name.capitalize()}\n{held}", loc="left")
        ax.set(xlabel="predicted (€)", ylabel="spent (€)")
        ax.label_outer()
    print(f"  {'noise of a purchase alone':43} ± {1.645 * model.prior_.noise**0.5:.0f} euros")
    basket = pd.DataFrame({"customer": ["customer 7", "a stranger"], "items": 5, "days": 20.0})
    print("five items after 20 days")
    for name, (low, high) in zip(basket["customer"], model.predict_interval(basket), strict=True):
        print(f"  {name:12} spends {low:.0f} to {high:.0f} euros")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
