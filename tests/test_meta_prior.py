"""Meta estimators that learn a prior: batch, stream, and what they tell."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headstart import (
    MetaClassifier,
    MetaRegressor,
    Prior,
    TaskClassifier,
    TaskRegressor,
    TaskSet,
    learn_prior,
)

Array = NDArray[np.float64]


def table(T: int = 60, n: int = 6, seed: int = 0) -> tuple[Array, Array, NDArray[np.int64]]:
    """Rows of entities mixed at random, columns in units of their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal([0.0, 50.0, 0.0], [1.0, 10.0, 0.01], (T * n, 3))
    ids = rng.permutation(np.repeat(np.arange(T), n))
    own = rng.normal([2.0, 0.3, 100.0], [1.0, 0.01, 50.0], (T, 3))
    level = rng.normal(5.0, 2.0, T)
    return X, level[ids] + (X * own[ids]).sum(axis=1) + rng.normal(0.0, 0.5, T * n), ids


def signs(y: Array) -> NDArray[np.str_]:
    return np.where(y > np.median(y), "high", "low")


@pytest.mark.parametrize("intercept", [True, False])
def test_fit_is_the_prior_and_every_posterior_under_it(intercept: bool) -> None:
    X, y, ids = table()
    model = MetaRegressor(fit_intercept=intercept).fit(X, y, groups=ids)
    tasks = TaskSet.from_arrays(X, y, ids)
    prior = learn_prior(tasks, fit_intercept=intercept)
    np.testing.assert_allclose(model.prior_.covariance, prior.covariance, rtol=1e-7)
    np.testing.assert_allclose(model.bias_, prior.bias[:3], rtol=1e-9)
    assert model.intercept_ == pytest.approx(prior.bias[3] if intercept else 0.0)
    for key, (rows, labels) in zip(tasks.ids, tasks, strict=True):
        weights = prior.posterior(rows, labels).weights
        own = np.append(model.weights_of(key), model.intercept_of(key))[: weights.size]
        np.testing.assert_allclose(own, weights, rtol=1e-6)


def test_standard_deviations_are_those_of_the_posterior() -> None:
    X, y, ids = table()
    model = MetaRegressor().fit(X, y, groups=ids)
    whose = np.array([3, 999, 3, 7])
    mean, std = model.predict(X[:4], groups=whose, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X[:4], groups=whose))
    for i, key in enumerate(whose.tolist()):
        mine = ids == key
        known = model.prior_.posterior(X[mine], y[mine]) if mine.any() else model.prior_.posterior()
        assert mean[i] == pytest.approx(known.predict(X[i : i + 1])[0], rel=1e-9)
        assert std[i] ** 2 == pytest.approx(known.variance(X[i : i + 1])[0], rel=1e-6)
    low, high = model.predict_interval(X[:4], groups=whose, coverage=0.5).T
    np.testing.assert_allclose(high - mean, 0.6744898 * std)
    np.testing.assert_allclose(mean - low, 0.6744898 * std)
    np.testing.assert_array_equal(model.predict(X[1:2], return_std=True)[1], std[1:2])


def test_intervals_cover_new_entities() -> None:
    X, y, ids = table(T=400, n=12)
    old, new = ids < 300, ids >= 300
    model = MetaRegressor().fit(X[old], y[old], groups=ids[old])
    low, high = model.predict_interval(X[new], groups=ids[new]).T
    assert 0.85 < np.mean((low <= y[new]) & (y[new] <= high)) < 0.95


def test_probabilities_are_nearer_to_a_half_where_less_is_known() -> None:
    X, y, ids = table(n=20)
    model = MetaClassifier().fit(X, signs(y), groups=ids)
    scores, found = model.decision_function(X, groups=ids), model.predict_proba(X, groups=ids)
    plain = 1.0 / (1.0 + np.exp(-scores))
    assert np.all(np.abs(found[:, 1] - 0.5) <= np.abs(plain - 0.5) + 1e-12)
    mine = ids == 5
    known = model.prior_.posterior(X[mine], np.where(signs(y)[mine] == "low", 1.0, -1.0))
    np.testing.assert_allclose(found[mine, 1], known.probability(X[mine]), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X, ids), np.where(scores > 0.0, "low", "high"))


