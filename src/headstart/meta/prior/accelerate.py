"""A fixed point found in fewer steps than by going there: Anderson's mixing, safeguarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from headstart._core.checks import Vector

MEMORY = 8  # steps that are mixed
RIDGE = 1e-8  # of the least squares among them
FURTHEST = 20.0  # a mixture may be from the image, in any coordinate


class Step(NamedTuple):
    """A point, where the map takes it, and how good it is."""

    point: Vector
    image: Vector
    sure: Callable[[], Vector] | None  # another image, nearer, and surely no worse than the point
    value: float  # of the point
    left: float  # what there may be left to gain, where values do not tell
    state: Any  # what else the map left behind, for the next time it is taken


def climb(
    take: Callable[[Vector, Any], Step], start: Vector, state: Any, tol: float, max_iter: int
) -> tuple[Step, int, bool]:
    """Repeat a map until it hardly makes points better.

    Of the last points and their images, that mixture is taken whose step would be the shortest.
    If nothing is gained by it, the image of the last point is, and then its sure image, if there
    is one; and after that as many images without a mixture as mixtures have failed in turn.
    Returns the last step, how often the map was taken, and whether two steps in turn gained less
    than `tol`, or, where values do not tell, there is hardly more to gain after all of them.
    """
    best, done, small = take(start, state), 1, 0
    points, images = [best.point], [best.image]
    failed = plain = 0
    while done < max_iter and small < 2:
        mixed = None if plain or best.sure is None else _mixture(points, images)
        plain = max(plain - 1, 0)
        step, done = take(best.image if mixed is None else mixed, best.state), done + 1
        gain = step.value - best.value
        if mixed is not None:
            failed = 0 if gain >= 0.0 else failed + 1
            if failed:
                points, images, plain = [], [], failed
                step, done = take(best.image, best.state), done + 1
                gain = step.value - best.value
        if best.sure is not None and not gain >= 0.0:
            step, done = take(best.sure(), best.state), done + 1
            gain = step.value - best.value
        small = small + 1 if max(abs(gain), step.left) < tol else 0
        best = step
        points, images = [*points, best.point][-MEMORY:], [*images, best.image][-MEMORY:]
    return best, done, small == 2 or 0.0 < best.left < 10.0 * tol


def _mixture(points: list[Vector], images: list[Vector]) -> Vector | None:
    """The image that belongs to the shortest step, as far as the last steps tell."""
    if len(points) < 2:
        return None
    steps = np.array(images) - np.array(points)
    differences, moves = np.diff(steps, axis=0), np.diff(np.array(images), axis=0)
    gram = differences @ differences.T
    size = float(np.trace(gram))
    if not np.isfinite(size) or size == 0.0:
        return None
    gram[np.diag_indices_from(gram)] += RIDGE * size
    further = -np.linalg.solve(gram, differences @ steps[-1]) @ moves
    if not np.isfinite(further).all():
        return None
    return np.asarray(
        images[-1] + further * min(1.0, FURTHEST / max(np.abs(further).max(), 1e-300))
    )
