"""Algorithm 1 from many biases and with many regs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, as_numbers, check_regs, check_task
from headstart._core.jit import kernel
from headstart.inner.sgd.one_pass import AVERAGE, LAST, SGDResult, predictor_of
from headstart.inner.sgd.rule import rows_counted
from headstart.losses import Form, Loss, get_loss
from headstart.losses.many import fill_slopes
from headstart.losses.scalar import subgradient


@kernel
def gram_pass(
    K: NDArray[np.float64],
    P: NDArray[np.float64],
    y: FloatArray,
    lams: Vector,
    form: Form,
    constant: bool,
    U: NDArray[np.float64],
) -> None:
    """The subgradients of Algorithm 1 from ``K = X X^T`` and ``P = X H``, a column a bias."""
    n, m = P.shape
    z = np.empty(m)
    for k in range(n):
        z[:] = 0.0
        for i in range(k):
            for q in range(m):
                z[q] += K[k, i] * U[i, q]
        scale = 1.0 / rows_counted(k, n, constant)
        for q in range(m):
            z[q] = P[k, q] - scale / lams[q] * z[q]
        fill_slopes(form, z, y[k], U, k)


@kernel
def drawn_gram_pass(
    K: NDArray[np.float64],
    P: NDArray[np.float64],
    y: FloatArray,
    drawn: NDArray[np.int64],
    lams: Vector,
    form: Form,
    constant: bool,
    U: NDArray[np.float64],
) -> None:
    """As `gram_pass`, each bias visiting the rows in its column of `drawn`.

    Row i of U sums the subgradients of all visits to row i.
    """
    n, m = drawn.shape
    u = np.empty(n)
    U[:] = 0.0
    for q in range(m):
        for k in range(n):
            row, drift = drawn[k, q], 0.0
            for i in range(k):
                drift += K[row, drawn[i, q]] * u[i]
            z = P[row, q] - drift / (rows_counted(k, n, constant) * lams[q])
            u[k] = subgradient(form, z, y[row])
            U[row, q] += u[k]


def sgd_batch(
    X: ArrayLike,
    y: ArrayLike,
    biases: ArrayLike,
    regs: ArrayLike,
    loss: str | Loss = "absolute",
) -> SGDResult:
    r"""Algorithm 1 on one task from many biases with many regs at once.

    The predictions need only :math:`K = XX^\top` and :math:`P = XH`,

    .. math:: z_k = P_k - \frac{1}{(k-1)\lambda}\sum_{i<k} K_{ki} u_i ,

    so all candidates share ``n`` steps of array work: cheaper than running them one by
    one when n < d or one bias is tried with many regs.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
    biases : array-like of shape (..., d)
    regs : array-like
        Broadcast against the leading axes of `biases`: (m, d) with (m,) pairs them,
        (m, 1, d) with (p,) tries every reg with every bias.
    loss : str or Loss

    Returns
    -------
    SGDResult
        Each field with the broadcast shape in front of its own axis.

    Examples
    --------
    >>> many = sgd_batch([[1.0], [1.0]], [3.0, 3.0], biases=[[1.0]], regs=[0.5, 1.0])
    >>> print(many.average.ravel(), many.last.ravel())
    [2.  1.5] [2. 2.]
    """
    chosen = get_loss(loss)
    chosen.check_inner("sgd")
    inputs, labels = check_task(X, y)
    chosen.check_labels(labels)
    many = as_numbers("biases", biases).astype(np.float64)
    if many.ndim == 0 or many.shape[-1] != inputs.shape[1]:
        raise ValueError(
            f"biases: expected last axis {inputs.shape[1]} (columns of X), found {many.shape}"
        )
    lams = check_regs("regs", regs)
    try:
        shape = np.broadcast_shapes(many.shape[:-1], lams.shape)
    except ValueError:
        raise ValueError(
            f"regs: shape {lams.shape} does not broadcast against biases {many.shape[:-1]}"
        ) from None
    n, wide, dtype = len(labels), inputs.astype(np.float64, copy=False), inputs.dtype
    lams = np.broadcast_to(lams, shape).copy()
    with quietly():
        P = np.moveaxis(np.broadcast_to(many @ wide.T, (*shape, n)), -1, 0).reshape(n, -1).copy()
        U = np.empty_like(P)
        gram_pass(wide @ wide.T, P, labels, lams.ravel(), chosen.form, False, U)
        dual = np.moveaxis(U.reshape(n, *shape), 0, -1)
        average = predictor_of(wide, many, lams, dual, AVERAGE)
        last = predictor_of(wide, many, lams, dual, LAST)
        found = SGDResult(average.astype(dtype), last.astype(dtype), dual.astype(dtype))
    return check_answer(found, "X, y, biases, regs")
