r"""Rows as kernels see them: the one place that knows how the numbers of a row are kept.

Kernels meet rows through doors: products with vectors, and adding a row to a vector. Rows are
dense, an array with a row for each, or sparse, their non-zeros alone; another kind of row brings
these texts and nothing else. Rows are indexed, not sliced: a slice counts references, at a cost
like that of a sum, and threads would contend for the counter. Sums are taken in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.doors import door, text_for
from headstart._core.jit import kernel

Counts = NDArray[np.int64]


class Sparse(NamedTuple):
    """Rows by their non-zeros: row i has those from ``starts[i]``, in the order of columns.

    Places have no sign: kernels would ask of each whether it counts from the end.
    """

    values: FloatArray
    columns: NDArray[np.uint32]
    starts: NDArray[np.uint64]


Inputs = FloatArray | Sparse


class Rows(NamedTuple):
    """What kernels see of a task set: its arrays, and the rows to visit if not in order.

    X may also be `Sparse`: kernels are compiled for either. Its type here is that of the kernels
    that index it, which are never given sparse rows.
    """

    X: FloatArray
    y: FloatArray
    offsets: Counts
    drawn: Counts


@kernel
def longest(offsets: Counts, first: int, last: int) -> int:
    """Number of rows of the largest of the tasks from `first` to before `last`."""
    n = 0
    for t in range(first, last):
        n = max(n, offsets[t + 1] - offsets[t])
    return n


@door
def dot(X: Inputs, i: int, w: FloatArray) -> float:
    """``<x_i, w>``."""
    raise NotImplementedError


@text_for(dot, np.ndarray)
def _(X: FloatArray, i: int, w: FloatArray) -> float:
    total = 0.0
    for j in range(w.size):
        total += np.float64(X[i, j]) * w[j]
    return total


@text_for(dot, Sparse)
def _(X: Sparse, i: int, w: FloatArray) -> float:
    total = 0.0
    for p in range(X.starts[i], X.starts[i + 1]):
        total += np.float64(X.values[p]) * w[X.columns[p]]
    return total


@door
def dot_at(X: Inputs, i: int, W: FloatArray, t: int) -> float:
    """``<x_i, W_t>``; W may have more columns than x."""
    raise NotImplementedError


@text_for(dot_at, np.ndarray)
def _(X: FloatArray, i: int, W: FloatArray, t: int) -> float:
    total = 0.0
    for j in range(X.shape[1]):
        total += np.float64(X[i, j]) * W[t, j]
    return total


@text_for(dot_at, Sparse)
def _(X: Sparse, i: int, W: FloatArray, t: int) -> float:
    total = 0.0
    for p in range(X.starts[i], X.starts[i + 1]):
        total += np.float64(X.values[p]) * W[t, X.columns[p]]
    return total


@door
def dots_at(X: Inputs, i: int, A: FloatArray, s: int, B: FloatArray, t: int) -> tuple[float, float]:
    """``<x_i, A_s>`` and ``<x_i, B_t>`` in one go."""
    raise NotImplementedError


@text_for(dots_at, np.ndarray)
def _(X: FloatArray, i: int, A: FloatArray, s: int, B: FloatArray, t: int) -> tuple[float, float]:
    a, b = 0.0, 0.0
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        a += x * A[s, j]
        b += x * B[t, j]
    return a, b


@door
def square(X: Inputs, i: int) -> float:
    """``<x_i, x_i>``."""
    raise NotImplementedError


@text_for(square, np.ndarray)
def _(X: FloatArray, i: int) -> float:
    total = 0.0
    for j in range(X.shape[1]):
        x = np.float64(X[i, j])
        total += x * x
    return total


@door
def dot_rows(X: Inputs, i: int, k: int) -> float:
    """``<x_i, x_k>``."""
    raise NotImplementedError


@text_for(dot_rows, np.ndarray)
def _(X: FloatArray, i: int, k: int) -> float:
    total = 0.0
    for j in range(X.shape[1]):
        total += np.float64(X[i, j]) * X[k, j]
    return total


@text_for(dot_rows, Sparse)
def _(X: Sparse, i: int, k: int) -> float:
    total, p, q, one = 0.0, X.starts[i], X.starts[k], np.uint64(1)
    while p < X.starts[i + 1] and q < X.starts[k + 1]:
        a, b = X.columns[p], X.columns[q]
        if a == b:
            total += np.float64(X.values[p]) * X.values[q]
        if a <= b:
            p += one
        if b <= a:
            q += one
    return total


@door
def at_once(X: Inputs) -> int:
    """How many rows a pass had better take together, one or two.

    Of two dense rows the products share what is read. Those of sparse rows with each other cost
    more than they save.
    """
    raise NotImplementedError


@text_for(at_once, np.ndarray)
def _(X: FloatArray) -> int:  # noqa: ARG001
    return 2


@text_for(at_once, Sparse)
def _(X: Sparse) -> int:  # noqa: ARG001
    return 1


@door
def products(X: Inputs, i: int, k: int, h: Vector, S: Vector) -> tuple[float, ...]:
    """``<x_i, h>, <x_k, h>, <x_i, S>, <x_k, S>`` and ``<x_i, x_k>``, in one go.

    Where k is i, the last of them may be anything.
    """
    raise NotImplementedError


@text_for(products, np.ndarray)
def _(
    X: FloatArray, i: int, k: int, h: Vector, S: Vector
) -> tuple[float, float, float, float, float]:
    ah, bh, aS, bS, ab = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(h.size):
        a, b = np.float64(X[i, j]), np.float64(X[k, j])
        ah += a * h[j]
        bh += b * h[j]
        aS += a * S[j]
        bS += b * S[j]
        ab += a * b
    return ah, bh, aS, bS, ab


@text_for(products, Sparse)
def _(X: Sparse, i: int, k: int, h: Vector, S: Vector) -> tuple[float, float, float, float, float]:
    ah, aS = 0.0, 0.0
    for p in range(X.starts[i], X.starts[i + 1]):
        a, j = np.float64(X.values[p]), X.columns[p]
        ah += a * h[j]
        aS += a * S[j]
    if k == i:
        return ah, ah, aS, aS, 0.0
    return ah, dot(X, k, h), aS, dot(X, k, S), dot_rows(X, i, k)


@door
def add(X: Inputs, i: int, c: float, w: Vector) -> None:
    """``w += c x_i``."""
    raise NotImplementedError


@text_for(add, np.ndarray)
def _(X: FloatArray, i: int, c: float, w: Vector) -> None:
    for j in range(w.size):
        w[j] += c * X[i, j]


@text_for(add, Sparse)
def _(X: Sparse, i: int, c: float, w: Vector) -> None:
    for p in range(X.starts[i], X.starts[i + 1]):
        w[X.columns[p]] += c * X.values[p]


@door
def add_at(X: Inputs, i: int, c: float, W: FloatArray, t: int) -> None:
    """``W_t += c x_i``; W may have more columns than x."""
    raise NotImplementedError


@text_for(add_at, np.ndarray)
def _(X: FloatArray, i: int, c: float, W: FloatArray, t: int) -> None:
    for j in range(X.shape[1]):
        W[t, j] += c * X[i, j]


@door
def add_two(X: Inputs, i: int, k: int, a: float, b: float, w: Vector) -> None:
    """``w += a x_i + b x_k``."""
    raise NotImplementedError


@text_for(add_two, np.ndarray)
def _(X: FloatArray, i: int, k: int, a: float, b: float, w: Vector) -> None:
    for j in range(w.size):
        w[j] += a * X[i, j] + b * X[k, j]


@text_for(add_two, Sparse)
def _(X: Sparse, i: int, k: int, a: float, b: float, w: Vector) -> None:
    add(X, i, a, w)
    if b != 0.0:
        add(X, k, b, w)


@door
def add_outer(X: Inputs, i: int, c: float, A: NDArray[np.float64]) -> None:
    """``A += c x_i x_i^T``, the lower triangle alone."""
    raise NotImplementedError


@text_for(add_outer, np.ndarray)
def _(X: FloatArray, i: int, c: float, A: NDArray[np.float64]) -> None:
    for j in range(X.shape[1]):
        factor = c * X[i, j]
        for k in range(j + 1):
            A[j, k] += factor * X[i, k]


@text_for(add_outer, Sparse)
def _(X: Sparse, i: int, c: float, A: NDArray[np.float64]) -> None:
    for p in range(X.starts[i], X.starts[i + 1]):
        factor = c * X.values[p]
        for q in range(X.starts[i], p + np.uint64(1)):
            A[X.columns[p], X.columns[q]] += factor * X.values[q]


@door
def move(X: Inputs, begin: int, end: int, rate: float, S: Vector, w: Vector) -> None:
    """``w += rate S`` and ``S = 0``, S being a sum of the rows from `begin` to before `end`."""
    raise NotImplementedError


@text_for(move, np.ndarray)
def _(X: FloatArray, begin: int, end: int, rate: float, S: Vector, w: Vector) -> None:  # noqa: ARG001
    for j in range(w.size):
        w[j] += rate * S[j]
        S[j] = 0.0


@text_for(move, Sparse)
def _(X: Sparse, begin: int, end: int, rate: float, S: Vector, w: Vector) -> None:
    for p in range(X.starts[begin], X.starts[end]):
        j = X.columns[p]
        w[j] += rate * S[j]  # nothing, where j was met before
        S[j] = 0.0


@door
def clear(X: Inputs, begin: int, end: int, S: Vector) -> None:
    """``S = 0``, S being a sum of the rows from `begin` to before `end`."""
    raise NotImplementedError


@text_for(clear, np.ndarray)
def _(X: FloatArray, begin: int, end: int, S: Vector) -> None:  # noqa: ARG001
    S[:] = 0.0


@text_for(clear, Sparse)
def _(X: Sparse, begin: int, end: int, S: Vector) -> None:
    for p in range(X.starts[begin], X.starts[end]):
        S[X.columns[p]] = 0.0
