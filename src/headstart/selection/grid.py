"""All candidates of a grid at once: each task teaches every one of them, and tries them.

Candidates are columns, so that a task costs a few matrix products for all of them together.
A bias that is not finite any more is left alone, and its loss is infinite.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.answers import quietly
from headstart._core.checks import Vector
from headstart._core.jit import kernel, run_blocks
from headstart.inner import Inner
from headstart.inner.erm import TOLERANCE, Unsolved, solve_batch
from headstart.inner.sgd.batch import drawn_gram_pass, gram_pass
from headstart.inner.sgd.one_pass import AVERAGE, averaging
from headstart.losses import Form
from headstart.losses.many import sum_losses
from headstart.tasks import Rows, TaskSet, longest

Matrix = NDArray[np.float64]


class Candidates(NamedTuple):
    """What kernels see of the candidates: a column of H and one lam and gamma for each."""

    H: Matrix
    lams: Vector
    gammas: Vector
    form: Form

    @property
    def targets(self) -> Vector:
        """The gaps at which tasks count as solved."""
        return TOLERANCE * np.minimum(1.0, self.lams)


@kernel
def learn_passing(
    rows: Rows, t: int, candidates: Candidates, constant: bool, drawn: NDArray[np.int64]
) -> None:
    """Update every candidate's bias with task t, meta-gradients by Algorithm 1.

    `drawn` has a column of row numbers for each candidate, or is empty: each row in turn.
    """
    H, lams, gammas, form = candidates
    begin, end = rows.offsets[t], rows.offsets[t + 1]
    X, n, (d, m) = rows.X[begin:end], end - begin, H.shape
    U, G = np.empty((n, m)), np.empty((d, m))
    K, P, y = np.dot(X, X.T), np.dot(X, H), rows.y[begin:end]
    if drawn.size > 0:
        drawn_gram_pass(K, P, y, drawn, lams, form, constant, U)
    else:
        gram_pass(K, P, y, lams, form, constant, U)
    np.dot(X.T, U, G)
    for j in range(d):
        for q in range(m):
            H[j, q] -= gammas[q] / n * G[j, q]


@kernel
def learn_exactly(rows: Rows, t: int, candidates: Candidates, gaps: Vector) -> None:
    """Update every candidate's bias with task t, exact meta-gradients; fill `gaps`."""
    H, lams, gammas, form = candidates
    begin, end = rows.offsets[t], rows.offsets[t + 1]
    d, m = H.shape
    W, B = np.empty((d, m)), np.zeros((end - begin, m))
    solve_batch(rows.X[begin:end], rows.y[begin:end], H, lams, form, B, W, gaps)
    for j in range(d):
        for q in range(m):
            H[j, q] -= gammas[q] * lams[q] * (H[j, q] - W[j, q])


@kernel
def _query_losses(queries: Rows, t: int, W: Matrix, form: Form, Z: Matrix, out: Vector) -> None:
    """Mean loss on task t's queries of every column of weights; infinite if those are not finite.

    The hinge loss of an infinite weight can be 0.
    """
    begin, end = queries.offsets[t], queries.offsets[t + 1]
    n = end - begin
    np.dot(queries.X[begin:end], W, Z[:n])
    sum_losses(form, Z, queries.y, begin, n, out)
    total = 0.0
    for j in range(W.shape[0]):
        for q in range(out.size):
            total += W[j, q]
    all_finite = math.isfinite(total)
    for q in range(out.size):
        finite = out[q] < math.inf and (all_finite or math.isfinite(W[:, q].sum()))
        out[q] = out[q] / n if finite else math.inf


@kernel
def _try_passing(
    shots: Rows,
    queries: Rows,
    candidates: Candidates,
    constant: bool,
    first: int,
    last: int,
    out: Matrix,
) -> None:
    """Mean query loss of every candidate on each task: Algorithm 1, averaged iterates."""
    H, lams, _, form = candidates
    d, m = H.shape
    most = longest(shots.offsets, first, last)
    P, U, W = np.empty((most, m)), np.empty((most, m)), np.empty((d, m))
    Z = np.empty((longest(queries.offsets, first, last), m))
    share = np.empty(0)
    for t in range(first, last):
        begin, end = shots.offsets[t], shots.offsets[t + 1]
        X, n = shots.X[begin:end], end - begin
        if share.size != n:
            share = averaging(AVERAGE, constant, n)
        np.dot(X, H, P[:n])
        gram_pass(np.dot(X, X.T), P[:n], shots.y[begin:end], lams, form, constant, U[:n])
        for k in range(n):
            for q in range(m):
                U[k, q] *= share[k] / lams[q]
        np.dot(X.T, U[:n], W)
        for j in range(d):
            for q in range(m):
                W[j, q] = H[j, q] - W[j, q]
        _query_losses(queries, t, W, form, Z, out[t])


@kernel
def _try_exactly(
    shots: Rows,
    queries: Rows,
    candidates: Candidates,
    duals: Matrix,
    first: int,
    last: int,
    out: Matrix,
    gaps: Matrix,
) -> None:
    """Mean query loss of every candidate on each task: exact solutions.

    `duals` holds the dual points of all shots, a column for each candidate. The next bias starts
    from them: it moves little from task to task.
    """
    H, lams, _, form = candidates
    W, Z = np.empty(H.shape), np.empty((longest(queries.offsets, first, last), lams.size))
    for t in range(first, last):
        begin, end = shots.offsets[t], shots.offsets[t + 1]
        X, y, B = shots.X[begin:end], shots.y[begin:end], duals[begin:end]
        solve_batch(X, y, H, lams, form, B, W, gaps[t])
        _query_losses(queries, t, W, form, Z, out[t])


def mean_losses(
    pair: tuple[TaskSet, TaskSet],
    candidates: Candidates,
    examiner: Inner,
    duals: Matrix,
    unsolved: Unsolved,
    n_jobs: int,
) -> Vector:
    """Loss of every candidate, the mean over tasks of the means over their queries; never NaN."""
    shots, queries = pair[0].rows(), pair[1].rows()
    out = np.empty((len(pair[0]), candidates.lams.size))
    gaps = np.empty(out.shape if examiner.exact else (0, 0))

    def work(first: int, last: int) -> None:
        if examiner.exact:
            _try_exactly(shots, queries, candidates, duals, first, last, out, gaps)
        else:
            _try_passing(shots, queries, candidates, examiner.constant, first, last, out)

    run_blocks(work, len(out), n_jobs)
    if examiner.exact:
        unsolved.add(gaps, candidates.targets)
    with quietly():
        return np.asarray(out.mean(axis=0), np.float64)
