"""What may be given as tasks: a set, a list of pairs, or a dataset that is read in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from headstart.tasks.sparse import Csr
from headstart.tasks.task_set import TaskSet


@runtime_checkable
class TaskStream(Protocol):
    """Tasks that are not all in memory at once, such as `headstart.parquet.ParquetRows`."""

    @property
    def n_features(self) -> int:
        """Number of columns of X."""

    def task_sets(self, multiple: int = 1, *, reuse: bool = False) -> Iterator[TaskSet]:
        """The tasks in order, as many in each set but the last as a multiple of `multiple`.

        With `reuse` the memory of a set may be that of the one after the next.
        """


Tasks = TaskSet | Iterable[tuple[ArrayLike | Csr, ArrayLike]]


def as_task_set(tasks: Tasks) -> TaskSet:
    """`tasks` itself, or the task set of a list of pairs."""
    if isinstance(tasks, TaskSet):
        return tasks
    if isinstance(tasks, Iterable) and getattr(tasks, "ndim", 1) > 0:
        return TaskSet.from_list(tasks)
    raise TypeError(
        f"tasks: expected a TaskSet or a list of (X, y) pairs, found {type(tasks).__name__}"
    )


def check_same_tasks(shots: TaskSet, queries: TaskSet, name: str = "queries") -> None:
    """Shots and queries must belong to the same tasks in the same order."""
    if len(shots) != len(queries) or not np.array_equal(shots.ids, queries.ids):
        raise ValueError(
            f"{name}: expected the tasks of shots in the same order ({len(shots)} tasks), "
            f"found {len(queries)} tasks" + " with other ids" * (len(shots) == len(queries))
        )
    if shots.n_features != queries.n_features:
        raise ValueError(
            f"{name}: expected {shots.n_features} features as in shots, found {queries.n_features}"
        )
