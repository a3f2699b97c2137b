"""Rows of eight tasks as lines, one lane a task, and what is done with such lines.

See `headstart._core.lanes` for what a line is, and `rows` for what they are needed for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.interleave import Pieces
from headstart._core.jit import lent, part
from headstart._core.lanes import (
    LANES,
    address,
    line,
    put,
    put_block,
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
    centre, factor : by column
    level : of the labels
    root : R, which is a lower triangle, row by row, then rows of zeros; or its diagonal alone
    across : its transpose likewise
    effects : where tasks start, row by row, see `Start`
    outside : the same in the user's units, and the intercept's row, 0 if there is none
    noise : b
    """

    centre: Vector
    factor: Vector
    level: float
    root: Vector
    across: Vector
    effects: Vector
    outside: Vector
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
        steps = replace(columns, level=0.0).weights(start.effects.T[1:])
        outside = np.vstack([columns.weights(start.bias), steps])
        if not columns.intercept:
            outside = np.column_stack([outside, np.zeros(len(outside))])
        return cls(
            columns.centre,
            1.0 / columns.scale,
            columns.level,
            root,
            across,
            np.ascontiguousarray(start.effects).reshape(-1),
            np.ascontiguousarray(outside.T).reshape(-1),
            start.noise,
        )


class Some(NamedTuple):
    """Numbers of rows, task after task, and where those of each task begin."""

    rows: Counts
    cuts: Counts

    @classmethod
    def where(cls, mask: NDArray[np.bool_], sizes: Counts) -> Some:
        """The rows where the mask is, so many of each task."""
        return cls(np.flatnonzero(mask), np.append(0, np.cumsum(sizes)))


class Rows(NamedTuple):
    """Rows of many tasks, in their order, in the user's units.

    Attributes
    ----------
    pieces : where the inputs are
    near : room for those of a few tasks, see `gather`
    starts : the first row of each task, and how many rows there are
    y : labels; any number where there is none
    own : the rows that are learned from
    other : those that are not
    side : see `Evidence`
    """

    pieces: Pieces
    near: FloatArray
    starts: Counts
    y: Vector
    own: Some
    other: Some
    side: Matrix


class Eight(NamedTuple):
    """Up to eight tasks whose rows are near.

    Attributes
    ----------
    rows, units : all rows, and the prior
    tasks : their numbers
    first : the row that comes first in ``rows.near``
    """

    rows: Rows
    units: Units
    tasks: Counts
    first: int


class Work(NamedTuple):
    """Lines of eight tasks, and a few more, because four sums are made at once.

    Attributes
    ----------
    x : four rows of each, in standard units, then their z; or weights
    Z : z of all rows, `wide` lines each, where K is to be found
    h, g : where the tasks start, and how far they went
    r : labels less their prediction at the start
    K : lower triangle of K or M, then its factor, with the inverses of the diagonal
    columns : four as long as K, number by number; or a number for each of four rows
    found : mean and variance of four rows; of a row that is loaded 1 where there is one, else 0
    where : numbers of the rows in x, or -1
    places : where they are in memory
    """

    x: Matrix
    Z: Matrix
    h: Matrix
    g: Matrix
    r: Matrix
    K: Matrix
    columns: Matrix
    found: Matrix
    where: Counts
    places: Counts


@lent
def wide(k: int) -> int:
    """Lines of k numbers, and of those that are made beside them, eight being turned at once."""
    return k + -k % LANES


@part
def room(k: int, n: int) -> Work:
    """Lines for tasks of k columns, where K or M has n columns."""
    return Work(
        x=np.empty((3 * wide(k) + wide(k + 1), LANES)),
        Z=np.zeros(((n + 3) * wide(k), LANES)),
        h=np.empty((k, LANES)),
        g=np.empty((wide(k), LANES)),
        r=np.empty((n + 4, LANES)),
        K=np.zeros(((n + 3) * (n + 4) // 2, LANES)),
        columns=np.empty((4 * n + 12, LANES)),
        found=np.empty((8, LANES)),
        where=np.empty(LANES, np.int64),
        places=np.empty(LANES, np.int64),
    )


@lent
def most(some: Some, tasks: Counts) -> int:
    """How many rows the longest of these tasks has."""
    most = 0
    for t in tasks:
        most = max(most, some.cuts[t + 1] - some.cuts[t])
    return most


@lent
def find(some: Some, tasks: Counts, a: int, where: Counts) -> None:
    """The number of row a of each task; -1 where there is none."""
    rows, cuts = some.rows, some.cuts
    for l in range(LANES):
        place, end = 0, 0
        if l < len(tasks):
            place, end = cuts[tasks[l]] + a, cuts[tasks[l] + 1]
        where[l] = rows[place] if place < end else -1


@lent
def load(eight: Eight, some: Some, a: int, work: Work, x: Matrix, base: int) -> None:
    """Row a of each task in standard units, from line `base` of x on; zeros where there is none."""
    near, units, where, places = eight.rows.near, eight.units, work.where, work.places
    k, d = len(work.h), len(units.centre)
    find(some, eight.tasks, a, where)
    begin, step = address(near), near.strides[0]
    for l in range(LANES):
        work.found[0, l] = 1.0 if where[l] >= 0 else 0.0
        places[l] = begin + max(where[l] - eight.first, 0) * step
    for j in range(0, d, LANES):
        turn(near, places, 0, j, LANES, x, (base + j) * LANES)
    there = line(work.found, 0)
    for j in range(d):
        seen = line(x, base + j) - line(units.centre, j)
        put(x, base + j, seen * line(units.factor, j) * there)
    for j in range(d, k):
        put(x, base + j, there)


@lent
def load_labels(eight: Eight, work: Work, a: int) -> None:
    """Labels of the rows that were loaded, less their level, as line a of r."""
    r, y, where = work.r, eight.rows.y, work.where
    for l in range(LANES):
        r[a, l] = y[where[l]] - eight.units.level if where[l] >= 0 else 0.0


@lent
def whiten_four(units: Units, k: int, x: Matrix, base: int) -> None:
    """``R^T x`` in the place of each x of four times eight rows, from line `base` on."""
    across, w = units.across, wide(k)
    if len(across) == k:
        for s in range(4):
            for j in range(k):
                i = base + s * w + j
                put(x, i, line(across, j) * line(x, i))
        return
    for j in range(0, k, 4):  # numbers of the matrix before its diagonal are 0
        i = base + j
        put_block(x, (i, w, 0), (x, i, w), (across, j * k + j, k), k - j)
