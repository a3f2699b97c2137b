r"""Meta-training in synchronous rounds, over partitions that stay where they were loaded.

Each round takes the next tasks of every partition, about `batch_size` in all, sums their
meta-gradients at one bias, and makes one step against their mean: Algorithm 2 with minibatches.
The mean of the tasks' :math:`\epsilon`-subgradients is an :math:`\bar\epsilon`-subgradient of
their mean objective, so the paper's guarantee holds with the number of rounds in the place of
the number of tasks. It is another algorithm than one task at a time: fewer, less noisy steps.

Sums are added by blocks of partitions and in their order (`headstart.parquet.engine`), whoever
computed them and whenever: the same partitions give the same bits.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from hashlib import blake2b
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector, check_count, check_number
from headstart._core.files import write_aside
from headstart._core.places import Place
from headstart.inner import get_inner, sum_gradients
from headstart.losses import Loss, Objective, get_loss
from headstart.meta.bias import BiasState, start_bias
from headstart.parquet import Block, ParquetError, ParquetRows, Partition, read_partition
from headstart.parquet.columns import as_ids
from headstart.parquet.engine import Held, Parts
from headstart.tasks import TaskSet
from headstart.tasks.columns import Constant

SAVE_EVERY = 16  # rounds

Counts = NDArray[np.int64]


class RoundSettings(NamedTuple):
    """Parameters of the rounds.

    Attributes
    ----------
    reg, step, loss : as in `learn_bias`
    batch_size : tasks of a round; at least one of each partition
    """

    reg: float
    step: float
    loss: str | Loss = "absolute"
    batch_size: int = 256


class Loading(NamedTuple):
    """How partitions are loaded.

    Attributes
    ----------
    rows : the dataset, with each task's rows together
    constant : value of a column beside the features, whose weight is the intercept; 0 for none
    offset : is taken off the labels
    classes : the two labels of a classification, which become -1 and +1
    """

    rows: ParquetRows
    constant: float = 0.0
    offset: float = 0.0
    classes: tuple[object, ...] = ()

    @property
    def n_features(self) -> int:
        """Number of columns, the constant one included."""
        return self.rows.n_features + (self.constant > 0.0)

    @property
    def column(self) -> Constant:
        """The constant column."""
        return Constant(self.constant)

    def load(self, partition: Partition) -> TaskSet:
        """The tasks of one partition, in memory."""
        parts = [self._tasks(block) for block, _ in read_partition(self.rows, partition)]
        offsets = np.cumsum([0, *(size for part in parts for size in part.sizes)])
        ids = np.concatenate([part.ids for part in parts]) if parts else np.empty(0)
        X = np.concatenate([part.X for part in parts])
        return TaskSet.of(X, np.concatenate([part.y for part in parts]), offsets, ids)

    def parts(self, partitions: list[Partition], memory: int | None = None) -> Parts[TaskSet]:
        """Partitions that are loaded when they are needed; so many bytes may be kept."""
        return Parts(self.load, partitions, _weigh, memory)

    def _tasks(self, block: Block) -> TaskSet:
        if block.missing.any() or block.unlabelled.any():
            column = self.rows.group if block.missing.any() else self.rows.target
            raise ParquetError(
                f"{self.rows.known_as}: column {column!r}: a value is missing; rounds need an id "
                "and a label in every row"
            )
        y = np.where(block.y == self.classes[1], 1.0, -1.0) if self.classes else block.y
        X = self.column.rows(block.X)
        X = X.copy() if X is block.X else X  # the next block is read into the same memory
        labels = (np.asarray(y, np.float64) - self.offset).astype(X.dtype)
        cuts = np.append(block.starts, len(y)).astype(np.int64)
        return TaskSet.of(X, labels, cuts, as_ids(block.ids))


def _weigh(tasks: TaskSet) -> int:
    return int(tasks.X.nbytes + tasks.y.nbytes + tasks.offsets.nbytes + tasks.ids.nbytes)


class Round(NamedTuple):
    """Which tasks a round takes: as many of each partition, the first partitions one more.

    Attributes
    ----------
    number : of the round
    batch_size : tasks in all
    partitions : how many there are
    """

    number: int
    batch_size: int
    partitions: int

    def shares(self, partition: Counts) -> Counts:
        """How many tasks of partitions with these numbers a round takes."""
        each, more = divmod(self.batch_size, self.partitions)
        return each + (partition < more)

    def bounds(self, partition: Counts, sizes: Counts) -> tuple[Counts, Counts]:
        """The first task of each, and the one after the last; none of one that is used up."""
        share = self.shares(partition)
        return np.minimum(self.number * share, sizes), np.minimum((self.number + 1) * share, sizes)


def n_tasks(tasks: TaskSet, _: int) -> int:
    """How many tasks a partition has."""
    return len(tasks)


def sum_part(tasks: TaskSet, number: int, h: Vector, which: Round, objective: Objective) -> Vector:
    """The sum of the meta-gradients at h of the tasks of a partition that a round takes."""
    first, last = which.bounds(np.array([number]), np.array([len(tasks)]))
    rows, total = tasks.rows(), np.zeros(h.size)
    work = get_inner("sgd").work(rows, objective, h.size, total[:0])
    sum_gradients(rows, objective, work, int(first[0]), int(last[0]), h, np.zeros(h.size), total)
    return total


def learn_rounds(
    held: Held,
    n_features: int,
    settings: RoundSettings,
    *,
    folder: Place | None = None,
    job: str = "",
    callback: Callable[[int, int], object] | None = None,
) -> BiasState:
    """Algorithm 2 with minibatches over partitions; resumes from the round saved in `folder`.

    Parameters
    ----------
    held : Held
        Loaded partitions.
    n_features : int
    settings : RoundSettings
    folder : Path or Remote, optional
        Where to save the state from time to time.
    job : str
        What the rounds are about: a saved state is used only by the same job.
    callback : function of two numbers, optional
        Called after every round with the tasks done and the tasks there are.
    """
    objective = get_loss(settings.loss).regularised(settings.reg)
    rate = check_number("step", settings.step, at_least=0.0)
    sizes = np.array(held.each(n_tasks), np.int64)
    batch = max(check_count("batch_size", settings.batch_size), len(sizes))
    identity = f"{job} {sizes.tolist()} {objective} {rate} {batch}".encode()
    saved = _SavedRound(folder, blake2b(identity, digest_size=12).hexdigest())
    state = saved.load() or start_bias(n_features)
    while True:
        which = Round(state.steps, batch, len(sizes))
        first, last = which.bounds(np.arange(len(sizes)), sizes)
        count = int((last - first).sum())
        if count == 0:
            break
        gradient = held.sum(sum_part, state.last, which, objective)
        h = state.last - rate / count * gradient
        state = BiasState(h, state.total + h, state.steps + 1)
        if not np.isfinite(h).all():
            raise ValueError(f"step: the bias grew beyond all numbers with step {rate:g}")
        if state.steps % SAVE_EVERY == 0:
            saved.save(state)
        if callback is not None:
            callback(int(last.sum()), int(sizes.sum()))
    saved.save(state)
    return state


class _SavedRound:
    """The last saved round, in a file: all of it is there, or all of the one before."""

    def __init__(self, folder: Place | None, job: str) -> None:
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
        content = BytesIO(self.path.read_bytes())
        try:
            with np.load(content, allow_pickle=False) as file:
                if str(file["job"]) == self.job:
                    return BiasState(file["last"], file["total"], int(file["steps"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ParquetError(f"{self.path}: is damaged ({error}); remove it") from None
        raise ParquetError(
            f"{self.path}: belongs to another job; remove it, or give another folder"
        )
