"""The estimators as scikit-learn, data frames and users meet them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from headstart import (
    MetaClassifier,
    MetaRegressor,
    Pinball,
    TaskClassifier,
    TaskRegressor,
    biased_erm,
    biased_sgd,
)

NAMES = ["age", "price"]


def table(T: int = 30, n: int = 6) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(T * n, 2))
    ids = [f"user {i}" for i in np.repeat(rng.permutation(T), n)]
    own = dict.fromkeys(ids)
    weights = {i: rng.normal([4.0, -2.0], 0.3) for i in own}
    y = np.array([x @ weights[i] + 1.0 for x, i in zip(X, ids, strict=True)])
    return X, y, ids


FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


NOBODY = "ignore:groups. there are no ids"  # scikit-learn's checks give none


def not_for(estimator: Any) -> dict[str, str]:
    """Checks that ask for what is not so."""
    if estimator.reg != "auto":
        reason = "the paper's algorithms count every row once"
        names = ["_equivalence_on_dense_data", "s_not_overwritten"]
    else:
        reason = "without ids a row twice is two tasks, and a row that counts twice is one"
        exact = isinstance(estimator, MetaRegressor) and estimator.loss == "auto"  # close enough
        names = ["_equivalence_on_sparse_data", *(["_equivalence_on_dense_data"] * (not exact))]
    return {f"check_sample_weight{name}": reason for name in names}


@pytest.mark.filterwarnings(NOBODY)
@parametrize_with_checks(
    [
        TaskRegressor(),
        TaskClassifier(),
        MetaRegressor(),
        MetaClassifier(),
        TaskRegressor(inner="erm", loss="huber"),
        TaskClassifier(inner="erm", loss="logistic"),
        MetaRegressor(loss="huber", metric="diagonal"),
        MetaClassifier(loss="smoothed_hinge", metric="isotropic", fit_intercept=False),
        MetaRegressor(reg=1.0, predictor="last", random_state=0),
        MetaClassifier(loss="logistic", inner="erm", fit_intercept=False, reg=1.0, step=0.1),
        MetaRegressor(reg=1.0, step=0.1),
        MetaRegressor(loss="pinball", inner="constant", reg=5.0),
    ],
    expected_failed_checks=not_for,
)
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_are_arrays_with_names(frame: Callable[[dict[str, Any]], Any]) -> None:
    X, y, ids = table()
    plain = MetaRegressor().fit(X, y, groups=ids)
    columns = dict(zip(NAMES, X.T, strict=True))
    beside = MetaRegressor().fit(frame(columns), y, groups=ids)
    inside = MetaRegressor(group="user")
    inside.fit(frame({"age": X[:, 0], "user": ids, "price": X[:, 1]}), y)
    first = MetaRegressor(group=0).fit(frame({"user": ids, **columns}), y)
    for model in (beside, inside, first):
        np.testing.assert_array_equal(model.bias_, plain.bias_)
        assert list(vars(model)["feature_names_in_"]) == NAMES
        assert model.n_features_in_ == 2
        assert model.bias_by_feature() == dict(zip(NAMES, plain.bias_.tolist(), strict=True))
    expected = plain.predict(X, groups=ids)
    np.testing.assert_array_equal(beside.predict(frame(columns), groups=ids), expected)
    moved = frame({"user": ids, "age": X[:, 0], "price": X[:, 1]})
    np.testing.assert_array_equal(inside.predict(moved), expected)
    np.testing.assert_array_equal(inside.predict(frame(columns)), plain.predict(X))
    few = inside.adapt(frame({"user": ids[:4], "age": X[:4, 0], "price": X[:4, 1]}), y[:4])
    np.testing.assert_array_equal(few.coef_, inside.adapt(frame(columns)[:4], y[:4]).coef_)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        beside.predict(frame({"price": X[:, 1], "age": X[:, 0]}))


def test_names_without_a_frame() -> None:
    X, y, ids = table()
    assert list(MetaRegressor().fit(X, y, ids).bias_by_feature()) == ["x0", "x1"]


def test_group_as_a_column_of_an_array() -> None:
    X, y, ids = table()
    numbers = np.unique(ids, return_inverse=True)[1]
    model = MetaRegressor(group=1).fit(np.column_stack([X[:, 0], numbers, X[:, 1]]), y)
    np.testing.assert_array_equal(model.bias_, MetaRegressor().fit(X, y, numbers).bias_)
    mixed = np.column_stack([X.astype(object), ids])
    again = MetaRegressor(group=-1).fit(mixed, y)
    np.testing.assert_array_equal(again.bias_, MetaRegressor().fit(X, y, ids).bias_)


@pytest.mark.parametrize("reg", ["auto", 1.0])
def test_ids_of_another_kind_are_warned_of(reg: Any) -> None:
    X, y, ids = table()
    model = MetaRegressor(reg=reg).fit(X, y, groups=ids)
    message = "groups: ids are numbers, those learned from are text, so that none of them is known"
    with pytest.warns(UserWarning, match=message):
        found = model.predict(X, groups=np.arange(len(y)))
    np.testing.assert_array_equal(found, model.predict(X))
    with pytest.warns(UserWarning, match=message):
        model.partial_fit(X[:2], y[:2], groups=[1, 2])


def test_who_is_predicted_with_what() -> None:
    X, y, ids = table()
    model = MetaRegressor(reg=1.0, step=1.0).fit(X, y, groups=ids)
    own = np.array([model.weights_of(i) for i in ids])
    start = np.array([model.intercept_of(i) for i in ids])
    np.testing.assert_allclose(model.predict(X, groups=ids), np.sum(X * own, axis=1) + start)
    general = X @ model.bias_ + model.intercept_
    for nobody in (None, ["someone"] * len(y), [None] * len(y), np.full(len(y), np.nan)):
        np.testing.assert_allclose(model.predict(X, groups=nobody), general)
    three = [ids[0], None, "x"]
    expected = [model.predict(X[:1], groups=ids[:1])[0], general[1], general[2]]
    np.testing.assert_allclose(model.predict(X[:3], groups=three), expected)
    assert model.score(X, y, groups=ids) > model.score(X, y)
    with pytest.raises(KeyError, match="'someone' is no known id"):
        model.weights_of("someone")


@pytest.mark.parametrize("reg", ["auto", 1.0])
def test_rows_without_ids_are_tasks_of_their_own(reg: Any) -> None:
    X, y, _ = table()
    with pytest.warns(UserWarning, match="groups: there are no ids, so that every row is a task"):
        alone = MetaRegressor(reg=reg).fit(X, y)
    numbered = MetaRegressor(reg=reg).fit(X, y, groups=np.arange(len(y)))
    np.testing.assert_allclose(alone.bias_, numbered.bias_, rtol=1e-9)
    assert alone.ids_ == []
    assert alone.n_tasks_ == len(y)
    with_gaps = [None if i % 3 == 0 else i for i in range(len(y))]
    with pytest.warns(UserWarning, match="groups: 60 of 180 rows have no id"):
        mixed = MetaRegressor(reg=reg).fit(X, y, groups=with_gaps)
    np.testing.assert_allclose(mixed.bias_, numbered.bias_, rtol=1e-9)
    assert len(mixed.ids_) == 120


def test_random_state_shuffles_tasks() -> None:
    X, y, ids = table()
    plain = MetaRegressor(reg=1.0).fit(X, y, ids)
    one, same, two = (MetaRegressor(reg=1.0, random_state=s).fit(X, y, ids) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.bias_, same.bias_)
    assert np.any(one.bias_ != two.bias_)
    assert np.any(one.bias_ != plain.bias_)
    assert set(one.ids_) == set(plain.ids_)


def test_threads_give_the_same_bits() -> None:
    X, y, ids = table()
    choices: list[dict[str, Any]] = [{}, {"reg": 1.0}, {"reg": 1.0, "step": 0.1, "inner": "erm"}]
    for settings in choices:
        one, two = (MetaRegressor(**settings, n_jobs=n).fit(X, y, ids) for n in (1, 2))
        np.testing.assert_array_equal(one.predict(X, ids), two.predict(X, ids))


def test_adapt_leaves_the_model_alone() -> None:
    X, y, ids = table()
    model = MetaRegressor(reg=0.1, step=0.5).fit(X, y, groups=ids)
    before = pickle.dumps(model)
    new = model.adapt(X[:3], y[:3])
    assert pickle.dumps(model) == before
    b = np.sqrt(np.mean(X**2))
    wide, bias = np.column_stack([X, np.full(len(X), b)]), np.append(model.bias_, 0.0)
    bias[-1] = model.intercept_ / b
    expected = biased_sgd(wide[:3], y[:3], bias, 0.1).average
    np.testing.assert_allclose(new.coef_, expected[:-1])
    assert new.intercept_ == pytest.approx(b * expected[-1])
    assert isinstance(new, TaskRegressor)


@pytest.mark.parametrize("predictor", ["average", "last"])
def test_one_task_is_algorithm_1(predictor: str) -> None:
    X, y, _ = table()
    bias = np.array([4.0, -2.0])
    model = TaskRegressor(bias=bias, reg=0.3, predictor=predictor, fit_intercept=False)
    result = biased_sgd(X[:9], y[:9], bias, 0.3)
    np.testing.assert_allclose(model.fit(X[:9], y[:9]).coef_, getattr(result, predictor))
    rows = clone(model)
    for i in range(9):
        rows.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_array_equal(rows.coef_, model.coef_)
    exact = clone(model).set_params(inner="erm").fit(X[:9], y[:9])
    np.testing.assert_allclose(exact.coef_, biased_erm(X[:9], y[:9], bias, 0.3).weights)


def test_poly_weighs_late_iterates_more() -> None:
    X, y, _ = table()
    found = TaskRegressor(reg=0.3, predictor="poly", fit_intercept=False).fit(X[:5], y[:5]).coef_
    later = [biased_sgd(X[:k], y[:k], np.zeros(2), 0.3).last for k in range(1, 5)]
    np.testing.assert_allclose(
        found, np.average([np.zeros(2), *later], axis=0, weights=[1, 2, 3, 4, 5])
    )


def test_intercept_follows_the_scale_of_the_inputs() -> None:
    X, y, ids = table()
    small = MetaRegressor(reg=1.0, step=0.1).fit(X, y, ids)
    large = MetaRegressor(reg=1e4, step=1e-5).fit(100.0 * X, y, ids)
    np.testing.assert_allclose(large.predict(100.0 * X, ids), small.predict(X, ids))
    zero = MetaRegressor(reg=1.0).fit(np.zeros((5, 2)), np.full(5, 3.0), groups=np.arange(5))
    assert zero.intercept_ > 0.0


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [False, True], [-1, 1], [5.0, 2.0]])
def test_binary_labels_of_any_two_values(labels: list[Any]) -> None:
    X, y, ids = table()
    first, second = sorted(labels)
    target = np.where(y > 0.0, second, first)
    signs = np.where(y > 0.0, 1.0, -1.0)
    model = MetaClassifier(loss="logistic", reg=0.1).fit(X, target, groups=ids)
    plain = MetaClassifier(loss="logistic", reg=0.1).fit(X, signs, groups=ids)
    np.testing.assert_array_equal(model.bias_, plain.bias_)
    assert model.classes_.tolist() == [first, second]
    scores = model.decision_function(X, groups=ids)
    np.testing.assert_array_equal(model.predict(X, ids), np.where(scores > 0, second, first))
    probability = model.predict_proba(X, groups=ids)
    np.testing.assert_allclose(probability[:, 1], 1.0 / (1.0 + np.exp(-scores)))
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert model.score(X, target, groups=ids) > 0.9
    new = model.adapt(X[:2], [first, first])  # one label is enough for a new entity
    assert isinstance(new, TaskClassifier)
    assert new.classes_.tolist() == [first, second]


def test_only_the_logistic_loss_gives_probabilities() -> None:
    X, y, ids = table()
    blurred = y + np.random.default_rng(0).normal(0.0, 2.0, len(y)) > 0.0
    model = MetaClassifier(loss="hinge").fit(X, blurred, groups=ids)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)


@pytest.mark.filterwarnings(NOBODY)
def test_streams_of_labels_need_both_classes_once() -> None:
    X, _, _ = table()
    with pytest.raises(ValueError, match=r"one class only.*a stream needs classes="):
        MetaClassifier().partial_fit(X[:2], ["a", "a"])
    model = MetaClassifier().partial_fit(X[:2], ["a", "a"], classes=["a", "b"])
    model.partial_fit(X[2:4], ["b", "a"])
    with pytest.raises(ValueError, match=r"y: expected the classes \['a', 'b'\], found .*'c'"):
        model.partial_fit(X[:2], ["a", "c"])


def test_pipelines_and_searches_with_nothing_switched_on() -> None:
    X, y, ids = table()
    frame = pd.DataFrame({"age": X[:, 0], "price": 100.0 * X[:, 1], "user": ids})
    scale = ColumnTransformer([("scale", StandardScaler(), NAMES)], remainder="passthrough")
    pipeline = make_pipeline(
        scale.set_output(transform="pandas"), MetaRegressor(group="remainder__user")
    )
    grid = {"metaregressor__reg": [0.1, 10.0], "metaregressor__step": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring="neg_mean_absolute_error", cv=3)
    search.fit(frame, y)
    assert search.best_params_["metaregressor__step"] == 1.0
    plain = pd.DataFrame({"age": X[:, 0], "price": X[:, 1], "user": ids})
    scores = cross_val_score(MetaRegressor(group="user", step=1.0), plain, y, scoring="r2", cv=3)
    assert np.all(scores > 0.5)


def test_groups_by_metadata_routing() -> None:
    X, y, ids = table()
    groups = np.array(ids)
    with sklearn.config_context(enable_metadata_routing=True):
        model = MetaRegressor(step=1.0, reg=0.1)
        scores = cross_val_score(model, X, y, params={"groups": groups}, cv=GroupKFold(3))
        split = GroupKFold(3).split(X, y, groups)
        for score, (train, test) in zip(scores, split, strict=True):
            fitted = clone(model).fit(X[train], y[train], groups=groups[train])
            assert score == fitted.score(X[test], y[test], groups=groups[test])


def test_copies_are_models() -> None:
    X, y, ids = table()
    model = MetaRegressor(loss=Pinball(0.3)).partial_fit(X, y, groups=ids)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict(X, ids), model.predict(X, ids))
        other.partial_fit(X, y, groups=ids)
        assert np.any(other.predict(X, ids) != model.predict(X, ids))


def test_float32_is_kept() -> None:
    X, y, ids = table()
    wide, narrow = MetaRegressor().fit(X, y, ids), MetaRegressor().fit(X.astype(np.float32), y, ids)
    assert narrow.bias_.dtype == np.float32
    assert narrow.weights_of(ids[0]).dtype == np.float32
    assert narrow.predict(X.astype(np.float32), ids).dtype == np.float32
    np.testing.assert_allclose(narrow.bias_, wide.bias_, rtol=1e-4)


def test_text_says_what_it_is() -> None:
    assert repr(MetaRegressor(reg=0.5, group="user")) == "MetaRegressor(group='user', reg=0.5)"
    assert "MetaRegressor" in MetaRegressor()._repr_html_()


WRONG: list[tuple[Callable[..., object], type[Exception], str]] = [
    (
        lambda X, y, g: MetaRegressor().fit(X, y, g[:3]),
        ValueError,
        r"groups: expected one id per row of X \(180\), found 3",
    ),
    (
        lambda X, y, g: MetaRegressor(loss="hinge").fit(X, y, g),
        ValueError,
        "loss: MetaRegressor takes 'absolute', .* found 'hinge'",
    ),
    (
        lambda X, y, g: MetaClassifier(loss="huber").fit(X, y > 0, g),
        ValueError,
        "loss: MetaClassifier takes 'hinge', .* found 'huber'",
    ),
    (lambda X, y, g: MetaRegressor(reg=0).fit(X, y, g), ValueError, "reg: expected"),
    (lambda X, y, g: MetaRegressor(step=-1).fit(X, y, g), ValueError, "step: expected"),
    (lambda X, y, g: MetaRegressor(task_size=0).fit(X, y, g), ValueError, "task_size: expected"),
    (lambda X, y, g: MetaRegressor(reg="x").fit(X, y, g), ValueError, "reg: .* or 'auto', found"),
    (lambda X, y, g: MetaRegressor(step="x").fit(X, y, g), ValueError, "step: .* or 'auto', fo"),
    (lambda X, y, g: MetaRegressor(inner="x").fit(X, y, g), ValueError, "inner: expected"),
    (lambda X, y, g: MetaRegressor(predictor="x").fit(X, y, g), ValueError, "predictor: expected"),
    (
        lambda X, y, g: MetaRegressor().set_params(fit_intercept="no").fit(X, y, g),
        TypeError,
        "fit_intercept: expected True or False",
    ),
    (
        lambda X, y, _: MetaRegressor(group="user").fit(X, y),
        TypeError,
        "group: column 'user' can be found in a data frame only",
    ),
    (
        lambda X, y, _: MetaRegressor(group="user").fit(pd.DataFrame(X, columns=NAMES), y),
        ValueError,
        "group: X has no column 'user'; it has 'age', 'price'",
    ),
    (
        lambda X, y, g: MetaRegressor(group="age").fit(pd.DataFrame(X, columns=NAMES), y, g),
        ValueError,
        "groups: expected None, because the ids are taken from column 'age'",
    ),
    (
        lambda X, y, _: MetaRegressor(group=2).fit(X, y),
        ValueError,
        "group: expected a column's number from 0 to 1, found 2",
    ),
    (
        lambda X, y, _: MetaRegressor(inner="erm", reg=1.0).partial_fit(X, y),
        AttributeError,
        "partial_fit",
    ),
    (lambda X, y, _: MetaClassifier().fit(X, np.round(y)), ValueError, "Only binary"),
    (lambda X, _, __: MetaClassifier().fit(X, np.ones(len(X))), ValueError, "one class only"),
    (lambda X, y, _: TaskRegressor(bias=[1.0]).fit(X, y), ValueError, "bias: expected length 2"),
    (
        lambda X, y, _: TaskRegressor(intercept_scaling=0.0).fit(X, y),
        ValueError,
        "intercept_scaling: expected a finite number > 0",
    ),
    (
        lambda X, y, g: MetaRegressor().fit(X, y, g).adapt(X[:2, :1], y[:2]),
        ValueError,
        "X has 1 features, but MetaRegressor is expecting 2",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_errors(call: Callable[..., object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(*table())


def test_a_wrong_first_chunk_begins_nothing() -> None:
    X, y, ids = table()
    model = MetaRegressor()
    with pytest.raises(ValueError, match="one id per row"):
        model.partial_fit(X, y, groups=ids[:-1])
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    ("name", "first", "then"),
    [("reg", "auto", 1.0), ("reg", 1.0, "auto"), ("metric", "auto", "full"), ("step", 0.1, "auto")],
)
def test_a_stream_stays_what_it_is(name: str, first: Any, then: Any) -> None:
    X, y, ids = table()
    reg = 1.0 if name == "step" else "auto"
    model = MetaRegressor(reg=reg).set_params(**{name: first}).partial_fit(X, y, groups=ids)
    with pytest.raises(ValueError, match=f"{name}: expected the value this stream was begun with"):
        model.set_params(**{name: then}).partial_fit(X, y, groups=ids)


def test_a_wrong_chunk_changes_nothing() -> None:
    X, y, ids = table()
    model = MetaRegressor().partial_fit(X, y, groups=ids)
    before = pickle.dumps(model)
    broken = X.copy()
    broken[7, 1] = np.nan
    for wrong in ((broken, y, ids), (X, y[:-1], ids), (X, y, ids[:-1]), (X[:, :1], y, ids)):
        with pytest.raises(ValueError, match=r"NaN|inconsistent|one id per row|features"):
            model.partial_fit(*wrong)
        assert pickle.dumps(model) == before
