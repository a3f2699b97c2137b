"""Boosted trees below the prior, on real tables: part of ``make mixed-models``.

After four and eight rows of each new entity, `MetaRegressor(base=trees)` is held against
`MetaRegressor()` and against the trees alone.
"""

from __future__ import annotations

import numpy as np
from core import report
from mixed_models import adapted, by_headstart
from sklearn.ensemble import HistGradientBoostingRegressor
from tables import TABLES, WHO, Array, Frame, judge, read

from headstart import MetaRegressor

SHOTS = (4, 8)
ENTITIES = 20  # fewer are too few for trees to be judged by


def on_trees(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """The defaults of headstart with boosted trees below."""
    model = MetaRegressor(group=WHO, base=HistGradientBoostingRegressor(random_state=0))
    return adapted(model, old, shots, queries, features)


def trees_alone(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:  # noqa: ARG001
    """Boosted trees of all old rows."""
    trees = HistGradientBoostingRegressor(random_state=0).fit(old[features], old["y"])
    return trees.predict(queries[features])


def main() -> None:
    over_prior, over_trees = [], []
    for table in TABLES:
        for shots in SHOTS:
            frame = read(table, shots)
            if frame[WHO].nunique() < ENTITIES:
                continue
            prior, trees, both = (
                judge(way, frame, shots).error for way in (by_headstart, trees_alone, on_trees)
            )
            over_prior.append(both / prior)
            over_trees.append(both / trees)
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
