"""scikit-learn around the estimators: pipelines, searches, scorers, more than two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart import MetaClassifier, MetaRegressor

Array = NDArray[np.float64]


def table(T: int = 30, n: int = 8) -> tuple[pd.DataFrame, Array]:
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(T), n))
    X = rng.normal(size=(T * n, 2)) * [1.0, 1000.0]
    own = rng.normal([2.0, -0.001], [0.5, 0.0002], (T, 2))
    y = (X * own[ids]).sum(axis=1) + rng.normal(size=T)[ids] + 0.5 * rng.normal(size=T * n)
    return pd.DataFrame(X, columns=["age", "price"]).assign(user=ids), y


def test_a_pipeline_in_which_the_ids_survive() -> None:
    frame, y = table()
    scale = ColumnTransformer(
        [("scale", StandardScaler(), ["age", "price"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    model = make_pipeline(scale, MetaRegressor(group="user")).fit(frame, y)
    plain = MetaRegressor(group="user").fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), plain.predict(frame), rtol=1e-7)


@pytest.mark.filterwarnings("ignore:the prior still changes")
def test_searches_have_no_combination_that_fails() -> None:
    frame, y = table(T=12, n=6)
    grid = {
        "metric": ["auto", "full", "diagonal", "isotropic"],
        "loss": ["auto", "squared", "huber", "absolute", "pinball"],
        "inner": ["sgd", "erm", "constant"],
    }
    search = GridSearchCV(
        MetaRegressor(group="user"), grid, cv=2, scoring="neg_mean_absolute_error",
        error_score="raise",
    )  # fmt: skip
    assert np.isfinite(search.fit(frame, y).best_score_)
    paper: dict[str, Any] = {
        "metric": ["auto", "full"],
        "loss": ["auto", "huber"],
        "inner": ["sgd", "erm", "constant"],
        "step": ["auto", 0.1],
    }
    search = GridSearchCV(MetaRegressor(group="user", reg=1.0), paper, cv=2, error_score="raise")
    assert np.isfinite(search.fit(frame, y).best_score_)


def test_named_scorers_and_log_loss() -> None:
    frame, y = table()
    labels = np.where(y > np.median(y), "high", "low")
    for scoring in ("neg_log_loss", "roc_auc", "accuracy"):
        scores = cross_val_score(MetaClassifier(group="user"), frame, labels, scoring=scoring, cv=3)
        assert np.isfinite(scores).all()
        if scoring == "neg_log_loss":
            assert np.all(scores > -np.log(2.0))  # better than knowing nothing


def test_more_than_two_classes() -> None:
    frame, y = table(T=40, n=12)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    with pytest.raises(ValueError, match=r"OneVsRestClassifier\(MetaClassifier\(group="):
        MetaClassifier(group="user").fit(frame, labels)
    model = OneVsRestClassifier(MetaClassifier(group="user")).fit(frame, labels)
    assert model.score(frame, labels) > 0.6
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)


def test_weights_and_groups_by_metadata_routing() -> None:
    frame, y = table()
    X, ids = frame[["age", "price"]].to_numpy(), frame["user"].to_numpy()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        asking: Any = MetaRegressor()
        model = asking.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        params = {"groups": ids, "sample_weight": weight}
        scores = cross_val_score(model, X, y, params=params, cv=3)
    assert np.all(scores > 0.5)
