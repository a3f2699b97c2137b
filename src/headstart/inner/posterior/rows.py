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

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.interleave import gather
from headstart._core.jit import kernel, lent, part
from headstart._core.lanes import (
    LANES,
    line,
    plus,
    put,
    put_block,
    put_four,
    put_row,
    spread,
)
from headstart.inner.posterior.lines import (
    Eight,
    Rows,
    Some,
    Units,
    Work,
    find,
    load,
    load_labels,
    most,
    room,
    whiten_four,
    wide,
)
from headstart.inner.posterior.triangles import backward, factor, forward, forward_four

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

NEAR = 1 << 16  # numbers of rows that are gathered at once: they stay in a near cache


class Answers(NamedTuple):
    """What is found of tasks and rows.

    Attributes
    ----------
    W : weights in the user's units, a column for each task, the intercept last, 0 if there is none
    mean, variance : by row, of its prediction; none if not asked for
    finite : whether all inputs are numbers
    """

    W: Matrix
    mean: Vector
    variance: Vector
    finite: bool


def answer(rows: Rows, units: Units, *, predict: bool) -> Answers:
    """Weights of all tasks; and of all rows the mean and variance of their predictions."""
    n, d = len(rows.y) if predict else 0, len(units.centre)
    W = np.empty((d + 1, len(rows.starts) - 1))
    out = Answers(W, np.empty(n), np.empty(n), True)
    return out._replace(finite=math.isfinite(_answer(rows, units, out)))


