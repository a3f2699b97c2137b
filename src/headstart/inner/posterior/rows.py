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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import Vector
from headstart._core.jit import kernel, part
from headstart._core.lanes import LANES, add_products, take_products
from headstart.inner.posterior.lines import (
    AHEAD,
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
    whiten,
)

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

NEAR = 1 << 10  # tasks among which those of as many rows are looked for, before caches forget them


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
        _predict(rows, rows.other, units, some, n, few, work, out)


@part
def _by_rows(rows: Rows, units: Units, tasks: Counts, n: int, work: Work) -> None:
    """Find g by K, and leave ``K^-1 r`` in the place of r."""
    k, Z, K = len(work.g), work.Z, work.K
    for a in range(n):
        if a % AHEAD == 0:
            load(rows, rows.own, units, tasks, a, work)
        load_labels(rows, a % AHEAD, work, a)
        whiten(units, a % AHEAD, work, Z, a * k)
        row = a * (a + 1) // 2
        K[row : row + a] = 0.0
        K[row + a] = units.noise
        for m in range(a + 1):
            add_products(K, row + m, Z, a * k, Z, m * k, k)
    factor(K, n)
    forward(K, 0, n, work.r)
    backward(K, n, work.r)
    work.g[:] = 0.0
    for a in range(n):
        for j in range(k):
            add_products(work.g, j, Z, a * k + j, work.r, a, 1)


@part
def _by_columns(rows: Rows, units: Units, tasks: Counts, work: Work) -> None:
    """Find g by M."""
    k, z, g, K = len(work.g), work.z, work.g, work.K
    g[:], K[:] = 0.0, 0.0
    for j in range(k):
        K[j * (j + 1) // 2 + j] = units.noise
    for a in range(most(rows.own, tasks)):
        if a % AHEAD == 0:
            load(rows, rows.own, units, tasks, a, work)
        load_labels(rows, a % AHEAD, work, 0)
        whiten(units, a % AHEAD, work, z, 0)
        for j in range(k):
            add_products(g, j, z, j, work.r, 0, 1)
            for m in range(j + 1):
                add_products(K, j * (j + 1) // 2 + m, z, j, z, m, 1)
    factor(K, k)
    forward(K, 0, k, g)
    backward(K, k, g)


@part
def _put_weights(units: Units, tasks: Counts, work: Work, W: Matrix) -> None:
    """``h + R g``."""
    k, x = len(work.g), work.x
    for j in range(k):
        for l in range(LANES):
            x[j, l] = work.h[j, l]
        if len(units.root) == k:
            for l in range(LANES):
                x[j, l] += units.root[j] * work.g[j, l]
        else:
            add_products(x, j, units.root, j * k, work.g, 0, j + 1)
    for l in range(len(tasks)):
        for j in range(k):
            W[tasks[l], j] = x[j, l]


@part
def _predict_own(rows: Rows, units: Units, tasks: Counts, n: int, work: Work, out: Answers) -> None:
    """Predictions of the rows that K is of."""
    b, K, r, column, pair = units.noise, work.K, work.r, work.column, work.pair
    y, where, mean, variance = rows.y, work.where, out.mean, out.variance
    for a in range(n):
        if a % AHEAD == 0:
            find(rows.own, tasks, a, where)
        column[a:n] = 0.0
        column[a] = 1.0
        forward(K, a, n, column)
        pair[0] = 0.0
        add_products(pair, 0, column, a, column, a, n - a)
        for l in range(LANES):
            i = where[a % AHEAD, l]
            if i >= 0:
                mean[i] = y[i] - b * r[a, l]
                variance[i] = max(b - b * b * pair[0, l], 0.0)


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
    k, x, z, column, pair = len(work.h), work.x, work.z, work.column, work.pair
    for a in range(most(some, tasks)):
        if a % AHEAD == 0:
            load(rows, some, units, tasks, a, work)
        whiten(units, a % AHEAD, work, z, 0)
        pair[:] = 0.0
        add_products(pair, 0, work.h, 0, x, a % AHEAD * k, k)
        add_products(pair, 0, work.g, 0, z, 0, k)
        if few:
            add_products(pair, 1, z, 0, z, 0, k)
            column[:n] = 0.0
            for m in range(n):
                add_products(column, m, work.Z, m * k, z, 0, k)
            forward(work.K, 0, n, column)
            take_products(pair, 1, column, 0, column, 0, n)
        else:
            forward(work.K, 0, k, z)
            add_products(pair, 1, z, 0, z, 0, k)
        for l in range(LANES):
            i = work.where[a % AHEAD, l]
            if i >= 0:
                out.mean[i] = pair[0, l]
                out.variance[i] = max(pair[1, l] * (1.0 if few else units.noise), 0.0)
