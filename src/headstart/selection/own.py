"""Candidates with a within-task algorithm of one's own: one after another, without a kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart.inner.adapt import query_losses
from headstart.inner.own import OwnInner
from headstart.losses import Objective
from headstart.selection.grid import Candidates
from headstart.tasks import TaskSet


def learn_own(
    tasks: TaskSet, t: int, candidates: Candidates, teacher: OwnInner, drawn: NDArray[np.int64]
) -> None:
    """Update every candidate's bias with task t; a bias that is not finite is left alone.

    `drawn` has a column of row numbers for each candidate, or is empty: each row in turn.
    """
    H, task = candidates.H, tasks.subset([t])
    for q in range(H.shape[1]):
        visited = task
        if drawn.size > 0:
            rows = drawn[:, q]
            visited = TaskSet.of(task.X[rows], task.y[rows], task.offsets, task.ids)
        if np.isfinite(H[:, q]).all():
            g = teacher.gradient(visited, 0, H[:, q], float(candidates.lams[q]))
            H[:, q] -= candidates.gammas[q] * g


def own_losses(pair: tuple[TaskSet, TaskSet], candidates: Candidates, examiner: OwnInner) -> Vector:
    """Loss of every candidate, the mean over tasks; infinite where numbers are not finite."""
    out = np.full(candidates.lams.size, np.inf)
    for q in range(out.size):
        h, objective = candidates.H[:, q], Objective(float(candidates.lams[q]), candidates.form)
        if not np.isfinite(h).all():
            continue
        W = examiner.weights(pair[0], h, objective)
        if np.isfinite(W).all():
            mean = float(query_losses(pair[1], candidates.form, W).mean())
            out[q] = mean if mean < np.inf else np.inf
    return out
