"""A data frame with an id column, a pipeline, and a search over reg and step."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart import MetaRegressor

rng = np.random.default_rng(0)
patients, visits = 300, 12
patient = np.repeat([f"patient {i}" for i in range(patients)], visits)
age, dose = rng.uniform(20, 80, patients * visits), rng.uniform(0, 500, patients * visits)
response = np.repeat(rng.normal(0.02, 0.008, patients), visits)
frame = pd.DataFrame({"age": age, "dose": dose, "patient": patient})
outcome = 5.0 + 0.03 * age + response * dose + rng.normal(0, 1.0, patients * visits)

scaled = ColumnTransformer(
    [("scaled", StandardScaler(), ["age", "dose"])],
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
model = make_pipeline(scaled, MetaRegressor(group="patient", predictor="last"))
search = GridSearchCV(
    model,
    {"metaregressor__reg": [0.3, 1.0, 3.0, 10.0], "metaregressor__step": [1.0, 3.0, 10.0]},
    scoring="neg_mean_absolute_error",
    cv=KFold(5, shuffle=True, random_state=0),  # every patient in every fold
)
search.fit(frame, outcome)
print("best", {k.removeprefix("metaregressor__"): v for k, v in search.best_params_.items()})
print(f"error by cross-validation {-search.best_score_:.2f}")
