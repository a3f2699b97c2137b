"""headstart beside what people use today, on every table at hand: ``make peers``.

The tables of `tables`, and teachers, flights and the survey of Lenk beside them, judged as there.
All have the columns as they are, and scale them themselves where they need it. Models that cannot
be adapted to newcomers are fitted to the old rows and the shown ones together, which is no less
than headstart sees.

Times are for learning and answering, all five parts together, on one machine in one run. Who has
not learned and answered one part after `LIMIT` seconds of the processor's time is stopped. That
happens on the survey of Lenk, with 13 columns the widest table: it stands apart on the page.
"""

from __future__ import annotations

import argparse
import copy
import signal
import warnings
from functools import wraps
from pathlib import Path

import gpboost as gpb
import numpy as np
import pandas as pd
from base import on_trees
from lightgbm import LGBMRegressor
from mixed_models import by_headstart, random_intercept, random_slopes
from prior_quality import lenk, table
from river import linear_model, preprocessing
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklego.meta import HierarchicalRegressor
from tables import SHOTS, TABLES, WHO, Array, Frame, Judged, Way, judge, read, to_spare

from headstart import TaskSet
from headstart.datasets import DataUnavailableError

RIDGES = 10.0 ** np.arange(-3.0, 4.0)
RATES = (0.01, 0.03, 0.1, 0.3)  # of gradient steps, in standard units
LIMIT = 60.0  # seconds that a model may compute on one of the five parts
APART = "Lenk"  # a table of the page to itself, where not all can be compared
STEPS, ROUNDS, OUTER = 10, 10, 0.1  # within a task, over all tasks, and of the start


