"""Sparse rows: the same numbers as dense ones where both can be had, and what needs dense rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from reference import Array
from scipy.sparse import coo_array, csc_array, csr_array, random_array

from headstart import (
    MetaClassifier,
    MetaRegressor,
    Prior,
    TaskRegressor,
    TaskSet,
    continue_bias,
    evaluate_bias,
    learn_bias,
    learn_prior,
    select_reg,
    start_bias,
    task_weights,
)
from headstart.inner import INNER
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.jobs import adapt_all
from headstart.losses import get_loss
from headstart.meta.prior.pooled import pooled_starts, without_starts
from headstart.meta.prior.shown import task_evidence


def drawn(
    seed: int, T: int = 40, n: int = 6, d: int = 15, share: float = 0.3
) -> tuple[Array, Array, Any]:
    """Inputs with many zeros, empty rows among them, labels and ids."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T * n, d)) * (rng.random((T * n, d)) < share)
    X[0] = 0.0
    ids = np.repeat(np.arange(T), n)
    w = rng.normal(1.0, 0.5, d) + rng.standard_normal((T, d)) * np.linspace(0.2, 1.0, d)
    y = (X * w[ids]).sum(axis=1) + rng.standard_normal(T)[ids] + 0.5 * rng.standard_normal(T * n)
    return X, y, ids


def both(X: Array, y: Array, ids: Any) -> tuple[TaskSet, TaskSet]:
    return TaskSet.from_arrays(csr_array(X), y, ids), TaskSet.from_arrays(X, y, ids)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1000),
    inner=st.sampled_from(["sgd", "constant"]),
    order=st.sampled_from(["stream", "resample"]),
    batch_size=st.sampled_from([1, 7, 64]),
    cut=st.integers(0, 40),
)
def test_the_bias_is_that_of_dense_rows(
    seed: int, inner: str, order: str, batch_size: int, cut: int
) -> None:
    sparse, dense = both(*drawn(seed))
    how: Any = {"inner": inner, "order": order, "batch_size": batch_size}
    one = learn_bias(sparse, 0.5, 0.3, random_state=seed, keep_path=True, **how)
    other = learn_bias(dense, 0.5, 0.3, random_state=seed, keep_path=True, **how)
    assert one.path is not None
    assert other.path is not None
    np.testing.assert_allclose(one.path, other.path, atol=1e-12)
    np.testing.assert_allclose(one.bias, other.bias, atol=1e-12)
    np.testing.assert_allclose(one.last, other.last, atol=1e-12)
    if order == "stream" and batch_size == 1:
        state = start_bias(15)
        for part in (np.arange(40) < cut, np.arange(40) >= cut):
            if part.any():
                state = continue_bias(state, sparse.subset(part), 0.5, 0.3, inner=inner)
        np.testing.assert_allclose(state.bias, one.bias, atol=1e-12)