@st.composite
def chunks(draw: st.DrawFn) -> tuple[list[int], int]:
    n = draw(st.integers(2, 90))
    return draw(st.lists(st.integers(1, n - 1), unique=True, max_size=6).map(sorted)), n


def stream(binary: bool, n: int) -> tuple[Any, Array, NDArray[Any], list[Any]]:
    X, y, ids = table(T=12, n=8)
    names: list[Any] = [None if i == 11 else f"user {i}" for i in ids[:n].tolist()]
    model = MetaClassifier() if binary else MetaRegressor()
    return model, X[:n], signs(y)[:n] if binary else y[:n], names


def feed(model: Any, X: Array, y: NDArray[Any], ids: list[Any]) -> Any:
    more = {"classes": ["high", "low"]} if isinstance(model, MetaClassifier) else {}
    return model.partial_fit(X, y, groups=np.array(ids, object), **more)


@pytest.mark.filterwarnings("ignore:groups. .* have no id", "ignore:the prior still changes")
@pytest.mark.parametrize("binary", [False, True])
@settings(max_examples=25)
@given(cut=chunks())
def test_any_chunking_gives_the_same_bits(binary: bool, cut: tuple[list[int], int]) -> None:
    places, n = cut
    whole, X, y, ids = stream(binary, n)
    feed(whole, X, y, ids)
    parts, *_ = stream(binary, n)
    for first, last in zip([0, *places], [*places, n], strict=True):
        feed(parts, X[first:last], y[first:last], ids[first:last])
        parts.predict(X[:3], groups=np.array(ids[:3], object))  # which finds weights on the way
    for one, other in ((whole, parts), (whole.finish(), parts.finish())):
        asked = np.array(ids, object)
        np.testing.assert_array_equal(one.bias_, other.bias_)
        if binary:
            np.testing.assert_array_equal(
                one.decision_function(X, groups=asked), other.decision_function(X, groups=asked)
            )
        else:
            for a, b in zip(*(m.predict(X, asked, return_std=True) for m in (one, other)),
                            strict=True):  # fmt: skip
                np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore:groups. .* have no id", "ignore:the prior still changes")
@pytest.mark.parametrize("binary", [False, True])
@settings(max_examples=25)
@given(cut=chunks())
def test_saved_and_continued_is_never_stopped(binary: bool, cut: tuple[list[int], int]) -> None:
    places, n = cut
    never, X, y, ids = stream(binary, n)
    feed(never, X, y, ids)
    model, *_ = stream(binary, n)
    with TemporaryDirectory() as folder:
        for first, last in zip([0, *places], [*places, n], strict=True):
            feed(model, X[first:last], y[first:last], ids[first:last])
            model.save(Path(folder) / "model")
            model = type(model).load(Path(folder) / "model")
        asked = np.array(ids, object)
        for one, other in ((never, model), (never.finish(), model.finish())):
            np.testing.assert_array_equal(one.bias_, other.bias_)
            np.testing.assert_array_equal(one.predict(X, asked), other.predict(X, asked))
            assert one.ids_ == other.ids_


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_stream_in_any_order_is_fit(loss: str) -> None:
    X, y, ids = table()
    batch = MetaRegressor(loss=loss).fit(X, y, groups=ids)
    order = np.random.default_rng(1).permutation(len(y))
    one = MetaRegressor(loss=loss)
    for rows in np.array_split(order, 9):
        one.partial_fit(X[rows], y[rows], groups=ids[rows])
    one.finish()
    gap = np.abs(one.predict(X, ids) - batch.predict(X, ids)).max() / y.std()
    assert gap < (1e-10 if loss == "squared" else 0.05)


