"""What the tasks of a task set have shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart.inner.posterior.gather import any_evidence
from headstart.losses import Loss
from headstart.meta.prior.posterior import row_weights
from headstart.meta.prior.sample import MANY_TASKS, Shown, sampled
from headstart.meta.prior.units import check_side
from headstart.tasks import TaskSet
from headstart.tasks.columns import Columns, units_of
from headstart.tasks.ids import hash_ids


def task_evidence(
    tasks: TaskSet,
    loss: Loss,
    intercept: bool = False,
    most: int | None = None,
    side: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    hashes: NDArray[np.uint64] | None = None,
) -> Shown:
    """What a task set shows; `hashes` of its ids, if they are known."""
    loss.check_labels(tasks.y, tasks.place)
    weight = row_weights(sample_weight, len(tasks.y))
    if not weight.any():
        raise ValueError("sample_weight: expected a number > 0, found none")
    known = None if side is None else check_side(side, len(tasks))
    chosen, few = np.arange(len(tasks)), None
    if len(tasks) > min(MANY_TASKS, most or MANY_TASKS):
        chosen, few = sampled(chosen, hash_ids(tasks.ids) if hashes is None else hashes, most)
    if len(chosen) < len(tasks):
        weight = weight[np.repeat(np.isin(np.arange(len(tasks)), chosen), tasks.sizes)]
        tasks, known = tasks.subset(chosen), None if known is None else known[chosen]
    X, y, offsets = tasks.inputs, tasks.y, tasks.offsets
    if not weight.all():
        used = weight > 0.0
        counts = np.add.reduceat(used, offsets[:-1])
        X, y, weight = X[used], y[used], weight[used]
        offsets = np.append(0, np.cumsum(counts))
    units = None
    if known is not None:
        units = Columns.of(known, np.zeros(len(known)), intercept=True)
        known = units.rows(known)[:, :-1]
    columns = units_of(X, y, intercept=intercept, margin=loss.binary, weight=weight)
    e = any_evidence(X, y, offsets, columns, loss, known, weight)
    return Shown(e, columns, units, few)
