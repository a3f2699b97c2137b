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

Every step is taken for eight tasks at once (`headstart._core.lanes`), those of about as many rows.
Where a task has fewer, rows of zeros come last and change nothing: a task has the same bits
whatever tasks are beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import inlined, kernel, part
from headstart._core.lanes import LANES, line, minus, plus, put, put_four, spread
from headstart.inner.posterior.lines import (
    Rows,
    Some,
    Units,
    Work,
    backward,
    factor,
    find,
    forward,
    load,
    load_labels,
    most,
    room,
    whiten,
    wide,
)

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

NEAR = 1 << 8  # tasks among which those of as many rows are looked for, before caches forget them


class Answers(NamedTuple):
    """Weights by task in standard units; mean and variance by row, or none if not asked for."""

    W: Matrix
    mean: Vector
    variance: Vector


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
    n = most(rows.own, tasks) if few else k
    work, side = room(k, n, n if few else 0), np.zeros((known, LANES))
    for first in range(0, len(tasks), LANES):
        some = tasks[first : first + LANES]
        for m in range(known):
            for l in range(len(some)):
                side[m, l] = rows.side[some[l], m]
        for j in range(k):
            put(work.h, j, plus(spread(0.0), units.effects, j * known, side, 0, known))
        if few:
            n = most(rows.own, some)
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
        if most(rows.other, some):
            _predict(rows, rows.other, units, some, n, few, work, out)


@inlined
def _by_rows(rows: Rows, units: Units, tasks: Counts, n: int, work: Work) -> None:
    """Find g by K, and leave ``K^-1 r`` in the place of r."""
    k, Z, K, r = len(work.g), work.Z, work.K, work.r
    w = wide(k)
    for a in range(n):
        load(rows, rows.own, units, tasks, a, work)
        load_labels(rows, work, a)
        whiten(units, work, Z, a * w)
        for m in range(0, a + 1, 4):  # beyond row a into places that later rows fill
            put_four(K, a * (a + 1) // 2 + m, Z, m * w, w, Z, a * w, k)
    factor(K, n, units.noise)
    forward(K, 0, n, r)
    backward(K, n, r)
    for j in range(k):
        total = spread(0.0)
        for a in range(n):
            total += line(Z, a * w + j) * line(r, a)
        put(work.g, j, total)


@part
def _by_columns(rows: Rows, units: Units, tasks: Counts, work: Work) -> None:
    """Find g by M."""
    k, z, g, K = len(work.g), work.z, work.g, work.K
    g[:], K[:] = 0.0, 0.0
    for a in range(most(rows.own, tasks)):
        load(rows, rows.own, units, tasks, a, work)
        load_labels(rows, work, 0)
        whiten(units, work, z, 0)
        r = line(work.r, 0)
        for j in range(k):
            one, row = line(z, j), j * (j + 1) // 2
            put(g, j, line(g, j) + one * r)
            for m in range(j + 1):
                put(K, row + m, line(K, row + m) + one * line(z, m))
    factor(K, k, units.noise)
    forward(K, 0, k, g)
    backward(K, k, g)


@inlined
def _put_weights(units: Units, tasks: Counts, work: Work, W: Matrix) -> None:
    """``h + R g``."""
    k, x, g, root = len(work.g), work.x, work.g, units.root
    if len(root) == k:
        for j in range(k):
            put(x, j, line(root, j) * line(g, j))
    else:
        for j in range(0, k, 4):  # numbers of the matrix after its diagonal are 0
            put_four(x, j, root, j * k, k, g, 0, min(j + 4, k))
    for j in range(k):
        put(x, j, line(work.h, j) + line(x, j))
    for l in range(len(tasks)):
        for j in range(k):
            W[tasks[l], j] = x[j, l]


@inlined
def _predict_own(rows: Rows, units: Units, tasks: Counts, n: int, work: Work, out: Answers) -> None:
    """Predictions of the rows that K is of."""
    b, K, column = spread(units.noise), work.K, work.column
    for a in range(n):
        put(column, a, line(K, a * (a + 3) // 2))
        for i in range(a + 1, n):
            row = i * (i + 1) // 2
            found = minus(spread(0.0), K, row + a, column, a, i - a)
            put(column, i, found * line(K, row + i))
        inverse = plus(spread(0.0), column, a, column, a, n - a)
        put(work.pair, 0, spread(0.0) - b * line(work.r, a))
        put(work.pair, 1, b - b * b * inverse)
        find(rows.own, tasks, a, work.where)
        _put_answers(rows.y, work, out)


@part
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
    k, z, K, column = len(work.h), work.z, work.K, work.column
    for a in range(most(some, tasks)):
        load(rows, some, units, tasks, a, work)
        whiten(units, work, z, 0)
        mean = plus(plus(spread(0.0), work.h, 0, work.x, 0, k), work.g, 0, z, 0, k)
        if few:
            for m in range(n):
                put(column, m, plus(spread(0.0), work.Z, m * wide(k), z, 0, k))
            forward(K, 0, n, column)
            known = plus(spread(0.0), z, 0, z, 0, k)
            variance = minus(known, column, 0, column, 0, n)
        else:
            forward(K, 0, k, z)
            variance = plus(spread(0.0), z, 0, z, 0, k) * spread(units.noise)
        put(work.pair, 0, mean)
        put(work.pair, 1, variance)
        _put_answers(np.empty(0), work, out)


@inlined
def _put_answers(y: Vector, work: Work, out: Answers) -> None:
    """Mean and variance of the rows at hand from a pair of lines; the mean is seen from y."""
    for l in range(LANES):
        i = work.where[l]
        if i >= 0:
            out.mean[i] = work.pair[0, l] + (y[i] if len(y) else 0.0)
            out.variance[i] = max(work.pair[1, l], 0.0)
