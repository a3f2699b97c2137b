"""Predictions of rows by their entities' weights."""

from __future__ import annotations

from headstart._core.checks import FloatArray, read_only
from headstart._core.jit import kernel
from headstart.online.stream import Positions
from headstart.tasks.rows import dot_at


@kernel
def _predictions(
    X: FloatArray, rows: Positions, weights: FloatArray, start: FloatArray, out: FloatArray
) -> None:
    """`start` is a row, so that both sums are one."""
    d = start.shape[1] - 1
    for i in range(len(X)):
        e = rows[i]
        if e >= 0:
            out[i] = dot_at(X, i, weights, e) + weights[e, d]
        else:
            out[i] = dot_at(X, i, start, 0) + start[0, d]


def predictions(
    X: FloatArray, rows: Positions, weights: FloatArray, start: FloatArray, out: FloatArray
) -> None:
    """``<x, w> + w_0`` of every row, w being its row of `weights`, or the start where that is -1.

    Arrays that may be written are handed on as ones that may not: there is one kernel for both.
    """
    _predictions(read_only(X), rows, read_only(weights), read_only(start[None, :]), out)
