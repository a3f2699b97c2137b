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
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headstart._core.checks import Vector
from headstart._core.files import clear_asides, write_aside
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.experiments.methods import Method, get_method
from headstart.experiments.running import run_method
from headstart.experiments.settings import Experiment, config_of, draw_data
from headstart.experiments.sources import Drawn
from headstart.losses import get_loss


class Curve(NamedTuple):
    """The outcome of a piece after each number of observed tasks.

    Attributes
    ----------
    tasks : numbers of observed tasks, from 0
    loss, accuracy : on the test tasks; no accuracies for regression
    reg, step : what validation chose; NaN where a method has none
    seconds : how long it took, without compiling
    """

    tasks: NDArray[np.int64]
    loss: Vector
    accuracy: Vector
    reg: Vector
    step: Vector
    seconds: float


class Curves(NamedTuple):
    """The curves of all repetitions of one method: a row for each."""

    tasks: NDArray[np.int64]
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]  # no columns for regression
    reg: NDArray[np.float64]
    step: NDArray[np.float64]
    seconds: Vector

    @classmethod
    def of(cls, curves: list[Curve]) -> Curves:
        """Stack the curves of the repetitions."""
        _, *values = zip(*curves, strict=True)
        return cls(curves[0].tasks, *(np.array(value) for value in values))


@dataclass(frozen=True)
class Piece:
    """One method, by its name or one's own, on one repetition of one experiment."""

    experiment: Experiment
    method: str | Method
    seed: int

    @property
    def cost(self) -> float:
        """Roughly how long it takes, in a unit that is the same for all pieces."""
        e = self.experiment
        evaluations = e.n_tasks * e.n_valid * e.grid_size**2
        rows = (e.n_shots or 50) + (e.n_queries or 50)
        return get_method(self.method).cost * evaluations * rows / 1e8

    def compute(self) -> Curve:
        """Run it."""
        e = self.experiment
        data, rng = draw_data(e, self.seed), e.generator(self.seed, "rows")
        _warm(self.method, e.loss, e.order, int(data.train.sizes[0]), data.train.n_features)
        start = perf_counter()
        found = run_method(self.method, e, data, rng).held(e.n_tasks)
        return Curve(*found, perf_counter() - start)


@cache
def _warm(method: str | Method, loss: str, order: str, n: int, d: int) -> None:
    """Run a method on two tasks of this shape, so that compiling is not counted as its time."""
    kind = ClassificationEnvironment if get_loss(loss).binary else RegressionEnvironment
    tiny = Experiment(
        "warm", loss, Drawn(kind(n_features=d)), 2, 2, 2, n, 2, grid_size=2, grid_low=1.0,
        order=order,
    )  # fmt: skip
    run_method(method, tiny, draw_data(tiny, 0), tiny.generator(0, "rows"))


class PieceFolder:
    """Finished pieces of an experiment on disk, in a folder of their own for each setting.

    More repetitions (`seeds`) use the pieces that are there.
    """

    def __init__(self, folder: Path, experiment: Experiment, say: Callable[[str], None]) -> None:
        decisive = {k: v for k, v in config_of(experiment).items() if k != "seeds"}
        digest = blake2b(json.dumps(decisive, sort_keys=True).encode(), digest_size=6).hexdigest()
        self.folder, self.say = folder / "pieces" / digest, say
        clear_asides(self.folder)  # of a run that was killed

    def path(self, piece: Piece) -> Path:
        """The file of a piece."""
        return self.folder / f"{get_method(piece.method).key}-{piece.seed}.npz"

    def load(self, piece: Piece) -> Curve | None:
        """A finished piece, or None if it is not there or is damaged."""
        path = self.path(piece)
        if not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                curve = Curve(
                    arrays["tasks"], arrays["loss"], arrays["accuracy"], arrays["reg"],
                    arrays["step"], float(arrays["seconds"]),
                )  # fmt: skip
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            self.say(f"{path} is damaged: computing this piece again")
            return None
        expected = np.arange(piece.experiment.n_tasks + 1)
        whole = all(len(v) == len(expected) for v in (curve.loss, curve.reg, curve.step))
        if not np.array_equal(curve.tasks, expected) or not whole:
            self.say(f"{path} is not of this run: computing this piece again")
            return None
        return curve

    def save(self, piece: Piece, curve: Curve) -> None:
        """Write a finished piece."""
        tasks, loss, accuracy, reg, step, seconds = curve
        write_aside(
            self.path(piece),
            lambda aside: np.savez(
                aside, tasks=tasks, loss=loss, accuracy=accuracy, reg=reg, step=step,
                seconds=np.array(seconds),
            ),
        )  # fmt: skip


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
    todo.sort(key=lambda p: get_method(p.method).cost)
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
