"""Rows of 32 tasks as lines, one lane a task, and what is done with such lines.

See `headstart._core.lanes` for what a line is, and `rows` for what they are needed for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import inlined
from headstart._core.lanes import LANES, add_products, take_products
from headstart.inner.start import Start
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

AHEAD = 4  # rows of a task that are loaded together


class Units(NamedTuple):
    """A prior as this file needs it: z of a row is ``R^T x``, x being ``(x - centre) * factor``.

    Attributes
    ----------
    centre, factor : by column; where there is an intercept, 1 follows
    root : R, which is a lower triangle, row by row; or its diagonal alone
    across : its transpose likewise
    effects : where tasks start, row by row, see `Start`
    noise : b
    """

    centre: Vector
    factor: Vector
    root: Vector
    across: Vector
    effects: Vector
    noise: float

    @classmethod
    def of(cls, columns: Columns, start: Start) -> Units:
        """Those of a prior. QR finds the root of any covariance, however near to singular."""
        if len(start.covariance) == 0:
            root = across = np.sqrt(start.variances)
        else:
            values, Q = np.linalg.eigh(start.covariance)
            upper = np.linalg.qr((Q * np.sqrt(np.maximum(values, 0.0))).T, mode="reduced").R
            root, across = np.ascontiguousarray(upper.T).reshape(-1), upper.reshape(-1)
        effects = np.ascontiguousarray(start.effects).reshape(-1)
        return cls(columns.centre, 1.0 / columns.scale, root, across, effects, start.noise)


class Some(NamedTuple):
    """Numbers of rows, task after task, and where those of each task begin."""

    rows: Counts
    cuts: Counts

    @classmethod
    def where(cls, mask: NDArray[np.bool_], sizes: Counts) -> Some:
        """The rows where the mask is, so many of each task."""
        return cls(np.flatnonzero(mask), np.append(0, np.cumsum(sizes)))


class Rows(NamedTuple):
    """Rows of many tasks, in any order, in the user's units.

    Attributes
    ----------
    X : inputs
    y : labels less their level; any number where there is none
    own : the rows that are learned from
    other : those that are not
    side : see `Evidence`
    """

    X: FloatArray
    y: Vector
    own: Some
    other: Some
    side: Matrix


class Work(NamedTuple):
    """Lines of 32 tasks.

    Attributes
    ----------
    x : a few rows of each, in standard units
    z : one row
    Z : z of all rows, where K is to be found
    h, g : where the tasks start, and how far they went
    r : labels less their prediction at the start
    K : lower triangle of K or M, then its factor, with the inverses of the diagonal
    column : as long as K
    where : numbers of the rows in x
    pair : two numbers
    """

    x: Matrix
    z: Matrix
    Z: Matrix
    h: Matrix
    g: Matrix
    r: Matrix
    K: Matrix
    column: Matrix
    where: Counts
    pair: Matrix


@inlined
def most(rows: Some, tasks: Counts) -> int:
    """How many rows the longest of these tasks has."""
    most = 0
    for t in tasks:
        most = max(most, rows.cuts[t + 1] - rows.cuts[t])
    return most


@inlined
def find(some: Some, tasks: Counts, a: int, where: Counts) -> None:
    """The numbers of rows from a on, `AHEAD` of each task; -1 where there is none."""
    rows, cuts = some.rows, some.cuts
    for l in range(LANES):
        place, end = 0, 0
        if l < len(tasks):
            place, end = cuts[tasks[l]] + a, cuts[tasks[l] + 1]
        for b in range(AHEAD):
            where[b, l] = rows[place + b] if place + b < end else -1


@inlined
def load(rows: Rows, some: Some, units: Units, tasks: Counts, a: int, work: Work) -> None:
    """Rows from a on, `AHEAD` of each task, in standard units; zeros where there is none.

    Eight tasks at once, because eight lanes of a line can be written at once; and of each the
    rows one after another, as they lie.
    """
    find(some, tasks, a, work.where)
    X, x, where, centre, factor = rows.X, work.x, work.where, units.centre, units.factor
    k, d = len(work.h), len(centre)
    for l in range(0, LANES, 8):
        for b in range(AHEAD):
            i = (
                max(where[b, l], 0),
                max(where[b, l + 1], 0),
                max(where[b, l + 2], 0),
                max(where[b, l + 3], 0),
                max(where[b, l + 4], 0),
                max(where[b, l + 5], 0),
                max(where[b, l + 6], 0),
                max(where[b, l + 7], 0),
            )
            for j in range(d):
                line = b * k + j
                x[line, l] = X[i[0], j]
                x[line, l + 1] = X[i[1], j]
                x[line, l + 2] = X[i[2], j]
                x[line, l + 3] = X[i[3], j]
                x[line, l + 4] = X[i[4], j]
                x[line, l + 5] = X[i[5], j]
                x[line, l + 6] = X[i[6], j]
                x[line, l + 7] = X[i[7], j]
    for b in range(AHEAD):
        for j in range(d):
            line, c, f = b * k + j, centre[j], factor[j]
            for l in range(LANES):
                x[line, l] = (x[line, l] - c) * f
        for line in range(b * k + d, b * k + k):
            for l in range(LANES):
                x[line, l] = 1.0
        for l in range(LANES):
            if where[b, l] < 0:
                for line in range(b * k, b * k + k):
                    x[line, l] = 0.0


@inlined
def load_labels(rows: Rows, b: int, work: Work, line: int) -> None:
    """Residuals of the b-th rows of those in x."""
    y, r, where, k = rows.y, work.r, work.where, len(work.h)
    for l in range(LANES):
        i = where[b, l]
        r[line, l] = y[i] if i >= 0 else 0.0
    take_products(r, line, work.h, 0, work.x, b * k, k)


@inlined
def whiten(units: Units, b: int, work: Work, z: Matrix, base: int) -> None:
    """``R^T x`` of the b-th row of x, from line `base` of z on."""
    k, x = len(work.h), work.x
    if len(units.across) == k:
        for j in range(k):
            for l in range(LANES):
                z[base + j, l] = units.across[j] * x[b * k + j, l]
        return
    z[base : base + k] = 0.0
    for j in range(k):
        add_products(z, base + j, units.across, j * k + j, x, b * k + j, k - j)


@inlined
def factor(K: Matrix, n: int) -> None:
    """Cholesky's factor in place, with the inverses of its diagonal."""
    for i in range(n):
        row = i * (i + 1) // 2
        for j in range(i):
            other = j * (j + 1) // 2
            take_products(K, row + j, K, row, K, other, j)
            for l in range(LANES):
                K[row + j, l] *= K[other + j, l]
        take_products(K, row + i, K, row, K, row, i)
        for l in range(LANES):
            K[row + i, l] = 1.0 / math.sqrt(K[row + i, l])


@inlined
def forward(K: Matrix, first: int, n: int, x: Matrix) -> None:
    """``L^-1 x`` in place; numbers before the first are 0."""
    for i in range(first, n):
        row = i * (i + 1) // 2
        take_products(x, i, K, row + first, x, first, i - first)
        for l in range(LANES):
            x[i, l] *= K[row + i, l]


@inlined
def backward(K: Matrix, n: int, x: Matrix) -> None:
    """``L^-T x`` in place."""
    for i in range(n - 1, -1, -1):
        row = i * (i + 1) // 2
        for l in range(LANES):
            x[i, l] *= K[row + i, l]
        for m in range(i):
            take_products(x, m, K, row + m, x, i, 1)
