"""The defaults beside mixed-effects models on real tables: ``make mixed-models``.

`MetaRegressor` has its defaults and the columns as they are; statsmodels' `MixedLM` (REML) has a
random intercept, and all slopes random with columns brought to one scale, without which it fails.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import statsmodels.api as sm
from core import report
from tables import TABLES, WHO, Array, Frame, judge, read

from headstart import MetaRegressor


def by_headstart(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """The defaults: learned from the old entities, adapted to each new one."""
    return adapted(MetaRegressor(group=WHO), old, shots, queries, features)


def adapted(
    model: MetaRegressor, old: Frame, shots: Frame, queries: Frame, features: list[str]
) -> Array:
    """The answers of a model that is fitted to the old rows, then adapted to each new entity."""
    model.fit(old[[*features, WHO]], old["y"])
    asked = dict(list(queries.groupby(WHO)))
    answers = []
    for who, one in shots.groupby(WHO):
        rows = asked[who][features]
        answers.append(pd.Series(model.adapt(one[features], one["y"]).predict(rows), rows.index))
    return np.asarray(pd.concat(answers).loc[queries.index], np.float64)


def random_intercept(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """A mixed model with a level of its own for each entity."""
    return _mixed(old, shots, queries, features, slopes=False)


def random_slopes(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """A mixed model with all slopes random."""
    return _mixed(old, shots, queries, features, slopes=True)


def _mixed(old: Frame, shots: Frame, queries: Frame, features: list[str], *, slopes: bool) -> Array:
    """Shared effects and own ones after the shown rows, as the model predicts them."""
    centre, scale = old[features].mean(), old[features].std()

    def inputs(frame: Frame) -> Array:
        return np.column_stack([np.ones(len(frame)), (frame[features] - centre) / scale])

    X = inputs(old)
    random = X if slopes else X[:, :1]
    fitted = sm.MixedLM(old["y"].to_numpy(), X, old[WHO].to_numpy(), random).fit(maxiter=200)
    shared, cov, noise = fitted.fe_params, np.asarray(fitted.cov_re), float(fitted.scale)
    own = {}
    for who, one in shots.groupby(WHO):
        X = inputs(one)
        Z = X[:, : cov.shape[0]]
        left = np.linalg.solve(Z @ cov @ Z.T + noise * np.eye(len(Z)), one["y"] - X @ shared)
        own[who] = cov @ Z.T @ left
    X = inputs(queries)
    effects = np.array([own[who] for who in queries[WHO]])
    return np.asarray(X @ shared + np.einsum("ij,ij->i", X[:, : cov.shape[0]], effects))


def main() -> None:
    warnings.simplefilter("ignore")  # the mixed models complain about most of these tables
    ratios, speed = [], []
    for table in TABLES:
        frame = read(table)
        ours, *others = (judge(w, frame) for w in (by_headstart, random_intercept, random_slopes))
        ratio = ours.error / min(other.error for other in others)
        ratios.append(ratio)
        speed.append(others[1].seconds / ours.seconds)
        told = f"{ours.error:.4g} over {others[0].error:.4g}, {others[1].error:.4g}: {ratio:.3f}"
        count = frame[WHO].nunique()
        report(f"{table.item}: {count} entities", told, f"{speed[-1]:.0f}x the speed")
    mean = float(np.exp(np.mean(np.log(ratios))))
    report("error over the better mixed model: mean, worst", f"{mean:.3f}, {max(ratios):.3f}")
    report("speed over random slopes: median", f"{np.median(speed):.0f}x")


if __name__ == "__main__":
    main()
