"""How good a learned prior is on tasks it has not seen: part of ``make quality``.

30 % of the tasks are held out, 10 splits. The prior is learned from all rows of the others and
given 8 rows of each new task; its other rows are scored. Columns are in their own units, and
nothing is tuned. Errors are means over tasks: of absolute errors, or of the share of wrong signs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from core import report
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression

from headstart import Prior, Summaries, TaskSet, continue_prior, get_loss, learn_prior, start_prior
from headstart.datasets import DataUnavailableError, lenk_tables
from headstart.environments import RegressionEnvironment

Array = NDArray[np.floating]
Fit = Callable[[TaskSet], Prior]
SPLITS, SHOTS = 10, 8


def lenk(threshold: float | None = None) -> TaskSet:
    """All 20 ratings of each person."""
    tables = lenk_tables()
    rows = [tables[name].reshape(180, n, 15) for name, n in (("Traindata", 16), ("Testdata", 4))]
    both = np.concatenate(rows, axis=1).reshape(-1, 15).astype(float)
    y = both[:, 14] if threshold is None else np.where(both[:, 14] >= threshold, 1.0, -1.0)
    return TaskSet.from_arrays(both[:, 1:14], y, np.repeat(np.arange(180), 20))


def table(name: str, group: str, target: str, *, at_random: bool = False) -> TaskSet:
    """A table of the examples, its rows as they are or in random order."""
    data = pd.read_parquet(Path(__file__).parent.parent / "examples" / "data" / f"{name}.parquet")
    data = data.sample(frac=1.0, random_state=0) if at_random else data
    X = data.drop(columns=[group, target]).to_numpy(float)
    return TaskSet.from_arrays(X, data[target].to_numpy(float), data[group].to_numpy())


def splits(tasks: TaskSet) -> list[tuple[TaskSet, TaskSet]]:
    """Old and new tasks, ten times."""
    found = []
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(tasks))
        cut = round(0.3 * len(tasks))
        found.append((tasks.subset(np.sort(order[cut:])), tasks.subset(np.sort(order[:cut]))))
    return found


def error(predicted: Array, queries: TaskSet) -> float:
    """The mean over tasks of what is wrong in each."""
    binary = set(np.unique(queries.y)) <= {-1.0, 1.0}
    wrong = np.sign(predicted) != queries.y if binary else np.abs(predicted - queries.y)
    return float(
        np.mean(np.add.reduceat(wrong.astype(float), queries.offsets[:-1]) / queries.sizes)
    )


def adapted(prior: Prior, new: TaskSet) -> float:
    """The error on new tasks after some of their rows."""
    shots, queries = new.subset(new.sizes > SHOTS).split_rows(SHOTS)
    W = np.repeat(prior.posteriors(shots).weights, queries.sizes, axis=0)
    X = np.column_stack([queries.X, np.ones(len(queries.X))])
    return error(np.einsum("ij,ij->i", X, W), queries)


def pooled(old: TaskSet, new: TaskSet) -> float:
    """The error of one model for all."""
    _, queries = new.subset(new.sizes > SHOTS).split_rows(SHOTS)
    binary = set(np.unique(old.y)) <= {-1.0, 1.0}
    model = LogisticRegression(C=1e6, max_iter=2000) if binary else LinearRegression()
    return error(model.fit(old.X, old.y).predict(queries.X), queries)


def fitted(loss: str, metric: str = "auto") -> Fit:
    return lambda tasks: learn_prior(tasks, loss, metric, fit_intercept=True)


def errors(tasks: TaskSet, *fits: Fit) -> Array:
    """Mean errors of priors over splits."""
    found = [[adapted(fit(old), new) for fit in fits] for old, new in splits(tasks)]
    return np.asarray(np.mean(found, axis=0))


def against_pooled(name: str, tasks: TaskSet, loss: str, target: str) -> None:
    theirs = np.mean([pooled(old, new) for old, new in splits(tasks)])
    (ours,) = errors(tasks, fitted(loss))
    report(f"{name}, {loss} loss: error over pooled", f"{ours / theirs:.3f}", target)


def coverage(name: str, tasks: TaskSet) -> None:
    """How often labels are inside the 90 % intervals, after 0, 2 and 8 rows."""
    shares = []
    for shots in (0, 2, 8):
        inside = []
        for old, new in splits(tasks)[:3]:
            prior = learn_prior(old, fit_intercept=True)
            for X, y in new.subset(new.sizes > 8):
                known = prior.posterior(X[:shots], y[:shots]) if shots else prior.posterior()
                low, high = known.interval(X[shots:]).T
                inside.append(np.mean((low <= y[shots:]) & (y[shots:] <= high)))
        shares.append(f"{np.mean(inside):.2f}")
    report(f"{name}: 90 % intervals cover, after 0, 2, 8 rows", " ".join(shares), ".85 to .95")


def shuffled(tasks: TaskSet, loss: str, *, settle: bool) -> Prior:
    """Rows in random order over all entities; of other losses few stay rows."""
    groups = np.repeat(np.arange(len(tasks)), tasks.sizes)
    order = np.random.default_rng(0).permutation(len(groups))
    kept = Summaries(loss, fit_intercept=True)
    parts = np.array_split(order, 8)
    for k, part in enumerate(parts):
        kept.add(tasks.X[part], tasks.y[part], groups[part])
        if settle and k + 1 in (1, 2, 4, 8):
            kept.settle(learn_prior(kept))
    return learn_prior(kept)


def streamed(loss: str) -> Fit:
    def fit(tasks: TaskSet) -> Prior:
        order = np.random.default_rng(0).permutation(len(tasks))
        return continue_prior(start_prior(loss, fit_intercept=True), tasks.subset(order)).prior

    return fit


def streams(name: str, tasks: TaskSet, loss: str, target: str) -> None:
    if loss == "squared":
        one, other = (
            learn_prior(tasks, loss, fit_intercept=True),
            shuffled(tasks, loss, settle=False),
        )
        gap = np.abs(one.covariance - other.covariance).max() / np.abs(one.covariance).max()
        report(f"{name}: rows shuffled, covariance off by", f"{gap:.1e}", "at most 1e-6")
    batch, kept, steps = errors(
        tasks, fitted(loss), lambda t: shuffled(t, loss, settle=True), streamed(loss)
    )
    what = f"{name}, {loss} loss: error over the batch's"
    report(f"{what}, rows shuffled and settled", f"{kept / batch:.3f}", "at most 1.02")
    report(f"{what}, step-size form", f"{steps / batch:.3f}", target)


def paper() -> None:
    """The paper's regression tasks, beside the posterior of who knows how they are made."""
    world = RegressionEnvironment()
    for T, target in ((20, "at most 1.08"), (1000, "at most 1.02")):
        ratios = []
        for seed in range(SPLITS):
            rng = np.random.default_rng(1000 + seed)
            shots, queries = world.draw(200, 110, rng).tasks.split_rows(10)
            noise = float(np.mean([np.var(y) for _, y in queries])) / (world.snr + 1.0)
            oracle = Prior(world.mean, world.stds**2, noise)
            learned = learn_prior(world.draw(T, 10, rng).tasks)
            found = []
            for prior in (learned, oracle):
                W = np.repeat(prior.posteriors(shots).weights, queries.sizes, axis=0)
                found.append(error(np.einsum("ij,ij->i", queries.X, W), queries))
            ratios.append(found)
        ours, best = np.mean(ratios, axis=0)
        report(
            f"the paper's regression, {T} tasks: error over the oracle's",
            f"{ours / best:.3f}",
            target,
        )