@pytest.mark.parametrize("binary", [False, True])
def test_units_and_order_do_not_matter(binary: bool) -> None:
    X, y, ids = table()
    labels: Any = signs(y) if binary else y
    kind: Any = MetaClassifier if binary else MetaRegressor
    ask: Callable[..., Array] = lambda m, *a: (m.decision_function if binary else m.predict)(*a)  # noqa: E731
    plain = kind().fit(X, labels, groups=ids)
    other = X * [10.0, 15_000.0, 1.0] + [3.0, 1e5, -7.0]
    scaled = kind().fit(other, labels, groups=ids)
    size = ask(plain, X, ids).std()
    gap = np.abs(ask(scaled, other, ids) - ask(plain, X, ids)).max() / size
    assert gap < 1e-5
    order = np.random.default_rng(2).permutation(len(y))
    shuffled = kind().fit(X[order], labels[order], groups=ids[order])
    gap = np.abs(ask(shuffled, X, ids) - ask(plain, X, ids)).max() / size
    assert gap < (1e-3 if binary else 1e-9)
    if not binary:
        larger = kind().fit(X, 1000.0 * y + 7.0, groups=ids)
        np.testing.assert_allclose(larger.predict(X, ids), 1000.0 * plain.predict(X, ids) + 7.0,
                                   rtol=1e-7)  # fmt: skip


def test_rows_one_at_a_time_are_partial_fit() -> None:
    X, y, ids = table(T=20)
    one, other = MetaRegressor(), MetaRegressor().partial_fit(X, y, groups=ids)
    for x, label, i in zip(X, y, ids.tolist(), strict=True):
        one.learn_one(x, label, i)
    np.testing.assert_array_equal(one.bias_, other.bias_)
    for i in (0, 7, 999):
        assert one.predict_one(X[0], i) == pytest.approx(other.predict(X[:1], [i])[0], rel=1e-9)
    assert one.predict_one(X[0]) == pytest.approx(other.predict(X[:1])[0], rel=1e-12)
    np.testing.assert_array_equal(one.predict(X, ids), other.predict(X, ids))


def test_rows_one_at_a_time_by_name() -> None:
    X, y, ids = table(T=20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user=ids)
    model = MetaRegressor(group="user").partial_fit(frame[:50], y[:50])
    other = MetaRegressor(group="user").partial_fit(frame[:52], y[:52])
    for i in (50, 51):
        x = dict(frame.iloc[i].items())
        model.learn_one({"c": x["c"], "more": 1, **x}, y[i], ids[i])
    np.testing.assert_array_equal(model.predict(frame), other.predict(frame))
    first = dict(frame.iloc[0].items())
    assert model.predict_one(first, ids[0]) == pytest.approx(other.predict(frame[:1])[0])
    with pytest.raises(ValueError, match="x: there is no value for column 'b'"):
        model.learn_one({"a": 1.0, "c": 2.0}, 1.0, 3)
    with pytest.raises(ValueError, match="x: expected 3 numbers, found shape"):
        model.learn_one([1.0, 2.0], 1.0, 3)
    with pytest.raises(ValueError, match="x: expected finite numbers"):
        model.learn_one([1.0, np.nan, 1.0], 1.0, 3)
    begun = MetaRegressor()
    begun.learn_one({"a": 1.0, "b": 2.0}, 3.0, "new")
    assert list(begun.bias_by_feature()) == ["a", "b"]


def test_labels_one_at_a_time() -> None:
    X, y, ids = table(T=20)
    labels = signs(y)
    one = MetaClassifier().partial_fit(X[:40], labels[:40], groups=ids[:40])
    for i in range(40, 60):
        one.learn_one(X[i], labels[i], int(ids[i]))
    other = MetaClassifier().partial_fit(X[:60], labels[:60], groups=ids[:60])
    found = [one.predict_one(x, i) for x, i in zip(X, ids.tolist(), strict=True)]
    np.testing.assert_array_equal(found, other.predict(X, ids))
    with pytest.raises(ValueError, match=r"y: expected one of \['high', 'low'\], found 'x'"):
        one.learn_one(X[0], "x", 1)


