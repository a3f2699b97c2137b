"""Rows of eight tasks as lines, one lane a task, and what is done with such lines.

See `headstart._core.lanes` for what a line is, and `rows` for what they are needed for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import inlined
from headstart._core.lanes import (
    LANES,
    address,
    inverse_root,
    line,
    minus,
    put,
    put_four,
    spread,
    turn,
)
from headstart.inner.start import Start
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]


class Units(NamedTuple):
    """A prior as this file needs it: z of a row is ``R^T x``, x being ``(x - centre) * factor``.

    Attributes
    ----------
    centre, factor : by column; where there is an intercept, 1 follows
    root : R, which is a lower triangle, row by row, then rows of zeros; or its diagonal alone
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
            more = np.zeros((-len(upper) % 4, len(upper)))  # four sums are made at once
            root, across = np.append(upper.T, more), np.append(upper, more)
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
    """Lines of eight tasks, and a few more, because four sums are made at once.

    Attributes
    ----------
    x, z : one row of each, in standard units, and its z
    Z : z of all rows, `wide` lines each, where K is to be found
    h, g : where the tasks start, and how far they went
    r : labels less their prediction at the start
    K : lower triangle of K or M, then its factor, with the inverses of the diagonal
    column : as long as K
    pair : two numbers; of a row that is loaded 1 where there is one, else 0
    where : numbers of the rows in x, or -1
    places : where they are in memory
    """

    x: Matrix
    z: Matrix
    Z: Matrix
    h: Matrix
    g: Matrix
    r: Matrix
    K: Matrix
    column: Matrix
    pair: Matrix
    where: Counts
    places: Counts


@inlined
def wide(k: int) -> int:
    """Lines of k numbers, and of those that are made beside them, eight being turned at once."""
    return k + -k % LANES


@inlined
def room(k: int, n: int, rows: int) -> Work:
    """Lines for tasks of k columns, where K or M has n columns, and Z so many rows."""
    return Work(
        x=np.empty((wide(k), LANES)),
        z=np.empty((wide(k), LANES)),
        Z=np.zeros(((rows + 3) * wide(k), LANES)),
        h=np.empty((k, LANES)),
        g=np.empty((k, LANES)),
        r=np.empty((n, LANES)),
        K=np.empty((n * (n + 1) // 2 + 3, LANES)),
        column=np.empty((n, LANES)),
        pair=np.empty((2, LANES)),
        where=np.empty(LANES, np.int64),
        places=np.empty(LANES, np.int64),
    )


@inlined
def most(rows: Some, tasks: Counts) -> int:
    """How many rows the longest of these tasks has."""
    most = 0
    for t in tasks:
        most = max(most, rows.cuts[t + 1] - rows.cuts[t])
    return most


@inlined
def find(some: Some, tasks: Counts, a: int, where: Counts) -> None:
    """The number of row a of each task; -1 where there is none."""
    rows, cuts = some.rows, some.cuts
    for l in range(LANES):
        place, end = 0, 0
        if l < len(tasks):
            place, end = cuts[tasks[l]] + a, cuts[tasks[l] + 1]
        where[l] = rows[place] if place < end else -1


@inlined
def load(rows: Rows, some: Some, units: Units, tasks: Counts, a: int, work: Work) -> None:
    """Row a of each task in standard units; zeros where there is none."""
    X, x, where, places, pair = rows.X, work.x, work.where, work.places, work.pair
    k, d = len(work.h), len(units.centre)
    find(some, tasks, a, where)
    begin, step = address(X), X.strides[0]
    for l in range(LANES):
        pair[0, l] = 1.0 if where[l] >= 0 else 0.0
        places[l] = begin + max(where[l], 0) * step
    for j in range(0, d, LANES):
        turn(X, places, 0, j, d - j, x, j * LANES)
    there = line(pair, 0)
    for j in range(d):
        put(x, j, (line(x, j) - line(units.centre, j)) * line(units.factor, j) * there)
    for j in range(d, k):
        put(x, j, there)


@inlined
def load_labels(rows: Rows, work: Work, a: int) -> None:
    """Residuals of the rows in x, as line a."""
    r, y, where = work.r, rows.y, work.where
    for l in range(LANES):
        r[a, l] = y[where[l]] if where[l] >= 0 else 0.0
    put(r, a, minus(line(r, a), work.h, 0, work.x, 0, len(work.h)))


@inlined
def whiten(units: Units, work: Work, z: Matrix, base: int) -> None:
    """``R^T x`` of the rows in x, from line `base` of z on."""
    k, across = len(work.h), units.across
    if len(across) == k:
        for j in range(k):
            put(z, base + j, line(across, j) * line(work.x, j))
        return
    for j in range(0, k, 4):  # numbers of the matrix before its diagonal are 0
        put_four(z, base + j, across, j * k + j, k, work.x, j, k - j)


@inlined
def factor(K: Matrix, n: int, b: float) -> None:
    """Cholesky's factor of ``K + bI`` in place, with the inverses of its diagonal."""
    for i in range(n):
        row = i * (i + 1) // 2
        for j in range(i):
            other = j * (j + 1) // 2
            put(K, row + j, minus(line(K, row + j), K, row, K, other, j) * line(K, other + j))
        put(K, row + i, inverse_root(minus(line(K, row + i) + spread(b), K, row, K, row, i)))


@inlined
def forward(K: Matrix, first: int, n: int, x: Matrix) -> None:
    """``L^-1 x`` in place; numbers before the first are 0."""
    for i in range(first, n):
        row = i * (i + 1) // 2
        put(x, i, minus(line(x, i), K, row + first, x, first, i - first) * line(K, row + i))


@inlined
def backward(K: Matrix, n: int, x: Matrix) -> None:
    """``L^-T x`` in place."""
    for i in range(n - 1, -1, -1):
        row = i * (i + 1) // 2
        found = line(x, i) * line(K, row + i)
        put(x, i, found)
        for m in range(i):
            put(x, m, line(x, m) - line(K, row + m) * found)
