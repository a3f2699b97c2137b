"""What a head start is worth: personal models for members of a gym who have just come.

Every member burns energy in a way of their own, and has a few sessions only. Whole members are
held out; a new one has shown 0, 1, 2, 4 or 8 sessions when the next ones are predicted. The
picture, ``pictures/head_start.png``, has the errors, and what was learned.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.linear_model import LinearRegression, RidgeCV

from headstart import MetaRegressor, few_shot_curve, plot

PICTURE = Path(__file__).parent / "pictures" / "head_start.png"
MEMBERS, SESSIONS = 400, 12
SHOTS = [0, 1, 2, 4, 8]


def sessions(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    """Sessions of all members, in the units they are noted in, and the kilojoules burnt."""
    member = np.repeat([f"member {i}" for i in range(MEMBERS)], SESSIONS)
    count = MEMBERS * SESSIONS
    table = pd.DataFrame(
        {
            "member": member,
            "minutes": rng.uniform(10.0, 90.0, count),
            "kmh": rng.uniform(6.0, 14.0, count),
            "temperature": rng.normal(21.0, 2.0, count),
        }
    )
    own = rng.normal([40.0, 50.0], [10.0, 10.0], (MEMBERS, 2)).repeat(SESSIONS, axis=0)
    effects = (table[["minutes", "kmh"]].to_numpy() * own).sum(axis=1)
    return table, pd.Series(effects + rng.normal(0.0, 150.0, count), name="kilojoules")


def main() -> None:
    """Three ways to predict for a new member, and what the best of them has learned."""
    X, y = sessions(np.random.default_rng(0))
    curves = {
        "alone": few_shot_curve(
            RidgeCV(), X, y, group="member", how="independent", shots=SHOTS[2:]
        ),
        "pooled": few_shot_curve(LinearRegression(), X, y, group="member", how="pooled", shots=[8]),
        "headstart": few_shot_curve(MetaRegressor(group="member"), X, y, shots=SHOTS),
    }
    print("mean absolute error in kilojoules, by sessions of the new member")
    print(" " * 10 + "".join(f"{k:8}" for k in SHOTS))
    for name, curve in curves.items():
        found = dict(zip(curve.shots, curve.mean, strict=True))
        if name == "pooled":  # it learns nothing from the member
            found = dict.fromkeys(SHOTS, found[8])
        print(f"{name:10}" + "".join(f"{found[k]:8.0f}" if k in found else " " * 8 for k in SHOTS))

    model = MetaRegressor(group="member").fit(X, y)
    print("\nwhat members share, and how much they differ")
    print(model.summary().round(2))
    print(f"noise of a session: {model.prior_.noise**0.5:.0f} kilojoules")

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.few_shot_curve({"headstart": curves["headstart"]}, ax=left, error="error in kilojoules")
    left.set_xlabel("sessions of a new member")
    plot.effects(model, ax=right, target="kilojoules")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