def test_classes_are_sorted_and_those_of_other_models_refused() -> None:
    X, y, ids = table(T=20)
    labels = signs(y)
    model = MetaClassifier().partial_fit(X, labels, groups=ids, classes=["low", "high"])
    plain = MetaClassifier().partial_fit(X, labels, groups=ids)
    assert model.classes_.tolist() == plain.classes_.tolist() == ["high", "low"]
    np.testing.assert_array_equal(model.predict_proba(X, ids), plain.predict_proba(X, ids))
    task = TaskClassifier(classes=["low", "high"]).fit(X[:1], ["low"])
    assert task.classes_.tolist() == ["high", "low"]
    others = MetaClassifier().fit(X, np.where(labels == "low", "a", "b"), groups=ids)
    with pytest.raises(ValueError, match="other: expected a model of the same classes"):
        model.merge(others)


def test_forgotten_is_never_seen() -> None:
    X, y, ids = table()
    model = MetaRegressor().partial_fit(X, y, groups=ids)
    model.forget(7)
    assert 7 not in model.ids_
    np.testing.assert_array_equal(model.predict(X[:2], [7, 7]), model.predict(X[:2]))
    without = MetaRegressor().partial_fit(X[ids != 7], y[ids != 7], groups=ids[ids != 7])
    np.testing.assert_allclose(
        model.finish().predict(X, ids), without.finish().predict(X, ids), rtol=1e-9
    )
    with pytest.warns(UserWarning, match="groups: ids are text, those learned from are numbers"):
        model.partial_fit(X[:1], y[:1], groups=["new"])
    with pytest.raises(KeyError, match="there is no entity 7"):
        model.forget(7)


def test_merged_is_one_stream() -> None:
    X, y, ids = table()
    whole = MetaRegressor().partial_fit(X, y, groups=ids).finish()
    one = MetaRegressor().partial_fit(X[:100], y[:100], groups=ids[:100])
    other = MetaRegressor().partial_fit(X[100:], y[100:], groups=ids[100:])
    one.merge(other)
    np.testing.assert_allclose(one.predict(X, ids), whole.predict(X, ids), rtol=1e-8)
    assert one.n_tasks_ == whole.n_tasks_
    for wrong in (MetaRegressor(metric="diagonal").fit(X, y, ids), one):
        with pytest.raises(ValueError, match="other: expected another model with the same"):
            one.merge(wrong)
    with pytest.raises(ValueError, match="other: expected a MetaRegressor of 3 features"):
        one.merge(MetaRegressor().fit(X[:, :2], y, ids))


def test_streams_of_other_columns_are_not_merged() -> None:
    X, y, ids = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one = MetaRegressor().fit(frame, y, groups=ids)
    other = MetaRegressor().fit(frame[["c", "b", "a"]], y, groups=ids)
    with pytest.raises(ValueError, match="other: expected the columns a, b, c in this order"):
        one.merge(other)
    alone = MetaRegressor().fit(frame, y, groups=ids).drop_summaries()
    for first, second in ((one, alone), (alone, one)):
        with pytest.raises(ValueError, match="summaries: they were dropped"):
            first.merge(second)


def test_all_forgotten_and_begun_again() -> None:
    X, y, ids = table(T=4)
    model = MetaRegressor().partial_fit(X, y, groups=ids)
    for key in range(4):
        model.forget(key)
    model.finish().partial_fit(X, y, groups=ids).finish()
    whole = MetaRegressor().fit(X, y, groups=ids)
    np.testing.assert_allclose(model.predict(X, ids), whole.predict(X, ids), rtol=1e-8)


