"""What a prior is learned from: of many tasks, those with the smallest hashes of their ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.inner.posterior.evidence import Evidence
from headstart.inner.posterior.passes import AnyEvidence
from headstart.meta.prior.task_sums import TaskSums
from headstart.tasks.columns import Columns

Counts = NDArray[np.int64]

MANY_TASKS = 1 << 14  # tasks above which learning begins with a quarter of so many


class Shown(NamedTuple):
    """What is learned from.

    Attributes
    ----------
    e : what tasks have shown, in standard units
    columns : these units
    side_units : and those of what is known of tasks, if anything is
    few : the tasks to begin with, if there are many; or what they have shown, where tasks are
        elsewhere
    """

    e: AnyEvidence | TaskSums
    columns: Columns
    side_units: Columns | None
    few: Counts | Evidence | None


def sampled(
    tasks: Counts, hashes: NDArray[np.uint64], most: int | None
) -> tuple[Counts, Counts | None]:
    """Those of many tasks that are learned from, and which of them first."""
    if most is not None and len(tasks) > most:
        chosen = smallest(hashes, most)
        tasks, hashes = tasks[chosen], hashes[chosen]
    return tasks, smallest(hashes, MANY_TASKS // 4) if len(tasks) > MANY_TASKS else None


def smallest(hashes: NDArray[np.uint64], most: int) -> Counts:
    """Places of the smallest hashes, in their order."""
    return np.sort(np.argpartition(hashes, most - 1)[:most])
