"""A nightly stream of orders: learn from its rows, save, and go on in another process.

Every shop is a task. Rows of many shops come mixed; after eight of its rows a shop has given
the bias what it has to give, and goes on training its own weights.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headstart import MetaRegressor

rng = np.random.default_rng(0)
weights = rng.normal([3.0, -1.0, 2.0, 0.5, 1.0], 1.0, (3000, 5))

Chunk = tuple[np.ndarray, np.ndarray, np.ndarray]


def rows_of(shops: np.ndarray, count: int) -> Chunk:
    """Orders of these shops, mixed."""
    shop, X = rng.choice(shops, count), rng.standard_normal((count, 5))
    return X, 10.0 + np.sum(X * weights[shop], axis=1) + 0.5 * rng.standard_normal(count), shop


def night(first: int, last: int) -> Iterator[Chunk]:
    """The shops from `first` to before `last`, twenty at a time."""
    return (rows_of(np.arange(k, k + 20), 300) for k in range(first, last, 20))


def error(model: MetaRegressor, first: int, last: int) -> float:
    """Mean absolute error on further rows of these shops."""
    X, y, shop = rows_of(np.arange(first, last), 5000)
    return float(np.abs(model.predict(X, groups=shop) - y).mean())


def main() -> None:
    """Two nights and what they bring."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "orders"
        model = MetaRegressor(task_size=8)
        model.learn(night(0, 2000))
        print(f"shops seen the first night: error {error(model, 0, 2000):.2f}")
        print(f"shops not seen yet, by the bias: {error(model, 2000, 3000):.2f}")
        model.save(place)

        # The next night, in another process: as if it had never stopped.
        again = MetaRegressor.load(place)
        again.learn(night(2000, 3000))
        again.save(place)
        print(f"the same shops after their first night: {error(again, 2000, 3000):.2f}")
        print(f"bias {again.bias_.round(1)}, intercept {again.intercept_:.1f}")
        print(again)


if __name__ == "__main__":
    main()