def test_levels_that_differ_much_leave_the_slopes_alone() -> None:
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(50), 8), rng.normal(size=(400, 3))
    y = X.sum(axis=1) + 30.0 * rng.normal(size=50)[ids] + rng.normal(size=400)
    for metric in ("auto", "diagonal"):
        summary = MetaRegressor(metric=metric).fit(X, y, groups=ids).summary()
        assert summary["differs"][:3].max() < 0.4
        assert 20.0 < summary["differs"]["(intercept)"] < 40.0


@pytest.mark.filterwarnings("ignore:the prior still changes")
def test_weights_with_a_loss_that_has_corners() -> None:
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(24, 2)), rng.integers(1, 3, 24)
    y, ids = X.sum(axis=1) + rng.normal(size=24), np.arange(24) // 2
    model = MetaRegressor(loss="huber").fit(X, y, groups=ids, sample_weight=weight)
    assert np.isfinite(model.predict(X, ids)).all()


def test_a_model_is_saved_only_as_what_it_is(tmp_path: Path) -> None:
    X, y, ids = table(T=10)
    model = MetaRegressor(reg=1.0).fit(X, y, groups=ids).set_params(reg="auto")
    with pytest.raises(ValueError, match="reg: expected the value this stream was begun with"):
        model.save(tmp_path / "model")
    with pytest.raises(AttributeError, match="prior_: reg is 'auto' now, and was a number in fit"):
        _ = model.prior_


def test_weights_count_rows() -> None:
    X, y, ids = table(T=20)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    one = MetaRegressor().fit(X, y, groups=ids, sample_weight=weight)
    other = MetaRegressor().fit(X[repeated], y[repeated], groups=ids[repeated])
    np.testing.assert_allclose(one.predict(X, ids), other.predict(X, ids), rtol=1e-6)
    few = ids == 3
    new = one.adapt(X[few], y[few], sample_weight=weight[few])
    twice = one.adapt(*(a[repeated][few[repeated]] for a in (X, y)))
    np.testing.assert_allclose(new.coef_, twice.coef_, rtol=1e-8)
    assert np.abs(new.coef_ - one.adapt(X[few], y[few]).coef_).max() > 1e-6
    by_parts = TaskRegressor(prior=one.prior_)
    for i in np.flatnonzero(few & (weight > 0)):
        by_parts.partial_fit(X[[i]], y[[i]], sample_weight=weight[[i]])
    np.testing.assert_allclose(by_parts.coef_, twice.coef_, rtol=1e-8)


@pytest.mark.parametrize("reg", ["auto", 1.0])
def test_rows_without_weight_are_as_if_they_had_not_come(reg: Any) -> None:
    X, y, ids = table(T=20)
    weight = np.where(ids == 3, 0.0, 1.0)
    one = MetaRegressor(reg=reg).fit(X, y, groups=ids, sample_weight=weight)
    other = MetaRegressor(reg=reg).fit(X[ids != 3], y[ids != 3], groups=ids[ids != 3])
    assert one.ids_ == other.ids_
    assert one.n_tasks_ == other.n_tasks_ == 19
    np.testing.assert_array_equal(one.predict(X, ids), other.predict(X, ids))


def test_weights_that_the_papers_algorithms_cannot_count_are_refused() -> None:
    X, y, ids = table(T=3)
    weight = np.where(ids == 1, 2.0, 1.0)
    message = "sample_weight: expected the same number for all rows that count"
    with pytest.raises(ValueError, match=message):
        MetaRegressor(reg=1.0).fit(X, y, groups=ids, sample_weight=weight)
    with pytest.raises(ValueError, match=message):
        TaskRegressor().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="sample_weight: expected a weight above 0, found"):
        MetaRegressor().fit(X, y, groups=ids, sample_weight=0.0 * weight)


