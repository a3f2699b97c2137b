"""A prior's numbers: from the users' units to standard ones and back, and what users may give."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import diags_array

from headstart._core.checks import (
    Vector,
    as_floats,
    check_array,
    check_flag,
    check_kind,
    check_number,
    check_reg,
)
from headstart.inner.posterior import packed
from headstart.inner.start import Start, with_one
from headstart.losses import Loss
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]

METRICS = ["isotropic", "diagonal", "full"]
WIDE = 1 << 13  # columns from which a diagonal covariance is kept as a sparse matrix


def covariance_of(start: Start, columns: Columns) -> Matrix:
    """The covariance in the users' units; sparse where it is diagonal and very large."""
    if len(start.covariance):
        return columns.covariance(start.covariance)
    if columns.width <= WIDE:
        return columns.covariance(np.diag(start.variances))
    M = columns.sparse_matrix
    found = M @ diags_array(start.variances, format="csr") @ M.T
    return cast(Matrix, found.tocsr())  # it multiplies and is indexed as a matrix is


def standard_start(
    h: Vector, G: Matrix | None, covariance: Matrix, noise: float, columns: Columns
) -> Start:
    """A prior in the units of its columns, as kernels see it."""
    effects = np.empty((h.size, 1 if G is None else 1 + G.shape[1]))
    effects[:, 0] = columns.standard(h)
    if G is not None:
        effects[:, 1:] = columns.standard((h[:, None] + G).T).T - effects[:, :1]
    sigma = columns.standard_covariance(covariance)
    variances = np.diag(sigma).copy()
    if np.count_nonzero(sigma) == variances.size:
        precision, sigma = np.empty(0), np.empty((0, 0))
        log_det = float(np.log(variances).sum())
    else:
        values, Q = np.linalg.eigh(sigma) if np.isfinite(sigma).all() else (np.zeros(1), sigma)
        if values[0] <= 0.0:
            raise ValueError(
                f"covariance: expected a positive definite matrix, found eigenvalue {values[0]:g}"
            )
        precision, log_det = packed((Q / values) @ Q.T), float(np.log(values).sum())
    return Start(effects, variances, sigma, precision, log_det, noise)


def start_seen_from(start: Start, then: Columns, now: Columns) -> Start:
    """A prior in units `then` as one in units `now`; without what only kernels need of it.

    Weights change by a matrix that is diagonal but for the row of the intercept, which takes what
    the centres have moved. Of a diagonal covariance the diagonal is kept.
    """
    factor, shift, _ = now.seen_from(then)
    effects = start.effects * factor[:, None]
    effects[:, 0] = now.standard(then.weights(start.bias))
    if now.intercept:
        effects[-1, 1:] += shift @ start.effects[:, 1:]
    whole, variances = start.covariance, factor**2 * start.variances
    if len(whole):
        change = np.diag(factor)
        change[-1] += shift
        whole = change @ whole @ change.T
        variances = np.diag(whole).copy()
    elif now.intercept:
        variances[-1] += float(shift**2 @ start.variances)
    return start._replace(effects=effects, variances=variances, covariance=whole)


def check_side(side: ArrayLike, count: int, width: int | None = None) -> Matrix:
    """What is known of tasks, a row of numbers for each."""
    table = check_array("side", side, None)
    if table.ndim == 1 and count == 1:
        table = table[None]
    if table.ndim not in (1, 2) or len(table) != count or table.size == 0:
        raise ValueError(
            f"side: expected a row of numbers for each of {count} tasks, found shape {table.shape}"
        )
    side = as_floats("side", table.reshape(count, -1), 2)
    if width is not None and side.shape[1] != width:
        raise ValueError(f"side: expected {width} numbers for each task, found {side.shape[1]}")
    return side.astype(np.float64)


def known_rows(side: ArrayLike | None, count: int, width: int) -> Matrix:
    """``(1, s)`` as rows, s being the `width` numbers known of each of `count` tasks."""
    if side is None and width:
        raise ValueError(f"side: a start needs the {width} numbers known of each task, found None")
    return with_one(None if side is None else check_side(side, count, width), count)


def as_start(bias: ArrayLike, intercept: bool) -> Vector:
    """What users give as a start: a number for each column, and for that of ones if it is there."""
    h = as_floats("bias", bias, 1).astype(np.float64)
    if h.size <= check_flag("intercept", intercept):
        raise ValueError(f"bias: expected a number for each column, found {h.size} in all")
    return h


def check_noise(noise: object, loss: Loss) -> float:
    """The noise of rows; labels -1 and +1 have none of their own."""
    b = check_reg("noise", noise)
    if loss.binary and b != 1.0:
        raise ValueError(
            f"noise: expected 1 with the {loss.name} loss, found {b:g}; see covariance"
        )
    return b


def as_columns(columns: Columns | None, covariance: Matrix, intercept: bool) -> Columns:
    """The units that are given, or those in which weights have variance 1."""
    if columns is not None:
        return check_kind("columns", columns, Columns)
    d = len(covariance) - intercept
    return Columns(np.zeros(d), 1.0 / np.sqrt(np.diag(covariance)[:d]), 0.0, intercept)


def as_effects(value: ArrayLike | None, k: int) -> Matrix | None:
    """What users give as effects of what is known of tasks: a row for each of k weights."""
    if value is None:
        return None
    effects = as_floats("side_effects", value, 2).astype(np.float64)
    if len(effects) != k:
        raise ValueError(f"side_effects: expected {k} rows, found {len(effects)}")
    return effects


def as_covariance(value: ArrayLike, k: int) -> Matrix:
    """A number, a diagonal or a matrix that users give as a covariance, as a matrix."""
    found = check_array("covariance", value, None)
    if found.ndim == 0:
        found = np.full(k, check_number("covariance", value, above=0.0))
    floats = as_floats("covariance", found, found.ndim).astype(np.float64)
    matrix = np.diag(floats) if floats.ndim == 1 else floats
    if matrix.shape != (k, k) or k == 0:
        raise ValueError(f"covariance: expected shape ({k}, {k}), found {found.shape}")
    if np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
        raise ValueError("covariance: expected a symmetric matrix")
    if not (np.diag(matrix) > 0.0).all():
        raise ValueError("covariance: expected a positive definite matrix")
    return matrix
