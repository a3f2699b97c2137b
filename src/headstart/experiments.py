"""The paper's four experiments, as pieces that can be computed in any order and kept.

A piece is one method on one repetition of one experiment. Finished pieces are files; a
run that was stopped goes on from them and ends with the same numbers as one that was not.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headstart._checks import FloatArray, Vector
from headstart._files import write_aside
from headstart.adaptation import task_weights
from headstart.datasets import load_lenk
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.selection import select_online, select_reg
from headstart.tasks import TaskSet

Pair = tuple[TaskSet, TaskSet]


class Method(NamedTuple):
    """A bias (0, the oracle's or learned), what it is learned with and what it is used with."""

    bias: str
    inner: str
    evaluate_with: str

    @property
    def cost(self) -> float:
        """Roughly how long it takes, in units of ltl-sgd-sgd."""
        return {"ltl": 1.0}.get(self.bias, 0.02) * (8.0 if self.evaluate_with == "erm" else 1.0)


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

    def piece(self, method: str, seed: int) -> Piece:
        """The piece of this method and repetition."""
        return Piece(self, method, seed)


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


@dataclass(frozen=True)
class Data:
    """What a repetition works on: the oracle's bias is None where it is unknown."""

    train: TaskSet
    valid: Pair
    test: Pair
    oracle_bias: Vector | None


def draw_data(experiment: Experiment, seed: int) -> Data:
    """The tasks of a repetition: the same for all methods."""
    rng = _generator(experiment, seed, "data")
    sizes = experiment.n_tasks, experiment.n_valid, experiment.n_test
    if not experiment.has_mean:
        shots, queries = load_lenk(threshold=5.0 if experiment.loss == "hinge" else None)
        people = np.split(rng.permutation(len(shots))[: sum(sizes)], np.cumsum(sizes)[:-1])
        train, valid, test = ((shots.subset(p), queries.subset(p)) for p in people)
        return Data(train[0], valid, test, None)
    kind = RegressionEnvironment if experiment.loss == "absolute" else ClassificationEnvironment
    environment = kind(task_std=experiment.task_std)
    n, rows = experiment.n_shots, experiment.n_shots + experiment.n_queries
    return Data(
        environment.draw(sizes[0], n, rng).tasks,
        environment.draw(sizes[1], rows, rng).tasks.split_rows(n),
        environment.draw(sizes[2], rows, rng).tasks.split_rows(n),
        environment.oracle_bias,
    )


def _generator(experiment: Experiment, seed: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(f"{experiment.name} {purpose}".encode()), seed])


class Curve(NamedTuple):
    """The outcome of a piece: test loss (and accuracy) after each number of observed tasks."""

    tasks: NDArray[np.int64]
    loss: Vector
    accuracy: Vector  # empty for regression
    seconds: float


@dataclass(frozen=True)
class Piece:
    """One method on one repetition of one experiment."""

    experiment: Experiment
    method: str
    seed: int

    def compute(self) -> Curve:
        """Run it."""
        start = perf_counter()
        e, method = self.experiment, METHODS[self.method]
        data = draw_data(e, self.seed)
        train, valid, test = data.train, data.valid, data.test
        rng = _generator(e, self.seed, "rows")
        tasks = np.arange(e.n_tasks + 1)
        if method.bias == "ltl":
            chosen = select_online(
                *(train, valid, test, e.grid, e.grid, e.loss),
                *(method.inner, method.evaluate_with, e.order, rng),
            )
            loss = chosen.test_loss
            winners = list(zip(chosen.bias, chosen.reg, strict=True))
        else:
            bias = np.zeros(train.n_features) if method.bias == "itl" else data.oracle_bias
            if bias is None:
                raise ValueError(f"{self.method}: the mean of {e.name} is not known")
            fixed = select_reg(
                valid, test, bias, e.grid, e.loss, method.evaluate_with, e.order, rng
            )
            loss = np.full(len(tasks), fixed.test_loss)
            winners = [(bias, fixed.reg)]
        hits = np.empty(0)
        if e.loss == "hinge":
            shots = test[0].resampled(rng) if e.order == "resample" else test[0]
            found = [
                _accuracy(task_weights(shots, b, r, e.loss, method.evaluate_with), test[1])
                for b, r in winners
            ]
            hits = np.broadcast_to(found, len(tasks)).copy()
        return Curve(tasks, loss, hits, perf_counter() - start)