def test_weights_count_rows_in_scores() -> None:
    X, y, ids = table(T=20)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    labels = signs(y)
    numbers = MetaRegressor().fit(X, y, groups=ids)
    classes = MetaClassifier().fit(X, labels, groups=ids)
    for model, target in ((numbers, y), (classes, labels)):
        # with the start alone, so that not all is right
        expected = model.score(X[repeated], target[repeated])
        assert model.score(X, target, sample_weight=weight) == pytest.approx(expected)
        assert model.score(X, target) != pytest.approx(expected, rel=1e-6)
        task = model.adapt(X[:4], target[:4])
        expected = task.score(X[repeated], target[repeated])
        assert task.score(X, target, sample_weight=weight) == pytest.approx(expected)
        assert task.score(X, target) != pytest.approx(expected, rel=1e-6)


def described(T: int = 120, n: int = 5) -> tuple[pd.DataFrame, Array]:
    """Two kinds of shops, whose kind says where they start."""
    rng = np.random.default_rng(3)
    kind, ids = rng.integers(0, 2, T), np.repeat(np.arange(T), n)
    X = rng.normal(size=(T * n, 2))
    own = np.where(kind, 4.0, -4.0)[:, None] + rng.normal(0.0, 0.3, (T, 2))
    y = (X * own[ids]).sum(axis=1) + rng.normal(0.0, 0.5, T * n) + 3.0 * kind[ids]
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=kind[ids].astype(float), shop=ids)
    return frame, y


def test_one_entity_has_one_description() -> None:
    frame, y = described()
    model = MetaRegressor(group="shop", side=["kind"]).fit(frame, y)
    rows = frame[:3].assign(kind=[1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="side: expected rows of one entity, found different"):
        model.adapt(rows, y[:3])
    with pytest.raises(ValueError, match="side: X has no column 'kind'"):
        model.adapt(rows[["a", "b"]], y[:3])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.adapt(frame[:0], y[:0])


def test_a_new_entity_starts_from_its_description() -> None:
    frame, y = described()
    model = MetaRegressor(group="shop", side=["kind"]).fit(frame, y)
    new = frame[:50].assign(shop=-1)
    seen = np.abs(model.predict(new) - y[:50]).mean()
    blind = MetaRegressor(group="shop").fit(frame.drop(columns="kind"), y)
    assert seen < 0.3 * np.abs(blind.predict(new.drop(columns="kind")) - y[:50]).mean()
    G = model.prior_.side_effects
    assert G is not None
    np.testing.assert_allclose(G[:, 0], [8.0, 8.0, 3.0], atol=0.4)
    task = model.adapt(new[:2], y[:2])
    start = model.prior_.start([new["kind"].iloc[0]])
    assert np.abs(task.coef_ - start[:2]).max() < 2.0
    streamed = MetaRegressor(group="shop", side=["kind"])
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 5):
        streamed.partial_fit(frame.iloc[rows], y[rows])
    streamed.finish()
    np.testing.assert_allclose(streamed.predict(frame), model.predict(frame), rtol=1e-6)
    with TemporaryDirectory() as folder:
        model.save(folder + "/model")
        loaded = MetaRegressor.load(folder + "/model")
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    x = dict(new.iloc[0].items())
    assert model.predict_one(x, -1) == pytest.approx(model.predict(new[:1])[0])


def test_a_description_is_one_for_each_entity() -> None:
    frame, y = described()
    wrong = frame.assign(kind=np.arange(len(y), dtype=float))
    with pytest.raises(ValueError, match=r"side: expected one value of 'kind' for each entity"):
        MetaRegressor(group="shop", side=["kind"]).fit(wrong, y)
    model = MetaRegressor(group="shop", side=["kind"]).partial_fit(frame[:50], y[:50])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="what changes from row to row is a feature"):
        model.partial_fit(frame[:1].assign(kind=9.0), y[:1])
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="side: a start needs the 1 numbers known"):
        model.predict(frame[:1].assign(shop=-1).drop(columns="kind"))
    with pytest.raises(ValueError, match="side: expected None with a number for reg"):
        MetaRegressor(group="shop", side=["kind"], reg=1.0).fit(frame, y)
    with pytest.raises(TypeError, match="side: expected a list of column names"):
        MetaRegressor(group="shop", side="kind").fit(frame, y)


