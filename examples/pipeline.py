"""Pipelines and searches: the id column goes through, is cross-validated, and a metric is chosen.

The picture, ``pictures/pipeline.png``, has what was learned.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart import MetaRegressor, plot

PICTURE = Path(__file__).parent / "pictures" / "pipeline.png"
PATIENTS, VISITS = 300, 12
SCORE = "neg_mean_absolute_error"
FOLDS = KFold(5, shuffle=True, random_state=0)  # by visits: patients are known when predicted


def visits(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    """Visits of patients who respond to a dose in their own ways, and how they went."""
    count = PATIENTS * VISITS
    frame = pd.DataFrame(
        {
            "patient": np.repeat([f"patient {i}" for i in range(PATIENTS)], VISITS),
            "age": np.repeat(rng.uniform(20.0, 80.0, PATIENTS), VISITS),
            "dose": rng.uniform(0.0, 500.0, count),
        }
    )
    response = np.repeat(rng.normal(0.02, 0.008, PATIENTS), VISITS)
    outcome = 5.0 + 0.03 * frame["age"] + response * frame["dose"]
    return frame, outcome + rng.normal(0.0, 1.0, count)


def prepared() -> ColumnTransformer:
    """Numbers are scaled; the column of ids goes through and keeps its name.

    MetaRegressor needs no scaling: any other step could stand here.
    """
    return ColumnTransformer(
        [("scaled", StandardScaler(), ["age", "dose"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")


def main() -> None:
    """One line for all patients, a line for each, and a search."""
    frame, outcome = visits(np.random.default_rng(0))
    ways = {
        "one line for all patients": (LinearRegression(), frame.drop(columns="patient")),
        "a line for each, from a shared start": (MetaRegressor(group="patient"), frame),
    }
    for name, (model, table) in ways.items():
        pipeline = make_pipeline(prepared(), model)
        error = -cross_val_score(pipeline, table, outcome, scoring=SCORE, cv=FOLDS).mean()
        print(f"{name:37} error {error:.2f}")

    search = GridSearchCV(
        make_pipeline(prepared(), MetaRegressor(group="patient")),
        {"metaregressor__metric": ["isotropic", "diagonal", "full"]},
        scoring=SCORE,
        cv=FOLDS,
    ).fit(frame, outcome)
    best = search.best_params_["metaregressor__metric"]
    print(f"{f'the best metric: {best}':37} error {-search.best_score_:.2f}")

    pipeline = make_pipeline(prepared(), MetaRegressor(group="patient")).fit(frame, outcome)
    print("by standard deviations of the columns:")
    print(pipeline[-1].summary().round(2))

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    plot.effects(pipeline[-1], ax=figure.subplots(), target="the outcome")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
