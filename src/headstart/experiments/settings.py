"""What is run: the paper's four experiments and eight methods, and what users change of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from headstart._core.checks import Vector
from headstart.inner import get_inner

SWEEP_STDS = (0.5, 1.0, 2.0, 4.0)  # how far tasks are apart, in the sweep
SWEEP_SHOTS = (10, 40, 160)  # how many rows a task has, in the sweep


class Method(NamedTuple):
    """A bias (0, the oracle's or learned), what it is learned with and what it is used with."""

    bias: str
    inner: str
    evaluate_with: str

    @property
    def cost(self) -> float:
        """Roughly how long it takes, in units of ltl-sgd-sgd."""
        return {"ltl": 1.0}.get(self.bias, 0.02) * (
            8.0 if get_inner(self.evaluate_with).exact else 1.0
        )


METHODS = {
    "itl-sgd": Method("itl", "", "sgd"),
    "itl-erm": Method("itl", "", "erm"),
    "mean-sgd": Method("mean", "", "sgd"),
    "mean-erm": Method("mean", "", "erm"),
    "ltl-sgd-sgd": Method("ltl", "sgd", "sgd"),
    "ltl-erm-sgd": Method("ltl", "erm", "sgd"),
    "ltl-sgd-erm": Method("ltl", "sgd", "erm"),
    "ltl-erm-erm": Method("ltl", "erm", "erm"),
}


@dataclass(frozen=True)
class Experiment:
    """Settings of an experiment; the defaults are those of the paper's synthetic ones."""

    name: str
    loss: str
    n_tasks: int = 1000
    n_valid: int = 100
    n_test: int = 200
    n_shots: int = 10
    n_queries: int = 100
    task_std: float = 1.0
    seeds: int = 10
    grid_size: int = 10
    grid_low: float = 1e-6
    grid_high: float = 1e3
    order: str = "stream"

    @property
    def grid(self) -> Vector:
        """The candidates for reg, and for step."""
        return np.geomspace(self.grid_low, self.grid_high, self.grid_size)

    @property
    def has_mean(self) -> bool:
        """Whether the mean of the tasks is known: in synthetic environments."""
        return self.name.startswith("synthetic")


def _lenk(name: str, loss: str) -> Experiment:
    return Experiment(
        name, loss, 100, 40, 40, 8, 4, seeds=30, grid_size=30, grid_low=1e-3, grid_high=1e3
    )


EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment("synthetic-regression", "absolute"),
        Experiment("synthetic-classification", "hinge"),
        _lenk("lenk-regression", "absolute"),
        _lenk("lenk-classification", "hinge"),
    )
}


def methods_of(experiment: Experiment, methods: list[str]) -> list[str]:
    """Those of the methods that the experiment has: MEAN needs a known mean."""
    return [m for m in methods if experiment.has_mean or METHODS[m].bias != "mean"]


def config_of(experiment: Experiment, methods: list[str]) -> dict[str, object]:
    """All settings that decide the results, as ``config.json`` has them."""
    return {**asdict(experiment), "methods": methods}


def configured(
    name: str, seeds: int | None, tasks: int | None, quick: bool, order: str
) -> Experiment:
    """An experiment of the paper with what the user changed of it.

    The Lenk data has so many people and no more: there `tasks` is at most the paper's number.
    """
    experiment = replace(EXPERIMENTS[name], order=order)
    if quick and experiment.has_mean:
        experiment = replace(experiment, n_tasks=100, n_valid=30, n_test=50, seeds=2)
    elif quick:
        experiment = replace(experiment, grid_size=10, seeds=3)
    if tasks is not None:
        limit = tasks if experiment.has_mean else EXPERIMENTS[name].n_tasks
        experiment = replace(experiment, n_tasks=min(tasks, limit))
    return experiment if seeds is None else replace(experiment, seeds=seeds)


def sweep(base: Experiment) -> list[Experiment]:
    """Small variants of the synthetic regression: tasks more or less alike, larger or smaller."""
    small = replace(base, n_tasks=min(200, base.n_tasks), seeds=min(3, base.seeds))
    variants = [replace(small, task_std=std) for std in SWEEP_STDS]
    return variants + [replace(small, n_shots=n) for n in SWEEP_SHOTS if n != small.n_shots]