def test_summary_says_what_is_shared_and_what_differs() -> None:
    X, y, ids = table(T=500, n=10)
    model = MetaRegressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y, groups=ids)
    summary = model.summary()
    assert list(summary.index) == ["a", "b", "c", "(intercept)"]
    np.testing.assert_allclose(summary["effect"], [2.0, 0.3, 100.0, 5.0], rtol=0.1)
    np.testing.assert_allclose(summary["differs"][:3], [1.0, 0.01, 50.0], rtol=0.25)
    worth = summary["rows"][["a", "c"]]  # noise / variance of the weight / variance of the column
    np.testing.assert_allclose(worth, [0.25, 1.0], rtol=0.25)
    assert "differs" in str(summary)
    with pytest.raises(AttributeError, match="summary"):
        MetaRegressor(reg=1.0).fit(X, y, groups=ids).summary()


def test_rows_the_prior_is_worth() -> None:
    prior = Prior(bias=[0.0], covariance=4.0, noise=2.0)
    one = Prior(bias=[0.0], covariance=4.0, noise=2.0).posterior([[1.0]], [8.0]).weights[0]
    worth = prior.worth[0] * prior.columns.scale[0] ** 2  # a row here is 1, not one unit
    assert one == pytest.approx(8.0 / (1.0 + worth))


def test_weights_alone() -> None:
    X, y, ids = table()
    model, whole = (MetaRegressor().fit(X, y, groups=ids) for _ in range(2))
    model.drop_summaries()
    np.testing.assert_array_equal(model.predict(X, ids), whole.predict(X, ids))
    np.testing.assert_array_equal(model.adapt(X[:3], y[:3]).coef_, whole.adapt(X[:3], y[:3]).coef_)
    new = model.predict(X[:2], groups=[-1, -1], return_std=True)[1]
    np.testing.assert_array_equal(new, whole.predict(X[:2], return_std=True)[1])
    for call in (
        lambda: model.partial_fit(X, y, groups=ids),
        lambda: model.learn_one(X[0], y[0], 1),
        lambda: model.predict(X[:1], groups=[1], return_std=True),
    ):
        with pytest.raises(ValueError, match="summaries: they were dropped"):
            call()
    with TemporaryDirectory() as folder:
        model.save(folder + "/small")
        whole.save(folder + "/large")
        sizes = [
            sum(p.stat().st_size for p in Path(folder, name).rglob("*.npy"))
            for name in ("small", "large")
        ]
        loaded = MetaRegressor.load(folder + "/small")
        np.testing.assert_array_equal(loaded.predict(X, ids), whole.predict(X, ids))
    assert sizes[0] < 0.5 * sizes[1]


def test_one_task_by_a_prior() -> None:
    X, y, ids = table()
    model = MetaRegressor().fit(X, y, groups=ids)
    prior = model.prior_
    task = model.adapt(X[:5], y[:5])
    assert isinstance(task, TaskRegressor)
    known = prior.posterior(X[:5], y[:5])
    np.testing.assert_allclose(np.append(task.coef_, task.intercept_), known.weights)
    mean, std = task.predict(X[5:9], return_std=True)
    np.testing.assert_allclose(mean, known.predict(X[5:9]))
    np.testing.assert_allclose(std, np.sqrt(known.variance(X[5:9])))
    np.testing.assert_allclose(task.predict_interval(X[5:9]), known.interval(X[5:9]))
    rows = TaskRegressor(prior=prior)
    for i in range(5):
        rows.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(rows.coef_, task.coef_, rtol=1e-9)
    classes = MetaClassifier().fit(X, signs(y), groups=ids)
    new = classes.adapt(X[:3], ["low"] * 3)
    assert isinstance(new, TaskClassifier)
    posterior = classes.prior_.posterior(X[:3], np.ones(3))
    np.testing.assert_allclose(new.predict_proba(X)[:, 1], posterior.probability(X))


