"""How good the estimators' defaults are on tables in their own units: part of ``make quality``.

As in `prior_quality`, 30 % of the entities are held out; a model is fitted to the table of the
others, adapted to 8 rows of each new one by `adapt`, and judged by its other rows. Then the same
table comes in other units and in another order, and intervals are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from core import report
from numpy.typing import NDArray
from prior_quality import SHOTS, error, lenk, pooled, splits, table

from headstart import MetaClassifier, MetaRegressor, TaskSet
from headstart.datasets import DataUnavailableError

Array = NDArray[np.floating]
UNITS = np.array([1.0, 10.0, 15_000.0])


def frame_of(tasks: TaskSet) -> tuple[pd.DataFrame, Array]:
    """A table with a column of ids, and the labels."""
    frame = pd.DataFrame(tasks.X, columns=[f"x{j}" for j in range(tasks.n_features)])
    return frame.assign(who=np.repeat(np.arange(len(tasks)), tasks.sizes)), tasks.y


def fitted(tasks: TaskSet) -> Any:
    frame, y = frame_of(tasks)
    binary = set(np.unique(y)) <= {-1.0, 1.0}
    return (MetaClassifier if binary else MetaRegressor)(group="who").fit(frame, y)


def adapted(model: Any, new: TaskSet) -> float:
    """The error on new entities after some of their rows."""
    shots, queries = new.subset(new.sizes > SHOTS).split_rows(SHOTS)
    names = [f"x{j}" for j in range(new.n_features)]
    found = [
        model.adapt(pd.DataFrame(X, columns=names), y).predict(pd.DataFrame(Q, columns=names))
        for (X, y), (Q, _) in zip(shots, queries, strict=True)
    ]
    return error(np.concatenate(found), queries)


def coverage(model: MetaRegressor, new: TaskSet) -> list[float]:
    """How often labels are inside 90 % intervals after 0, 2 and 8 rows, a mean over entities."""
    names = [f"x{j}" for j in range(new.n_features)]
    shares = []
    for k in (0, 2, 8):
        inside = []
        for X, y in new.subset(new.sizes > 8):
            rows = pd.DataFrame(X, columns=names)
            if k:
                ends = model.adapt(rows[:k], y[:k]).predict_interval(rows[k:])
            else:
                ends = model.predict_interval(rows)
            inside.append(np.mean((ends[:, 0] <= y[k:]) & (y[k:] <= ends[:, 1])))
        shares.append(float(np.mean(inside)))
    return shares


def invariance(name: str, tasks: TaskSet) -> None:
    """The largest change of a prediction in other units, and in another order."""
    frame, y = frame_of(tasks)
    binary = set(np.unique(y)) <= {-1.0, 1.0}
    kind: Any = MetaClassifier if binary else MetaRegressor

    def scores(X: pd.DataFrame, y: Array, asked: pd.DataFrame) -> Array:
        model = kind(group="who").fit(X, y)
        found: Array = model.decision_function(asked) if binary else model.predict(asked)
        return found

    d = tasks.n_features
    other = frame.copy()
    other.iloc[:, :d] = frame.iloc[:, :d] * np.resize(UNITS, d) + np.resize([0.0, -3.0, 700.0], d)
    order = np.random.default_rng(0).permutation(len(y))
    plain = scores(frame, y, frame)
    size = plain.std() if binary else y.std()
    units = np.abs(scores(other, y, other) - plain).max() / size
    shuffled = np.abs(scores(frame.iloc[order], y[order], frame) - plain).max() / size
    report(f"{name}: a prediction changes by, in other units", f"{units:.0e}", "at most 1e-5")
    report(f"{name}: in another order", f"{shuffled:.0e}", "at most 1e-2")


def judge(name: str, tasks: TaskSet, target: str) -> None:
    found, covered = [], []
    for number, (old, new) in enumerate(splits(tasks)):
        model = fitted(old)
        found.append([adapted(model, new), pooled(old, new)])
        if number < 3 and isinstance(model, MetaRegressor):
            covered.append(coverage(model, new))
    ours, theirs = np.mean(found, axis=0)
    report(f"{name}: error over pooled, by adapt", f"{ours / theirs:.3f}", target)
    if covered:
        told = " ".join(f"{share:.2f}" for share in np.mean(covered, axis=0))
        report(f"{name}: 90 % intervals cover, after 0, 2, 8 rows", told, ".85 to .95")
    invariance(name, tasks)


def main() -> None:
    judge("star", table("pupils", "teacher", "math"), "at most 0.92")
    judge("flights", table("flights", "flight", "arr_delay"), "at most 0.975")
    try:
        ratings, classes = lenk(), lenk(threshold=5.0)
    except DataUnavailableError as missing:
        print(missing)
        return
    judge("Lenk", ratings, "")
    judge("Lenk classes", classes, "at most 0.82")


if __name__ == "__main__":
    main()
