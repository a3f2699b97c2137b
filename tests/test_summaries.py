"""What a stream keeps: the batch's prior from rows in any order, merged, cut, forgotten."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_prior import drawn, same

from headstart import Prior, Summaries, TaskSet, get_loss, learn_prior
from headstart.inner.posterior import Evidence
from headstart.meta.prior import kept as module

SEEDS = st.integers(0, 2**32 - 1)


def stacked(tasks: TaskSet) -> tuple[Any, Any, Any]:
    return tasks.X, tasks.y, np.repeat(np.arange(len(tasks)), tasks.sizes)


def shuffled(tasks: TaskSet, seed: int) -> tuple[Any, Any, Any]:
    order = np.random.default_rng(seed).permutation(len(tasks.y))
    X, y, ids = stacked(tasks)
    return X[order], y[order], ids[order]


def added(rows: tuple[Any, Any, Any], cuts: Any, **options: Any) -> Summaries:
    kept = Summaries(**options)
    X, y, ids = rows
    for part in np.split(np.arange(len(y)), cuts):
        if part.size:
            kept.add(X[part], y[part], ids[part])
    return kept


def bits(kept: Summaries) -> list[Any]:
    e, columns, *_ = kept.evidence()
    assert isinstance(e, Evidence)
    return [*e, columns.centre, columns.scale, columns.level]


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(["squared", "absolute", "logistic"]), st.booleans())
def test_any_cutting_of_the_rows_gives_the_same_bits(seed: int, loss: str, intercept: bool) -> None:
    tasks = drawn(seed, T=12, n=6, d=3, loss=loss)
    rows = shuffled(tasks, seed)
    rng = np.random.default_rng(seed)
    module.PENDING = 10  # so that rows are summed on the way
    try:
        cuts = np.sort(rng.integers(0, len(rows[1]), 5))
        one = added(rows, [], loss=loss, fit_intercept=intercept)
        many = added(rows, cuts, loss=loss, fit_intercept=intercept)
        each = added(rows, np.arange(1, len(rows[1])), loss=loss, fit_intercept=intercept)
    finally:
        module.PENDING = 1 << 16
    for a, b, c in zip(bits(one), bits(many), bits(each), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [2, 12])
def test_rows_shuffled_over_all_entities_give_the_batchs_prior(n: int, intercept: bool) -> None:
    tasks = drawn(1, T=100, n=n)
    batch = learn_prior(tasks, fit_intercept=intercept)
    X, y, ids = shuffled(tasks, 0)
    kept = Summaries(fit_intercept=intercept)
    for i in range(len(y)):
        kept.add(X[i : i + 1], y[i : i + 1], ids[i : i + 1])
    same(learn_prior(kept), batch, 1e-6)
    assert len(kept) == 100


@pytest.mark.parametrize("loss", ["absolute", "logistic"])
def test_other_losses_keep_their_rows_until_they_settle(loss: str) -> None:
    tasks = drawn(2, T=80, n=12, loss=loss)
    rows = shuffled(tasks, 1)
    kept = added(rows, [], loss=loss, keep=4)
    before = learn_prior(kept)
    same(before, learn_prior(tasks, loss), 1e-4)
    large = kept.nbytes
    kept.settle(before)
    assert kept.nbytes < large
    after = learn_prior(kept)
    assert np.abs(after.bias - before.bias).max() < 0.05 * np.sqrt(np.diag(before.covariance)).max()
    one, whole = kept.posterior(before, 3), before.posterior(*tasks[3])
    np.testing.assert_allclose(one.weights, whole.weights, rtol=1e-3, atol=1e-3)
    kept.settle(before)  # there is nothing more to leave
    np.testing.assert_allclose(kept.posterior(before, 3).weights, one.weights)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [True, False])
def test_merging_is_adding(loss: str, intercept: bool) -> None:
    tasks = drawn(3, T=40, n=6, loss=loss)
    X, y, ids = shuffled(tasks, 2)
    X = X + 100.0 * intercept
    half = len(y) // 2
    options: Any = {"loss": loss, "fit_intercept": intercept}
    whole = added((X, y, ids), [], **options)
    one = added((X[:half], y[:half], ids[:half]), [], **options)
    other = added((X[half:], y[half:], ids[half:]), [], **options)
    if loss == "squared":  # sums of both, seen from different first rows
        one.evidence(), other.evidence()
    one.merge(other)
    assert set(one.ids) == set(whole.ids)
    same(learn_prior(one), learn_prior(whole), 1e-4)
    empty = Summaries(**options)
    empty.merge(whole)
    same(learn_prior(empty), learn_prior(whole), 1e-9)
    whole.merge(Summaries(**options))
    with pytest.raises(ValueError, match=r"other: expected the .* loss and fit_intercept"):
        whole.merge(Summaries("huber"))


@pytest.mark.parametrize("n", [2, 12])
def test_forgetting_is_never_having_seen(n: int) -> None:
    tasks = drawn(4, T=30, n=n)
    X, y, ids = shuffled(tasks, 3)
    kept = added((X, y, ids), [])
    kept.evidence()
    for gone in (5, 0, 29):
        kept.forget(gone)
    rest = ~np.isin(ids, [5, 0, 29])
    same(learn_prior(kept), learn_prior(added((X[rest], y[rest], ids[rest]), [])), 1e-9)
    assert 5 not in kept
    assert len(kept) == 27
    kept.add(X[ids == 5], y[ids == 5], ids[ids == 5])  # and it may come back
    again = np.isin(ids, [0, 29])
    same(learn_prior(kept), learn_prior(added((X[~again], y[~again], ids[~again]), [])), 1e-9)
    with pytest.raises(KeyError, match="there is no entity 0"):
        kept.forget(0)


def test_an_entitys_posterior_is_that_of_its_rows() -> None:
    tasks = drawn(5, T=20, n=9)
    for intercept in (True, False):
        kept = added(shuffled(tasks, 4), [], fit_intercept=intercept)
        prior = learn_prior(kept)
        known = kept.posterior(prior, 7)
        whole = prior.posterior(*tasks[7])
        np.testing.assert_allclose(known.weights, whole.weights, rtol=1e-6)
        np.testing.assert_allclose(known.covariance, whole.covariance, rtol=1e-6)


def test_the_smaller_of_rows_and_sums_is_kept() -> None:
    rng = np.random.default_rng(0)
    d, few, many = 20, 3, 200
    X, y = rng.normal(size=(100 * many, d)), rng.normal(size=100 * many)
    long = added((X, y, np.repeat(np.arange(100), many)), [])
    long.evidence()
    assert long.nbytes == 100 * 8 * (d * (d + 1) // 2 + d + 2)
    short = added((X[: 100 * few], y[: 100 * few], np.repeat(np.arange(100), few)), [])
    short.evidence()
    assert short.nbytes == 100 * few * 8 * (d + 4)


def test_large_numbers_keep_their_digits() -> None:
    """Timestamps among the columns: sums of their squares alone would be rounding."""
    tasks = drawn(6, T=60, n=10)
    X, y, ids = shuffled(tasks, 5)
    far = X * [1.0, 1.0, 3600.0] + [0.0, 0.0, 1.7e9]
    kept = added((far, 1e6 + y, ids), [], fit_intercept=True)
    near = added((X, y, ids), [], fit_intercept=True)
    one, other = learn_prior(kept), learn_prior(near)
    new = X[:20]
    np.testing.assert_allclose(
        one.posterior().predict(new * [1.0, 1.0, 3600.0] + [0.0, 0.0, 1.7e9]) - 1e6,
        other.posterior().predict(new),
        atol=1e-4,
    )


def test_weights_of_rows() -> None:
    tasks = drawn(7, T=30, n=6)
    X, y, ids = stacked(tasks)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    times[tasks.offsets[:-1]] = 1
    rows = np.repeat(np.arange(len(y)), times)
    weighted = Summaries()
    weighted.add(X, y, ids, sample_weight=times)
    same(learn_prior(weighted), learn_prior(added((X[rows], y[rows], ids[rows]), [])), 1e-9)


def test_what_is_known_of_entities() -> None:
    tasks = drawn(8, T=60, n=6)
    side = np.random.default_rng(0).normal(size=(60, 2))
    kept = added(stacked(tasks), [])
    found, expected = learn_prior(kept, side=side), learn_prior(tasks, side=side)
    same(found, expected, 1e-6)
    assert found.side_effects is not None
    assert expected.side_effects is not None
    np.testing.assert_allclose(found.side_effects, expected.side_effects, atol=1e-6)
    known = kept.posterior(found, 3, side=side[3])
    np.testing.assert_allclose(
        known.weights, found.posterior(*tasks[3], side=side[3]).weights, rtol=1e-6
    )


def test_float32_rows_stay_so() -> None:
    tasks = drawn(9, T=20, n=2)
    kept = Summaries("absolute")
    kept.add(tasks.X.astype(np.float32), tasks.y, stacked(tasks)[2])
    assert kept.nbytes == len(tasks.y) * (4 * (3 + 1) + 24)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": [1]}, r"ids: expected one id per row of X \(2\), found 1"),
        ({"ids": [1, None]}, "ids: expected an id in every row, found None in row 1"),
        ({"X": [[1.0, 2.0], [1.0, 2.0]]}, "X: expected 1 columns, found 2"),
        ({"X": [[np.nan], [1.0]]}, "X: expected finite numbers"),
        ({"y": [1.0]}, "y: expected one label per row"),
        ({"sample_weight": [1.0]}, "sample_weight: expected one number per row"),
    ],
)
def test_errors(change: dict[str, Any], message: str) -> None:
    kept = Summaries()
    kept.add([[1.0]], [1.0], ["a"])
    given_: dict[str, Any] = {"X": [[1.0], [2.0]], "y": [1.0, 2.0], "ids": ["a", "b"], **change}
    with pytest.raises(ValueError, match=message):
        kept.add(**given_)


def test_empty_summaries_and_losses_without_parts() -> None:
    with pytest.raises(ValueError, match="these summaries are empty; add rows first"):
        learn_prior(Summaries())
    assert len(Summaries()) == 0
    assert repr(Summaries(get_loss("hinge"))) == "Summaries(0 entities, 0 bytes, hinge loss)"


def test_a_prior_of_other_rows_is_refused() -> None:
    tasks = drawn(10, T=10, n=8)
    kept = added(stacked(tasks), [])
    for other in (
        Prior(np.zeros(4), 1.0, intercept=True),
        Prior(np.zeros(2), 1.0),
        Prior(np.zeros(3), 1.0, loss="absolute"),
    ):
        for call in (lambda p=other: kept.posterior(p, 3), lambda p=other: kept.settle(p)):
            with pytest.raises(ValueError, match="prior: expected 3 columns, intercept=False"):
                call()


def test_an_outlier_among_the_first_rows_costs_nobody_digits() -> None:
    tasks = drawn(11, T=40, n=9)
    X, y, ids = stacked(tasks)
    kept = Summaries(fit_intercept=True)
    kept.add(np.full((1, 3), 1e8), [0.0], [-1])
    kept.add(X, y, ids)
    kept.forget(-1)
    same(learn_prior(kept), learn_prior(tasks, fit_intercept=True), 1e-5)


def test_reading_from_several_threads() -> None:
    tasks = drawn(12, T=50, n=8)
    prior = learn_prior(tasks)
    expected = prior.posteriors(tasks).weights
    for _ in range(20):
        kept = added(stacked(tasks), [])
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda t: kept.posterior(prior, t).weights, range(50)))  # noqa: B023
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_float64_rows_after_float32_ones_keep_their_digits() -> None:
    tasks = drawn(13, T=30, n=6)
    X, y, ids = stacked(tasks)
    kept, whole = Summaries(), Summaries()
    kept.add(X[:1].astype(np.float32), y[:1].astype(np.float32), ids[:1])
    kept.add(X[1:], y[1:], ids[1:])
    whole.add(X, y, ids)
    same(learn_prior(kept), learn_prior(whole), 1e-5)
    e = kept.evidence()[0]
    assert isinstance(e, Evidence)
    assert e.X.dtype == np.float64


def test_rows_that_count_for_nothing_may_come_alone() -> None:
    tasks = drawn(14, T=30, n=6)
    X, y, ids = stacked(tasks)
    kept = added((X, y, ids), [])
    before = learn_prior(kept)
    kept.add(X[:2], y[:2] + 9.0, ids[:2], sample_weight=[0.0, 1e-311])
    same(learn_prior(kept), before, 1e-12)


def test_copies() -> None:
    kept = added(stacked(drawn(15, T=10)), [])
    for copy in (pickle.loads(pickle.dumps(kept)), deepcopy(kept)):
        same(learn_prior(copy), learn_prior(kept), 1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n", [2, 8])  # rows that wait, and rows that are summed
def test_columns_too_small_to_square_are_refused_as_in_memory(n: int, intercept: bool) -> None:
    X, y, ids = stacked(drawn(3, T=20, d=3, n=n))
    X = X * [1.0, 1e-310, 1.0]
    kept = Summaries(fit_intercept=intercept)
    kept.add(X, y, ids)
    for tasks in (kept, TaskSet.from_arrays(X, y, ids)):
        with pytest.raises(ValueError, match=r"X: column 1: .* too small to square"):
            learn_prior(tasks, fit_intercept=intercept)
    X[:, 1] = 0.0  # which is no number too small
    kept = Summaries(fit_intercept=intercept)
    kept.add(X, y, ids)
    assert np.isfinite(learn_prior(kept, fit_intercept=intercept).bias).all()
