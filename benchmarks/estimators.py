"""How fast the estimators are, as ratios measured in one run: ``make bench``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from core import best, report
from numpy.typing import NDArray
from river.linear_model import LinearRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor

from headstart import MetaRegressor, TaskSet, learn_bias
from headstart._core.checks import Vector

Matrix = NDArray[np.float64]
Ids = NDArray[np.int64]

T, N, D = 100_000, 10, 30


def rows_of(tasks: int, n: int, d: int) -> tuple[Matrix, Vector, Ids]:
    """Rows of entities around a common start, those of one together."""
    rng = np.random.default_rng(0)
    X, ids = rng.standard_normal((tasks * n, d)), np.repeat(rng.permutation(tasks), n)
    own = rng.normal(4.0, 0.5, (tasks, d))
    return X, np.einsum("ij,ij->i", X, own[ids]) + rng.standard_normal(tasks * n), ids


def priors() -> None:
    """A prior to convergence and everybody's own weights, in passes of Algorithm 2."""
    for d, tasks, most in ((10, 50_000, 150), (10, 1_000_000, 30), (30, 50_000, 300),
                           (30, 1_000_000, 60)):  # fmt: skip
        X, y, ids = rows_of(tasks, 10, d)
        grouped = TaskSet.from_arrays(X, y, ids)
        fitting, one_pass = best(
            lambda: MetaRegressor().fit(X, y, groups=ids),  # noqa: B023
            lambda: learn_bias(grouped, 1.0, 0.1),  # noqa: B023
            repeat=3 if tasks <= 50_000 else 1,
        )
        what = f"MetaRegressor.fit, {tasks:,} tasks, n=10, d={d}, over one pass of learn_bias"
        report(what, f"{fitting / one_pass:.0f}x", f"at most {most}x")


