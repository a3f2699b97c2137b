"""A model of all rows below that of the tasks: the estimators with `base`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from headstart import MetaClassifier, MetaRegressor, TaskRegressor, TaskSet, load_model
from headstart.estimators.base_model import FOLDS, SURE
from headstart.store import StoreError

Array = NDArray[Any]

RNG = np.random.default_rng(3)
IDS = np.repeat(np.arange(60), 8)
X = RNG.uniform(-2.0, 2.0, (IDS.size, 2))
Y = np.sin(2.0 * X[:, 0]) + RNG.normal(0.0, 1.0, 60)[IDS] * X[:, 1] + RNG.normal(0.0, 0.3, IDS.size)


class Curved(RegressorMixin, BaseEstimator):
    """Ridge on squares and sines, which notes of whom it has seen rows."""

    seen: ClassVar[list[Array]] = []

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Curved:
        Curved.seen.append(X)
        self.ridge_ = Ridge().fit(self._wide(X), y, sample_weight)
        return self

    def _wide(self, X: Array) -> Array:
        return np.column_stack([X, X**2, np.sin(X)])

    def predict(self, X: Array) -> Array:
        return np.asarray(self.ridge_.predict(self._wide(X)))


class Bare(ClassifierMixin, BaseEstimator):
    """A classifier without probabilities."""

    def fit(self, X: Array, y: Array) -> Bare:  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Array) -> Array:
        return 3.0 * X[:, 0]

    def predict(self, X: Array) -> Array:
        return np.asarray(self.classes_[(X[:, 0] > 0.0).astype(int)])


def test_entities_are_predicted_by_models_that_have_not_seen_them() -> None:
    Curved.seen.clear()
    MetaRegressor(base=Curved()).fit(X, Y, groups=IDS)
    *folds, last = Curved.seen
    assert len(folds) == FOLDS
    assert len(last) == len(X)
    owner = {tuple(row): entity for row, entity in zip(X.tolist(), IDS.tolist(), strict=True)}
    unseen = [set(range(60)) - {owner[tuple(row)] for row in fold.tolist()} for fold in folds]
    assert sorted(entity for fold in unseen for entity in fold) == list(range(60))
    assert all(len(fold) == 60 // FOLDS for fold in unseen)


def column_of_others(base: Any) -> Array:
    """What models of the other folds say of each row, with folds found by what was not seen."""
    Curved.seen.clear()
    MetaRegressor(base=base).fit(X, Y, groups=IDS)
    column, rows = np.empty(len(X)), {tuple(row): k for k, row in enumerate(X.tolist())}
    for fold in Curved.seen[:-1]:
        used = np.zeros(len(X), bool)
        used[[rows[tuple(row)] for row in fold.tolist()]] = True
        column[~used] = clone(base).fit(X[used], Y[used]).predict(X[~used])
    return column


def test_it_is_a_model_with_one_more_column() -> None:
    plain = MetaRegressor().fit(np.column_stack([X, column_of_others(Curved())]), Y, groups=IDS)
    model = MetaRegressor(base=Curved()).fit(X, Y, groups=IDS)
    all_rows = Curved().fit(X, Y)
    rows, ids = RNG.uniform(-2.0, 2.0, (20, 2)), np.arange(50, 70)  # ten of them are new
    wide = np.column_stack([rows, all_rows.predict(rows)])
    for found, expected in zip(
        model.predict(rows, ids, return_std=True),
        plain.predict(wide, ids, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.bias_, plain.bias_)
    np.testing.assert_array_equal(model.weights_of(7), plain.weights_of(7))
    np.testing.assert_array_equal(
        model.predict_interval(rows, ids), plain.predict_interval(wide, ids)
    )
    one, other = model.adapt(rows[:5], Y[:5]), plain.adapt(wide[:5], Y[:5])
    for a, b in zip(
        one.predict(rows, return_std=True), other.predict(wide, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    task = TaskSet.from_list([(rows[:5], Y[:5])])
    np.testing.assert_allclose(model.adapt_tasks(task)[0], [*one.coef_, one.intercept_])
    assert model.predict_one(rows[3], 53) == pytest.approx(model.predict(rows[3:4], [53])[0])
    model.partial_fit(rows, Y[:20], groups=ids).finish()
    plain.partial_fit(wide, Y[:20], groups=ids).finish()
    np.testing.assert_array_equal(model.predict(rows, ids), plain.predict(wide, ids))
    model.learn_one(rows[0], 1.0, 3)
    alone = all_rows.predict(rows[:1])  # products of one row may round otherwise than those of 20
    plain.learn_one(np.append(rows[0], alone), 1.0, 3)
    np.testing.assert_array_equal(model.weights_of(3), plain.weights_of(3))


class Noisy(Curved):
    """It says of the second column what is true of some entities and false of as many."""

    def predict(self, X: Array) -> Array:
        return np.asarray(X[:, 1] + np.sin(50.0 * X[:, 0]))


def test_what_the_base_says_counts_the_same_for_all_unless_it_helps_most() -> None:
    differ = []
    for base in (Curved(), Noisy()):
        model = MetaRegressor(base=base).fit(X, Y, groups=IDS)
        weights = np.array([model.weights_of(i) for i in range(60)])
        differ.append(np.std(weights[:, 2]) / np.std(weights[:, 1]))
        assert model.bias_[2] == pytest.approx(weights[:, 2].mean(), abs=0.05)
    assert differ[1] < 1e-3 < differ[0]


def test_curves_are_found_and_named() -> None:
    table = pd.DataFrame(X, columns=["a", "b"]).assign(id=IDS)
    plain = MetaRegressor(group="id").fit(table, Y)
    model = MetaRegressor(group="id", base=Curved()).fit(table, Y)
    assert model.prior_.noise < 0.5 * plain.prior_.noise
    assert list(model.summary().index) == ["a", "b", "(base)", "(intercept)"]
    assert model.summary().loc["(base)", "effect"] == pytest.approx(1.0, abs=0.2)


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    one = MetaRegressor(base=Ridge()).fit(X, Y, groups=IDS)
    other = MetaRegressor(base=Ridge()).fit(X[order], Y[order], groups=IDS[order])
    np.testing.assert_allclose(one.predict(X, IDS), other.predict(X, IDS), atol=1e-6)


def test_classes_have_log_odds() -> None:
    labels = np.where(Y > 0.0, "up", "down")
    model = MetaClassifier(base=LogisticRegression()).fit(X, labels, groups=IDS)
    odds = model.base_.predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.with_base(X)[:, 2], np.log(odds / (1.0 - odds)))
    assert model.predict_proba(X, IDS).shape == (len(X), 2)
    assert set(model.adapt(X[:8], labels[:8]).predict(X)) <= {"up", "down"}
    bare = MetaClassifier(base=Bare()).fit(X, labels, groups=IDS)
    np.testing.assert_array_equal(bare.with_base(X)[:, 2], 3.0 * X[:, 0])


def test_sure_probabilities_stay_finite() -> None:
    labels = np.where(X[:, 0] > 0.0, 1, 0)
    sure = LogisticRegression(C=1e12, max_iter=10_000)
    column = MetaClassifier(base=sure).fit(X, labels, groups=IDS).with_base(X)[:, 2]
    assert np.abs(column).max() <= -np.log(SURE)


def test_weights_of_rows_reach_the_base() -> None:
    weight = np.where(IDS < 30, 1.0, 3.0)
    model = MetaRegressor(base=Ridge()).fit(X, Y, groups=IDS, sample_weight=weight)
    expected = Ridge().fit(X, Y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(model.with_base(X)[:, 2], expected)


def test_a_fit_without_base_forgets_it() -> None:
    model = MetaRegressor(base=Ridge()).fit(X, Y, groups=IDS)
    model.set_params(base__alpha=7.0)
    assert clone(model).base.alpha == 7.0
    model.set_params(base=None).fit(X, Y, groups=IDS)
    expected = MetaRegressor().fit(X, Y, groups=IDS).predict(X, IDS)
    np.testing.assert_array_equal(model.predict(X, IDS), expected)


def test_an_adapted_task_survives_a_clone() -> None:
    task = MetaRegressor(base=Ridge()).fit(X, Y, groups=IDS).adapt(X[:8], Y[:8])
    again = clone(task).fit(X[:8], Y[:8])
    np.testing.assert_array_equal(task.predict(X), again.predict(X))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: MetaRegressor(base=LogisticRegression()).fit(X, Y, groups=IDS), "a regressor"),
        (lambda: MetaRegressor(base="trees").fit(X, Y, groups=IDS), "base: expected a regressor"),
        (lambda: MetaClassifier(base=Ridge()).fit(X, Y > 0, groups=IDS), "a classifier"),
        (lambda: MetaRegressor(base=Ridge(), reg=1.0).fit(X, Y, groups=IDS), "base: .* reg"),
        (lambda: MetaRegressor(base=Ridge()).partial_fit(X, Y, groups=IDS), "base: .* fit first"),
        (lambda: MetaRegressor(base=Ridge()).fit(X, Y, groups=IDS * 0), "base: .* two entities"),
        (lambda: MetaRegressor(base=Ridge()).fit(csr_array(X), Y, groups=IDS), "X: .* base"),
        (
            lambda: MetaClassifier(base=Bare()).fit(
                X, Y > 0, groups=IDS, sample_weight=1.0 + IDS
            ),
            "sample_weight: the base, Bare",
        ),
        (lambda: TaskRegressor(base=Ridge().fit(X, Y)).fit(X, Y), "base: .* without a prior"),
        (lambda: _fitted().merge(_fitted()), "other: .* base"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(action: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        action()


def _fitted() -> MetaRegressor:
    return MetaRegressor(base=Ridge()).fit(X, Y, groups=IDS)


@pytest.mark.parametrize("binary", [False, True])
def test_a_saved_model_has_its_base(tmp_path: Path, binary: bool) -> None:
    trees: Any = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    kind, labels = (MetaClassifier, Y > 0.0) if binary else (MetaRegressor, Y)
    model = kind(base=trees(max_iter=5)).fit(X, labels, groups=IDS)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model", trusted=True)
    np.testing.assert_array_equal(again.predict(X, IDS), model.predict(X, IDS))
    np.testing.assert_array_equal(
        again.adapt(X[:8], labels[:8]).predict(X), model.adapt(X[:8], labels[:8]).predict(X)
    )
    assert again.base.max_iter == 5
    assert not hasattr(again.base, "n_iter_")
    again.partial_fit(X[:9], labels[:9], groups=IDS[:9])
    model.partial_fit(X[:9], labels[:9], groups=IDS[:9])
    np.testing.assert_array_equal(again.predict(X, IDS), model.predict(X, IDS))


def test_a_base_is_loaded_from_those_one_trusts_only(tmp_path: Path) -> None:
    _fitted().save(tmp_path / "model")
    with pytest.raises(StoreError, match="trusted=True"):
        MetaRegressor.load(tmp_path / "model")
    (file,) = (tmp_path / "model").glob("arrays-*/base.npy")
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        MetaRegressor.load(tmp_path / "model", trusted=True)


def test_without_skops_saving_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"base: .*install skops"):
        _fitted().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_predictions_that_are_no_numbers_are_refused() -> None:
    class Broken(Curved):
        def predict(self, X: Array) -> Array:
            return np.full(len(X), np.nan)

    with pytest.raises(ValueError, match=r"base: expected a finite prediction.*Broken"):
        MetaRegressor(base=Broken()).fit(X, Y, groups=IDS)
