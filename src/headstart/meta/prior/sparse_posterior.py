r"""What is known of a task with sparse rows: the rows themselves, and one number for each.

With :math:`K = X\Sigma X^\top + b\,\mathrm{diag}(1/\omega)`, for a new row x and
:math:`g = X\Sigma x`,

.. math:: E\langle x, w\rangle = \langle x, h\rangle + g^\top K^{-1}(\tau - Xh), \qquad
          \mathrm{Var}\langle x, w\rangle = x^\top\Sigma x - g^\top K^{-1}g .
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, hstack

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, as_floats, as_labels, check_rows
from headstart.inner.posterior.passes import sparse_posteriors
from headstart.inner.posterior.sparse_evidence import SparseEvidence, sparse_evidence
from headstart.inner.start import Start
from headstart.losses import Loss
from headstart.losses.many import quadratics
from headstart.meta.prior.posterior import Known, Rows, row_weights
from headstart.tasks.columns import Columns
from headstart.tasks.sparse import Csr, as_sparse, is_sparse, kernel_view, stack

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparsePosterior(Known):
    """What is known of a task with sparse rows; `Prior.posterior` makes one.

    Attributes
    ----------
    weights : array of shape (k,)
        The mean of the task's weights, in the user's units, the intercept last if there is one.
    """

    weights: FloatArray
    rows: Rows = field(repr=False)
    start: Start = field(repr=False)
    X: Csr = field(repr=False)  # in the user's units
    y: FloatArray = field(repr=False)
    weight: Vector = field(repr=False)
    inverse: Matrix = field(repr=False)  # of K

    @classmethod
    def of(cls, rows: Rows, start: Start, X: Csr, y: FloatArray, weight: Vector) -> SparsePosterior:
        """The posterior after these rows."""
        columns, loss, noise = rows
        e = sparse_evidence(kernel_view(X), y, np.array([0, len(y)]), columns, None, weight)
        went, moments = sparse_posteriors(e, start, loss)
        mean = start.bias.copy()
        mean[e.columns] += went
        omega = np.ones(len(y))
        if not loss.is_squared:
            omega, _, _ = quadratics(loss.form, moments.mean, moments.variance, e.y)
        inside = standard(columns, X)
        K = (inside @ diags_array(start.variances) @ inside.T).toarray()
        with quietly():
            K += np.diag(noise / (weight * omega))
            found = columns.weights(mean).astype(X.dtype)
        check_answer((found, K), "X, y, prior")
        try:
            inverse = np.linalg.inv(K)
        except np.linalg.LinAlgError:
            raise ValueError(
                "X: expected rows of sizes nearer to 1, found some that lose all digits of others"
            ) from None
        return cls(found, rows, start, X, y, weight, inverse)

    def predict(self, X: Any) -> Vector:
        """The mean of the predictions ``<x, w>``."""
        inputs, d = self._inputs(X), self.X.shape[1]
        level = self.weights[d] if self.rows.columns.intercept else 0.0
        with quietly():
            return check_answer(np.asarray(inputs @ self.weights[:d] + level, np.float64), "X")

    def variance(self, X: Any) -> Vector:
        """The variance of a new label at each row, or of the prediction where labels are -1, +1."""
        columns, loss, noise = self.rows
        asked, variances = standard(columns, self._inputs(X)), self.start.variances
        with quietly():
            g = (asked @ diags_array(variances) @ standard(columns, self.X).T).toarray()
            before = asked.power(2) @ variances
            known = np.maximum(before - np.einsum("ij,jk,ik->i", g, self.inverse, g), 0.0)
        found = np.asarray(known if loss.binary else known + loss.noise_variance(noise))
        return check_answer(found, "X")

    def update(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SparsePosterior:
        """What is known after these rows too; this one is left as it is."""
        inputs, labels, weight = checked_rows(self.rows, X, y, sample_weight)
        return SparsePosterior.of(
            self.rows,
            self.start,
            csr_array(stack([self.X, inputs])),
            np.append(self.y, labels),
            np.append(self.weight, weight),
        )

    def _inputs(self, X: Any) -> Csr:
        inputs = as_sparse("X", X if is_sparse(X) else csr_array(as_floats("X", X, 2)))
        self.rows.check_width(inputs.shape[1])
        return inputs


def sparse_weights(e: SparseEvidence, start: Start, loss: Loss, n_jobs: int = 1) -> Matrix:
    """Weights of every task in standard units, shape (tasks, k): as large as that is."""
    went, _ = sparse_posteriors(e, start, loss, n_jobs)
    W = np.tile(start.bias, (e.n_tasks, 1))
    W[np.repeat(np.arange(e.n_tasks), np.diff(e.touched)), e.columns] += went
    return W


def checked_rows(
    rows: Rows, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Csr, FloatArray, Vector]:
    """Inputs, labels and how often they count; rows that do not are left out."""
    inputs = as_sparse("X", X if is_sparse(X) else csr_array(as_floats("X", X, 2)))
    labels = as_labels("y", y, inputs.dtype)
    check_rows(inputs, labels)
    rows.check_width(inputs.shape[1])
    rows.loss.check_labels(labels)
    weight = row_weights(sample_weight, len(labels))
    used = weight > 0.0
    return inputs[used], labels[used], weight[used]


def standard(columns: Columns, X: Csr) -> Csr:
    """Rows in standard units, with the column of ones; there is no centre."""
    scaled = X @ diags_array(1.0 / columns.scale)
    if columns.intercept:
        scaled = hstack([scaled, csr_array(np.ones((X.shape[0], 1)))], format="csr")
    return csr_array(scaled)
