"""What is said of tasks whose gap stayed above its target."""

from __future__ import annotations

import math

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from headstart._core.answers import quietly
from headstart._core.checks import FloatArray, Vector, warn_user


def warn_unsolved(where: str, gap: float, target: float, remedy: str = "") -> None:
    """Warn of a gap above its target, and say what to do."""
    remedy += (
        "scale the columns of X to similar sizes, or use a larger reg"
        if gap < math.inf
        else "numbers overflow: scale the columns of X down, or use a larger reg"
    )
    warn_user(
        f"{where}: duality gap {gap:.1e} is above tol * min(1, reg) = {target:.1e}; {remedy}",
        ConvergenceWarning,
    )


class Unsolved:
    """Counts the tasks that were not solved, over many calls, to warn of them once."""

    def __init__(self) -> None:
        self._count, self._total = 0, 0
        self._excess = 0.0  # of the task farthest from its target, over that
        self._gap, self._target = 0.0, 1.0

    def add(self, gaps: FloatArray, targets: float | Vector) -> None:
        """Take in more tasks: their gaps, or 0 where one was solved, and their targets."""
        self._total += gaps.size
        if not gaps.any():
            return
        self._count += int(np.count_nonzero(gaps))
        wanted = np.broadcast_to(targets, gaps.shape)
        with quietly():  # a target may be tiny
            excess = gaps / wanted
        worst = np.unravel_index(np.argmax(excess), gaps.shape)
        if excess[worst] > self._excess:
            self._excess = float(excess[worst])
            self._gap, self._target = float(gaps[worst]), float(wanted[worst])

    def warn(self) -> None:
        """Warn if tasks were left unsolved."""
        if self._count:
            where = f"{self._count} of {self._total} tasks not solved"
            warn_unsolved(where, self._gap, self._target)


def warn_of_gaps(gaps: Vector, target: float) -> None:
    """Warn if tasks were left unsolved: `gaps` is 0 where one was solved."""
    unsolved = Unsolved()
    unsolved.add(gaps, target)
    unsolved.warn()
