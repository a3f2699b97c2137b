r"""Meta-training in synchronous rounds, over partitions that stay where they were loaded.

Each round takes the next tasks of every partition, about `batch_size` in all, sums their
meta-gradients at one bias, and makes one step against their mean: Algorithm 2 with minibatches.
The mean of the tasks' :math:`\epsilon`-subgradients is an :math:`\bar\epsilon`-subgradient of
their mean objective, so the paper's guarantee holds with the number of rounds in the place of
the number of tasks. It is another algorithm than one task at a time: fewer, less noisy steps.

Sums are taken in the order of the partitions, whoever computed them and whenever: the same
partitions give the same bits.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from headstart._checks import FloatArray, Vector, check_count, check_number
from headstart._files import write_aside
from headstart.losses import Loss, Objective, get_loss
from headstart.meta import BiasState, start_bias
from headstart.minibatch import gradient_sum
from headstart.parquet import ParquetError, ParquetRows, Partition, read_partition
from headstart.tasks import TaskSet

SAVE_EVERY = 16  # rounds

Bounds = list[tuple[int, int]]  # tasks from where to where, by partition


class Loading(NamedTuple):
    """How partitions are loaded: labels less `offset`, and beside the features a `constant`."""

    rows: ParquetRows
    constant: float = 0.0
    offset: float = 0.0
    classes: tuple[Any, ...] = ()

    @property
    def n_features(self) -> int:
        """Number of columns, the constant one included."""
        return self.rows.n_features + (self.constant > 0.0)

    def load(self, partition: Partition) -> TaskSet:
        """The tasks of one partition, in memory."""
        parts = [self._tasks(block) for block, _ in read_partition(self.rows, partition)]
        offsets = np.cumsum([0, *(size for part in parts for size in part.sizes)])
        ids = np.concatenate([part.ids for part in parts]) if parts else np.empty(0)
        X = np.concatenate([part.X for part in parts])
        return TaskSet(X, np.concatenate([part.y for part in parts]), offsets, ids)

    def _tasks(self, block: Any) -> TaskSet:
        if block.missing.any() or block.unlabelled.any():
            what = self.rows.group if block.missing.any() else self.rows.target
            raise ParquetError(
                f"{self.rows.path}: column {what!r}: a value is missing; rounds need an id and a "
                "label in every row"
            )
        X: FloatArray = np.empty((len(block.y), self.n_features), block.X.dtype)
        X[:, : self.rows.n_features] = block.X
        X[:, self.rows.n_features :] = self.constant
        y = block.y
        if self.classes:
            y = np.where(y == self.classes[1], 1.0, -1.0)
        labels = (np.asarray(y, np.float64) - self.offset).astype(X.dtype)
        cuts = np.append(block.starts, len(y)).astype(np.int64)
        return TaskSet(X, labels, cuts, block.ids.to_numpy(zero_copy_only=False))


class Parts(Protocol):
    """Loaded partitions, wherever they are."""

    def sizes(self) -> list[int]:
        """Number of tasks of each."""

    def sums(self, h: Vector, bounds: Bounds, objective: Objective) -> list[Vector]:
        """Sums of meta-gradients at h of some tasks of each, in order."""


class LocalParts:
    """Partitions in the memory of this process."""

    def __init__(self, parts: list[TaskSet], executor: Executor | None = None) -> None:
        self._parts = parts
        self._map: Callable[..., Iterator[Vector]] = map if executor is None else executor.map

    def sizes(self) -> list[int]:
        """Number of tasks of each."""
        return [len(part) for part in self._parts]

    def sums(self, h: Vector, bounds: Bounds, objective: Objective) -> list[Vector]:
        """Sums of meta-gradients at h of some tasks of each, in order."""
        return list(
            self._map(lambda part, some: sum_part(part, h, some, objective), self._parts, bounds)
        )


def sum_part(tasks: TaskSet, h: Vector, bounds: tuple[int, int], objective: Objective) -> Vector:
    """The sum of the meta-gradients at h of the tasks between these bounds."""
    total = np.zeros(h.size)
    gradient_sum(tasks.rows(), objective, False, *bounds, h, total)
    return total


def round_bounds(sizes: list[int], batch_size: int, number: int) -> Bounds:
    """Which tasks of each partition round `number` takes; none of those that are through."""
    count = len(sizes)
    shares = [batch_size // count + (k < batch_size % count) for k in range(count)]
    return [
        (min(number * share, size), min((number + 1) * share, size))
        for share, size in zip(shares, sizes, strict=True)
    ]


def learn_rounds(
    parts: Parts,
    n_features: int,
    reg: float,
    step: float,
    loss: str | Loss = "absolute",
    batch_size: int = 256,
    folder: Path | None = None,
    job: str = "",
    callback: Callable[[int, int], object] | None = None,
) -> BiasState:
    """Algorithm 2 with minibatches over partitions; goes on from the round saved in `folder`.

    Parameters
    ----------
    parts : Parts
        Loaded partitions.
    n_features : int
    reg, step, loss
        As in `learn_bias`.
    batch_size : int
        Tasks of a round; at least one of each partition.
    folder : Path, optional
        Where to save the state from time to time.
    job : str
        What the saved state must belong to, to be gone on with.
    callback : function of two numbers, optional
        Called after every round with the tasks done and the tasks there are.
    """
    objective, rate = get_loss(loss).regularised(reg), check_number("step", step, at_least=0.0)
    sizes = parts.sizes()
    batch = max(check_count("batch_size", batch_size), len(sizes))
    told = f"{job} {sizes} {objective} {rate} {batch}".encode()
    keeper = _Keeper(folder, blake2b(told, digest_size=12).hexdigest())
    state = keeper.load() or start_bias(n_features)
    while True:
        bounds = round_bounds(sizes, batch, state.steps)
        count = sum(last - first for first, last in bounds)
        if count == 0:
            break
        gradient = np.zeros(n_features)
        for part in parts.sums(state.last, bounds, objective):
            gradient += part
        h = state.last - rate / count * gradient
        state = BiasState(h, state.total + h, state.steps + 1)
        if not np.isfinite(h).all():
            raise ValueError(f"step: the bias grew beyond all numbers with step {rate:g}")
        if state.steps % SAVE_EVERY == 0:
            keeper.save(state)
        if callback is not None:
            callback(sum(last for _, last in bounds), sum(sizes))
    keeper.save(state)
    return state


class _Keeper:
    """The last saved round, in a file."""

    def __init__(self, folder: Path | None, job: str) -> None:
        self.path, self.job = None if folder is None else folder / "rounds.npz", job

    def save(self, state: BiasState) -> None:
        if self.path is None:
            return
        last, total, steps = state
        write_aside(
            self.path,
            lambda aside: np.savez(
                aside, last=last, total=total, steps=np.array(steps), job=np.array(self.job)
            ),
        )

    def load(self) -> BiasState | None:
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as kept:
                if str(kept["job"]) == self.job:
                    return BiasState(kept["last"], kept["total"], int(kept["steps"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ParquetError(f"{self.path}: is damaged ({error}); remove it") from None
        raise ParquetError(
            f"{self.path}: belongs to another job; remove it, or give another folder"
        )
