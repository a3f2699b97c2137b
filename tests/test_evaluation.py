"""Few-shot scores and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import bsr_array, coo_array, csr_array
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from headstart import (
    FewShotCurve,
    MetaClassifier,
    MetaRegressor,
    TaskSet,
    diagnose,
    few_shot_curve,
    few_shot_score,
)
from headstart.evaluation.held_out import ERRORS, Fold, Plan, held_out_curve

Array = NDArray[np.float64]


def table(T: int = 30, n: int = 12, std: float = 0.5) -> tuple[Array, Array, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    ids, X = np.repeat(rng.permutation(T), n), rng.normal(size=(T * n, 3))
    return X, np.sum(X * rng.normal([4.0, -2.0, 1.0], std, (T, 3))[ids], axis=1), ids


def test_held_out_tasks_are_adapted_and_judged_by_their_other_rows() -> None:
    X, y, ids = table()
    curve = few_shot_curve(MetaRegressor(), X, y, ids, shots=[0, 2, 5], folds=3, random_state=4)
    assert curve.shots == (0, 2, 5)
    assert sorted(curve.ids) == list(range(30))
    order = list(dict.fromkeys(ids.tolist()))
    parts = np.array_split(np.random.default_rng(4).permutation(30), 3)
    for part in parts:
        held_out = [order[i] for i in part]
        train = ~np.isin(ids, held_out)
        model = MetaRegressor().fit(X[train], y[train], ids[train])
        for i in held_out:
            rows = np.flatnonzero(ids == i)
            rest = rows[5:]
            found = [model.predict(X[rest])]
            found += [model.adapt(X[rows[:k]], y[rows[:k]]).predict(X[rest]) for k in (2, 5)]
            expected = [np.abs(z - y[rest]).mean() for z in found]
            position = curve.ids.tolist().index(i)
            np.testing.assert_allclose(curve.errors[position], expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("settings", [{"reg": 1.0, "step": 0.5}, {"inner": "erm"}])
def test_other_ways_to_adapt(settings: dict[str, Any]) -> None:
    X, y, ids = table()
    estimator = MetaRegressor(**{"reg": 1.0, "step": 0.5, **settings})
    curve = few_shot_curve(estimator, X, y, ids, shots=[3], folds=2, random_state=0)
    half = np.random.default_rng(0).permutation(30)[:15]
    order = np.array(list(dict.fromkeys(ids.tolist())))
    train = ~np.isin(ids, order[half])
    model = estimator.fit(X[train], y[train], ids[train])
    rows = np.flatnonzero(ids == order[half[0]])
    found = model.adapt(X[rows[:3]], y[rows[:3]]).predict(X[rows[3:]])
    position = curve.ids.tolist().index(order[half[0]])
    assert curve.errors[position, 0] == pytest.approx(np.abs(found - y[rows[3:]]).mean())


def test_any_estimator_alone_or_pooled() -> None:
    X, y, ids = table(std=1.5)
    options: dict[str, Any] = {"shots": [0, 4], "error": "squared"}
    alone = few_shot_curve(Ridge(1e-6), X, y, ids, how="independent", **options)
    pooled = few_shot_curve(Ridge(1e-6), X, y, ids, how="pooled", **options)
    ahead = few_shot_curve(MetaRegressor(), X, y, ids, **options)
    assert np.isnan(alone.errors[:, 0]).all()
    assert alone.mean[1] == pytest.approx(0.0, abs=1e-4)  # four rows, three weights, no noise
    np.testing.assert_array_equal(pooled.errors[:, 0], pooled.errors[:, 1])
    gap = ahead.minus(pooled)
    assert gap.mean[1] + gap.half_width[1] < 0.0
    np.testing.assert_allclose(gap.errors, ahead.errors - pooled.errors)


def test_classifiers_are_judged_by_wrong_labels() -> None:
    X, y, ids = table()
    labels = np.where(y > 0.0, "yes", "no")
    curve = few_shot_curve(MetaClassifier(), X, labels, ids, shots=[0, 4])
    counts = curve.errors * 8.0  # of eight rows each
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert curve.mean[1] < 0.2
    alone = few_shot_curve(LogisticRegression(max_iter=100), X, labels, ids, how="independent")
    assert np.all(alone.mean[1:] < 0.6)
    one = few_shot_curve(LogisticRegression(), X, labels, ids, how="independent", shots=[1])
    rows = [np.flatnonzero(ids == i) for i in one.ids]  # of one row its label is all there is
    expected = [np.mean(labels[own[1:]] != labels[own[0]]) for own in rows]
    np.testing.assert_allclose(one.errors[:, 0], expected)


def test_frames_repeats_and_shuffles() -> None:
    X, y, ids = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user=ids)
    inside = few_shot_curve(MetaRegressor(group="user"), frame, y)
    beside = few_shot_curve(MetaRegressor(), X, y, ids)
    np.testing.assert_allclose(inside.errors, beside.errors, atol=1e-12)
    twice = few_shot_curve(MetaRegressor(), X, y, ids, repeats=2)
    assert np.any(twice.errors != beside.errors)
    drawn = few_shot_curve(MetaRegressor(), X, y, ids, shuffle=True)
    assert np.any(drawn.errors != beside.errors)
    score = few_shot_score(MetaRegressor(), X, y, ids, shots=8)
    assert score == pytest.approx(few_shot_curve(MetaRegressor(), X, y, ids, shots=[8]).mean[0])


def noisy_table() -> tuple[Array, Array, NDArray[np.int64]]:
    X, y, ids = table()
    return X, y + 0.5 * np.random.default_rng(1).normal(size=len(y)), ids


def frame_of(ids: NDArray[np.int64], X: Array) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame.assign(kind=np.where(ids % 2 == 0, "even", "odd"), user=ids)


def test_pipelines_learn_from_known_tasks_and_adapt_to_new_ones() -> None:
    X, y, ids = noisy_table()
    frame = frame_of(ids, X)
    prepare = ColumnTransformer(
        [
            ("kind", OneHotEncoder(drop="first", sparse_output=False), ["kind"]),
            ("a", StandardScaler(), ["a"]),
        ],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = make_pipeline(prepare, MetaRegressor(group="user"))
    curve = few_shot_curve(pipeline, frame, y, shots=[0, 4], folds=3, random_state=1)
    order = list(dict.fromkeys(ids.tolist()))
    for part in np.array_split(np.random.default_rng(1).permutation(30), 3):
        held_out = [order[i] for i in part]
        known = ~np.isin(ids, held_out)
        fitted = pipeline.fit(frame[known], y[known])
        for i in held_out:
            rows = np.flatnonzero(ids == i)
            new = fitted[:-1].transform(frame.iloc[rows])
            own = fitted[-1].adapt(new[:4], y[rows[:4]]).predict(new[4:])
            start = fitted.predict(frame.iloc[rows[4:]])
            expected = [np.abs(z - y[rows[4:]]).mean() for z in (start, own)]
            position = curve.ids.tolist().index(i)
            np.testing.assert_allclose(curve.errors[position], expected, rtol=1e-5)
    inside = few_shot_curve(pipeline, pl.from_pandas(frame), y, shots=[0, 4], folds=3)
    np.testing.assert_array_equal(
        inside.errors, few_shot_curve(pipeline, frame, y, shots=[0, 4], folds=3).errors
    )
    trees = make_pipeline(OneHotEncoder(), Ridge())
    with pytest.raises(TypeError, match="Pipeline cannot adapt; say how"):
        few_shot_curve(trees, frame, y, group="user")
    assert few_shot_score(trees, frame[["kind", "user"]], y, group="user", how="pooled") > 0.0


def test_descriptions_and_sparse_rows() -> None:
    X, y, ids = noisy_table()
    y = y + 5.0 * (ids % 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user=ids, odd=ids % 2)
    model = MetaRegressor(group="user", side=["odd"])
    curve = few_shot_curve(model, frame, y, shots=[0, 2], folds=2, random_state=0)
    plain = few_shot_curve(MetaRegressor(group="user"), frame.drop(columns="odd"), y, shots=[0, 2])
    assert curve.mean[0] < 0.6 * plain.mean[0]
    order = np.array(list(dict.fromkeys(ids.tolist())))
    half = order[np.random.default_rng(0).permutation(30)[:15]]
    fitted = model.fit(frame[~np.isin(ids, half)], y[~np.isin(ids, half)])
    rows = np.flatnonzero(ids == half[0])
    own = fitted.adapt(frame.iloc[rows[:2]], y[rows[:2]]).predict(frame.iloc[rows[2:]])
    expected = [np.abs(z - y[rows[2:]]).mean() for z in (fitted.predict(frame.iloc[rows[2:]]), own)]
    position = curve.ids.tolist().index(half[0])
    np.testing.assert_allclose(curve.errors[position], expected, rtol=1e-5)
    thin = few_shot_curve(MetaRegressor(), csr_array(X), y, ids, shots=[0, 4])
    dense = few_shot_curve(MetaRegressor(metric="diagonal"), X, y, ids, shots=[0, 4])
    np.testing.assert_allclose(thin.mean, dense.mean, rtol=0.2)
    for kind in (coo_array, bsr_array):  # of which no rows can be taken
        same = few_shot_curve(MetaRegressor(), kind(X), y, ids, shots=[0, 4])
        np.testing.assert_array_equal(same.errors, thin.errors)


def test_intervals_cover_the_mean() -> None:
    rng = np.random.default_rng(0)
    draws = rng.exponential(size=(2000, 40, 1))
    curves = [FewShotCurve((1,), errors, np.arange(40)) for errors in draws]
    covered = np.mean([abs(c.mean[0] - 1.0) <= c.half_width[0] for c in curves])
    assert 0.91 < covered < 0.965  # 0.95 asked; skewed errors cost a little


def test_the_interval_is_students_over_tasks() -> None:
    errors = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0], [7.0, 8.0]])
    curve = FewShotCurve((1, 2), errors, np.arange(4))
    # 3.1824 is the 0.975 quantile of Student's t with 3 degrees of freedom, 1.6377 the 0.9 one;
    # the sample variances are 7 and 16, with 3 in the denominator
    expected = np.sqrt([7.0, 16.0]) / 2.0
    np.testing.assert_allclose(curve.half_width, 3.182446305284263 * expected, rtol=1e-9)
    wide = FewShotCurve((1, 2), errors, np.arange(4), level=0.8)
    np.testing.assert_allclose(wide.half_width, 1.63774435369621 * expected, rtol=1e-9)
    assert wide.minus(curve).level == 0.8
    assert np.isnan(FewShotCurve((1, 2), errors[:1], np.arange(1)).half_width).all()


def test_every_task_that_can_be_is_held_out_once() -> None:
    rng = np.random.default_rng(0)
    sizes = [5, 2, 4, 3, 6, 4, 4, 5, 4, 3, 7, 4, 4]  # ten have more than three rows
    tasks = TaskSet.from_list([(rng.normal(size=(n, 2)), rng.normal(size=n)) for n in sizes])
    seen: list[Fold] = []

    def forecast(fold: Fold, shots: tuple[int, ...]) -> Iterator[NDArray[Any]]:
        seen.append(fold)
        assert shots == (0, 3)
        yield np.zeros(len(fold.queries.y))
        yield fold.queries.y

    curve = held_out_curve(forecast, tasks, ERRORS["absolute"], Plan((0, 3), folds=4), rng)
    assert [len(fold.new) for fold in seen] == [3, 3, 2, 2]  # as even as they can be
    held_out = np.concatenate([fold.new.ids for fold in seen])
    assert sorted(held_out) == np.flatnonzero(np.array(sizes) > 3).tolist() == curve.ids.tolist()
    for known, new, queries in seen:
        assert sorted([*known.ids, *new.ids]) == list(range(len(sizes)))
        np.testing.assert_array_equal(queries.ids, new.ids)
        for (_, y), (_, rest) in zip(new, queries, strict=True):
            np.testing.assert_array_equal(y[3:], rest)
    expected = [np.abs(tasks[t][1][3:]).mean() for t in curve.ids]
    np.testing.assert_allclose(curve.errors, np.column_stack([expected, np.zeros(10)]))
    least = Plan((3,), folds=10)
    held_out_curve(lambda fold, _: [fold.queries.y], tasks, ERRORS["absolute"], least, rng)
    with pytest.raises(ValueError, match=r"shots: 10 tasks have more than 3 rows, at least 11"):
        few_shot_curve(Ridge(), tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes),
                       how="pooled", shots=[3], folds=11)  # fmt: skip


def test_repeats_are_averaged_and_shuffles_keep_rows_with_their_tasks() -> None:
    X, y, ids = table()
    rng = np.random.default_rng(3)
    tasks = TaskSet.from_arrays(X, y, ids)
    seen: list[Fold] = []

    def forecast(fold: Fold, _: tuple[int, ...]) -> list[Array]:
        seen.append(fold)
        return [np.full(len(fold.queries.y), float(len(seen)))]

    plan = Plan((4,), folds=2, repeats=3, shuffle=True)
    curve = held_out_curve(forecast, tasks, lambda _, z: z, plan, rng)
    assert len(seen) == 6
    expected = np.zeros(30)
    for number, fold in enumerate(seen, start=1):
        expected[np.isin(tasks.ids, fold.new.ids)] += number / 3.0
    np.testing.assert_allclose(curve.errors[:, 0], expected)
    orders = set()
    for fold in seen:
        for i, (rows, _) in zip(fold.new.ids, fold.new, strict=True):
            own = tasks[tasks.ids.tolist().index(i)][0]
            np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(own[:, 0]))
            orders.add(tuple(np.searchsorted(np.sort(own[:, 0]), rows[:, 0])))
    assert len(orders) > 60


def test_plot_shows_mean_and_band() -> None:
    X, y, ids = table()
    curve = few_shot_curve(MetaRegressor(), X, y, ids)
    ax = curve.plot(label="headstart")
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), curve.mean)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "1", "2", "4", "8"]
    (band,) = ax.collections
    low, high = band.get_datalim(ax.transData).intervaly
    assert low == pytest.approx(np.min(curve.mean - curve.half_width))
    assert high == pytest.approx(np.max(curve.mean + curve.half_width))


def _with_na(X: Array) -> Array:
    odd = X.astype(object)
    odd[0, 0] = pd.NA
    return odd


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda X, y, g: few_shot_curve(Ridge(), X, y, g),
            TypeError,
            "Ridge cannot adapt; say how",
        ),
        (lambda X, y, _: few_shot_curve(MetaRegressor(), X, y), ValueError, "groups: expected an"),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g, shots=[12]),
            ValueError,
            "shots: 0 tasks have more than 12 rows",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g, how="x"),
            ValueError,
            "how: expected one of",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g, error="x"),
            ValueError,
            "error: expected one of 'absolute', 'squared', 'zero_one' or a function",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g, error=cast(Any, dict)),
            TypeError,
            "error: the function failed with TypeError",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g, error=lambda y, _: y[:1]),
            ValueError,
            "error: expected a number for each of",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, cast(Any, csr_array(y[:, None])), g),
            ValueError,
            "y: expected one label per row, found csr_array",
        ),
        (lambda X, y, g: diagnose(X, y[0], g), ValueError, "y: expected one label per row"),
        (
            lambda X, y, g: diagnose(X, y, g, classify=cast(Any, np.ones(2))),
            TypeError,
            "classify: expected True or False, found",
        ),
        (
            lambda X, y, g: few_shot_score(Ridge(), X, y, g, shots=0, how="independent"),
            ValueError,
            "shots: expected 1 or more with how='independent'",
        ),
        (
            lambda X, y, g: few_shot_score(MetaRegressor(), {"a": X[:, 0]}, y, g, shots=1),
            TypeError,
            "X: expected a table, found dict",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), [*X.tolist()[1:], [1.0]], y, g),
            ValueError,
            "X: expected rows of one length, found lists of several",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, [*y[1:], [1.0, 2.0]], g),
            ValueError,
            "y: expected one label per row, found lists among them",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g, shots=cast(Any, np.array(2))),
            TypeError,
            "shots: expected a list of numbers of rows",
        ),
        (
            lambda X, y, g: few_shot_score(MetaRegressor(), _with_na(X), y, g, shots=1),
            (TypeError, ValueError),
            "^X: ",
        ),
        (
            lambda X, y, g: few_shot_curve(MetaRegressor(), X, y, g).minus(
                few_shot_curve(MetaRegressor(), X, y, g, shots=[1])
            ),
            ValueError,
            "other: expected a curve of the same tasks",
        ),
    ],
)
def test_errors(call: Callable[..., object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(*table())
