r"""The shapes a prior's covariance may have, and the step that raises the likelihood in each.

With :math:`\Sigma = RR^\top`, in units of R, a task has gone :math:`u = R^{-1}(w - h)` from its
start, and the information of its rows about u is :math:`P = I - R^{-1}VR^{-\top}`.
Expectation-maximisation changes :math:`\Sigma` by the mean of :math:`uu^\top - P` and h by the mean
of u: hardly at all where rows tell little, or a variance is nearly 0. Two steps from the same sums
are longer there.
The starts move to where the likelihood is largest, all tasks having as much information,

.. math:: h \leftarrow h + R\bar P^{-1}\bar u ,

and bounding the determinant in the likelihood by its tangent, as Zhou, Hu, Zhou and Lange (2019)
do for variance components, gives

.. math:: \Sigma \leftarrow RMR^\top, \qquad M \bar P M = \overline{(u-\bar u)(u-\bar u)^\top} ,

M being the geometric mean of :math:`\bar P^{-1}` and the right side; for one variance a factor
:math:`\sqrt{\overline{u^2}/\bar p}`. Shrinking adds tasks whose weights are
known exactly and are spread as a diagonal covariance D.

A weight that all tasks share keeps the least variance there may be. Its start still moves, since
steps are in units of R.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart.inner.posterior import packed, unpacked

Matrix = NDArray[np.float64]

EMPTY = 1e-12  # info of a direction in which there are no rows
ROUNDING = 1e-10  # of eigenvalues, as a share of the largest


class Factored(NamedTuple):
    """A covariance: its diagonal, all of it if there is more, log-determinant, eigenvectors."""

    variances: Vector
    covariance: Matrix
    log_det: float
    Q: Matrix
    values: Vector


class Diagonal:
    """Independent weights, each with its variance, shrunk to a common one; or all with the same.

    With `level` the last has one of its own even so. Coordinates are the logarithms of the
    variances. Other parameters are as in `Full`.
    """

    def __init__(
        self,
        shrink: float = 0.0,
        target: Vector | None = None,
        shared: int | None = None,
        *,
        same: bool = False,
        level: bool = False,
    ) -> None:
        self.shrink, self.target = shrink, np.zeros(1) if target is None else target
        self.shared, self.same, self.level = shared, same, level

    def _summed(self, values: Vector) -> Vector:
        """Sums over the weights that have the same variance."""
        if not self.same:
            return values
        return np.add.reduceat(values, [0, values.size - 1] if self.level else [0])

    def _for_each(self, values: Vector, k: int) -> Vector:
        """A value for each of them as one for each weight."""
        if not self.same:
            return values
        return np.repeat(values, [k - 1, 1] if self.level else [k])

    def nearest(self, variances: Vector) -> Vector:
        """Variances of this shape, of any: the means of those that are to be the same."""
        means = self._summed(variances) / self._summed(np.ones(variances.size))
        return self._for_each(means, variances.size)

    def coordinates(self, variances: Vector, whole: Matrix) -> Vector:  # noqa: ARG002
        """Of a covariance with these variances, and no more than that."""
        return np.log(variances)

    def covariance(self, coordinates: Vector, least: float, most: float) -> Factored:
        """The covariance there, no variance being above `most` or below `least`."""
        variances = _limited(coordinates, least, most)
        if self.shared is not None:
            variances[self.shared] = least
        none = np.empty((0, 0))
        return Factored(variances, none, float(np.log(variances).sum()), none, variances)

    def precision(self, sigma: Factored) -> Vector:  # noqa: ARG002
        """Nothing: the variances say it."""
        return np.empty(0)

    def inward(self, sigma: Factored, V: Vector, F: Matrix) -> tuple[Vector, Matrix]:
        """A sum of covariances and one of vectors, in units of R."""
        return V / sigma.variances, F / np.sqrt(sigma.variances)[:, None]

    def information(self, V: Vector) -> Vector:
        """P, from V in units of R."""
        return np.asarray(np.maximum(1.0 - V, 0.0) + EMPTY)

    def trace(self, P: Vector) -> float:
        """The sum of the diagonal."""
        return float(P.sum())

    def inner(self, sigma: Factored, effects: Matrix) -> Matrix:
        """``R^T`` times the starts: their pull to 0, in units of R."""
        return np.asarray(np.sqrt(sigma.variances)[:, None] * effects)

    def solved(self, sigma: Factored, info: Vector, moved: Matrix, ridge: Vector) -> Matrix:
        """How far starts move that would go `moved`, if rows told all and nothing pulled at them.

        Like `moved` in units of R.
        """
        return np.asarray(moved / (info + ridge * sigma.variances)[:, None])

    def outward(self, sigma: Factored, moved: Matrix) -> Matrix:
        """R times that."""
        return np.asarray(np.sqrt(sigma.variances)[:, None] * moved)

    def norm(self, info: Vector, moved: Matrix) -> float:
        """About what that move gains, for each task."""
        return 0.5 * float((moved**2 / info[:, None]).sum())

    def outer(self, a: Matrix, b: Matrix) -> Vector:
        """``a b^T + b a^T``, as much of it as there is in a sum of covariances."""
        return np.asarray(2.0 * np.einsum("ks,ks->k", a, b))

    def step(self, sigma: Factored, info: Vector, gone: Vector) -> Vector:
        """The coordinates after a step."""
        info, gone = self._shrunk(sigma, info, gone)
        factor = self._for_each(np.sqrt(gone / info), sigma.variances.size)
        return np.asarray(np.log(sigma.variances * factor))

    def _shrunk(self, sigma: Factored, info: Vector, gone: Vector) -> tuple[Vector, Vector]:
        """With the added tasks; summed where variances are the same."""
        info = info + self.shrink
        gone = np.maximum(gone, 0.0) + self.shrink * self.target / sigma.variances + EMPTY
        return self._summed(info), self._summed(gone)

    def plain_step(self, sigma: Factored, info: Vector, gone: Vector) -> Vector:
        """The coordinates after a step of expectation-maximisation."""
        factor, k = 1.0 - info + gone, gone.size
        factor = self._for_each(self._summed(factor) / self._summed(np.ones(k)), k)
        C = sigma.variances * np.maximum(factor, EMPTY) + self.shrink * self.target
        return np.asarray(np.log(C / (1.0 + self.shrink)))

    def promise(self, sigma: Factored, info: Vector, gone: Vector) -> float:
        """About what a step of the covariance gains, for each task."""
        info, gone = self._shrunk(sigma, info, gone)
        return 0.25 * float(np.sum((gone - info) ** 2 / info))

    def shrinking(self, sigma: Factored) -> float:
        """What the added tasks add to the log-likelihood, for each task there is."""
        return -0.5 * self.shrink * float(sigma.log_det + (self.target / sigma.variances).sum())


class Full:
    """Any covariance, shrunk to a diagonal one. Coordinates are its logarithm as a matrix.

    Parameters
    ----------
    shrink : tasks that shrinking adds, over those there are
    target : the variances of these
    shared : number of the weight that all tasks share, if there is one
    """

    def __init__(
        self, shrink: float = 0.0, target: Vector | None = None, shared: int | None = None
    ) -> None:
        self.shrink, self.target = shrink, np.zeros(1) if target is None else target
        self.shared = shared

    def nearest(self, variances: Vector) -> Vector:
        """Variances of this shape, of any: these."""
        return variances

    def coordinates(self, variances: Vector, whole: Matrix) -> Vector:
        """Of a covariance with these variances; the whole of it may be empty, if it is diagonal."""
        return (_logarithm(whole) if whole.size else np.diag(np.log(variances))).ravel()

    def covariance(self, coordinates: Vector, least: float, most: float) -> Factored:
        """The covariance there, eigenvalues being limited as a diagonal one's variances are."""
        k = round(coordinates.size**0.5)
        logarithm = coordinates.reshape(k, k)
        if (j := self.shared) is not None:
            logarithm = logarithm.copy()
            logarithm[j], logarithm[:, j] = 0.0, 0.0
            logarithm[j, j] = np.log(least)
        logs, Q = np.linalg.eigh(logarithm)
        values = _limited(logs, least, most)
        whole = (Q * values) @ Q.T
        return Factored(np.diag(whole).copy(), whole, float(np.log(values).sum()), Q, values)

    def precision(self, sigma: Factored) -> Vector:
        """The inverse, packed."""
        return packed((sigma.Q / sigma.values) @ sigma.Q.T)

    def inward(self, sigma: Factored, V: Vector, F: Matrix) -> tuple[Matrix, Matrix]:
        """A sum of covariances and one of vectors, in units of R."""
        back = (sigma.Q / np.sqrt(sigma.values)).T
        return np.asarray(back @ unpacked(V) @ back.T), np.asarray(back @ F)

    def information(self, V: Matrix) -> Matrix:
        """P, from V in units of R."""
        return np.asarray((1.0 + EMPTY) * np.eye(len(V)) - V)

    def trace(self, P: Matrix) -> float:
        """The sum of the diagonal."""
        return float(np.trace(P))

    def inner(self, sigma: Factored, effects: Matrix) -> Matrix:
        """``R^T`` times the starts: their pull to 0, in units of R."""
        return np.asarray((sigma.Q * np.sqrt(sigma.values)).T @ effects)

    def solved(self, sigma: Factored, info: Matrix, moved: Matrix, ridge: Vector) -> Matrix:
        """How far starts move that would go `moved`, if rows told all and nothing pulled at them.

        Like `moved` in units of R.
        """
        R = sigma.Q * np.sqrt(sigma.values)
        return np.asarray(np.linalg.solve(info + (R.T * ridge) @ R, moved))

    def outward(self, sigma: Factored, moved: Matrix) -> Matrix:
        """R times that."""
        return np.asarray((sigma.Q * np.sqrt(sigma.values)) @ moved)

    def norm(self, info: Matrix, moved: Matrix) -> float:
        """About what that move gains, for each task."""
        return 0.5 * float((moved * np.linalg.solve(info, moved)).sum())

    def outer(self, a: Matrix, b: Matrix) -> Matrix:
        """``a b^T + b a^T``."""
        return np.asarray(a @ b.T + b @ a.T)

    def step(self, sigma: Factored, info: Matrix, gone: Matrix) -> Vector:
        """The coordinates after a step."""
        R = sigma.Q * np.sqrt(sigma.values)
        info, gone = self._shrunk(sigma, info, gone)
        root, inverse = _power(info, 0.5), _power(info, -0.5)
        M = inverse @ _power(root @ gone @ root, 0.5) @ inverse
        return _logarithm(R @ M @ R.T).ravel()

    def _shrunk(self, sigma: Factored, info: Matrix, gone: Matrix) -> tuple[Matrix, Matrix]:
        """With the added tasks."""
        back, eye = (sigma.Q / np.sqrt(sigma.values)).T, np.eye(len(info))
        more = self.shrink * (back * self.target) @ back.T
        return info + self.shrink * eye, gone + more + EMPTY * eye

    def promise(self, sigma: Factored, info: Matrix, gone: Matrix) -> float:
        """About what a step of the covariance gains, for each task."""
        info, gone = self._shrunk(sigma, info, gone)
        return 0.25 * float(np.trace((gone - info) @ np.linalg.solve(info, gone - info)))

    def plain_step(self, sigma: Factored, info: Matrix, gone: Matrix) -> Vector:
        """The coordinates after a step of expectation-maximisation."""
        R, eye = sigma.Q * np.sqrt(sigma.values), np.eye(len(info))
        C = R @ (eye - info + gone) @ R.T + self.shrink * (eye * self.target)
        return _logarithm(C / (1.0 + self.shrink)).ravel()

    def shrinking(self, sigma: Factored) -> float:
        """What the added tasks add to the log-likelihood, for each task there is."""
        inverse = (sigma.Q**2 / sigma.values).sum(axis=1)  # the diagonal of the precision
        return -0.5 * self.shrink * float(sigma.log_det + (inverse * self.target).sum())


Shape = Diagonal | Full


def _limited(logarithms: Vector, least: float, most: float) -> Vector:
    return np.clip(np.exp(np.clip(logarithms, -600.0, 600.0)), least, most)


def _logarithm(S: Matrix) -> Matrix:
    values, Q = np.linalg.eigh(S)
    return np.asarray((Q * np.log(np.maximum(values, 1e-300))) @ Q.T)


def _power(S: Matrix, power: float) -> Matrix:
    """A power of a symmetric matrix whose eigenvalues, but for rounding, are positive."""
    values, Q = np.linalg.eigh(S)
    return np.asarray((Q * np.maximum(values, ROUNDING * values[-1]) ** power) @ Q.T)