def _accuracy(W: FloatArray, queries: TaskSet) -> float:
    """Share of right signs on queries, of which every task has as many."""
    T, d = W.shape
    scores = queries.X.reshape(T, -1, d) @ W[:, :, None]
    return float(np.mean((scores.ravel() > 0.0) == (queries.y > 0.0)))


def methods_of(experiment: Experiment, methods: list[str]) -> list[str]:
    """Those of the methods that the experiment has: MEAN needs a known mean."""
    return [m for m in methods if experiment.has_mean or METHODS[m].bias != "mean"]


def settings(experiment: Experiment, methods: list[str]) -> dict[str, object]:
    """What makes a run the run it is; written to ``config.json``."""
    return {**asdict(experiment), "methods": methods}


class Store:
    """Finished pieces of an experiment in a folder, apart for each setting that matters."""

    def __init__(self, folder: Path, experiment: Experiment, say: Callable[[str], None]) -> None:
        same = {k: v for k, v in asdict(experiment).items() if k != "seeds"}
        digest = blake2b(json.dumps(same, sort_keys=True).encode(), digest_size=6).hexdigest()
        self.folder, self.say = folder / "pieces" / digest, say

    def path(self, piece: Piece) -> Path:
        """Where a piece is kept."""
        return self.folder / f"{piece.method}-{piece.seed}.npz"

    def load(self, piece: Piece) -> Curve | None:
        """A finished piece, or None if it is not there or is damaged."""
        path = self.path(piece)
        if not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                curve = Curve(
                    arrays["tasks"], arrays["loss"], arrays["accuracy"], float(arrays["seconds"])
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            self.say(f"{path} is damaged: computing this piece again")
            return None
        expected = np.arange(piece.experiment.n_tasks + 1)
        if not np.array_equal(curve.tasks, expected) or len(curve.loss) != len(expected):
            self.say(f"{path} is not of this run: computing this piece again")
            return None
        return curve

    def save(self, piece: Piece, curve: Curve) -> None:
        """Keep a finished piece."""
        tasks, loss, accuracy, seconds = curve
        write_aside(
            self.path(piece),
            lambda aside: np.savez(
                aside, tasks=tasks, loss=loss, accuracy=accuracy, seconds=np.array(seconds)
            ),
        )


def run_pieces(
    pieces: list[Piece],
    stores: dict[Experiment, Store],
    n_jobs: int,
    executor: Executor | None = None,
) -> Iterator[tuple[Piece, Curve]]:
    """Each piece with its curve, kept ones first, then computed ones as they are done.

    Matrix products stay on one thread each, which keeps their bits the same however many
    pieces run at once.
    """
    todo = []
    for piece in pieces:
        kept = stores[piece.experiment].load(piece)
        if kept is None:
            todo.append(piece)
        else:
            yield piece, kept
    todo.sort(key=lambda p: METHODS[p.method].cost)
    with threadpool_limits(1, user_api="blas"), ExitStack() as stack:
        pool = executor or stack.enter_context(ThreadPoolExecutor(n_jobs))
        queue = iter(todo)
        running: dict[Future[Curve], Piece] = {}
        try:
            while True:
                for piece in queue:
                    running[pool.submit(piece.compute)] = piece
                    if len(running) == n_jobs:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    piece = running.pop(future)
                    curve = future.result()
                    stores[piece.experiment].save(piece, curve)
                    yield piece, curve
        finally:
            if executor is None:
                pool.shutdown(wait=False, cancel_futures=True)
            for future in running:
                future.cancel()