def batches(model: MetaRegressor, X: Matrix, y: Vector, ids: Ids) -> None:
    fitting, bare = best(
        lambda: model.fit(X, y, groups=ids),
        lambda: learn_bias(TaskSet.from_arrays(X, y, ids), 1.0, 0.1),
        repeat=5,
    )
    what = "the paper's MetaRegressor.fit over grouping and learn_bias"
    report(what, f"{fitting / bare:.2f}x", "at most 2.5x")
    some = 300

    def one_by_one() -> None:
        for t in range(some):
            task = slice(t * N, (t + 1) * N)
            SGDRegressor(
                loss="epsilon_insensitive",
                epsilon=0.0,
                alpha=1e-4,
                max_iter=1,
                tol=None,
                fit_intercept=True,
                shuffle=False,
            ).fit(X[task], y[task])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (loop,) = best(one_by_one, repeat=2)
    what = "a loop of SGDRegressor.fit over the paper's MetaRegressor.fit"
    report(what, f"{loop / some * T / fitting:.0f}x", "at least 300x")

    W = np.concatenate([model.weights_of(i)[None] for i in ids[::N]])
    row = np.repeat(np.arange(T), N)
    prior = MetaRegressor().fit(X[: T * N // 10], y[: T * N // 10], groups=ids[: T * N // 10])
    predicting, learned, gather = best(
        lambda: model.predict(X, groups=ids),
        lambda: prior.predict(X, groups=ids),
        lambda: np.einsum("id,id->i", X, W[row]),
        repeat=3,
    )
    told = f"{predicting / gather:.2f}x {learned / gather:.2f}x"
    report("predict for a million rows over gather and product: paper, prior", told, "at most 3x")


def by_rows(model: Any, rows: list[Any]) -> None:
    for row in rows:
        model.partial_fit(*row)


def streams(X: Matrix, y: Vector, ids: Ids) -> None:
    """Rows one by one and in chunks, from arrays and data frames."""
    names = [f"x{j}" for j in range(D)]
    frame = pd.DataFrame(X[:20_000], columns=names)
    inside = frame.assign(user=ids[:20_000])
    arrays = [(X[i : i + 1], y[i : i + 1]) for i in range(1000)]
    frames = [(frame.iloc[i : i + 1], y[i : i + 1]) for i in range(1000)]
    held = [(inside.iloc[i : i + 1], y[i : i + 1]) for i in range(1000)]
    whose = [ids[i : i + 1] for i in range(1000)]
    ways: dict[str, dict[str, Any]] = {"prior": {}, "paper": {"reg": 1.0, "step": 0.1}}
    for name, settings in ways.items():
        first = slice(0, 1 << 12)

        def begun(source: Any, **more: Any) -> MetaRegressor:
            model = MetaRegressor(**settings, **more)  # noqa: B023
            groups = None if more else ids[first]  # noqa: B023
            return model.partial_fit(source, y[first], groups=groups)  # noqa: B023

        plain, named, grouped = (
            begun(X[first]),
            begun(frame[first]),
            begun(inside[first], group="user"),
        )
        theirs, theirs_named = (
            SGDRegressor(loss="epsilon_insensitive", epsilon=0.0) for _ in range(2)
        )
        one, one_named, one_grouped, other, other_named = best(
            lambda: by_rows(plain, [(*row, i) for row, i in zip(arrays, whose, strict=True)]),  # noqa: B023
            lambda: by_rows(named, [(*row, i) for row, i in zip(frames, whose, strict=True)]),  # noqa: B023
            lambda: by_rows(grouped, held),  # noqa: B023
            lambda: by_rows(theirs, arrays),  # noqa: B023
            lambda: by_rows(theirs_named, frames),  # noqa: B023
            repeat=3,
        )
        told = f"{one / other:.2f}x {one_named / other_named:.2f}x {one_grouped / other_named:.2f}x"
        what = f"{name}: partial_fit of one row over SGDRegressor's: array, frame, id in frame"
        report(what, told, "at most 1x")

        def chunks(source: Any, **more: Any) -> Callable[[], object]:
            def work() -> None:
                model = MetaRegressor(**settings, **more)  # noqa: B023
                for i in range(0, 20_000, 1000):
                    part = slice(i, i + 1000)
                    model.partial_fit(source[part], y[part], None if more else ids[part])

            return work

        bare, wrapped, with_ids = best(
            chunks(X), chunks(frame), chunks(inside, group="user"), repeat=3
        )
        what = f"{name}: chunks of 1,000 rows, frames over arrays: ids beside, inside"
        report(what, f"{wrapped / bare:.2f}x {with_ids / bare:.2f}x", "at most 2x")


def single_rows() -> None:
    """Rows one at a time at a million entities, beside river's."""
    d, count = 20, 1_000_000
    rng = np.random.default_rng(0)
    model = MetaRegressor()
    for part in np.array_split(np.arange(count), 10):
        X = rng.standard_normal((len(part), d))
        model.partial_fit(X, X.sum(axis=1), groups=part)
    model.finish()
    rows = list(rng.standard_normal((5000, d)))
    keys = rng.integers(0, count, 5000).tolist()
    dicts = [dict(zip(map(str, range(d)), x.tolist(), strict=True)) for x in rows]
    theirs = LinearRegression()

    def each(work: Callable[..., object], *columns: list[Any]) -> float:
        start = perf_counter()
        for row in zip(*columns, strict=True):
            work(*row)
        return (perf_counter() - start) / len(rows) * 1e6

    ones = [1.0] * len(rows)
    figures = [
        min(taken)
        for taken in zip(
            *(
                (
                    each(model.predict_one, rows, keys),
                    each(model.learn_one, rows, ones, keys),
                    each(model.predict_one, rows, keys),
                    (model.finish(), 0.0)[1],
                    each(theirs.learn_one, dicts, ones),
                    each(theirs.predict_one, dicts),
                )
                for _ in range(3)
            ),
            strict=True,
        )
    ]
    ask, learn, ask_again, _, learn_other, ask_other = figures
    report(
        f"learn_one, µs at a million ids (river {learn_other:.1f})", f"{learn:.1f}", "at most 12"
    )
    report(f"predict_one, µs (river {ask_other:.1f})", f"{ask:.1f}", "at most 5")
    report("predict_one, µs, of an entity that has just learned a row", f"{ask_again:.1f}")


IMPORTS = "import numba, sklearn.linear_model"
FIRST = """
import numpy as np
from headstart import MetaRegressor
rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 5))
MetaRegressor().fit(X, X.sum(axis=1), groups=np.arange(1000) // 10)
"""


def cold() -> None:
    """The first fit in a process, with and without compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        place = {**os.environ, "XDG_CACHE_HOME": folder}

        def run(code: str) -> float:
            start = perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=place)
            return perf_counter() - start

        empty = run(FIRST)
        warm, imports = best(lambda: run(FIRST), lambda: run(IMPORTS), repeat=5)
        report("first fit in a process, empty cache", f"{empty:.1f} s", "at most 8 s")
        what = "the same with compiled kernels over importing numba and scikit-learn"
        report(what, f"{warm / imports:.2f}x", "at most 1.5x")


def main() -> None:
    cold()
    single_rows()
    priors()
    X, y, ids = rows_of(T, N, D)
    batches(MetaRegressor(reg=1.0, step=0.1).fit(X, y, groups=ids), X, y, ids)
    streams(X, y, ids)


if __name__ == "__main__":
    main()
