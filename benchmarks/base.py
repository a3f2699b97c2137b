"""Boosted trees below the prior, on real tables: part of ``make mixed-models``.

The tables, folds and errors are those of `mixed_models`, after four and eight rows of each new
entity. `MetaRegressor(base=trees)` is held against `MetaRegressor()` and against the trees alone.
"""

from __future__ import annotations

import numpy as np
from core import report
from mixed_models import TABLES, WHO, Fold, dealt, read
from sklearn.ensemble import HistGradientBoostingRegressor

from headstart import MetaRegressor

SHOTS = (4, 8)
ENTITIES = 20  # fewer are too few for trees to be judged by


def errors(folds: list[Fold], features: list[str], shots: int) -> dict[str, float]:
    """Mean absolute errors of the three ways, means over entities."""
    found: dict[str, list[float]] = {"prior": [], "trees": [], "both": []}
    for rows, new in folds:
        trees = HistGradientBoostingRegressor(random_state=0)
        models = [MetaRegressor(), MetaRegressor(base=trees)]
        for model in models:
            model.fit(rows[features].to_numpy(), rows["y"], rows[WHO])
        trees.fit(rows[features].to_numpy(), rows["y"])
        for one in new:
            X, y = one[features].to_numpy(), one["y"].to_numpy()
            adapted = [model.adapt(X[:shots], y[:shots]) for model in models]
            for way, fitted in zip(found, [adapted[0], trees, adapted[1]], strict=True):
                found[way].append(float(np.abs(fitted.predict(X[shots:]) - y[shots:]).mean()))
    return {way: float(np.mean(of_entities)) for way, of_entities in found.items()}


def main() -> None:
    over_prior, over_trees = [], []
    for table in TABLES:
        for shots in SHOTS:
            frame = read(table, shots)
            if frame[WHO].nunique() < ENTITIES:
                continue
            found = errors(dealt(frame), table.features, shots)
            over_prior.append(found["both"] / found["prior"])
            over_trees.append(found["both"] / found["trees"])
            told = f"{over_prior[-1]:.4f} of the prior's error, {over_trees[-1]:.3f} of the trees'"
            report(f"{table.item}: {frame[WHO].nunique()} entities, {shots} rows", told)
    better = sum(ratio < 1.0 for ratio in over_prior)
    report("better than the prior alone", f"{better} of {len(over_prior)}")
    for name, ratios in (("the prior", over_prior), ("the trees", over_trees)):
        mean = np.exp(np.mean(np.log(ratios)))
        report(
            f"over {name}: mean, best, worst", f"{mean:.4f}, {min(ratios):.3f}, {max(ratios):.4f}"
        )


if __name__ == "__main__":
    main()
