"""A stream of orders: learn row by row, save every night, and go back after a bad day.

Rows of all shops come mixed, one at a time. Each is predicted before its label is known, then
learned from. Every night the model is saved with ``keep=3``: the newest version and two to go
back to. On day 8 the tills send cents for euros. It is noticed the night after: the version from
before is loaded, learns both days again with the right labels, and goes on as if nothing had
happened. The picture, ``pictures/stream.png``, shows the errors of all days.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from headstart import MetaRegressor

SHOPS, D, DAYS, ORDERS, BROKEN, NOISE = 200, 4, 12, 400, 8, 1.0
PICTURE = Path(__file__).parent / "pictures" / "stream.png"

Day = tuple[np.ndarray, np.ndarray, list[int]]


def orders(rng: np.random.Generator) -> list[Day]:
    """Days of orders, of shops drawn at random: what was ordered, euros, and the shop."""
    own = rng.normal([3.0, 8.0, 2.0, 0.5], [1.0, 2.0, 1.0, 0.2], (SHOPS, D))
    days = []
    for _ in range(DAYS):
        shop, X = rng.integers(0, SHOPS, ORDERS), rng.uniform(0.0, 4.0, (ORDERS, D))
        euros = 10.0 + np.sum(X * own[shop], axis=1) + rng.normal(0.0, NOISE, ORDERS)
        days.append((X, euros, shop.tolist()))
    return days


def live(model: MetaRegressor, day: Day, place: Path, *, cents: bool = False) -> float:
    """A day: predict each order, learn from it; a night: finish and save. The mean error."""
    wrong = []
    for x, euros, shop in zip(*day, strict=True):
        wrong.append(abs(model.predict_one(x, shop) - euros))  # before it is known
        model.learn_one(x, 100.0 * euros if cents else euros, shop)
    model.finish().save(place, keep=3)
    return float(np.mean(wrong))


def main() -> None:
    """Twelve days, one of them broken."""
    days = orders(np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "orders"
        model = MetaRegressor().partial_fit(*days[0]).finish()  # the first day as one table
        model.save(place, keep=3)
        seen, again = {}, {}
        for number in range(2, BROKEN + 2):
            seen[number] = live(model, days[number - 1], place, cents=number == BROKEN)
            print(f"day {number:2}: off by {seen[number]:8.2f} euros")

        print(f"day {BROKEN} brought cents: back to the night of day {BROKEN - 1}")
        model = MetaRegressor.load(place, version=2)  # 0 is the newest; it is two nights ago
        for number in range(BROKEN, DAYS + 1):
            again[number] = live(model, days[number - 1], place)
            print(f"day {number:2}: off by {again[number]:8.2f} euros")

        model.forget(7).finish().save(place)  # shop 7 leaves; keep=1: no version knows it
        print(MetaRegressor.load(place), "7 is known" if 7 in model.ids_ else "7 is forgotten")
    whole = MetaRegressor().fit(*(np.concatenate(part) for part in zip(*days, strict=True)))
    whole.forget(7).finish()
    same = np.allclose(whole.bias_, model.bias_)
    print("all rows at once give", "the same model" if same else "another model")
    draw(seen, again)


def draw(seen: dict[int, float], again: dict[int, float]) -> None:
    """Errors of the days as they were lived, and as they were after going back."""
    figure = Figure(figsize=(8.5, 4.4), layout="constrained")
    ax = figure.subplots()
    good = [number for number in seen if number < BROKEN]
    bad = [BROKEN - 1, BROKEN, BROKEN + 1]
    ax.plot(
        bad,
        [seen[number] for number in bad],
        "^--",
        color="#d55e00",
        markersize=8,
        markevery=[1, 2],
    )
    ax.plot(good, [seen[number] for number in good], "o-", color="#0072b2", markersize=7)
    ax.plot(list(again), list(again.values()), "s-", color="#009e73", markersize=7)
    ax.axhline(NOISE * (2.0 / np.pi) ** 0.5, color="#8a8a8a", linewidth=1.0, linestyle=":")
    ax.text(2.0, 0.74, "noise of the orders alone", color="#666666", va="top")
    ax.text(2.2, 1.9, "learning, order by order", color="#0072b2", va="bottom")
    ax.text(BROKEN - 0.2, seen[BROKEN], "cents for euros", color="#d55e00", ha="right")
    ax.text(BROKEN + 1.2, seen[BROKEN + 1], "noticed", color="#d55e00", va="center")
    ax.text(
        BROKEN, 1.25, f"gone on from the night of day {BROKEN - 1}", color="#009e73", va="bottom"
    )
    ax.set(yscale="log", ylim=(0.5, 1000.0), xlabel="day", ylabel="mean error of an order (€)")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xticks(range(2, DAYS + 1))
    ax.set_title("A bad day, and the way back", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
