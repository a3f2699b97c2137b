"""Algorithm 1 a row at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, as_floats, check_task
from headstart._core.jit import kernel
from headstart.inner.sgd.rule import scale_after
from headstart.losses import Loss, Objective, get_loss
from headstart.losses.scalar import subgradient
from headstart.tasks.rows import add, dot


@kernel
def _stream(
    X: FloatArray, y: FloatArray, objective: Objective, h: Vector, S: Vector, V: Vector, seen: int
) -> None:
    for k in range(len(y)):
        scale = scale_after(seen + k, 1, False, objective.lam)
        u = subgradient(objective.form, dot(X, k, h) - scale * dot(X, k, S), y[k])
        for j in range(h.size):
            V[j] += scale * S[j]
        add(X, k, u, S)


class SGDState(NamedTuple):
    r"""Algorithm 1 in progress: takes rows one at a time, in O(d) memory.

    Kept are :math:`S = \sum_i u_i x_i` and :math:`V = \sum_k (h - w_k)`, from which
    ``last`` is :math:`h - S/(n\lambda)` and ``average`` is :math:`h - V/n`. Any cutting of
    the same rows into `update` calls gives the same bits.

    Examples
    --------
    >>> state = SGDState.start(bias=[1.0], reg=0.5)
    >>> for x, y in [([1.0], 3.0), ([1.0], 3.0)]:
    ...     state = state.update([x], [y])
    >>> print(state.average, state.last)
    [2.] [2.]
    """

    bias: Vector
    reg: float
    loss: Loss
    subgradients: Vector
    drift: Vector
    n_rows: int

    @classmethod
    def start(cls, bias: ArrayLike, reg: float, loss: str | Loss = "absolute") -> SGDState:
        """A state that has seen no row: ``average`` and ``last`` are the bias."""
        h = as_floats("bias", bias, 1).astype(np.float64)
        chosen = get_loss(loss)
        lam = chosen.regularised(reg).lam
        return cls(h, lam, chosen, np.zeros(h.size), np.zeros(h.size), 0)

    def update(self, X: ArrayLike, y: ArrayLike) -> SGDState:
        """The state after these rows too; this one is left as it is."""
        inputs, labels = check_task(X, y)
        if inputs.shape[1] != self.bias.size:
            raise ValueError(f"X: expected {self.bias.size} columns, found {inputs.shape[1]}")
        self.loss.check_labels(labels)
        S, V = self.subgradients.copy(), self.drift.copy()
        objective = self.loss.regularised(self.reg)
        _stream(inputs, labels, objective, self.bias, S, V, self.n_rows)
        after = self._replace(subgradients=S, drift=V, n_rows=self.n_rows + len(labels))
        with quietly():
            check_answer((after.average, after.last), "X, y, bias, reg")
        return after

    @property
    def average(self) -> Vector:
        """Mean of the iterates so far."""
        return self.bias - self.drift / max(self.n_rows, 1)

    @property
    def last(self) -> Vector:
        """The newest iterate."""
        return self.bias - self.subgradients / (max(self.n_rows, 1) * self.reg)