def room_near(starts: Counts, dtype: DTypeLike, d: int) -> FloatArray:
    """Room for rows of neighbouring tasks: for about `NEAR` numbers, or for the longest task."""
    width = wide(d)
    longest = int(np.diff(starts).max(initial=0))
    return np.empty((max(NEAR // width, longest) + LANES, width), dtype)


@kernel
def _answer(rows: Rows, units: Units, out: Answers) -> float:
    """Answers of all tasks; about the sum of squares of all inputs."""
    known, starts = rows.side.shape[1], rows.starts
    k = len(units.effects) // known
    n_tasks, longest = len(starts) - 1, 0
    for t in range(n_tasks):
        longest = max(longest, rows.own.cuts[t + 1] - rows.own.cuts[t])
    work, side = room(k, min(longest, k)), np.zeros((known, LANES))
    together = len(rows.near) - LANES
    order, count = np.empty(together + 1, np.int64), np.empty(together + 2, np.int64)
    total, last = 0.0, 0
    while last < n_tasks:
        first, last = last, last + 1
        while last < n_tasks and starts[last + 1] - starts[first] <= together:
            last += 1
        total += gather(rows.pieces, starts[first], starts[last], rows.near)
        _sort(rows.own.cuts, first, last, order, count)
        begin = 0
        while begin < last - first:
            end = min(begin + LANES, last - first)
            few = _is_few(rows, order[begin], k)
            while _is_few(rows, order[end - 1], k) != few:
                end -= 1
            eight = Eight(rows, units, order[begin:end], starts[first])
            _answer_eight(eight, few, side, work, out)
            begin = end
    return total


@lent
def _sort(cuts: Counts, first: int, last: int, order: Counts, count: Counts) -> None:
    """Tasks from `first` to before `last`, by how many rows they have."""
    if last - first == 1:  # which may have more rows than others have together
        order[0] = first
        return
    count[:] = 0
    for t in range(first, last):
        count[cuts[t + 1] - cuts[t] + 1] += 1
    for n in range(1, len(count)):
        count[n] += count[n - 1]
    for t in range(first, last):
        n = cuts[t + 1] - cuts[t]
        order[count[n]] = t
        count[n] += 1


@lent
def _is_few(rows: Rows, t: int, k: int) -> bool:
    """Whether a task has no more rows than there are columns."""
    return bool(rows.own.cuts[t + 1] - rows.own.cuts[t] <= k)


@lent
def _answer_eight(eight: Eight, few: bool, side: Matrix, work: Work, out: Answers) -> None:
    """Answers of eight tasks, by K where they have `few` rows, else by M."""
    rows, tasks, effects = eight.rows, eight.tasks, eight.units.effects
    k, known, n = len(work.h), len(side), 0
    for m in range(known):
        for l in range(len(tasks)):
            side[m, l] = rows.side[tasks[l], m]
    for j in range(k):
        put(work.h, j, plus(spread(0.0), effects, j * known, side, 0, known))
    if few:
        n = most(rows.own, tasks)
        _by_rows(eight, n, work)
    else:
        _by_columns(eight, work)
    _put_weights(eight, side, work, out.W)
    if len(out.mean) == 0:
        return
    if few:
        _predict_own(eight, n, work, out)
    else:
        _predict(eight, rows.own, n, few, work, out)
    if most(rows.other, tasks):
        _predict(eight, rows.other, n, few, work, out)


@lent
def _by_rows(eight: Eight, n: int, work: Work) -> None:
    """Find g by K, and leave ``K^-1 r`` in the place of r."""
    k, Z, K, r = len(work.h), work.Z, work.K, work.r
    w = wide(k)
    for a in range(n):
        load(eight, eight.rows.own, a, work, Z, a * w)
        load_labels(eight, work, a)
    for i in range(n * w, (n + -n % 4) * w):
        put(Z, i, spread(0.0))
    for a in range(0, n, 4):
        put_four(work.columns, a, Z, a * w, w, work.h, 0, k)
    for a in range(n):
        put(r, a, line(r, a) - line(work.columns, a))
    for a in range(0, n, 4):
        whiten_four(eight.units, k, Z, a * w)
        for m in range(a, -1, -4):  # the first goes beyond the diagonal, to places filled later
            put_block(K, (a * (a + 1) // 2 + m, a + 1, 1), (Z, a * w, w), (Z, m * w, w), k)
    factor(K, n, eight.units.noise)
    forward(K, n, r)
    backward(K, n, r)
    for j in range(0, k, 4):
        one = two = three = four = spread(0.0)
        for a in range(n):
            value, i = line(r, a), a * w + j
            one += line(Z, i) * value
            two += line(Z, i + 1) * value
            three += line(Z, i + 2) * value
            four += line(Z, i + 3) * value
        put_row(work.g, j, (one, two, three, four))


@part
def _by_columns(eight: Eight, work: Work) -> None:
    """Find g by M."""
    k, x, h, g, K, r = len(work.h), work.x, work.h, work.g, work.K, work.r
    w = wide(k)
    g[:], K[:] = 0.0, 0.0
    for a in range(0, most(eight.rows.own, eight.tasks), 4):
        for s in range(4):
            load(eight, eight.rows.own, a + s, work, x, s * w)
            load_labels(eight, work, s)
        put_four(work.columns, 0, x, 0, w, h, 0, k)
        for s in range(4):
            put(r, s, line(r, s) - line(work.columns, s))
        whiten_four(eight.units, k, x, 0)
        for j in range(k):
            one, two = line(x, j), line(x, w + j)
            three, four = line(x, 2 * w + j), line(x, 3 * w + j)
            total = line(g, j) + one * line(r, 0)
            total += two * line(r, 1)
            total += three * line(r, 2)
            total += four * line(r, 3)
            put(g, j, total)
            row = j * (j + 1) // 2
            for m in range(j + 1):
                total = line(K, row + m) + one * line(x, m)
                total += two * line(x, w + m)
                total += three * line(x, 2 * w + m)
                total += four * line(x, 3 * w + m)
                put(K, row + m, total)
    factor(K, k, eight.units.noise)
    forward(K, k, g)
    backward(K, k, g)


@lent
def _put_weights(eight: Eight, side: Matrix, work: Work, W: Matrix) -> None:
    """``h + R g``, in the user's units; of a task without rows its start as it is."""
    units, tasks, x, g = eight.units, eight.tasks, work.x, work.g
    k, d, root = len(work.h), len(units.centre), units.root
    if len(root) == k:
        for j in range(k):
            put(x, j, line(root, j) * line(g, j))
    else:
        for j in range(0, k, 4):  # numbers of the matrix after its diagonal are 0
            put_four(x, j, root, j * k, k, g, 0, min(j + 4, k))
    level = spread(0.0)
    for j in range(d):
        put(x, j, line(x, j) * line(units.factor, j))
        level -= line(x, j) * line(units.centre, j)
    put(x, d, level + line(x, d) if k > d else level)
    for j in range(d + 1):
        put(x, j, plus(line(x, j), units.outside, j * len(side), side, 0, len(side)))
        for l in range(len(tasks)):
            W[j, tasks[l]] = x[j, l]


@lent
def _predict_own(eight: Eight, n: int, work: Work, out: Answers) -> None:
    """Predictions of the rows that K is of: of its inverse the diagonal is needed."""
    b, found, columns = spread(eight.units.noise), work.found, work.columns
    for a in range(0, n, 4):
        for i in range(4 * a, 4 * n):
            put(columns, i, spread(0.0))
        for s in range(4):  # four columns of the unit matrix
            put(columns, 4 * a + 5 * s, spread(1.0))
        put_row(found, 4, forward_four(work.K, a, n, columns, 4, 1))
        for s in range(min(4, n - a)):
            put(found, s, spread(0.0) - b * line(work.r, a + s))
            put(found, 4 + s, b - b * b * line(found, 4 + s))
        _put_answers(eight, eight.rows.own, a, True, work, out)


@part
def _predict(eight: Eight, some: Some, n: int, few: bool, work: Work, out: Answers) -> None:
    """Predictions of any rows, by the factor of K, whose size is n, or else of M."""
    k, x, K, columns, found = len(work.h), work.x, work.K, work.columns, work.found
    w, level, b = wide(k), spread(eight.units.level), spread(eight.units.noise)
    for a in range(0, most(some, eight.tasks), 4):
        for s in range(4):
            load(eight, some, a + s, work, x, s * w)
        put_four(columns, 0, x, 0, w, work.h, 0, k)
        whiten_four(eight.units, k, x, 0)
        put_four(columns, 4, x, 0, w, work.g, 0, k)
        for s in range(4):
            put(found, s, level + line(columns, s) + line(columns, 4 + s))
            put(found, 4 + s, plus(spread(0.0), x, s * w, x, s * w, k))
        if few:
            for m in range(0, n, 4):
                put_block(columns, (4 * m, 4, 0), (work.Z, m * w, w), (x, 0, w), k)
            put_row(columns, 0, forward_four(K, 0, n, columns, 4, 1))
            for s in range(4):
                put(found, 4 + s, line(found, 4 + s) - line(columns, s))
        else:
            put_row(found, 4, forward_four(K, 0, k, x, 1, w))
            for s in range(4):
                put(found, 4 + s, line(found, 4 + s) * b)
        _put_answers(eight, some, a, False, work, out)


@lent
def _put_answers(eight: Eight, some: Some, a: int, seen: bool, work: Work, out: Answers) -> None:
    """Mean and variance of rows a to a + 3 of each task; the mean may be seen from the label."""
    y, where, found = eight.rows.y, work.where, work.found
    for s in range(4):
        find(some, eight.tasks, a + s, where)
        for l in range(LANES):
            i = where[l]
            if i >= 0:
                out.mean[i] = found[s, l] + (y[i] if seen else 0.0)
                out.variance[i] = max(found[4 + s, l], 0.0)
