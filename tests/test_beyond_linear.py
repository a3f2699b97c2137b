"""Curves by scikit-learn's features before the estimators, the id column kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from headstart import MetaRegressor, few_shot_score


def curves(T: int = 60, n: int = 12) -> tuple[pd.DataFrame, pd.Series[float]]:
    """A curve that all share, at each user's own level and slope."""
    rng = np.random.default_rng(0)
    user, at = np.repeat(np.arange(T), n), rng.uniform(-3.0, 3.0, T * n)
    own = rng.normal(size=(T, 2))[user]
    y = 3.0 * np.sin(2.0 * at) + own[:, 0] + 0.3 * own[:, 1] * at + 0.1 * rng.normal(size=T * n)
    return pd.DataFrame({"at": at, "user": [f"u{k}" for k in user]}), pd.Series(y)


@pytest.mark.filterwarnings("ignore:the prior still changes")  # of waves that are much alike
@pytest.mark.parametrize(
    ("features", "metric"),
    [
        (SplineTransformer(n_knots=8, degree=3), "full"),
        (RBFSampler(gamma=0.5, n_components=120, random_state=0), "diagonal"),
    ],
)
def test_features_before_the_estimator_find_the_curve(features: Any, metric: str) -> None:
    X, y = curves()
    prepare = ColumnTransformer(
        [("curve", features, ["at"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(prepare, MetaRegressor(group="user"))
    assert pipeline.fit(X, y)[-1].prior_.metric == metric
    linear = few_shot_score(MetaRegressor(group="user"), X, y, shots=4, folds=2)
    curved = few_shot_score(pipeline, X, y, shots=4, folds=2)
    assert curved < 0.5 * linear