def main() -> None:
    pupils, flights = table("pupils", "teacher", "math"), table("flights", "flight", "arr_delay")
    against_pooled("star", pupils, "squared", "at most 0.92")
    against_pooled("flights", flights, "squared", "at most 0.975")
    against_pooled("flights", flights, "absolute", "at most 0.965")
    mixed = table("flights", "flight", "arr_delay", at_random=True)
    for loss, target in (("squared", "at most 0.975"), ("absolute", "at most 0.965")):
        against_pooled("flights, not the first 8 but any", mixed, loss, target)
    paper()
    coverage("star", pupils)
    streams("star", pupils, "squared", "at most 1.02")
    half = float(np.median(pupils.y))
    signs = TaskSet(pupils.X, np.where(pupils.y > half, 1.0, -1.0), pupils.offsets, pupils.ids)
    streams("star above the median", signs, "logistic", "at most 1.04")
    try:
        ratings, classes = lenk(), lenk(threshold=5.0)
    except DataUnavailableError as missing:
        print(missing)
        return
    full, isotropic = errors(ratings, fitted("squared"), fitted("squared", "isotropic"))
    report("Lenk: error over the isotropic metric's", f"{full / isotropic:.3f}", "at most 0.84")
    against_pooled("Lenk classes", classes, "logistic", "at most 0.82")
    coverage("Lenk", ratings)
    streams("Lenk", ratings, "squared", "at most 1.02")
    streams("Lenk classes", classes, "logistic", "at most 1.04")
    streams("Lenk", ratings, get_loss("absolute").name, "")


if __name__ == "__main__":
    main()
