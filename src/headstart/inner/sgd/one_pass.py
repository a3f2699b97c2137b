"""Algorithm 1 on one task, and on every task of a set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.answers import check_answer, quietly
from headstart._core.assign import assign
from headstart._core.checks import (
    FloatArray,
    Vector,
    as_floats,
    as_numbers,
    check_bias,
    check_choice,
    check_flag,
    check_regs,
    check_task,
)
from headstart._core.jit import kernel, run_blocks
from headstart.inner.sgd.rule import rows_counted, scale_after
from headstart.losses import Loss, Objective, get_loss
from headstart.losses.scalar import subgradient
from headstart.tasks import Rows, TaskSet, longest
from headstart.tasks.rows import add, add_two, at_once, clear, dot, products

PREDICTORS = ["average", "last", "suffix", "poly"]
AVERAGE, LAST, SUFFIX, POLY = range(4)


class _Outputs(NamedTuple):
    average: FloatArray
    last: FloatArray
    dual: FloatArray


class SGDResult(_Outputs):
    """Outputs of Algorithm 1: a tuple of three, and the path if it was to be kept.

    Attributes
    ----------
    average : mean of the iterates ``w_1, ..., w_n``, the paper's estimator
    last : the iterate ``w_{n+1}``
    dual : the subgradients ``u_1, ..., u_n``, one per visited row (with ``order="resample"``
        these are the drawn rows)
    path : the iterates ``w_1, ..., w_{n+1}``, shape (n + 1, d), or None
    """

    path: FloatArray | None = None


@kernel
def sgd_pass(
    rows: Rows, t: int, objective: Objective, constant: bool, h: Vector, S: Vector, u: Vector
) -> None:
    """Run Algorithm 1 on the n rows of task t: add ``sum u_k x_k`` to S, and fill ``u[:n]``.

    S must be 0, and is not made so here: sparse rows touch few of its entries. With `constant`
    steps are 1 / (n lam) and there is no pull to h.

    Dense rows go in pairs: the second prediction follows from products that do not wait for the
    first subgradient, ``<b, S + u_a a> = <b, S> + u_a <a, b>``. That halves the chain of
    dependent sums, which is what bounds the speed for small d.
    """
    X, y, offsets, drawn = rows
    begin, n, (lam, form) = offsets[t], offsets[t + 1] - offsets[t], objective
    scale = 0.0  # of S in the iterate; 0 where the sum is still empty
    if at_once(X) == 1:
        for k in range(n):  # all that is far away in memory is asked for here, without waiting
            u[k] = dot(X, drawn[begin + k] if drawn.size > 0 else begin + k, h)
        for k in range(n):
            i = drawn[begin + k] if drawn.size > 0 else begin + k
            drift = scale * dot(X, i, S) if k > 0 else 0.0
            u[k] = subgradient(form, u[k] - drift, y[i])
            add(X, i, u[k], S)
            scale = scale_after(k + 1, n, constant, lam)
        return
    for k in range(0, n, 2):
        paired = k + 1 < n
        i = begin + k
        j = i + 1 if paired else i
        if drawn.size > 0:
            i, j = drawn[i], drawn[j]
        ah, bh, aS, bS, ab = products(X, i, j, h, S)
        ua = subgradient(form, ah - scale * aS, y[i])
        scale = scale_after(k + 1, n, constant, lam)
        ub = 0.0
        u[k] = ua
        if paired:
            ub = subgradient(form, bh - scale * (bS + ua * ab), y[j])
            scale = scale_after(k + 2, n, constant, lam)
            u[k + 1] = ub
        add_two(X, i, j, ua, ub, S)


@kernel
def averaging(predictor: int, constant: bool, n: int) -> Vector:
    """Weights ``c`` with which ``h - X^T (c u) / lam`` is the predictor after n rows.

    Row i is in the iterates after j >= i rows, there with one over `rows_counted`.
    """
    c = np.empty(n)
    half = n // 2
    tail = 0.0  # sum of the iterates' weights, each over its rows counted, for i <= j < n
    for i in range(n, 0, -1):
        if i < n and (predictor != SUFFIX or i >= half):
            tail += (i + 1.0 if predictor == POLY else 1.0) / rows_counted(i, n, constant)
        if predictor == AVERAGE:
            c[i - 1] = tail / n
        elif predictor == LAST:
            c[i - 1] = 1.0 / n
        elif predictor == SUFFIX:
            c[i - 1] = tail / (n - half)
        else:
            c[i - 1] = 2.0 * tail / (n * (n + 1.0))
    return c


@kernel
def _weights(
    rows: Rows,
    objective: Objective,
    constant: bool,
    h: Vector,
    predictor: int,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    X, offsets, drawn = rows.X, rows.offsets, rows.drawn
    S, w = np.zeros(h.size), np.empty(h.size)
    u = np.empty(longest(offsets, first, last))
    c = np.empty(0)
    for t in range(first, last):
        begin, n = offsets[t], offsets[t + 1] - offsets[t]
        sgd_pass(rows, t, objective, constant, h, S, u)
        clear(X, begin, begin + n, S)
        if c.size != n:
            c = averaging(predictor, constant, n)
        assign(w, h)
        for k in range(n):
            i = drawn[begin + k] if drawn.size > 0 else begin + k
            add(X, i, -c[k] * u[k] / objective.lam, w)
        for m in range(h.size):
            out[t, m] = w[m]


def sgd_weights(
    tasks: TaskSet,
    bias: Vector,
    objective: Objective,
    predictor: str = "average",
    order: str = "stream",
    random_state: object = None,
    n_jobs: int = 1,
    constant: bool = False,
) -> FloatArray:
    """Weights of every task after Algorithm 1 from one bias, shape (tasks, n_features).

    With `constant` its steps are 1 / (n reg) and there is no pull to the bias.
    """
    kind = PREDICTORS.index(check_choice("predictor", predictor, PREDICTORS))
    rows = tasks.rows(order, random_state)
    out = np.empty((len(tasks), tasks.n_features), tasks.dtype)
    run_blocks(
        lambda first, last: _weights(rows, objective, constant, bias, kind, first, last, out),
        len(tasks),
        n_jobs,
    )
    return out


def biased_sgd(
    X: ArrayLike,
    y: ArrayLike,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    order: str = "stream",
    random_state: object = None,
    keep_path: bool = False,
) -> SGDResult:
    r"""One pass of stochastic gradient descent on a task, regularised toward `bias`.

    Algorithm 1 of the paper, a pass over the rows on the risk plus
    :math:`\frac{\lambda}{2}\|w - h\|^2` with step sizes :math:`1/(k\lambda)`.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
    bias : array-like of shape (d,)
        The vector h the weights start from and are pulled to.
    reg : float > 0
        The regularisation strength lambda.
    loss : str or Loss
    order : {"stream", "resample"}
        Each row once in the order given, or n rows drawn with replacement.
    random_state : None, int or numpy.random.Generator
        Used by ``order="resample"``.
    keep_path : bool
        Whether to return all iterates, too.

    Returns
    -------
    SGDResult
        ``average``, ``last``, ``dual`` and ``path``. The average never uses the last row, and for
        n = 1 it is the bias.

    Examples
    --------
    >>> result = biased_sgd([[1.0], [1.0]], [3.0, 3.0], bias=[1.0], reg=0.5)
    >>> print(result.average, result.last, result.dual)
    [2.] [2.] [-1.  0.]
    """
    chosen = get_loss(loss)
    objective, kept = chosen.regularised(reg), check_flag("keep_path", keep_path)
    inputs, labels = check_task(X, y)
    chosen.check_labels(labels)
    h = check_bias("bias", bias, inputs.shape[1])
    task = TaskSet.of(inputs, labels, np.array([0, len(labels)]), np.zeros(1, np.int64))
    rows = task.rows(order, random_state)
    n, dtype = len(labels), inputs.dtype
    S, u = np.zeros(h.size), np.empty(n)
    with quietly():
        sgd_pass(rows, 0, objective, False, h, S, u)
        visited = inputs if order == "stream" else inputs[rows.drawn]
        average = predictor_of(visited, h, np.array(objective.lam), u, AVERAGE)
        last = h - S / (n * objective.lam)
        found = SGDResult(average.astype(dtype), last.astype(dtype), u.astype(dtype))
        if kept:
            found.path = _iterates(visited, h, objective.lam, u).astype(dtype)
    check_answer((*found, found.path), "X, y, bias, reg")
    return found


def _iterates(X: FloatArray, h: Vector, lam: float, u: Vector) -> FloatArray:
    """``w_{k+1} = h - (1 / (k lam)) sum_{i<=k} u_i x_i``, all of them, from ``w_1 = h``."""
    drift = np.cumsum(u[:, None] * X, axis=0) / (lam * np.arange(1, len(u) + 1))[:, None]
    return np.vstack([h, h - drift])


def weights_from_dual(
    X: ArrayLike, bias: ArrayLike, reg: ArrayLike, dual: ArrayLike, predictor: str = "average"
) -> Vector:
    r"""The predictor :math:`h - X^\top a` from the subgradients of Algorithm 1.

    With :math:`H_k = \sum_{i\le k} 1/i`, the weight of row i is :math:`a_i = u_i c_i/\lambda`,

    ========= ============================================== =============================
    predictor :math:`c_i`                                    what it is
    ========= ============================================== =============================
    average   :math:`(H_{n-1} - H_{i-1})/n`                  mean of w_1..w_n (the paper)
    last      :math:`1/n`                                    w_{n+1}
    suffix    :math:`(H_{n-1} - H_{\max(i,m)-1})/(n-m)`      mean of w_{m+1}..w_n, m = n // 2
    poly      :math:`2(n-i+H_{n-1}-H_{i-1})/(n(n+1))`        mean with weights k = 1..n
    ========= ============================================== =============================

    `bias`, `reg` and `dual` may carry leading batch axes, as `sgd_batch` returns them.

    Examples
    --------
    >>> X = np.array([[1.0], [1.0]])
    >>> weights_from_dual(X, np.array([1.0]), 0.5, np.array([-1.0, 0.0]), "last")
    array([2.])
    """
    kind = PREDICTORS.index(check_choice("predictor", predictor, PREDICTORS))
    inputs, h = as_floats("X", X, 2), as_numbers("bias", bias)
    u, lams = as_numbers("dual", dual), check_regs("reg", reg)
    n, d = inputs.shape
    for name, found, width in (("dual", u, n), ("bias", h, d)):
        if found.ndim == 0 or found.shape[-1] != width:
            raise ValueError(f"{name}: expected last axis {width} as X has it, found {found.shape}")
    if n == 0:
        raise ValueError(f"X: expected at least one row, found shape {inputs.shape}")
    try:
        np.broadcast_shapes(h.shape[:-1], lams.shape, u.shape[:-1])
    except ValueError:
        raise ValueError(
            f"bias, reg, dual: expected leading axes that go together, found {h.shape[:-1]}, "
            f"{lams.shape} and {u.shape[:-1]}"
        ) from None
    with quietly():
        return check_answer(predictor_of(inputs, h, lams, u, kind), "X, bias, reg, dual")


def predictor_of(
    X: FloatArray, h: FloatArray, lams: Vector, u: FloatArray, predictor: int
) -> Vector:
    """As `weights_from_dual`, of what was checked."""
    a = averaging(predictor, False, u.shape[-1]) * u / lams[..., None]
    return np.asarray(h - a @ X, np.float64)
