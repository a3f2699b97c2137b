"""Weights and predictions of many tasks at once: the textbook's, whatever tasks are beside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import normal_posterior

from headstart import Prior
from headstart._core.checks import FloatArray, Vector
from headstart._core.interleave import Pieces
from headstart.inner.posterior.lines import Rows, Some, Units
from headstart.inner.posterior.rows import Answers, answer, room_near
from headstart.inner.start import with_one
from headstart.tasks.columns import Columns

SEEDS = st.integers(0, 2**32 - 1)
Mask = NDArray[np.bool_]


def some(mask: Mask, sizes: NDArray[np.int64]) -> Some:
    cuts = np.append(0, np.cumsum(sizes))
    return Some.where(mask, np.array([mask[a:b].sum() for a, b in pairwise(cuts)]))


def asked(
    prior: Prior,
    X: FloatArray,
    y: Vector,
    own: Mask,
    sizes: NDArray[np.int64],
    cuts: tuple[int, ...] = (),
) -> Answers:
    """Answers to rows that lie in columns, in pieces that begin at these rows."""
    labels = np.where(own, y, 1e9)  # what is no label is not looked at
    starts = np.append(0, np.cumsum(sizes))
    ends = pairwise([0, *cuts, len(X)])
    columns = [[np.ascontiguousarray(x) for x in X[a:b].T] for a, b in ends]
    near, known = room_near(starts, X.dtype, X.shape[1]), with_one(None, len(sizes))
    about = starts, labels, some(own, sizes), some(~own, sizes), known
    rows = Rows(Pieces.of(columns), near, *about)
    return answer(rows, Units.of(prior.columns, prior.standard), predict=True)


def drawn(rng: np.random.Generator, d: int, full: bool) -> Prior:
    root = rng.normal(size=(d + 1, d + 1))
    sigma = root @ root.T + 0.1 * np.eye(d + 1) if full else np.diag(rng.uniform(0.1, 2.0, d + 1))
    columns = Columns(rng.normal(size=d), rng.uniform(0.5, 2.0, d), 3.0, intercept=full)
    if not full:
        sigma, columns = sigma[:d, :d], Columns(np.zeros(d), columns.scale, 0.0, intercept=False)
    h = rng.normal(size=len(sigma))
    return Prior(h, sigma, 0.3, intercept=full, columns=columns)


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 18), st.booleans())
def test_answers_are_the_textbooks(seed: int, d: int, full: bool) -> None:
    """Tasks of no row, of fewer rows than columns, and of more; rows with and without a label."""
    rng = np.random.default_rng(seed)
    prior, sizes = drawn(rng, d, full), rng.integers(1, 30, 45)
    X, y = rng.normal(size=(sizes.sum(), d)), 3.0 + rng.normal(size=sizes.sum())
    own, cuts = rng.random(len(y)) < 0.7, np.append(0, np.cumsum(sizes))
    pieces = tuple(np.sort(rng.integers(0, len(X) + 1, 2)).tolist())
    found = asked(prior, X, y, own, sizes, pieces)
    inputs = np.column_stack([X, np.ones(len(X))]) if full else X
    for t, (a, b) in enumerate(pairwise(cuts)):
        mine = np.arange(a, b)[own[a:b]]
        noise = np.full(mine.size, prior.noise)
        expected = normal_posterior(inputs[mine], y[mine], prior.bias, prior.covariance, noise)
        weights = found.W[:, t] if full else found.W[:-1, t]
        np.testing.assert_allclose(weights, expected.mean, rtol=1e-7, atol=1e-7)
        Z = inputs[a:b]
        np.testing.assert_allclose(found.mean[a:b], Z @ expected.mean, rtol=1e-7, atol=1e-7)
        unknown = np.einsum("ij,jk,ik->i", Z, expected.covariance, Z)
        np.testing.assert_allclose(found.variance[a:b], unknown, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 12])
def test_a_task_has_the_same_bits_whatever_tasks_are_beside_it(d: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    prior, sizes = drawn(rng, d, full=True), rng.integers(1, 20, 70)
    X: FloatArray = rng.normal(size=(sizes.sum(), d)).astype(dtype)
    y = rng.normal(size=sizes.sum())
    own, cuts = rng.random(len(y)) < 0.7, np.append(0, np.cumsum(sizes))
    whole = asked(prior, X, y, own, sizes)
    for first, last in ((0, 1), (1, 34), (34, 69), (69, 70)):
        rows = slice(cuts[first], cuts[last])
        part = asked(prior, X[rows], y[rows], own[rows], sizes[first:last])
        np.testing.assert_array_equal(part.W, whole.W[:, first:last])
        np.testing.assert_array_equal(part.mean, whole.mean[rows])
        np.testing.assert_array_equal(part.variance, whole.variance[rows])