WRONG_TASKS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"prior": 3}, TypeError, "prior: expected a Prior or None, found int"),
    ({"prior": Prior([1.0], 1.0)}, ValueError, "prior: expected one of 3 features"),
    ({"prior": Prior([1.0] * 4, 1.0, intercept=True), "bias": [1.0]}, ValueError, "bias: expected"),
    (
        {"prior": Prior([1.0] * 4, 1.0, intercept=True), "loss": "huber"},
        ValueError,
        "loss: expected 'auto' or Squared",
    ),
    (
        {"prior": Prior([1.0] * 4, 1.0, intercept=True, side_effects=np.ones((4, 1)))},
        ValueError,
        "prior: expected one for what is known of the task; see Prior.at",
    ),
]


@pytest.mark.parametrize(("settings", "error", "message"), WRONG_TASKS)
def test_priors_that_do_not_suit(
    settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    X, y, _ = table()
    with pytest.raises(error, match=message):
        TaskRegressor(**settings).fit(X, y)


def test_eight_threads_learn_and_predict() -> None:
    """No row is lost, no answer is of a half-written entity, nobody waits for ever."""
    X, y, ids = table(T=200, n=16)
    model = MetaRegressor().partial_fit(X[:32], y[:32], groups=ids[:32])
    parts = np.array_split(np.arange(32, len(y)), 64)

    def learn(rows: NDArray[np.int64]) -> None:
        model.partial_fit(X[rows], y[rows], groups=ids[rows])

    def one_by_one(rows: NDArray[np.int64]) -> None:
        for i in rows.tolist():
            model.learn_one(X[i], y[i], int(ids[i]))

    def ask(_: int) -> float:
        return float(np.abs(model.predict(X, ids)).max())

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(learn if k % 2 else one_by_one, rows) for k, rows in enumerate(parts)]
        asked = [pool.submit(ask, k) for k in range(32)]
        for job in jobs:
            job.result(timeout=120)
        largest = [job.result(timeout=120) for job in asked]
    assert np.isfinite(largest).all()
    assert max(largest) < 10.0 * np.abs(y).max()
    whole = MetaRegressor().fit(X, y, groups=ids)
    np.testing.assert_allclose(model.finish().predict(X, ids), whole.predict(X, ids), rtol=1e-7)
    assert model.n_tasks_ == 200


def test_what_adapt_gives_takes_the_same_table() -> None:
    X, y, ids = table(T=20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user=ids)
    model = MetaRegressor(group="user").fit(frame, y)
    mine = frame["user"] == 3
    few = model.adapt(frame[mine], y[mine])
    np.testing.assert_array_equal(few.predict(frame), few.predict(frame.drop(columns="user")))
    with pytest.raises(ValueError, match=r"X: expected rows of one entity, found the ids"):
        model.adapt(frame, y)


def test_saved_models_answer_one_row(tmp_path: Path) -> None:
    X, y, ids = table(T=20)
    for reg in ("auto", 1.0):
        model = MetaRegressor(reg=reg).fit(X, y, groups=ids)
        model.save(tmp_path / "model")
        loaded = MetaRegressor.load(tmp_path / "model")
        for key in (3, 99):
            assert loaded.predict_one(X[0], key) == pytest.approx(model.predict(X[:1], [key])[0])
        loaded.learn_one(X[0], y[0], 3)
        model.learn_one(X[0], y[0], 3)
        assert loaded.predict_one(X[0], 3) == pytest.approx(model.predict_one(X[0], 3))
