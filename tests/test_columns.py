"""The units of columns: there and back, and the same for any cutting of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart._core.checks import ROWS_AT_ONCE
from headstart.tasks.columns import Columns

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int, intercept: bool) -> tuple[np.random.Generator, Columns]:
    rng = np.random.default_rng(seed)
    X = rng.normal(rng.normal(0.0, 100.0, 3), [1.0, 1e-3, 1e4], (20, 3))
    return rng, Columns.of(X, rng.normal(50.0, 3.0, 20), intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
def test_covariances_in_other_units(intercept: bool) -> None:
    rng = np.random.default_rng(0)
    columns = Columns(rng.normal(size=3), rng.uniform(0.1, 9.0, 3), 2.0, intercept)
    A = rng.normal(size=(columns.width, columns.width))
    S, M = np.array([A @ A.T, np.eye(columns.width)]), columns.matrix
    np.testing.assert_allclose(columns.covariance(S), M @ S @ M.T, rtol=1e-12)
    np.testing.assert_allclose(columns.standard_covariance(columns.covariance(S)), S, rtol=1e-9)


@given(SEEDS, st.booleans())
def test_predictions_are_the_same_in_both_units(seed: int, intercept: bool) -> None:
    rng, columns = drawn(seed, intercept)
    X, w = rng.normal(100.0, 10.0, (5, 3)), rng.normal(size=columns.width)
    mine = columns.weights(w)
    theirs = columns.rows(X) @ w + columns.level
    by_hand = X @ mine[:3] + (mine[3] if intercept else 0.0)
    np.testing.assert_allclose(by_hand, theirs, rtol=1e-8, atol=1e-6)


@given(SEEDS, st.booleans())
def test_rows_in_the_units_of_others(seed: int, intercept: bool) -> None:
    (rng, one), (_, other) = drawn(seed, intercept), drawn(seed + 1, intercept)
    factor, shift, level = one.seen_from(other)
    X, y = rng.normal(0.0, 100.0, (5, 3)), rng.normal(size=5)
    by_hand = one.rows(X) * factor + shift
    np.testing.assert_allclose(by_hand, other.rows(X), rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(one.labels(y) - level, other.labels(y), atol=1e-9)


@given(SEEDS, st.booleans())
def test_there_and_back(seed: int, intercept: bool) -> None:
    rng, columns = drawn(seed, intercept)
    w = rng.normal(size=(4, columns.width))
    np.testing.assert_allclose(columns.standard(columns.weights(w)), w, rtol=1e-6, atol=1e-6)
    root = rng.normal(size=(columns.width, columns.width))
    V = root @ root.T
    np.testing.assert_allclose(
        columns.standard_covariance(columns.covariance(V)), V, rtol=1e-4, atol=1e-4
    )
    there = columns.weights(w[:1]) - columns.weights(0.0 * w[:1])
    np.testing.assert_allclose(there[0], columns.matrix @ w[0], rtol=1e-9)


def test_rows_are_centred_only_with_an_intercept() -> None:
    X, y = np.array([[1.0], [3.0]]), np.array([2.0, 4.0])
    centred, bare = (Columns.of(X, y, intercept=i) for i in (True, False))
    assert centred.rows(X).tolist() == [[-1.0, 1.0], [1.0, 1.0]]
    assert centred.level == 3.0
    assert bare.rows(X).tolist() == [[1.0 / 5.0**0.5], [3.0 / 5.0**0.5]]
    assert bare.level == 0.0
    assert Columns.of(X, y, intercept=True, margin=True).level == 0.0


def test_a_column_of_one_value_is_not_scaled() -> None:
    for value in (0.0, 7.1, 1e12):
        X = np.full((100, 1), value)
        columns = Columns.of(X, np.zeros(100), intercept=True)
        assert columns.scale[0] == 1.0
        assert np.abs(columns.rows(X)[:, 0]).max() <= 1e-3 * (value > 1e6) + 1e-12


def test_more_rows_than_are_looked_at_once_and_rows_that_count_twice() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(5.0, 2.0, (ROWS_AT_ONCE + 7, 2)), rng.normal(size=ROWS_AT_ONCE + 7)
    columns = Columns.of(X, y, intercept=True)
    np.testing.assert_allclose(columns.centre, X.mean(axis=0))
    np.testing.assert_allclose(columns.scale, X.std(axis=0))
    twice = Columns.of(X[:10], y[:10], intercept=True, weight=np.arange(10.0))
    rows = np.repeat(np.arange(10), np.arange(10))
    again = Columns.of(X[rows], y[rows], intercept=True)
    np.testing.assert_allclose(twice.scale, again.scale)
    assert twice.level == pytest.approx(again.level)


@given(SEEDS, st.booleans())
def test_the_sparse_matrix_is_the_matrix(seed: int, intercept: bool) -> None:
    _, columns = drawn(seed, intercept)
    np.testing.assert_array_equal(columns.sparse_matrix.toarray(), columns.matrix)
