"""How far the tasks of a problem are apart: what decides whether sharing is worth it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from headstart._checks import FloatArray, Vector
from headstart.tasks import TaskSet


class Spread(NamedTuple):
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


def estimate_spread(tasks: TaskSet) -> Spread:
    r"""Estimate the spread of the tasks' weights, free of the noise in each task's own estimate.

    With C the mean of :math:`xx^\top`, each row's :math:`u = C^{-1}x(y - \langle x, w_0\rangle)`
    has the mean :math:`w_\mu - w_0`; products of different rows of one task have the mean
    :math:`\|w_\mu - w_0\|^2`, and of different tasks :math:`\|m - w_0\|^2`. The pooled least
    squares are taken for :math:`w_0`; a plug-in of fitted weights would count their noise as
    spread. Tasks of one row say nothing and are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.standard_normal((2000, 5, 3)), rng.normal(2.0, 0.5, (2000, 3))
    >>> noisy = np.einsum("tnd,td->tn", X, w) + rng.standard_normal((2000, 5))
    >>> spread = estimate_spread(TaskSet.from_list(zip(X, noisy)))
    >>> print(round(spread.var_m, 1), round(np.sqrt(3 * 0.5**2 / 2), 1))
    0.6 0.6
    """
    several = tasks.subset(tasks.sizes > 1) if np.any(tasks.sizes > 1) else tasks
    X, y, n, T = several.X, several.y, several.sizes, len(several)
    if T < 3 or n.max() < 2:
        raise ValueError("groups: expected at least 3 tasks of two rows or more, found fewer")
    C = X.T @ X / len(X)
    w0 = np.linalg.lstsq(X, y, rcond=None)[0]

    def unbiased(residuals: FloatArray) -> tuple[Vector, Vector]:
        """For each task the product of two of its rows' u, and the mean of its u."""
        U = np.linalg.lstsq(C, (X * residuals[:, None]).T, rcond=None)[0].T
        sums = np.add.reduceat(U, several.offsets[:-1])
        squares = np.add.reduceat(np.sum(U**2, axis=1), several.offsets[:-1])
        return (np.sum(sums**2, axis=1) - squares) / (n * (n - 1)), sums / n[:, None]

    own, means = unbiased(y - X @ w0)
    cross, without = _cross_products(means)
    variance = (float(own.mean()) - cross) / 2.0
    left = ((own.sum() - own) / (T - 1) - without) / 2.0
    raw, raw_without = _cross_products(unbiased(y - np.median(y))[1])
    noise = float(np.sum(means.var(axis=0, ddof=1))) / T
    far = max(float(np.sum((w0 + means.mean(axis=0)) ** 2)) - noise, 0.0)
    var_m = max(variance, 0.0)
    return Spread(
        float(np.sqrt(var_m + far / 2.0)),
        float(np.sqrt(var_m)),
        float(np.sqrt(far)),
        _is_positive(variance, left),
        _is_positive(raw, raw_without),
    )


def _cross_products(means: Vector) -> tuple[float, Vector]:
    """Mean product of the vectors of two different tasks; and with each task left out."""
    T, total, norms = len(means), means.sum(axis=0), np.sum(means**2, axis=1)
    whole = (np.sum(total**2) - norms.sum()) / (T * (T - 1))
    less = np.sum((total - means) ** 2, axis=1) - (norms.sum() - norms)
    return float(whole), less / ((T - 1) * (T - 2))


def _is_positive(estimate: float, without: Vector) -> bool:
    """Whether an estimate is surely above 0, by those with each task left out (jackknife)."""
    T = len(without)
    error = float(np.sqrt((T - 1) * np.var(without)))
    return bool(estimate > student.ppf(0.975, T - 1) * error)
