"""How good the defaults are, and how often the diagnosis is right: ``make quality``.

Errors of new tasks under a learned prior (`prior_quality`) and by the estimators on tables
(`estimator_quality`); after the defaults, over those of the
paper's fully validated grid on the same tasks; and verdicts over many draws of three worlds, 100
tasks of 16 rows each.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import estimator_quality
import numpy as np
import pandas as pd
import prior_quality
from core import report

from headstart import (
    MetaClassifier,
    MetaRegressor,
    diagnose,
    few_shot_curve,
    get_loss,
    select_online,
)
from headstart.datasets import DataUnavailableError
from headstart.environments import RegressionEnvironment
from headstart.evaluation.ways import predict_rows
from headstart.experiments import EXPERIMENTS, Experiment, draw_data


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
        limit = "1.02" if experiment.has_mean else "1.05"
        what = f"{experiment.name}, {T} tasks: defaults over the validated grid"
        report(what, f"{ours / theirs:.3f}", f"at most {limit}")


def verdicts(draws: int) -> None:
    worlds = {
        "unrelated": (RegressionEnvironment(center=0.0, task_std=2.0), {"do not share"}),
        "identical": (RegressionEnvironment(task_std=0.0), {"pool instead"}),
        "related": (RegressionEnvironment(), {"share", "share a little"}),
        "related, 5 features": (RegressionEnvironment(5), {"share", "share a little"}),
    }
    for name, (world, right) in worlds.items():
        found: Counter[str] = Counter()
        for seed in range(draws):
            tasks = world.draw(100, 16, np.random.default_rng(seed)).tasks
            ids = np.repeat(tasks.ids, tasks.sizes)
            found[diagnose(tasks.X, tasks.y, ids).verdict] += 1
        share = sum(found[verdict] for verdict in right) / draws
        report(f"verdicts right on {name} tasks, {draws} draws", f"{share:.1%}", "at least 95 %")


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
        ours = few_shot_curve(MetaRegressor(group=group), X, y, shots=found.headstart.shots)
        for way, other in (("alone", found.independent), ("pooled", found.pooled)):
            gap = ours.minus(other)
            told = f"{gap.mean[-1]:+.2f} ± {gap.half_width[-1]:.2f}"
            report(f"{name}, 8 rows: defaults minus {way}", told, "below 0")


if __name__ == "__main__":
    prior_quality.main()
    estimator_quality.main()
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for experiment in EXPERIMENTS.values():
        synthetic = experiment.has_mean
        try:
            defaults_over_grid(
                experiment,
                [100, 300, 1000] if synthetic else [100],
                range(500, 505 if synthetic else 530),
            )
        except DataUnavailableError as missing:
            print(missing)
    real_tables()
    verdicts(draws)
