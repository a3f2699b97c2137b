"""How good the defaults are, and how often the diagnosis is right: ``make quality``.

Errors of new tasks under a learned prior (`prior_quality`) and by the estimators on tables
(`estimator_quality`); after the defaults, over those of the
paper's fully validated grid on the same tasks; and verdicts over many draws of seven worlds.
With ``verdicts`` as an argument, these alone.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import estimator_quality
import numpy as np
import pandas as pd
import prior_quality
from core import report

from headstart import (
    MetaClassifier,
    MetaRegressor,
    TaskSet,
    diagnose,
    get_loss,
    select_online,
)
from headstart.datasets import DataUnavailableError
from headstart.environments import ClassificationEnvironment, Environment, RegressionEnvironment
from headstart.evaluation.ways import predict_rows
from headstart.experiments import PAPER, Experiment, draw_data


def defaults_over_grid(experiment: Experiment, counts: list[int], seeds: range) -> None:
    loss = get_loss(experiment.loss)
    errors = []
    for seed in seeds:
        data = draw_data(experiment, seed)
        grid = select_online(
            data.train, data.valid, data.test, experiment.grid, experiment.grid, loss, every=20
        )
        for T in counts:
            train = data.train.subset(range(T))
            model = (MetaClassifier if loss.binary else MetaRegressor)(loss=loss)
            model.fit(train.X, train.y, groups=np.repeat(train.ids, train.sizes))
            shots, queries = data.test
            losses = loss.value(predict_rows(model.adapt_tasks(shots), queries), queries.y)
            errors.append([grid.test_loss[grid.tasks.tolist().index(T)], losses.mean()])
    for T, (theirs, ours) in zip(
        counts, np.reshape(errors, (-1, len(counts), 2)).mean(axis=0), strict=True
    ):
        limit = "1.02" if experiment.source.has_mean else "1.05"
        what = f"{experiment.name}, {T} tasks: defaults over the validated grid"
        report(what, f"{ours / theirs:.3f}", f"at most {limit}")


class World(NamedTuple):
    """Tasks to be diagnosed: how they are drawn, how many, of how many rows, and what is right."""

    draw: Callable[[int, int, np.random.Generator], TaskSet]
    right: set[str]
    tasks: int = 100
    rows: int = 16


def own_parts(level: float, slope: float) -> Callable[[int, int, np.random.Generator], TaskSet]:
    """Tasks that differ in their levels and slopes by so much, the noise being 1."""

    def draw(T: int, n: int, rng: np.random.Generator) -> TaskSet:
        owner, X = np.repeat(np.arange(T), n), rng.normal(size=(T * n, 5))
        w = np.linspace(1.0, 2.0, 5) + slope * rng.normal(size=(T, 5))
        y = 5.0 + level * rng.normal(size=T)[owner] + np.sum(X * w[owner], axis=1)
        return TaskSet.from_arrays(X, y + rng.normal(size=T * n), owner)

    return draw


def drawn_from(world: Environment) -> Callable[[int, int, np.random.Generator], TaskSet]:
    return lambda T, n, rng: world.draw(T, n, rng).tasks


SHARE = {"share", "share a little"}
# Of the paper's classes 30 features and 16 rows tell nothing: no way does better than one model.
WORLDS = {
    "unrelated": World(
        drawn_from(RegressionEnvironment(10, center=0.0, task_std=2.0)), {"do not share"}
    ),
    "identical": World(drawn_from(RegressionEnvironment(10, task_std=0.0)), {"pool instead"}),
    "own levels only": World(own_parts(1.0, 0.0), {"share"}),
    "own slopes only": World(own_parts(0.0, 0.5), {"share"}),
    "own levels and slopes": World(own_parts(1.0, 0.5), {"share"}),
    "the paper's regression": World(drawn_from(RegressionEnvironment()), SHARE, rows=32),
    "the paper's classes, 10 features": World(
        drawn_from(ClassificationEnvironment(10)), SHARE, tasks=80, rows=32
    ),
}


def verdict_of(name: str, seed: int) -> str:
    world, rng = WORLDS[name], np.random.default_rng(seed)
    tasks = world.draw(world.tasks, world.rows, rng)
    ids = np.repeat(tasks.ids, tasks.sizes)
    return diagnose(tasks.X, tasks.y, ids, shots=world.rows // 2).verdict


def verdicts(draws: int) -> None:
    """How often verdicts are right, on draws that nothing was chosen by."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name, world in WORLDS.items():
            seeds = range(10_000, 10_000 + draws)
            found = Counter(pool.map(verdict_of, [name] * draws, seeds))
            share = sum(found[verdict] for verdict in world.right) / draws
            size = f"{world.tasks} tasks of {world.rows} rows, {draws} draws"
            told = ", ".join(f"{verdict} {count}" for verdict, count in found.most_common())
            report(f"verdicts right, {name}, {size}", f"{share:.1%}", f"at least 95 %; {told}")


def real_tables() -> None:
    """New teachers and new flights after 8 rows, against each alone and all pooled."""
    for name, group, target in (
        ("pupils", "teacher", "math"),
        ("flights", "flight", "arr_delay"),
    ):
        path = Path(__file__).parent.parent / "examples" / "data" / f"{name}.parquet"
        table = pd.read_parquet(path)
        X, y = table.drop(columns=target), table[target]
        found = diagnose(X, y, group=group)
        for way, other in (("alone", found.independent), ("pooled", found.pooled)):
            gap = found.headstart.minus(other)
            told = f"{gap.mean[-1]:+.2f} ± {gap.half_width[-1]:.2f}"
            report(f"{name}, 8 rows: defaults minus {way}", told, "below 0")


def main() -> None:
    prior_quality.main()
    estimator_quality.main()
    for experiment in PAPER.values():
        synthetic = experiment.source.has_mean
        try:
            defaults_over_grid(
                experiment,
                [100, 300, 1000] if synthetic else [100],
                range(500, 505 if synthetic else 530),
            )
        except DataUnavailableError as missing:
            print(missing)
    real_tables()


if __name__ == "__main__":
    if "verdicts" not in sys.argv[1:]:
        main()
    verdicts(next((int(text) for text in sys.argv[1:] if text.isdigit()), 200))
