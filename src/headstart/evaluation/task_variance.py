"""How far the weights of tasks are apart: what decides whether sharing is worth it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from headstart._core.checks import FloatArray, Vector
from headstart.tasks import TaskSet


class TaskVariance(NamedTuple):
    r"""How far the tasks' weights lie from 0 and from their mean m.

    ``var_0`` and ``var_m`` estimate the paper's :math:`\mathrm{Var}_0` and
    :math:`\mathrm{Var}_m`, :math:`\mathrm{Var}_h^2 = \frac12 E\|w_\mu - h\|^2`; ``distance``
    estimates :math:`\|m\|`. ``surely_apart`` and ``surely_common`` say if the 95 % intervals
    of :math:`\mathrm{Var}_m^2` and of :math:`\|m\|^2`, by the jackknife over tasks, are clear
    of 0.
    """

    var_0: float
    var_m: float
    distance: float
    surely_apart: bool
    surely_common: bool


def estimate_task_variance(tasks: TaskSet) -> TaskVariance:
    r"""Estimate how far tasks' weights are apart, free of the noise in each task's own estimate.

    With C the mean of :math:`xx^\top`, each row's :math:`u = C^{-1}x(y - \langle x, w_0\rangle)`
    has the mean :math:`w_\mu - w_0`; products of different rows of one task have the mean
    :math:`\|w_\mu - w_0\|^2`, and of different tasks :math:`\|m - w_0\|^2`. The pooled least
    squares are taken for :math:`w_0`. The variance of fitted weights would be too large by their
    noise. Tasks of one row say nothing and are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.standard_normal((2000, 5, 3)), rng.normal(2.0, 0.5, (2000, 3))
    >>> noisy = np.einsum("tnd,td->tn", X, w) + rng.standard_normal((2000, 5))
    >>> found = estimate_task_variance(TaskSet.from_list(zip(X, noisy)))
    >>> print(round(found.var_m, 1), round(np.sqrt(3 * 0.5**2 / 2), 1))
    0.6 0.6
    """
    several = tasks.subset(tasks.sizes > 1) if np.any(tasks.sizes > 1) else tasks
    X, y, n, T = several.X, several.y, several.sizes, len(several)
    if T < 3 or n.max() < 2:
        raise ValueError("groups: expected at least 3 tasks of two rows or more, found fewer")
    C = X.T @ X / len(X)
    w0 = np.linalg.lstsq(X, y, rcond=None)[0]

    def unbiased(residuals: FloatArray) -> tuple[Vector, Vector]:
        """For each task the mean product of two of its rows' u, and the mean of its u."""
        U = np.linalg.lstsq(C, (X * residuals[:, None]).T, rcond=None)[0].T
        sums = np.add.reduceat(U, several.offsets[:-1])
        squares = np.add.reduceat(np.sum(U**2, axis=1), several.offsets[:-1])
        return (np.sum(sums**2, axis=1) - squares) / (n * (n - 1)), sums / n[:, None]

    own, means = unbiased(y - X @ w0)
    cross, cross_without = _cross_products(means)
    square_m = (float(own.mean()) - cross) / 2.0  # may be below 0, having no bias
    square_m_without = ((own.sum() - own) / (T - 1) - cross_without) / 2.0
    common, common_without = _cross_products(unbiased(y - np.median(y))[1])
    noise = float(np.sum(means.var(axis=0, ddof=1))) / T
    square_distance = max(float(np.sum((w0 + means.mean(axis=0)) ** 2)) - noise, 0.0)
    at_least_0 = max(square_m, 0.0)
    return TaskVariance(
        float(np.sqrt(at_least_0 + square_distance / 2.0)),
        float(np.sqrt(at_least_0)),
        float(np.sqrt(square_distance)),
        _is_positive(square_m, square_m_without),
        _is_positive(common, common_without),
    )


def _cross_products(means: Vector) -> tuple[float, Vector]:
    """Mean product of the vectors of two different tasks; and with each task left out."""
    T, total, norms = len(means), means.sum(axis=0), np.sum(means**2, axis=1)
    # the square of a sum is the sum of all products, of which those with itself are taken off
    with_all = np.sum(total**2) - norms.sum()
    without_one = np.sum((total - means) ** 2, axis=1) - (norms.sum() - norms)
    return float(with_all / (T * (T - 1))), without_one / ((T - 1) * (T - 2))


def _is_positive(estimate: float, without: Vector) -> bool:
    """Whether an estimate is surely above 0, by those with each task left out (jackknife)."""
    T = len(without)
    error = float(np.sqrt((T - 1) * np.var(without)))
    return bool(estimate > student.ppf(0.975, T - 1) * error)
