"""Triangles of eight tasks as lines, row after row: Cholesky's factor, and solving with it.

A triangle K of n rows has its entry (i, j) in line ``i (i + 1) / 2 + j``. The factor of
``K = L L^T`` comes in its place, with one over each number of the diagonal, by which to multiply.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart._core.jit import lent
from headstart._core.lanes import inverse_root, line, minus, put, spread

Matrix = NDArray[np.float64]


@lent
def factor(K: Matrix, n: int, b: float) -> None:
    """Cholesky's factor of ``K + bI`` in place, with the inverses of its diagonal.

    Before their diagonals four rows are taken at once; there may be three after the last.
    """
    for i in range(0, n, 4):
        p = i * (i + 1) // 2
        q, r, s = p + i + 1, p + 2 * i + 3, p + 3 * i + 6
        for j in range(i):
            other = j * (j + 1) // 2
            one, two, three, four = line(K, p + j), line(K, q + j), line(K, r + j), line(K, s + j)
            for t in range(j):
                value = line(K, other + t)
                one -= line(K, p + t) * value
                two -= line(K, q + t) * value
                three -= line(K, r + t) * value
                four -= line(K, s + t) * value
            inverse = line(K, other + j)
            put(K, p + j, one * inverse)
            put(K, q + j, two * inverse)
            put(K, r + j, three * inverse)
            put(K, s + j, four * inverse)
        for m in range(i, min(i + 4, n)):
            row = m * (m + 1) // 2
            for j in range(i, m):
                other = j * (j + 1) // 2
                put(K, row + j, minus(line(K, row + j), K, row, K, other, j) * line(K, other + j))
            rest = minus(line(K, row + m) + spread(b), K, row, K, row, m)
            put(K, row + m, inverse_root(rest))


@lent
def forward(K: Matrix, n: int, x: Matrix) -> None:
    """``L^-1 x`` in place."""
    for i in range(n):
        row = i * (i + 1) // 2
        put(x, i, minus(line(x, i), K, row, x, 0, i) * line(K, row + i))


@lent
def forward_four(
    K: Matrix, first: int, n: int, x: Matrix, step: int, apart: int
) -> tuple[Any, Any, Any, Any]:
    """``L^-1 x`` in place of four x at once, and the sums of their squares.

    Number i of x number s is line ``i step + s apart``; those before the first are 0.
    """
    one = two = three = four = spread(0.0)
    for i in range(first, n):
        row, o = i * (i + 1) // 2, i * step
        p, q = line(x, o), line(x, o + apart)
        r, s = line(x, o + 2 * apart), line(x, o + 3 * apart)
        for m in range(first, i):
            value, place = line(K, row + m), m * step
            p -= value * line(x, place)
            q -= value * line(x, place + apart)
            r -= value * line(x, place + 2 * apart)
            s -= value * line(x, place + 3 * apart)
        inverse = line(K, row + i)
        p *= inverse
        q *= inverse
        r *= inverse
        s *= inverse
        put(x, o, p)
        put(x, o + apart, q)
        put(x, o + 2 * apart, r)
        put(x, o + 3 * apart, s)
        one += p * p
        two += q * q
        three += r * r
        four += s * s
    return one, two, three, four


@lent
def backward(K: Matrix, n: int, x: Matrix) -> None:
    """``L^-T x`` in place."""
    for i in range(n - 1, -1, -1):
        row = i * (i + 1) // 2
        found = line(x, i) * line(K, row + i)
        put(x, i, found)
        for m in range(i):
            put(x, m, line(x, m) - line(K, row + m) * found)
