r"""The shapes a prior's covariance may have, and the step that raises the likelihood in each.

With :math:`\Sigma = RR^\top`, in units of R, a task has gone :math:`u = R^{-1}\delta` from its
start, and its rows have told :math:`P = I - R^{-1}VR^{-\top}` of it. Expectation–maximisation
sets :math:`\Sigma` to the mean of :math:`\delta\delta^\top + V`, a change by the mean of
:math:`uu^\top - P`: where rows tell little, or a variance is nearly 0, hardly any. Bounding the
determinant by its tangent instead (Zhou, Hu, Zhou, Lange, 2019) gives a step that no likelihood
falls by either and that is as long there as elsewhere,

.. math:: \Sigma \leftarrow RMR^\top, \qquad M \bar P M = \overline{uu^\top} ,

M being the geometric mean of :math:`\bar P^{-1}` and :math:`\overline{uu^\top}`; for one variance
a factor :math:`\sqrt{\overline{u^2}/\bar p}`. Shrinking adds :math:`\nu` tasks that were seen
whole, and spread as the diagonal of :math:`\Sigma`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart.posterior import packed, unpacked

Matrix = NDArray[np.float64]

FLOOR = 1e-8  # of a variance, as a share of the largest and of what rows can tell
EMPTY = 1e-12  # what rows have told of a direction about which they tell nothing


def eigh_power(S: Matrix, power: float) -> Matrix:
    """A power of a symmetric matrix with no negative eigenvalue."""
    values, Q = np.linalg.eigh(S)
    return np.asarray((Q * np.maximum(values, 1e-300) ** power) @ Q.T)


class Diagonal:
    """Independent weights, each with its variance, or all with the same one.

    Coordinates are the logarithms of the variances.
    """

    def __init__(self, width: int, *, same: bool) -> None:
        self.width, self.same = width, same

    def coordinates(self, variances: Vector) -> Vector:
        """Of a covariance with these variances."""
        return np.log(variances)

    def covariance(self, coordinates: Vector, least: float) -> Spread:
        """Variances, and what follows from them."""
        variances = np.exp(np.clip(coordinates, -600.0, 600.0))
        variances = np.maximum(variances, FLOOR * max(variances.max(), least))
        whole = np.empty((0, 0))
        return Spread(variances, whole, np.log(variances).sum())

    def precision(self, spread: Spread) -> Vector:
        """The inverse, packed."""
        return packed(np.diag(1.0 / spread.variances))

    def told(self, spread: Spread, V: Vector, D: Vector) -> tuple[float, float]:
        """Traces of the precision with the sums of V and of D."""
        return float((V / spread.variances).sum()), float((D / spread.variances).sum())

    def step(self, spread: Spread, V: Vector, D: Vector, shrink: float) -> Vector:
        """The coordinates after a step, from the means of V and of D."""
        del shrink  # a diagonal is what is shrunk to
        told, gone = 1.0 - V / spread.variances + EMPTY, D / spread.variances + EMPTY
        factor = np.sqrt(gone.sum() / told.sum()) if self.same else np.sqrt(gone / told)
        return np.asarray(np.log(spread.variances * factor))

    def centred(self, D: Vector, F: Matrix, effects: Matrix, S: Matrix) -> Vector:
        """The mean of D about starts moved by `effects`."""
        moved = effects @ S
        return np.asarray(D + np.einsum("ks,ks->k", effects, moved - 2.0 * F))

    def penalty(self, spread: Spread, at: Spread) -> float:
        """Shrinking has none."""
        del spread, at
        return 0.0


class Full:
    """Any covariance. Coordinates are its logarithm as a matrix."""

    def __init__(self, width: int) -> None:
        self.width = width

    def coordinates(self, variances: Vector) -> Vector:
        """Of a covariance with these variances."""
        return np.diag(np.log(variances)).ravel()

    def covariance(self, coordinates: Vector, least: float) -> Spread:
        """The matrix, and what follows from it."""
        values, Q = np.linalg.eigh(coordinates.reshape(self.width, self.width))
        values = np.exp(np.clip(values, -600.0, 600.0))
        values = np.maximum(values, FLOOR * max(values[-1], least))
        whole = (Q * values) @ Q.T
        return Spread(np.diag(whole).copy(), whole, np.log(values).sum(), Q, values)

    def precision(self, spread: Spread) -> Vector:
        """The inverse, packed."""
        return packed((spread.Q / spread.values) @ spread.Q.T)

    def told(self, spread: Spread, V: Vector, D: Vector) -> tuple[float, float]:
        """Traces of the precision with the sums of V and of D."""
        weight = np.full(V.size, 2.0)
        i = np.arange(self.width)
        weight[i * (i + 3) // 2] = 1.0
        inverse = weight * self.precision(spread)
        return float(inverse @ V), float(inverse @ D)

    def step(self, spread: Spread, V: Vector, D: Vector, shrink: float) -> Vector:
        """The coordinates after a step, from the means of V and of D."""
        R, back = spread.Q * np.sqrt(spread.values), (spread.Q / np.sqrt(spread.values)).T
        eye = np.eye(self.width)
        told = (1.0 + shrink) * eye - back @ unpacked(V) @ back.T
        gone = back @ (unpacked(D) + shrink * np.diag(spread.variances)) @ back.T
        told, gone = told + EMPTY * eye, gone + EMPTY * eye
        root = eigh_power(told, 0.5)
        back_root = eigh_power(told, -0.5)
        M = back_root @ eigh_power(root @ gone @ root, 0.5) @ back_root
        values, Q = np.linalg.eigh(R @ M @ R.T)
        return np.asarray((Q * np.log(np.maximum(values, 1e-300))) @ Q.T).ravel()

    def centred(self, D: Vector, F: Matrix, effects: Matrix, S: Matrix) -> Vector:
        """The mean of D about starts moved by `effects`."""
        cross = effects @ F.T
        return D + packed(effects @ S @ effects.T - cross - cross.T)

    def penalty(self, spread: Spread, at: Spread) -> float:
        """What shrinking toward the diagonal of `at` adds to the likelihood, for one task."""
        inverse = (spread.Q / spread.values) @ spread.Q.T
        return -0.5 * float(spread.log_det + np.diag(inverse) @ at.variances)


class Spread(NamedTuple):
    """A covariance: its diagonal, all of it if there is more, log-determinant, eigenvectors."""

    variances: Vector
    covariance: Matrix
    log_det: float
    Q: Matrix = np.empty((0, 0))
    values: Vector = np.empty(0)


Shape = Diagonal | Full


def shape_of(metric: str, width: int) -> Shape:
    """The shape of that name."""
    return Full(width) if metric == "full" else Diagonal(width, same=metric == "isotropic")
