"""Mixed models side by side: statsmodels' formula and headstart give the same numbers.

Eighteen people sleep three hours a night; each day their reaction time is measured (lme4's
sleepstudy, which ``python examples/prepare.py`` prepares). Everybody has a level and a slope of
their own. ``shrink=0.0`` asks `learn_prior` for maximum likelihood, as ``reml=False`` does in
statsmodels. By default, and in `MetaRegressor`, covariances are shrunk toward a simpler shape
where entities are as few as here, so that a few of them cannot decide alone. The picture,
``pictures/beside_statsmodels.png``, has everybody's line from both.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headstart import Prior, TaskSet, learn_prior

HERE = Path(__file__).parent
PICTURE = HERE / "pictures" / "beside_statsmodels.png"


def numbers(prior: Prior) -> list[float]:
    """Shared level and slope, how people differ in them, and the noise; the intercept is last."""
    slope, level = np.sqrt(np.diag(prior.covariance))
    return [prior.bias[1], prior.bias[0], level, slope, prior.noise**0.5]


def main() -> None:
    """Fit both, compare what they found, and draw it."""
    table = pd.read_parquet(HERE / "data" / "sleep.parquet")

    formula = smf.mixedlm("reaction ~ days", table, groups="subject", re_formula="~days")
    theirs = formula.fit(reml=False)

    people = TaskSet.from_arrays(table[["days"]], table["reaction"], table["subject"])
    ours = learn_prior(people, fit_intercept=True, shrink=0.0, tol=1e-9)
    default = learn_prior(people, fit_intercept=True)

    found = pd.DataFrame(
        {
            "statsmodels": [*theirs.fe_params, *np.sqrt(np.diag(theirs.cov_re)), theirs.scale**0.5],
            "headstart": numbers(ours),
            "its default": numbers(default),
        },
        ["level", "slope of a day", "levels differ", "slopes differ", "noise"],
    )
    print("reaction times in milliseconds")
    print(found.round(2))
    log_likelihood = ours.log_likelihood(people)
    print(f"log-likelihood: statsmodels {theirs.llf:.3f}, headstart {log_likelihood:.3f}")

    own = dict(zip(people.ids, ours.posteriors(people).weights, strict=True))
    slope, level = np.array([own[subject] for subject in table["subject"]]).T
    apart = np.abs(level + slope * table["days"] - theirs.fittedvalues).max()
    print(f"predictions for people on their days are at most {apart:.4f} apart")
    draw(table, theirs, own)


def draw(table: pd.DataFrame, theirs: Any, own: dict[Hashable, np.ndarray]) -> None:
    """A panel for each person, the steepest first: what was measured, and both lines."""
    figure = Figure(figsize=(11.0, 6.2), layout="constrained")
    axes = figure.subplots(3, 6, sharex=True, sharey=True)
    days = np.array([0.0, 9.0])
    shared_level, shared_slope = theirs.fe_params
    for subject, ax in zip(sorted(own, key=lambda one: -own[one][0]), axes.flat, strict=True):
        rows = table[table["subject"] == subject]
        slope, level = own[subject]
        more_level, more_slope = theirs.random_effects[subject]
        ax.plot(days, shared_level + shared_slope * days, ":", color="#8a8a8a")
        line = shared_level + more_level + (shared_slope + more_slope) * days
        ax.plot(days, line, color="#e69f00", linewidth=6.0, alpha=0.6, solid_capstyle="butt")
        ax.plot(days, level + slope * days, color="#0072b2", linewidth=1.6)
        ax.plot(rows["days"], rows["reaction"], "o", color="#222222", markersize=3.0)
        ax.set_title(f"{subject}: {slope:+.1f} ms a day", fontsize="medium", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("days of little sleep")
    figure.supylabel("reaction time (ms)")
    handles = [
        Line2D([], [], color="#e69f00", linewidth=6.0, alpha=0.6),
        Line2D([], [], color="#0072b2", linewidth=1.6),
        Line2D([], [], color="#8a8a8a", linestyle=":"),
        Line2D([], [], color="#222222", linestyle="", marker="o", markersize=3.0),
    ]
    names = ["statsmodels", "headstart", "shared by all (both)", "measured"]
    figure.legend(handles, names, loc="outside upper left", ncols=4, frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
