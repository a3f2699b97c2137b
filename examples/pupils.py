"""Personal models for teachers with few pupils: whether it is worth it, and what it brings.

Math scores of pupils from reading score, sex, lunch and ethnicity, by teacher. A new teacher
comes with 0, 1, 2, 4 or 8 pupils whose scores are known. The picture, ``pictures/pupils.png``, has
the errors of all ways. `make test` prepares the data, or ``python examples/prepare.py``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from sklearn.linear_model import RidgeCV

from headstart import MetaRegressor, diagnose, few_shot_curve, plot

PICTURE = Path(__file__).parent / "pictures" / "pupils.png"


def main() -> None:
    """Compare, decide, and look at one teacher."""
    table = pd.read_parquet(Path(__file__).parent / "data" / "pupils.parquet")
    X, y = table.drop(columns="math"), table["math"]
    ways = {
        "a ridge for each": few_shot_curve(
            RidgeCV(), X, y, how="independent", group="teacher", shots=[2, 4, 8]
        ),
        "one ridge for all": few_shot_curve(
            RidgeCV(), X, y, how="pooled", group="teacher", shots=[2, 4, 8]
        ),
        "headstart": few_shot_curve(MetaRegressor(group="teacher"), X, y, shots=[2, 4, 8]),
    }
    print("mean absolute error for a new teacher after 2, 4 and 8 pupils")
    for name, curve in ways.items():
        print(f"  {name:18}" + "".join(f" {m:6.2f}" for m in curve.mean))
    found = diagnose(X, y, group="teacher")
    print(found)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    ax = plot.few_shot_curve(found.curves, ax=figure.subplots(), error="error in points")
    ax.set_xlabel("pupils of a new teacher")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)

    model = MetaRegressor(group="teacher").fit(X, y)
    print("\nwhat classes share, and how much they differ, in points of the math score")
    print(model.summary().round(1))
    teacher = X["teacher"].iloc[0]
    one = pd.DataFrame(
        {"teacher": [teacher, -1], "read": 0.0, "girl": 1.0, "free_lunch": 0.0, "white": 1.0}
    )
    ends = model.predict_interval(one, coverage=0.8)
    for name, (low, high) in zip((f"teacher {teacher}", "a new teacher"), ends, strict=True):
        print(f"an average reader with {name}: {low:.0f} to {high:.0f} points")


if __name__ == "__main__":
    main()
