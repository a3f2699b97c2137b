r"""The shapes a prior's covariance may have, and the step that raises the likelihood in each.

With :math:`\Sigma = RR^\top`, in units of R, a task has gone :math:`u = R^{-1}(w - h)` from its
start, and its rows have told :math:`P = I - R^{-1}VR^{-\top}` of it. Expectation-maximisation
changes :math:`\Sigma` by the mean of :math:`uu^\top - P` and h by the mean of u: hardly at all
where rows tell little, or a variance is nearly 0. Two steps from the same sums are longer there.
The starts move to where the likelihood is largest, all tasks being told as much,

.. math:: h \leftarrow h + R\bar P^{-1}\bar u ,

and bounding the determinant in the likelihood by its tangent, as Zhou, Hu, Zhou and Lange (2019)
do for variance components, gives

.. math:: \Sigma \leftarrow RMR^\top, \qquad M \bar P M = \overline{(u-\bar u)(u-\bar u)^\top} ,

M being the geometric mean of :math:`\bar P^{-1}` and the right side; for one variance a factor
:math:`\sqrt{\overline{u^2}/\bar p}`. Shrinking adds tasks that were told whole and are spread as a
diagonal covariance D.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._checks import Vector
from headstart.posterior import packed, unpacked

Matrix = NDArray[np.float64]

FLOOR = 1e-8  # of a variance, as a share of the largest and of what rows can tell
EMPTY = 1e-12  # told of a direction in which there are no rows
ROUNDING = 1e-10  # of eigenvalues, as a share of the largest


class Spread(NamedTuple):
    """A covariance: its diagonal, all of it if there is more, log-determinant, eigenvectors."""

    variances: Vector
    covariance: Matrix
    log_det: float
    Q: Matrix
    values: Vector


class Diagonal:
    """Independent weights, each with its variance, shrunk to a common one; or all with the same.

    Coordinates are the logarithms of the variances. Parameters are as in `Full`.
    """

    def __init__(
        self, shrink: float = 0.0, target: Vector | None = None, *, same: bool = False
    ) -> None:
        self.shrink, self.target = shrink, np.zeros(1) if target is None else target
        self.same = same

    def coordinates(self, variances: Vector) -> Vector:
        """Of a covariance with these variances."""
        return np.log(variances)

    def covariance(self, coordinates: Vector, least: float) -> Spread:
        """The covariance there, no variance being much smaller than `least` and the largest."""
        variances = _floored(coordinates, least)
        none = np.empty((0, 0))
        return Spread(variances, none, float(np.log(variances).sum()), none, variances)

    def precision(self, spread: Spread) -> Vector:
        """The inverse, packed."""
        return packed(np.diag(1.0 / spread.variances))

    def inward(self, spread: Spread, V: Vector, F: Matrix) -> tuple[Vector, Matrix]:
        """A sum of covariances and one of vectors, in units of R."""
        return V / spread.variances, F / np.sqrt(spread.variances)[:, None]

    def told(self, V: Vector) -> Vector:
        """P, from V in units of R."""
        return np.asarray(np.maximum(1.0 - V, 0.0) + EMPTY)

    def trace(self, P: Vector) -> float:
        """The sum of the diagonal."""
        return float(P.sum())

    def outward(self, spread: Spread, told: Vector, moved: Matrix) -> Matrix:
        """How far starts move that in units of R would by themselves go `moved`."""
        return np.asarray(moved * (np.sqrt(spread.variances) / told)[:, None])

    def norm(self, told: Vector, moved: Matrix) -> float:
        """About what that move gains, for each task."""
        return 0.5 * float((moved**2 / told[:, None]).sum())

    def outer(self, a: Matrix, b: Matrix) -> Vector:
        """``a b^T + b a^T``, as much of it as there is in a sum of covariances."""
        return np.asarray(2.0 * np.einsum("ks,ks->k", a, b))

    def step(self, spread: Spread, told: Vector, gone: Vector) -> Vector:
        """The coordinates after a step."""
        told, gone = self._shrunk(spread, told, gone)
        return np.asarray(np.log(spread.variances * np.sqrt(gone / told)))

    def _shrunk(self, spread: Spread, told: Vector, gone: Vector) -> tuple[Vector, Vector]:
        """With the added tasks; summed, if all variances are the same."""
        told = told + self.shrink
        gone = np.maximum(gone, 0.0) + self.shrink * self.target / spread.variances + EMPTY
        return (told.sum(), gone.sum()) if self.same else (told, gone)

    def plain_step(self, spread: Spread, told: Vector, gone: Vector) -> Vector:
        """The coordinates after a step of expectation-maximisation."""
        factor = 1.0 - told + gone
        factor = np.full(factor.size, factor.mean()) if self.same else factor
        C = spread.variances * np.maximum(factor, EMPTY) + self.shrink * self.target
        return np.asarray(np.log(C / (1.0 + self.shrink)))

    def promise(self, spread: Spread, told: Vector, gone: Vector) -> float:
        """About what a step of the covariance gains, for each task."""
        told, gone = self._shrunk(spread, told, gone)
        return 0.25 * float(np.sum((gone - told) ** 2 / told))

    def shrinking(self, spread: Spread) -> float:
        """What the added tasks add to the log-likelihood, for each task there is."""
        return -0.5 * self.shrink * float(spread.log_det + (self.target / spread.variances).sum())


class Full:
    """Any covariance, shrunk to a diagonal one. Coordinates are its logarithm as a matrix.

    Parameters
    ----------
    shrink : tasks that shrinking adds, over those there are
    target : the variances of these
    """

    def __init__(self, shrink: float = 0.0, target: Vector | None = None) -> None:
        self.shrink, self.target = shrink, np.zeros(1) if target is None else target

    def coordinates(self, variances: Vector) -> Vector:
        """Of a covariance with these variances."""
        return np.diag(np.log(variances)).ravel()

    def covariance(self, coordinates: Vector, least: float) -> Spread:
        """The covariance there, no eigenvalue being much smaller than `least` and the largest."""
        k = round(coordinates.size**0.5)
        logs, Q = np.linalg.eigh(coordinates.reshape(k, k))
        values = _floored(logs, least)
        whole = (Q * values) @ Q.T
        return Spread(np.diag(whole).copy(), whole, float(np.log(values).sum()), Q, values)

    def precision(self, spread: Spread) -> Vector:
        """The inverse, packed."""
        return packed((spread.Q / spread.values) @ spread.Q.T)

    def inward(self, spread: Spread, V: Vector, F: Matrix) -> tuple[Matrix, Matrix]:
        """A sum of covariances and one of vectors, in units of R."""
        back = (spread.Q / np.sqrt(spread.values)).T
        return np.asarray(back @ unpacked(V) @ back.T), np.asarray(back @ F)

    def told(self, V: Matrix) -> Matrix:
        """P, from V in units of R."""
        return np.asarray((1.0 + EMPTY) * np.eye(len(V)) - V)

    def trace(self, P: Matrix) -> float:
        """The sum of the diagonal."""
        return float(np.trace(P))

    def outward(self, spread: Spread, told: Matrix, moved: Matrix) -> Matrix:
        """How far starts move that in units of R would by themselves go `moved`."""
        return np.asarray((spread.Q * np.sqrt(spread.values)) @ np.linalg.solve(told, moved))

    def norm(self, told: Matrix, moved: Matrix) -> float:
        """About what that move gains, for each task."""
        return 0.5 * float((moved * np.linalg.solve(told, moved)).sum())

    def outer(self, a: Matrix, b: Matrix) -> Matrix:
        """``a b^T + b a^T``."""
        return np.asarray(a @ b.T + b @ a.T)

    def step(self, spread: Spread, told: Matrix, gone: Matrix) -> Vector:
        """The coordinates after a step."""
        R = spread.Q * np.sqrt(spread.values)
        told, gone = self._shrunk(spread, told, gone)
        root, inverse = _power(told, 0.5), _power(told, -0.5)
        M = inverse @ _power(root @ gone @ root, 0.5) @ inverse
        return _logarithm(R @ M @ R.T).ravel()

    def _shrunk(self, spread: Spread, told: Matrix, gone: Matrix) -> tuple[Matrix, Matrix]:
        """With the added tasks."""
        back, eye = (spread.Q / np.sqrt(spread.values)).T, np.eye(len(told))
        more = self.shrink * (back * self.target) @ back.T
        return told + self.shrink * eye, gone + more + EMPTY * eye

    def promise(self, spread: Spread, told: Matrix, gone: Matrix) -> float:
        """About what a step of the covariance gains, for each task."""
        told, gone = self._shrunk(spread, told, gone)
        return 0.25 * float(np.trace((gone - told) @ np.linalg.solve(told, gone - told)))

    def plain_step(self, spread: Spread, told: Matrix, gone: Matrix) -> Vector:
        """The coordinates after a step of expectation-maximisation."""
        R, eye = spread.Q * np.sqrt(spread.values), np.eye(len(told))
        C = R @ (eye - told + gone) @ R.T + self.shrink * (eye * self.target)
        return _logarithm(C / (1.0 + self.shrink)).ravel()

    def shrinking(self, spread: Spread) -> float:
        """What the added tasks add to the log-likelihood, for each task there is."""
        inverse = (spread.Q**2 / spread.values).sum(axis=1)  # the diagonal of the precision
        return -0.5 * self.shrink * float(spread.log_det + (inverse * self.target).sum())


Shape = Diagonal | Full


def _floored(logarithms: Vector, least: float) -> Vector:
    values = np.exp(np.clip(logarithms, -600.0, 600.0))
    return np.asarray(np.maximum(values, FLOOR * max(values.max(), least)))


def _logarithm(S: Matrix) -> Matrix:
    values, Q = np.linalg.eigh(S)
    return np.asarray((Q * np.log(np.maximum(values, 1e-300))) @ Q.T)


def _power(S: Matrix, power: float) -> Matrix:
    """A power of a symmetric matrix whose eigenvalues, but for rounding, are positive."""
    values, Q = np.linalg.eigh(S)
    return np.asarray((Q * np.maximum(values, ROUNDING * values[-1]) ** power) @ Q.T)
