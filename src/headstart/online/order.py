"""Where tasks begin in a table, and the order that puts the rows of each together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]


def task_cuts(entity: Positions) -> Positions:
    """Where tasks lying together begin, and where the last ends; rows without an id are one each.

    Examples
    --------
    >>> print(task_cuts(np.array([0, 0, 1, -1, -1])))
    [0 2 3 4 5]
    """
    if len(entity) == 0:
        return np.zeros(1, np.int64)
    return np.flatnonzero(np.r_[True, (entity[1:] != entity[:-1]) | (entity[1:] < 0), True])


def task_order(entity: Positions, rng: np.random.Generator | None = None) -> Positions | None:
    """The order that puts rows of a task together; None if they lie in it.

    Tasks come by their first rows, or at random if there is an `rng`. Entities are numbered by
    their first rows.

    Examples
    --------
    >>> print(task_order(np.array([0, -1, 1, 0, 1])))
    [0 3 1 2 4]
    """
    heads = entity[np.flatnonzero(np.r_[True, entity[1:] != entity[:-1]][: entity.size])]
    if rng is None and np.count_nonzero(heads >= 0) == heads.max(initial=-1) + 1:
        return None  # a run for each
    newest = np.maximum.accumulate(entity)
    first = np.flatnonzero(entity > np.append(-1, newest[:-1]))
    appeared = np.where(entity >= 0, first[entity] if first.size else 0, np.arange(entity.size))
    if rng is not None:
        starts, task = np.unique(appeared, return_inverse=True)
        appeared = rng.permutation(starts.size)[task]
    if bool(np.all(appeared[1:] >= appeared[:-1])):
        return None
    return np.argsort(appeared, kind="stable")
