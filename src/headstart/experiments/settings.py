"""What is run: experiments, those of the paper among them, and what users change of them."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, fields, replace

import numpy as np

from headstart._core.checks import Vector, check_choice, check_count, check_size
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.experiments.sources import Data, Drawn, Exam, Lenk, Sizes, Source
from headstart.losses import get_loss
from headstart.tasks import ORDERS

SWEEP_STDS = (0.5, 1.0, 2.0, 4.0)  # how far tasks are apart, in the sweep
SWEEP_SHOTS = (10, 40, 160)  # how many rows a task has, in the sweep


@dataclass(frozen=True)
class Experiment:
    """An experiment: its tasks and its settings; the defaults are the paper's synthetic ones.

    Parameters
    ----------
    name : str
        Names the folder of its results, and seeds its draws.
    loss : str
        Of `headstart.LOSSES`, where `register_loss` puts one's own. Accuracies are reported
        where labels are -1 and +1.
    source : Source
        Where the tasks come from.
    n_tasks, n_valid, n_test : int
        Training, validation and test tasks.
    n_shots, n_queries : int, or None for as many as the source has
        Rows of a task to learn from, and to test on.
    seeds : int
        Repetitions.
    grid_size, grid_low, grid_high
        The candidates for reg, and for step: so many numbers at equal ratios.
    order : {"stream", "resample"}
        Which rows Algorithm 1 visits.

    Examples
    --------
    >>> far = Drawn(RegressionEnvironment(n_features=3, task_std=5.0))
    >>> draw_data(Experiment("far", "absolute", far, n_tasks=20), seed=0).train
    TaskSet(20 tasks, 200 rows, 3 features, 10 to 10 rows a task)
    """

    name: str
    loss: str
    source: Source
    n_tasks: int = 1000
    n_valid: int = 100
    n_test: int = 200
    n_shots: int | None = 10
    n_queries: int | None = 100
    seeds: int = 10
    grid_size: int = 10
    grid_low: float = 1e-6
    grid_high: float = 1e3
    order: str = "stream"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"\w[\w.-]*", self.name):
            raise ValueError(
                "name: expected letters, digits, dots and dashes, which name a folder, found "
                f"{self.name!r}"
            )
        if not isinstance(self.loss, str):
            raise TypeError(
                f"loss: expected a name, found {type(self.loss).__name__}; register_loss gives "
                "one's own loss a name"
            )
        get_loss(self.loss)
        if not isinstance(self.source, Source):
            raise TypeError(
                f"source: expected a Source, found {type(self.source).__name__}; Drawn takes an "
                "environment, Dealt a data set"
            )
        if " at 0x" in repr(self.source):
            raise ValueError(
                f"source: expected a repr that says what its tasks depend on, found "
                f"{self.source!r}; make the class a frozen dataclass, or give it a __repr__"
            )
        for name in ("n_tasks", "n_valid", "n_test", "seeds", "grid_size"):
            check_count(name, getattr(self, name))
        for name in ("n_shots", "n_queries"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_size("grid_low", self.grid_low)
        check_size("grid_high", self.grid_high)
        check_choice("order", self.order, ORDERS)

    @property
    def grid(self) -> Vector:
        """The candidates for reg, and for step."""
        return np.geomspace(self.grid_low, self.grid_high, self.grid_size)

    @property
    def sizes(self) -> Sizes:
        """How much a repetition draws."""
        return Sizes(self.n_tasks, self.n_valid, self.n_test, self.n_shots, self.n_queries)

    @property
    def classifies(self) -> bool:
        """Whether labels are -1 and +1."""
        return get_loss(self.loss).binary

    def generator(self, seed: int, purpose: str) -> np.random.Generator:
        """The random numbers of a repetition, the same for all methods."""
        return np.random.default_rng([zlib.crc32(f"{self.name} {purpose}".encode()), seed])


def draw_data(experiment: Experiment, seed: int) -> Data:
    """The tasks of a repetition: the same for all methods."""
    return experiment.source.draw(experiment.sizes, experiment.generator(seed, "data"))


def config_of(experiment: Experiment) -> dict[str, object]:
    """All settings that decide the results, as ``config.json`` has them."""
    settings = {f.name: getattr(experiment, f.name) for f in fields(experiment)}
    return {**settings, "source": repr(experiment.source)}


def _lenk(name: str, loss: str, threshold: float | None) -> Experiment:
    return Experiment(
        name, loss, Lenk(threshold), 100, 40, 40, 8, 4, seeds=30, grid_size=30, grid_low=1e-3
    )


PAPER = {
    e.name: e
    for e in (
        Experiment("synthetic-regression", "absolute", Drawn(RegressionEnvironment())),
        Experiment("synthetic-classification", "hinge", Drawn(ClassificationEnvironment())),
        _lenk("lenk-regression", "absolute", None),
        _lenk("lenk-classification", "hinge", 5.0),
    )
}
# What can be run by name: the paper's, schools, and what others put here.
EXPERIMENTS = {
    **PAPER,
    "exam-regression": Experiment(
        "exam-regression", "absolute", Exam(), 35, 15, 15, None, None,
        seeds=30, grid_size=30, grid_low=1e-3,
    ),
}  # fmt: skip


def configured(
    name: str, seeds: int | None, tasks: int | None, quick: bool, order: str
) -> Experiment:
    """An experiment by its name, with what the user changed of it.

    A data set has so many tasks and no more: there `tasks` is at most the experiment's number.
    """
    experiment = replace(EXPERIMENTS[name], order=order)
    endless = experiment.source.n_available is None
    if quick and endless:
        experiment = replace(experiment, n_tasks=100, n_valid=30, n_test=50, seeds=2)
    elif quick:
        experiment = replace(experiment, grid_size=10, seeds=3)
    if tasks is not None:
        limit = tasks if endless else EXPERIMENTS[name].n_tasks
        experiment = replace(experiment, n_tasks=min(tasks, limit))
    return experiment if seeds is None else replace(experiment, seeds=seeds)


def cut_short(experiment: Experiment, tasks: int | None) -> str | None:
    """What to say where more training tasks were asked for than the data has."""
    if tasks is None or tasks <= experiment.n_tasks:
        return None
    e = experiment
    return (
        f"{e.name}: {e.n_tasks} training tasks instead of {tasks}; the data has "
        f"{e.source.n_available} tasks, of which {e.n_valid + e.n_test} are for validation and test"
    )


def sweep(base: Experiment) -> list[tuple[float, Experiment]]:
    """Small variants of the synthetic regression: tasks more or less alike, larger or smaller.

    Each with how far its tasks are apart.
    """
    small = replace(base, n_tasks=min(200, base.n_tasks), seeds=min(5, base.seeds))
    variants = [
        (std, replace(small, source=Drawn(RegressionEnvironment(task_std=std))))
        for std in SWEEP_STDS
    ]
    more = [replace(small, n_shots=n) for n in SWEEP_SHOTS if n != small.n_shots]
    return variants + [(1.0, e) for e in more]
