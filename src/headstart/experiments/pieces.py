"""Pieces of work: computed in any order, and each a file once it is finished.

A piece is one method on one repetition of one experiment. A run that was stopped goes on from
the finished pieces, and ends with the same numbers as one that was not.
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

from headstart._core.checks import FloatArray, Vector
from headstart._core.files import write_aside
from headstart._core.leftovers import clear_asides
from headstart.datasets import load_lenk
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.experiments.settings import METHODS, Experiment
from headstart.inner.adapt import task_weights
from headstart.selection import select_online, select_reg
from headstart.tasks import TaskSet

Pair = tuple[TaskSet, TaskSet]


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


class Curves(NamedTuple):
    """The curves of all repetitions of one method: a row for each."""

    tasks: NDArray[np.int64]
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]  # no columns for regression
    seconds: Vector

    @classmethod
    def of(cls, curves: list[Curve]) -> Curves:
        """Stack the curves of the repetitions."""
        return cls(
            curves[0].tasks,
            np.array([curve.loss for curve in curves]),
            np.array([curve.accuracy for curve in curves]),
            np.array([curve.seconds for curve in curves]),
        )


@dataclass(frozen=True)
class Piece:
    """One method on one repetition of one experiment."""

    experiment: Experiment
    method: str
    seed: int

    @property
    def cost(self) -> float:
        """Roughly how long it takes, in a unit that is the same for all pieces."""
        e = self.experiment
        evaluations = e.n_tasks * e.n_valid * e.grid_size**2
        return METHODS[self.method].cost * evaluations * (e.n_shots + e.n_queries) / 1e8

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
        accuracy = np.empty(0)
        if e.loss == "hinge":
            shots = test[0].resampled(rng) if e.order == "resample" else test[0]
            hits = [
                _accuracy(task_weights(shots, bias, reg, e.loss, method.evaluate_with), test[1])
                for bias, reg in winners
            ]
            accuracy = np.broadcast_to(hits, len(tasks)).copy()  # a fixed bias has one for all
        return Curve(tasks, loss, accuracy, perf_counter() - start)


def _accuracy(W: FloatArray, queries: TaskSet) -> float:
    """Share of right signs on queries, of which every task has as many."""
    T, d = W.shape
    scores = queries.X.reshape(T, -1, d) @ W[:, :, None]
    return float(np.mean((scores.ravel() > 0.0) == (queries.y > 0.0)))


class PieceFolder:
    """Finished pieces of an experiment on disk, in a folder of their own for each setting.

    More repetitions (`seeds`) use the pieces that are there.
    """

    def __init__(self, folder: Path, experiment: Experiment, say: Callable[[str], None]) -> None:
        decisive = {k: v for k, v in asdict(experiment).items() if k != "seeds"}
        digest = blake2b(json.dumps(decisive, sort_keys=True).encode(), digest_size=6).hexdigest()
        self.folder, self.say = folder / "pieces" / digest, say
        clear_asides(self.folder)  # of a run that was killed

    def path(self, piece: Piece) -> Path:
        """The file of a piece."""
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
        """Write a finished piece."""
        tasks, loss, accuracy, seconds = curve
        write_aside(
            self.path(piece),
            lambda aside: np.savez(
                aside, tasks=tasks, loss=loss, accuracy=accuracy, seconds=np.array(seconds)
            ),
        )


def run_pieces(
    pieces: list[Piece],
    folders: dict[Experiment, PieceFolder],
    n_jobs: int,
    executor: Executor | None = None,
) -> Iterator[tuple[Piece, Curve]]:
    """Each piece with its curve: first those on disk, then the others as they are computed.

    Matrix products stay on one thread each, which keeps their bits the same however many
    pieces run at once.
    """
    todo = []
    for piece in pieces:
        finished = folders[piece.experiment].load(piece)
        if finished is None:
            todo.append(piece)
        else:
            yield piece, finished
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
                    folders[piece.experiment].save(piece, curve)
                    yield piece, curve
        finally:
            if executor is None:
                pool.shutdown(wait=False, cancel_futures=True)
            for future in running:
                future.cancel()
