"""A stream of orders: learn as rows come, save, go on in another process, forget a shop.

Rows of all shops come mixed, in any order. Each shop keeps sums over its rows, so that the model
at the end is the one that all rows at once would have given.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headstart import MetaRegressor

SHOPS, D = 500, 4
rng = np.random.default_rng(0)
weights = rng.normal([3.0, -1.0, 2.0, 0.5], [1.0, 0.2, 1.0, 0.2], (SHOPS, D))

Chunk = tuple[np.ndarray, np.ndarray, np.ndarray]


def orders(count: int) -> Chunk:
    """Orders of shops that are drawn at random."""
    shop, X = rng.integers(0, SHOPS, count), rng.standard_normal((count, D))
    return X, 10.0 + np.sum(X * weights[shop], axis=1) + 0.5 * rng.standard_normal(count), shop


def night() -> Iterator[Chunk]:
    """What comes in one night, a chunk at a time."""
    return (orders(500) for _ in range(4))


def error(model: MetaRegressor, rows: Chunk) -> float:
    """Mean absolute error."""
    X, y, shop = rows
    return float(np.abs(model.predict(X, groups=shop) - y).mean())


def main() -> None:
    """Two nights, a day of single orders, and what they bring."""
    later = orders(5000)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "orders"
        model = MetaRegressor().learn(night())  # partial_fit of every chunk, then finish
        print(f"after the first night, about 4 orders a shop: error {error(model, later):.2f}")
        model.save(place)

        again = MetaRegressor.load(place)  # in another process: as if it had never stopped
        again.learn(night())
        print(f"after the second night: error {error(again, later):.2f}")

        X, y, shop = orders(2000)
        wrong = []
        for x, label, key in zip(X, y, shop.tolist(), strict=True):
            wrong.append(abs(again.predict_one(x, key) - label))  # before it is known
            again.learn_one(x, label, key)
        again.finish()
        print(f"single orders by day, each predicted first: error {np.mean(wrong):.2f}")
        print(f"in the evening: error {error(again, later):.2f}, with noise alone 0.40")

        again.forget(7).finish()  # shop 7 leaves, and nothing of it stays
        again.save(place)
        print(again, "7 is known" if 7 in again.ids_ else "7 is forgotten")
        print(again.summary().round(1))


if __name__ == "__main__":
    main()