@pytest.mark.parametrize("inner", ["sgd", "constant"])
@pytest.mark.parametrize("predictor", ["average", "last", "suffix", "poly"])
def test_weights_and_losses_are_those_of_dense_rows(inner: str, predictor: str) -> None:
    sparse, dense = both(*drawn(1))
    h = np.random.default_rng(2).standard_normal(15)
    how: Any = {"inner": inner, "predictor": predictor}
    np.testing.assert_allclose(
        task_weights(sparse, h, 0.3, **how), task_weights(dense, h, 0.3, **how), atol=1e-12
    )
    np.testing.assert_allclose(
        evaluate_bias(*sparse.split_rows(4), h, 0.3, **how),
        evaluate_bias(*dense.split_rows(4), h, 0.3, **how),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", [csr_array, csc_array, coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_task_sets_of_any_sparse_matrix(kind: Any, dtype: type) -> None:
    X, y, ids = drawn(0)
    X, order = (10.0 * X).astype(dtype), np.random.default_rng(0).permutation(len(y))
    tasks = TaskSet.from_arrays(kind(X[order]), y[order], ids[order])
    same = TaskSet.from_arrays(X[order], y[order], ids[order])
    assert tasks.dtype == same.dtype
    assert repr(tasks) == repr(same).replace("15 features", "15 sparse features")
    for (A, b), (C, d) in zip(tasks, same, strict=True):
        np.testing.assert_array_equal(csr_array(A).toarray(), C)
        np.testing.assert_array_equal(b, d)
    listed = TaskSet.from_list([(kind(A), b) for A, b in same])
    np.testing.assert_array_equal(csr_array(listed.inputs).toarray(), same.X)
    with pytest.raises(ValueError, match="expected dense rows, found sparse ones"):
        _ = tasks.X


def test_columns_out_of_order_and_entries_given_twice() -> None:
    X = csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    tasks = TaskSet.from_arrays(X, [1.0], ["a"])
    np.testing.assert_array_equal(csr_array(tasks.inputs).toarray(), [[2.0, 4.0]])
    np.testing.assert_array_equal(X.data, [1.0, 2.0, 3.0])  # the user's is left alone


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_found(value: float) -> None:
    X, y, ids = drawn(0)
    X[7, 3] = value
    with pytest.raises(ValueError, match=r"X: expected finite numbers, found .* row 7, column 3"):
        TaskSet.from_arrays(csr_array(X), y, ids)


def test_what_needs_dense_rows_says_so() -> None:
    tasks, _ = both(*drawn(0))
    assert [name for name in INNER if name != "erm"] == ["sgd", "constant"]
    with pytest.raises(ValueError, match="'erm' needs dense rows, found sparse ones"):
        learn_bias(tasks, 0.5, 0.1, inner="erm")
    with pytest.raises(ValueError, match="'erm' needs dense rows"):
        task_weights(tasks, np.zeros(15), 0.5, inner="erm")
    pair = tasks.split_rows(3)
    with pytest.raises(ValueError, match="expected dense rows"):
        select_reg(pair, pair, np.zeros(15), [0.1, 1.0])
    with pytest.raises(ValueError, match="expected 'diagonal' or 'isotropic' with sparse rows"):
        learn_prior(tasks, metric="full")


def naive_posterior(prior: Prior, X: Array, y: Array) -> tuple[Array, Array]:
    """Mean and covariance by matrices as large as there are columns, squared loss."""
    X = np.column_stack([X, np.ones(len(X))]) if prior.intercept else X
    sigma = np.diag(prior.variances)
    K = X @ sigma @ X.T + prior.noise * np.eye(len(y))
    gain = sigma @ X.T @ np.linalg.inv(K)
    return prior.bias + gain @ (y - X @ prior.bias), sigma - gain @ X @ sigma


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("metric", ["diagonal", "isotropic"])
def test_a_posterior_against_full_matrices(intercept: bool, metric: str) -> None:
    X, y, ids = drawn(3, T=80)
    sparse, _ = both(X, y, ids)
    prior = learn_prior(sparse, metric=metric, fit_intercept=intercept)
    assert prior.metric == metric
    weights = prior.posteriors(sparse).weights
    new = np.random.default_rng(0).standard_normal((5, 15))
    wide = np.column_stack([new, np.ones(5)]) if intercept else new
    for t in (0, 7):
        own = ids == t
        mean, V = naive_posterior(prior, X[own], y[own])
        np.testing.assert_allclose(weights[t], mean, atol=1e-9)
        known = prior.sparse_posterior(csr_array(X[own]), y[own])
        np.testing.assert_allclose(known.weights, mean, atol=1e-9)
        np.testing.assert_allclose(known.predict(new), wide @ mean, atol=1e-9)
        variance = np.einsum("ij,jk,ik->i", wide, V, wide) + prior.noise
        np.testing.assert_allclose(known.variance(new), variance, rtol=1e-9)
        half = prior.sparse_posterior(csr_array(X[own][:2]), y[own][:2])
        again = half.update(csr_array(X[own][2:]), y[own][2:])
        np.testing.assert_allclose(again.weights, mean, atol=1e-9)


def test_the_likelihood_is_that_of_the_labels() -> None:
    X, y, ids = drawn(4)
    sparse, _ = both(X, y, ids)
    prior = learn_prior(sparse, fit_intercept=True)
    wide, expected = np.column_stack([X, np.ones(len(X))]), 0.0
    for t in range(40):
        Z, r = wide[ids == t], y[ids == t] - wide[ids == t] @ prior.bias
        K = Z @ np.diag(prior.variances) @ Z.T + prior.noise * np.eye(len(r))
        expected -= 0.5 * (np.linalg.slogdet(2 * np.pi * K)[1] + r @ np.linalg.solve(K, r))
    assert prior.log_likelihood(sparse) == pytest.approx(expected, rel=1e-9)


def test_starts_are_a_ridge_solution_by_its_moments() -> None:
    X, y, ids = drawn(5, T=200)
    sparse, _ = both(X, y, ids)
    loss = get_loss("squared")
    e, columns, _, _ = task_evidence(sparse, loss)
    assert isinstance(e, SparseEvidence)
    scaled = X / columns.scale
    h = pooled_starts(e, loss)
    G, c = scaled.T @ scaled, scaled.T @ y
    ridge = np.median((c - G @ h) / h)  # what is left of the equations is ridge times h
    np.testing.assert_allclose(G @ h + ridge * h, c, atol=5e-3 * np.abs(c).max())
    trace, N = np.trace(G), len(y)
    variance = (c @ c - y @ y * trace / N) / (np.trace(G @ G) - trace**2 / N)
    noise = (y @ y - variance * trace) / N
    assert ridge == pytest.approx(noise / variance, rel=0.5)  # the trace is by random vectors
    left = without_starts(e, loss).y
    rank = np.argsort(np.argsort(np.bincount(ids, y)))  # of tasks by the sums of their labels
    even = rank[ids] % 2 == 0
    other = pooled_starts(e._replace(weight=e.weight * ~even), loss)
    np.testing.assert_allclose(left[even], y[even] - scaled[even] @ other, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_made_the_tasks_is_found(loss: str) -> None:
    rng = np.random.default_rng(0)
    T, n, d = 1500, 10, 300
    X = csr_array(rng.standard_normal((T * n, d)) * (rng.random((T * n, d)) < 0.03))
    ids, h = np.repeat(np.arange(T), n), rng.normal(0.0, 1.0, d)
    z = X @ h + 1.5 * rng.standard_normal(T)[ids]
    y = z + 0.5 * rng.standard_normal(T * n)
    if loss == "logistic":
        y = np.where(z + rng.logistic(size=T * n) > 0.0, 1.0, -1.0)
    prior = learn_prior(TaskSet.from_arrays(X, y, ids), loss, fit_intercept=True)
    error = np.mean((prior.bias[:d] - h) ** 2)
    assert error < (0.01 if loss == "squared" else 0.15)
    level = np.sqrt(prior.variances[-1])  # pooled starts of classes are a little near 0, and so it
    assert level == pytest.approx(1.5, rel=0.1 if loss == "squared" else 0.4)
    assert np.median(prior.variances[:d]) < 0.1
    if loss == "squared":
        assert prior.noise == pytest.approx(0.25, rel=0.2)


def test_units_of_columns_do_not_matter() -> None:
    X, y, ids = drawn(6)
    units = 10.0 ** np.random.default_rng(0).integers(-3, 4, 15)
    one = MetaRegressor().fit(csr_array(X), y, groups=ids)
    other = MetaRegressor().fit(csr_array(X * units), y, groups=ids)
    np.testing.assert_allclose(
        other.predict(csr_array(X * units), groups=ids), one.predict(csr_array(X), groups=ids),
        atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_estimators(fit_intercept: bool, tmp_path: Path) -> None:
    X, y, ids = drawn(7)
    S, names = csr_array(X), np.array([f"u{i}" for i in ids])
    model = MetaRegressor(fit_intercept=fit_intercept).fit(S, y, groups=names)
    prior = model.prior_
    found, std = model.predict(S, groups=names, return_std=True)
    own = names == "u3"
    mean, V = naive_posterior(prior, X[own], y[own])
    wide = np.column_stack([X[own], np.ones(6)]) if fit_intercept else X[own]
    np.testing.assert_allclose(found[own], wide @ mean, atol=1e-9)
    variance = np.einsum("ij,jk,ik->i", wide, V, wide) + prior.noise
    np.testing.assert_allclose(std[own], np.sqrt(variance), rtol=1e-9)
    np.testing.assert_allclose(model.weights_of("u3"), mean[:15], atol=1e-9)
    new = model.predict(S[:4], groups=["new"] * 4)
    np.testing.assert_allclose(new, model.predict(X[:4]), atol=1e-12)  # dense rows may be asked
    task = model.adapt(S[own], y[own])
    assert isinstance(task, TaskRegressor)
    np.testing.assert_allclose(task.predict(S[own]), found[own], atol=1e-9)
    np.testing.assert_allclose(task.predict(S[own], return_std=True)[1], std[own], rtol=1e-9)
    weights = model.adapt_tasks(TaskSet.from_arrays(S, y, ids))
    np.testing.assert_allclose(weights[3][:15], model.weights_of("u3"), atol=1e-9)
    assert len(model.summary()) == 15 + fit_intercept
    model.save(tmp_path / "model")
    loaded = MetaRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(S, groups=names), found)
    model.forget("u3").finish()
    assert "u3" not in model.ids_
    rest = MetaRegressor(fit_intercept=fit_intercept).fit(S[~own], y[~own], groups=names[~own])
    np.testing.assert_allclose(
        model.predict(S[~own], groups=names[~own]), rest.predict(S[~own], groups=names[~own]),
        atol=1e-9,
    )  # fmt: skip


def test_weights_of_all_tasks_in_a_file(tmp_path: Path) -> None:
    X, y, ids = drawn(11)
    S, names = csr_array(X), np.array([f"u{i}" for i in ids])
    model = MetaRegressor().fit(S, y, groups=names)
    tasks = TaskSet.from_arrays(S, y, names)
    index = adapt_all(model, tasks, tmp_path / "out")
    assert (index.tasks, index.rows) == (40, len(y))
    assert (tmp_path / "out" / "index.json").exists()
    table = parquet.read_table(tmp_path / "out" / "weights").to_pydict()
    assert table["id"] == [f"u{i}" for i in range(40)]
    assert table["rows"] == [6] * 40
    for t in (0, 7):
        own, there = model.bias_.copy(), table["columns"][t]
        assert there == sorted(np.flatnonzero(X[ids == t].any(axis=0)))
        own[there] = table["weights"][t]
        np.testing.assert_allclose(own, model.weights_of(f"u{t}"), atol=1e-12)
        assert table["intercept"][t] == pytest.approx(model.intercept_of(f"u{t}"))
    assert adapt_all(model, tasks, tmp_path / "out") == index  # it is finished
    (gone,) = index.files()
    Path(str(gone)).unlink()
    assert adapt_all(model, tasks, tmp_path / "out").files() == [gone]
    assert gone.exists()
    with pytest.raises(ValueError, match="predictions: expected False with a TaskSet"):
        adapt_all(model, tasks, tmp_path / "other", predictions=True)
    with pytest.raises(ValueError, match="weights: expected True with a TaskSet"):
        adapt_all(model, tasks, tmp_path / "other", weights=False)
    with pytest.raises(ValueError, match="out"):
        adapt_all(MetaRegressor().fit(S, -y, groups=names), tasks, tmp_path / "out")
    with pytest.raises(ValueError, match="TaskSet of sparse rows"):
        adapt_all(model, TaskSet.from_arrays(X, y, ids), tmp_path / "other")


@settings(max_examples=10)
@given(cuts=st.lists(st.integers(1, 239), max_size=4, unique=True))
def test_a_stream_in_any_chunks_is_fit(cuts: list[int]) -> None:
    X, y, ids = drawn(8)
    order = np.random.default_rng(0).permutation(len(y))
    S, y, ids = csr_array(X)[order], y[order], ids[order]
    whole = MetaRegressor().fit(S, y, groups=ids)
    stream, edges = MetaRegressor(), [0, *sorted(cuts), len(y)]
    for first, last in pairwise(edges):
        stream.partial_fit(S[first:last], y[first:last], groups=ids[first:last])
    stream.finish()
    np.testing.assert_array_equal(stream.predict(S, groups=ids), whole.predict(S, groups=ids))


def test_a_classifier_of_sparse_rows() -> None:
    X, y, ids = drawn(9, T=150)
    S, labels = csr_array(X), np.where(y > 0.0, "yes", "no")
    model = MetaClassifier().fit(S, labels, groups=ids)
    assert model.score(S, labels, groups=ids) > 0.85
    known, new = (model.predict_proba(S, groups=g)[:, 1] for g in (ids, ids + 1000))
    assert np.mean(np.abs(known - 0.5)) > np.mean(np.abs(new - 0.5))  # less is known of new ones
    np.testing.assert_array_equal(model.predict(S, groups=ids) == "yes", known > 0.5)


def test_what_a_sparse_model_does_not_do_is_said() -> None:
    X, y, ids = drawn(10)
    S = csr_array(X)
    with pytest.raises(TypeError, match="dense data is required"):
        MetaRegressor(reg=0.5).fit(S, y, groups=ids)
    with pytest.raises(ValueError, match="side: expected None with sparse rows"):
        MetaRegressor(side=[0]).fit(S, y, groups=ids)
    model = MetaRegressor().fit(S, y, groups=ids)
    with pytest.raises(ValueError, match="keeps all rows, and has no summaries"):
        model.drop_summaries()
    dense = MetaRegressor().partial_fit(X, y, groups=ids)
    with pytest.raises(ValueError, match="expected dense rows, with which this stream began"):
        dense.partial_fit(S, y, groups=ids)
    with pytest.raises(TypeError, match="dense data is required"):
        dense.predict(S, groups=ids)
    with pytest.raises(ValueError, match="learned from dense rows"):
        dense.prior_.sparse_posterior(S, y)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_many_tasks_begin_with_few_and_end_with_all(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, ids = drawn(9, T=120)
    labels = np.where(y > 0.0, 1.0, -1.0) if loss == "logistic" else y
    tasks = TaskSet.from_arrays(csr_array(X), labels, ids)
    at_once = learn_prior(tasks, loss)
    for place in ("sample", "shown"):
        monkeypatch.setattr(f"headstart.meta.prior.{place}.MANY_TASKS", 64)
    found = learn_prior(tasks, loss)
    assert found.n_iter != at_once.n_iter
    np.testing.assert_allclose(found.bias, at_once.bias, atol=1e-9)  # of all rows, not of few
    one, other = found.log_likelihood(tasks), at_once.log_likelihood(tasks)
    assert one == pytest.approx(other, rel=2e-3)


@pytest.mark.parametrize("mean", [2.0, 0.0])
def test_starts_are_as_good_as_those_of_dense_rows_in_any_order(mean: float) -> None:
    """Also where they are all of one sign, which the column of ones seems to explain."""
    rng = np.random.default_rng(5)
    T, n, d = 40, 6, 30
    X: Any = random_array((T * n, d), density=0.2, rng=rng, format="csr")
    shared, ids = rng.normal(mean, 2.0 - mean, d), np.repeat(np.arange(T), n)
    own = shared + 0.3 * rng.standard_normal((T, d))
    y = np.sum(X.toarray() * own[ids], axis=1) + 0.1 * rng.standard_normal(T * n)
    sparse = MetaRegressor().fit(X, y, groups=ids)
    dense = MetaRegressor(metric="diagonal").fit(X.toarray(), y, groups=ids)
    off = [float(np.abs(model.bias_ - shared).mean()) for model in (sparse, dense)]
    assert off[0] < 1.5 * off[1]
    order = rng.permutation(len(y))
    again = MetaRegressor().fit(X[order], y[order], groups=ids[order])
    np.testing.assert_allclose(again.bias_, sparse.bias_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(again.prior_.noise, sparse.prior_.noise, rtol=1e-2)


def test_a_task_of_which_no_row_counts_may_be_anywhere() -> None:
    X, y, ids = drawn(3, T=12)
    found = []
    for place in (0, 5, 11):
        order = np.argsort(np.where(ids == 7, place - 0.5, ids), kind="stable")
        tasks = TaskSet.from_arrays(csr_array(X[order]), y[order], ids[order])
        found.append(learn_prior(tasks, sample_weight=(ids[order] != 7).astype(float)))
    for other in found[1:]:
        np.testing.assert_allclose(other.bias, found[0].bias, rtol=1e-9)
        np.testing.assert_allclose(other.covariance, found[0].covariance, rtol=1e-9)
