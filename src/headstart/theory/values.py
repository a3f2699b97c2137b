r"""Values of one task: its objective, its dual, and what they certify for every sample."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import as_floats, check_bias, check_size, check_task
from headstart.losses import Loss, get_loss


@quietly()
def primal_value(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
) -> float:
    r""":math:`\Phi_h(w) = \frac1n\sum_i\ell_i(\langle x_i,w\rangle)+\frac\lambda2\|w-h\|^2`."""
    inputs, labels, h, lam, chosen = _problem(X, y, bias, reg, loss)
    w = check_bias("weights", weights, h.size)
    risk = chosen.value(inputs @ w, labels).mean()
    return check_answer(float(risk + lam / 2.0 * np.sum(np.square(w - h))), "X, weights, reg")


@quietly()
def dual_value(
    X: ArrayLike,
    y: ArrayLike,
    dual: ArrayLike,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
) -> float:
    r"""The dual value of a task.

    .. math:: \Psi_h(u) = \frac1n\sum_i\ell_i^*(nu_i) + \frac{1}{2\lambda}\|X^\top u\|^2
              - \langle Xh,u\rangle

    :math:`\min\Phi_h = -\min\Psi_h`, so the gap of a primal and a dual point is
    :math:`\Phi_h(w) + \Psi_h(u)`. (The paper prints it with w and u exchanged.)
    """
    inputs, labels, h, lam, chosen = _problem(X, y, bias, reg, loss)
    u = as_floats("dual", dual, 1)  # float32 stays so: the conjugate forgives its rounding
    check_bias("dual", u, len(labels))
    conjugates = chosen.conjugate(len(u) * u, labels).mean()
    v = inputs.T @ u
    return float(conjugates) + check_answer(float(v @ v / (2.0 * lam) - h @ v), "X, dual, reg")


def certificate(
    X: ArrayLike,
    y: ArrayLike,
    dual: ArrayLike,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    weights: ArrayLike | None = None,
) -> float:
    r"""How exact the meta-gradient of one pass of Algorithm 1 is, from the data alone.

    :math:`\hat\nabla = X^\top u/n` is an :math:`\varepsilon`-subgradient of the
    meta-objective at h with :math:`\varepsilon = \Psi_h(u/n) + \Phi_h(w)`, for any w. It
    holds for every sample, with no constant to know. The smaller :math:`\Phi_h(w)`, the
    sharper; the exact solution gives the best one.

    Parameters
    ----------
    dual : array-like of shape (n,)
        The subgradients, as `biased_sgd` returns them for ``order="stream"``; for the dual of
        `biased_erm`, give it times n.
    weights : array-like of shape (d,), optional
        The point w; the last iterate of Algorithm 1 if not given.

    Examples
    --------
    >>> certificate([[1.0]], [3.0], dual=[-1.0], bias=[0.0], reg=0.5)
    0.0
    """
    inputs, labels, h, lam, chosen = _problem(X, y, bias, reg, loss)
    u = check_bias("dual", dual, len(labels)) / len(labels)
    with quietly():
        w = h - inputs.T @ u / lam if weights is None else weights
    gap = primal_value(inputs, labels, w, h, lam, chosen)
    gap += dual_value(inputs, labels, u, h, lam, chosen)
    if gap == math.inf:
        raise ValueError(
            f"dual: expected subgradients that the {chosen.name} loss can have at these labels, "
            "found some where its conjugate is infinite; they certify nothing"
        )
    return max(gap, 0.0)


def last_distance(epsilon: float, reg: float) -> float:
    r"""How far the last iterate can be from the exact solution.

    :math:`\|w_{n+1} - w_h\| \le \sqrt{2\varepsilon/\lambda}` for every sample, with
    :math:`\varepsilon` the `certificate`. Times reg, it bounds the error of the meta-gradient.

    Examples
    --------
    >>> last_distance(epsilon=0.5, reg=4.0)
    0.5
    """
    gap, lam = check_size("epsilon", epsilon, or_zero=True), check_size("reg", reg)
    return math.sqrt(2.0 * gap / lam)


def _problem(
    X: ArrayLike, y: ArrayLike, bias: ArrayLike, reg: float, loss: str | Loss
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float, Loss]:
    chosen = get_loss(loss)
    inputs, labels = check_task(X, y)
    chosen.check_labels(labels)
    h, lam = check_bias("bias", bias, inputs.shape[1]), check_size("reg", reg)
    return inputs.astype(np.float64), labels.astype(np.float64), h, lam, chosen