def gpboost_linear(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """The same model by GPBoost, slopes independent of each other as it has them."""
    both = pd.concat([old, shots])
    scaler = StandardScaler().fit(both[features])
    X, Q = (np.column_stack([np.ones(len(f)), scaler.transform(f[features])])
            for f in (both, queries))  # fmt: skip
    model = gpb.GPModel(
        group_data=both[WHO].to_numpy(),
        group_rand_coef_data=X[:, 1:],
        ind_effect_group_rand_coef=[1] * len(features),
    )
    model.fit(y=both["y"].to_numpy(), X=X)
    found = model.predict(
        group_data_pred=queries[WHO].to_numpy(), group_rand_coef_data_pred=Q[:, 1:], X_pred=Q
    )
    return np.asarray(found["mu"], np.float64)


def gpboost_trees(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """Boosted trees with a level of its own for each entity, by GPBoost."""
    both = pd.concat([old, shots])
    model = gpb.GPModel(group_data=both[WHO].to_numpy(), likelihood="gaussian")
    data = gpb.Dataset(both[features].to_numpy(), both["y"].to_numpy())
    settings = {"learning_rate": 0.05, "max_depth": 5, "min_data_in_leaf": 10, "verbose": -1}
    trees = gpb.train(settings, data, gp_model=model, num_boost_round=100)
    found = trees.predict(
        queries[features].to_numpy(), group_data_pred=queries[WHO].to_numpy(), pred_latent=False
    )
    return np.asarray(found["response_mean"], np.float64)


def lightgbm_mean(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """LightGBM that is told the mean label of four rows of the entity."""
    shown = old.groupby(WHO).head(SHOTS)
    rest = old.drop(shown.index)
    names = [*features, "mean"]

    def with_mean(rows: Frame, seen: Frame) -> Frame:
        return rows.assign(mean=rows[WHO].map(seen.groupby(WHO)["y"].mean()))[names]

    model = LGBMRegressor(random_state=0, verbose=-1, n_jobs=2).fit(
        with_mean(rest, shown), rest["y"]
    )
    return np.asarray(model.predict(with_mean(queries, shots)), np.float64)


def sklego_shrunk(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """A ridge for each entity, shrunk to the ridge of all by their rows, by scikit-lego."""
    names = [*features, WHO]
    both = pd.concat([old, shots])
    model = HierarchicalRegressor(
        make_pipeline(StandardScaler(), RidgeCV(RIDGES)), groups=[WHO], shrinkage="relative"
    ).fit(both[names], both["y"])
    return np.asarray(model.predict(queries[names]), np.float64)


def alone(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """A ridge for each new entity from its shown rows; old ones bring the columns' scale."""
    scaler = StandardScaler().fit(old[features])
    found = pd.Series(0.0, queries.index)
    for who, one in shots.groupby(WHO):
        asked = queries[queries[WHO] == who]
        model = RidgeCV(RIDGES).fit(scaler.transform(one[features]), one["y"])
        found[asked.index] = model.predict(scaler.transform(asked[features]))
    return np.asarray(found, np.float64)


def pooled(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """Least squares on all rows."""
    both = pd.concat([old, shots])
    model = LinearRegression().fit(both[features], both["y"])
    return np.asarray(model.predict(queries[features]), np.float64)


def river_tuned(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """River's linear model over all rows, then a copy for each new entity that goes on."""
    model = preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(
        linear_model.LinearRegression()
    )
    shuffled = old.sample(frac=1, random_state=0)
    for x, y in zip(shuffled[features].to_dict("records"), shuffled["y"], strict=True):
        model.learn_one(x, y)
    found = pd.Series(0.0, queries.index)
    for who, one in shots.groupby(WHO):
        own = copy.deepcopy(model)
        for x, y in zip(one[features].to_dict("records"), one["y"], strict=True):
            own.learn_one(x, y)
        asked = queries[queries[WHO] == who]
        answers = [own.predict_one(x) for x in asked[features].to_dict("records")]
        found[asked.index] = np.array(answers)
    return np.asarray(found, np.float64)


class Standard:
    """Tasks in the units of the old rows, with a column of ones."""

    def __init__(self, old: Frame, features: list[str]) -> None:
        self.features, self.scaler = features, StandardScaler().fit(old[features])
        self.level, self.unit = float(old["y"].mean()), float(old["y"].std()) or 1.0

    def tasks(self, rows: Frame) -> dict[str, tuple[Array, Array]]:
        """Inputs and labels of every entity."""
        return {str(who): (self.inputs(one), (one["y"].to_numpy() - self.level) / self.unit)
                for who, one in rows.groupby(WHO)}  # fmt: skip

    def inputs(self, rows: Frame) -> Array:
        """Scaled columns and ones."""
        return np.column_stack([self.scaler.transform(rows[self.features]), np.ones(len(rows))])

    def answers(self, weights: dict[str, Array], queries: Frame) -> Array:
        """Predictions in the units of the labels."""
        X = self.inputs(queries)
        W = np.array([weights[who] for who in queries[WHO]])
        return np.asarray(np.einsum("ij,ij->i", X, W) * self.unit + self.level, np.float64)


def steps(X: Array, y: Array, start: Array, rate: Array | float) -> tuple[Array, Array]:
    """Where gradient steps on a task lead, and the sum of squared gradients on the way.

    No step is longer than the rows of the task bear: outliers would throw it far out.
    """
    w, squares = start.copy(), np.zeros_like(start)
    rate = np.minimum(rate, len(y) / np.square(X).sum())
    for _ in range(STEPS):
        g = X.T @ (X @ w - y) / len(y)
        squares += g * g
        w -= rate * g
    return w, squares


def reptile(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    """Reptile (Nichol, Achiam, Schulman, 2018): the start moves toward what tasks come to.

    Its rate within tasks is that of the least error on the last fifth of the old entities.
    """
    units = Standard(old, features)
    tasks = list(units.tasks(old).values())
    cut = max(1, len(tasks) // 5)

    def learned(known: list[tuple[Array, Array]], rate: float) -> Array:
        h = np.zeros(len(features) + 1)
        for _ in range(ROUNDS):
            for X, y in known:
                h += OUTER * (steps(X, y, h, rate)[0] - h)
        return h

    def tried(rate: float) -> float:
        h = learned(tasks[cut:], rate)
        errors = [
            np.abs(X[SHOTS:] @ steps(X[:SHOTS], y[:SHOTS], h, rate)[0] - y[SHOTS:]).mean()
            for X, y in tasks[:cut]
        ]
        return float(np.nan_to_num(np.mean(errors), nan=np.inf))

    rate = min(RATES, key=tried)
    h = learned(tasks, rate)
    own = {who: steps(X, y, h, rate)[0] for who, (X, y) in units.tasks(shots).items()}
    return units.answers(own, queries)


def aruba(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
    r"""ARUBA (Khodak, Balcan, Talwalkar, 2019): the start is the mean of where tasks came to.

    Each coordinate has its rate, :math:`\sqrt{B/G}`: B sums squared distances from the start, G
    squared gradients.
    """
    units = Standard(old, features)
    d = len(features) + 1
    phi, B, G, total = np.zeros(d), np.full(d, 1e-2), np.full(d, 1.0), np.zeros(d)
    for t, (X, y) in enumerate(units.tasks(old).values(), 1):
        w, squares = steps(X, y, phi, np.sqrt(B / G))
        B, G, total = B + 0.5 * (w - phi) ** 2, G + squares, total + w
        phi = total / t
    rate = np.sqrt(B / G)
    own = {who: steps(X, y, phi, rate)[0] for who, (X, y) in units.tasks(shots).items()}
    return units.answers(own, queries)


PEERS: dict[str, Way] = {
    "headstart": by_headstart,
    "headstart on trees": on_trees,
    "MixedLM, own levels": random_intercept,
    "MixedLM, own slopes": random_slopes,
    "GPBoost, linear": gpboost_linear,
    "GPBoost, trees": gpboost_trees,
    "LightGBM, shown mean": lightgbm_mean,
    "scikit-lego, shrunk": sklego_shrunk,
    "river, tuned on": river_tuned,
    "Reptile": reptile,
    "ARUBA": aruba,
    "each alone": alone,
    "pooled": pooled,
}


def in_time(way: Way, frame: Frame) -> Judged:
    """How a way does on a table; infinite error and time if it is stopped at the limit."""

    def stop(*_: object) -> None:
        raise TimeoutError

    @wraps(way)
    def limited(old: Frame, shots: Frame, queries: Frame, features: list[str]) -> Array:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)  # of this process, whatever others do
        try:
            return way(old, shots, queries, features)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    signal.signal(signal.SIGPROF, stop)
    try:
        return judge(limited, frame)
    except TimeoutError:
        return Judged(np.inf, np.inf)


def frame_of(tasks: TaskSet) -> Frame:
    """A task set as a table."""
    names = [f"x{j}" for j in range(tasks.n_features)]
    who = np.repeat(np.arange(len(tasks)), tasks.sizes).astype(str)
    return to_spare(pd.DataFrame(tasks.X, columns=names).assign(y=tasks.y, **{WHO: who}))


def tables() -> dict[str, Frame]:
    """Every table at hand."""
    found = {one.item: read(one) for one in TABLES}
    found["star"] = frame_of(table("pupils", "teacher", "math"))
    found["flights"] = frame_of(table("flights", "flight", "arr_delay"))
    try:
        found["Lenk"] = frame_of(lenk())
    except DataUnavailableError as missing:
        print(missing)
    return found


PAGE = """# Beside other libraries

Mean absolute error on new entities after four of their rows, {count} real tables: errors of others
over those of headstart's defaults, so that a number above 1 is worse than headstart, and **one
below 0.995 is better**. `make peers` prints it; `benchmarks/peers.py` says what each of them is
and how it is judged.

{many}
"Worse, better" counts the tables where the other's error is more than half a percent larger or
smaller. Times are over headstart's, the median over tables, for learning and answering in all five
parts. They are ratios within one run, on two cores that had other work too: take them for an order
of magnitude.

Where headstart loses: to trees where relations are curved (spruce, Theoph, Wafer), which `base=`
puts below it; to a mixed model with all slopes on tables of ten to fifty entities (Grunfeld,
Cigar, Dialyzer) by up to a twelfth, and elsewhere it wins by as much. GPBoost's linear model is
as good on most tables, and quicker on small ones.

## The survey of the paper

180 people rated 20 computers by 13 attributes: the widest table. Errors and times are over
headstart's, in one run. Who had not learned and answered one of the five parts after {limit:g}
seconds of the processor's time was stopped.

{apart}"""


def compared(results: dict[str, dict[str, Judged]]) -> tuple[list[str], Array, Array]:
    """The others' names, and their errors and times over headstart's: a line for each table."""
    names = list(PEERS)[1:]
    ratios = np.array(
        [
            [np.divide(found[name], found["headstart"]) for name in names]
            for found in results.values()
        ]
    )
    return names, ratios[:, :, 0], ratios[:, :, 1]


def cell(error: float) -> str:
    """An error over headstart's; bold if it is smaller."""
    if np.isnan(error):
        return "-"
    if np.isinf(error):
        return f"> {LIMIT:g} s"
    return f"**{error:.2f}**" if error < 0.995 else f"{error:.2f}"


def lines_of(lines: list[list[str]]) -> str:
    """A table in Markdown, the first line being its head."""
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def side_by_side(results: dict[str, dict[str, Judged]]) -> str:
    """Tables are lines, others are columns; first what holds for all tables."""
    names, errors, times = compared(results)
    known = [column[np.isfinite(column)] for column in errors.T]
    lines = [
        ["", "headstart", *names],
        ["mean", "", *(f"{np.exp(np.mean(np.log(some))):.3f}" for some in known)],
        ["worse, better", "",
         *(f"{np.sum(some > 1.005)}, {np.sum(some < 0.995)}" for some in known)],
        ["time", "", *(f"{time:.2g}x" for time in np.median(times, axis=0))],
    ]  # fmt: skip
    for (name, found), line in zip(results.items(), errors.tolist(), strict=True):
        lines.append([name, f"{found['headstart'].error:.3g}", *map(cell, line)])
    return lines_of(lines)


def one_table(found: dict[str, Judged]) -> str:
    """Others are lines; their errors and times are columns."""
    names, errors, times = compared({"": found})
    error, seconds = found["headstart"]
    lines = [["", "error", "time"], ["headstart", f"{error:.3g}", f"{seconds:.1f} s"]]
    for name, e, t in zip(names, errors[0].tolist(), times[0].tolist(), strict=True):
        lines.append([name, cell(e), "" if np.isinf(t) else f"{t:.2g}x"])
    return lines_of(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="a file to write the table to")
    parser.add_argument("--only", nargs="*", help="names of tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the mixed models complain about most of these tables
    judge(by_headstart, read(TABLES[0]))  # compiling is not what is timed
    results: dict[str, dict[str, Judged]] = {}
    for name, frame in tables().items():
        if options.only and name not in options.only:
            continue
        results[name] = {}
        print(f"{name}: {frame[WHO].nunique()} entities, {len(frame)} rows", flush=True)
        for peer, way in PEERS.items():
            error, seconds = results[name][peer] = in_time(way, frame)
            print(f"  {peer:24}{error:12.4g}{seconds:10.2f} s", flush=True)
    apart = results.pop(APART, None)
    parts = {
        "many": side_by_side(results) if results else "",
        "apart": "not at hand\n" if apart is None else one_table(apart),
    }
    print(parts["many"], parts["apart"], sep="\n")
    if options.out is not None:
        options.out.write_text(PAGE.format(count=len(results), limit=LIMIT, **parts))


if __name__ == "__main__":
    main()
