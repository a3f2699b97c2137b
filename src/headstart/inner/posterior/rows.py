r"""Tasks of the squared loss that are asked for once: their weights, and what rows are predicted.

With a root of the covariance, :math:`\Sigma = RR^\top`, and :math:`Z = XR` the weights are
:math:`h + Rg`, and g is spread as the unit matrix says before rows are seen. After them, with
:math:`r = y - Xh`, a row x whose :math:`z = R^\top x` is predicted by
:math:`\langle x, h\rangle + \langle z, g\rangle`, and not known of it is v:

.. math:: K = ZZ^\top + bI = LL^\top, \quad g = Z^\top K^{-1}r, \quad
          v = \|z\|^2 - \|L^{-1}Zz\|^2

.. math:: M = Z^\top Z + bI = LL^\top, \quad g = M^{-1}Z^\top r, \quad v = b\,\|L^{-1}z\|^2

The first where a task has no more rows than columns, since K is of the size of its rows. There a
row i of the task itself needs neither: with :math:`a = K^{-1}r` it is predicted by
:math:`y_i - ba_i`, and v is :math:`b - b^2 (K^{-1})_{ii}`.

Every step is taken for 32 tasks at once (`headstart._core.lanes`), those of about as many rows.
Where a task has fewer, rows of zeros come last and change nothing: a task has the same bits
whatever tasks are beside it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.jit import inlined, kernel
from headstart._core.lanes import LANES, add_products, take_products
from headstart.inner.start import Start
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

AHEAD = 4  # rows of a task that are loaded together
NEAR = 1 << 10  # tasks among which those of as many rows are looked for, before caches forget them


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


class Answers(NamedTuple):
    """Weights by task in standard units; mean and variance by row, or none if not asked for."""

    W: Matrix
    mean: Vector
    variance: Vector


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


def answer(rows: Rows, units: Units, *, predict: bool) -> Answers:
    """Weights of all tasks; and of all rows the mean and variance of their predictions."""
    sizes, n = np.diff(rows.own.cuts), len(rows.y) if predict else 0
    k = len(units.effects) // rows.side.shape[1]
    out = Answers(np.empty((len(sizes), k)), np.empty(n), np.empty(n))
    for few in (True, False):
        tasks = np.flatnonzero((sizes <= k) == few)
        alike = tasks[np.lexsort((sizes[tasks], tasks // NEAR))]
        _answer(rows, units, alike, few, out)
    return out


@kernel
def _answer(rows: Rows, units: Units, tasks: Counts, few: bool, out: Answers) -> None:
    """Answers of these tasks, by K where they have `few` rows, else by M."""
    known = rows.side.shape[1]
    k = len(units.effects) // known
    n = _most(rows.own, tasks) if few else k
    side = np.zeros((known, LANES))
    work = Work(
        x=np.empty((AHEAD * k, LANES)),
        z=np.empty((k, LANES)),
        Z=np.empty((n * k if few else 0, LANES)),
        h=np.zeros((k, LANES)),
        g=np.empty((k, LANES)),
        r=np.empty((n, LANES)),
        K=np.empty((n * (n + 1) // 2, LANES)),
        column=np.empty((n, LANES)),
        where=np.empty((AHEAD, LANES), np.int64),
        pair=np.empty((2, LANES)),
    )
    for first in range(0, len(tasks), LANES):
        some = tasks[first : first + LANES]
        for m in range(known):
            for l in range(len(some)):
                side[m, l] = rows.side[some[l], m]
        work.h[:] = 0.0
        for j in range(k):
            add_products(work.h, j, units.effects, j * known, side, 0, known)
        if few:
            n = _most(rows.own, some)
            _by_rows(rows, units, some, n, work)
        else:
            _by_columns(rows, units, some, work)
        _put_weights(units, some, work, out.W)
        if len(out.mean) == 0:
            continue
        if few:
            _predict_own(rows, units, some, n, work, out)
        else:
            _predict(rows, rows.own, units, some, n, few, work, out)
        _predict(rows, rows.other, units, some, n, few, work, out)


@inlined
def _most(rows: Some, tasks: Counts) -> int:
    """How many rows the longest of these tasks has."""
    most = 0
    for t in tasks:
        most = max(most, rows.cuts[t + 1] - rows.cuts[t])
    return most


@inlined
def _find(some: Some, tasks: Counts, a: int, where: Counts) -> None:
    """The numbers of rows from a on, `AHEAD` of each task; -1 where there is none."""
    rows, cuts = some.rows, some.cuts
    for l in range(LANES):
        place, end = 0, 0
        if l < len(tasks):
            place, end = cuts[tasks[l]] + a, cuts[tasks[l] + 1]
        for b in range(AHEAD):
            where[b, l] = rows[place + b] if place + b < end else -1


@inlined
def _load(rows: Rows, some: Some, units: Units, tasks: Counts, a: int, work: Work) -> None:
    """Rows from a on, `AHEAD` of each task, in standard units; zeros where there is none.

    Eight tasks at once, because eight lanes of a line can be written at once; and of each the
    rows one after another, as they lie.
    """
    _find(some, tasks, a, work.where)
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
def _load_labels(rows: Rows, b: int, work: Work, line: int) -> None:
    """Residuals of the b-th rows of those in x."""
    y, r, where, k = rows.y, work.r, work.where, len(work.h)
    for l in range(LANES):
        i = where[b, l]
        r[line, l] = y[i] if i >= 0 else 0.0
    take_products(r, line, work.h, 0, work.x, b * k, k)


@inlined
def _whiten(units: Units, b: int, work: Work, z: Matrix, base: int) -> None:
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
def _factor(K: Matrix, n: int, b: float) -> None:
    """Cholesky's factor in place, with the inverses of its diagonal.

    No pivot is less than b, but for rounding.
    """
    for i in range(n):
        row = i * (i + 1) // 2
        for j in range(i):
            other = j * (j + 1) // 2
            take_products(K, row + j, K, row, K, other, j)
            for l in range(LANES):
                K[row + j, l] *= K[other + j, l]
        take_products(K, row + i, K, row, K, row, i)
        for l in range(LANES):
            K[row + i, l] = 1.0 / math.sqrt(max(K[row + i, l], b))


@inlined
def _forward(K: Matrix, first: int, n: int, x: Matrix) -> None:
    """``L^-1 x`` in place; numbers before the first are 0."""
    for i in range(first, n):
        row = i * (i + 1) // 2
        take_products(x, i, K, row + first, x, first, i - first)
        for l in range(LANES):
            x[i, l] *= K[row + i, l]


@inlined
def _backward(K: Matrix, n: int, x: Matrix) -> None:
    """``L^-T x`` in place."""
    for i in range(n - 1, -1, -1):
        row = i * (i + 1) // 2
        for l in range(LANES):
            x[i, l] *= K[row + i, l]
        for m in range(i):
            take_products(x, m, K, row + m, x, i, 1)


@inlined
def _by_rows(rows: Rows, units: Units, tasks: Counts, n: int, work: Work) -> None:
    """Find g by K, and leave ``K^-1 r`` in the place of r."""
    k, Z, K = len(work.g), work.Z, work.K
    for a in range(n):
        if a % AHEAD == 0:
            _load(rows, rows.own, units, tasks, a, work)
        _load_labels(rows, a % AHEAD, work, a)
        _whiten(units, a % AHEAD, work, Z, a * k)
        row = a * (a + 1) // 2
        K[row : row + a] = 0.0
        K[row + a] = units.noise
        for m in range(a + 1):
            add_products(K, row + m, Z, a * k, Z, m * k, k)
    _factor(K, n, units.noise)
    _forward(K, 0, n, work.r)
    _backward(K, n, work.r)
    work.g[:] = 0.0
    for a in range(n):
        for j in range(k):
            add_products(work.g, j, Z, a * k + j, work.r, a, 1)


@inlined
def _by_columns(rows: Rows, units: Units, tasks: Counts, work: Work) -> None:
    """Find g by M."""
    k, z, g, K = len(work.g), work.z, work.g, work.K
    g[:], K[:] = 0.0, 0.0
    for j in range(k):
        K[j * (j + 1) // 2 + j] = units.noise
    for a in range(_most(rows.own, tasks)):
        if a % AHEAD == 0:
            _load(rows, rows.own, units, tasks, a, work)
        _load_labels(rows, a % AHEAD, work, 0)
        _whiten(units, a % AHEAD, work, z, 0)
        for j in range(k):
            add_products(g, j, z, j, work.r, 0, 1)
            for m in range(j + 1):
                add_products(K, j * (j + 1) // 2 + m, z, j, z, m, 1)
    _factor(K, k, units.noise)
    _forward(K, 0, k, g)
    _backward(K, k, g)


@inlined
def _put_weights(units: Units, tasks: Counts, work: Work, W: Matrix) -> None:
    """``h + R g``."""
    k, x = len(work.g), work.x
    x[:k] = work.h
    for j in range(k):
        if len(units.root) == k:
            for l in range(LANES):
                x[j, l] += units.root[j] * work.g[j, l]
        else:
            add_products(x, j, units.root, j * k, work.g, 0, j + 1)
    for l in range(len(tasks)):
        for j in range(k):
            W[tasks[l], j] = x[j, l]


@inlined
def _predict_own(rows: Rows, units: Units, tasks: Counts, n: int, work: Work, out: Answers) -> None:
    """Predictions of the rows that K is of."""
    b, K, r, column, pair = units.noise, work.K, work.r, work.column, work.pair
    y, where, mean, variance = rows.y, work.where, out.mean, out.variance
    for a in range(n):
        if a % AHEAD == 0:
            _find(rows.own, tasks, a, where)
        column[a:n] = 0.0
        column[a] = 1.0
        _forward(K, a, n, column)
        pair[0] = 0.0
        add_products(pair, 0, column, a, column, a, n - a)
        for l in range(LANES):
            i = where[a % AHEAD, l]
            if i >= 0:
                mean[i] = y[i] - b * r[a, l]
                variance[i] = max(b - b * b * pair[0, l], 0.0)


@inlined
def _predict(
    rows: Rows,
    some: Some,
    units: Units,
    tasks: Counts,
    n: int,
    few: bool,
    work: Work,
    out: Answers,
) -> None:
    """Predictions of any rows, by the factor of K, whose size is n, or else of M."""
    k, x, z, column, pair = len(work.h), work.x, work.z, work.column, work.pair
    for a in range(_most(some, tasks)):
        if a % AHEAD == 0:
            _load(rows, some, units, tasks, a, work)
        _whiten(units, a % AHEAD, work, z, 0)
        pair[:] = 0.0
        add_products(pair, 0, work.h, 0, x, a % AHEAD * k, k)
        add_products(pair, 0, work.g, 0, z, 0, k)
        if few:
            add_products(pair, 1, z, 0, z, 0, k)
            column[:n] = 0.0
            for m in range(n):
                add_products(column, m, work.Z, m * k, z, 0, k)
            _forward(work.K, 0, n, column)
            take_products(pair, 1, column, 0, column, 0, n)
        else:
            _forward(work.K, 0, k, z)
            add_products(pair, 1, z, 0, z, 0, k)
        for l in range(LANES):
            i = work.where[a % AHEAD, l]
            if i >= 0:
                out.mean[i] = pair[0, l]
                out.variance[i] = max(pair[1, l] * (1.0 if few else units.noise), 0.0)
