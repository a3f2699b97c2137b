"""How fast the estimators are, as ratios measured in one run: ``make bench``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from core import best, report
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor

from headstart import MetaRegressor, TaskSet, learn_bias
from headstart._checks import Vector

Matrix = NDArray[np.float64]
Ids = NDArray[np.int64]

T, N, D = 100_000, 10, 30


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((T * N, D))
    y = X @ np.full(D, 4.0) + rng.standard_normal(T * N)
    ids = np.repeat(rng.permutation(T), N)
    model = MetaRegressor(reg=1.0, step=0.1).fit(X, y, groups=ids)
    batches(model, X, y, ids)
    streams(X, y, ids)
    del X, y
    entities()


def batches(model: MetaRegressor, X: Matrix, y: Vector, ids: Ids) -> None:
    fitting, bare = best(
        lambda: model.fit(X, y, groups=ids),
        lambda: learn_bias(TaskSet.from_arrays(X, y, ids), 1.0, 0.1),
        repeat=5,
    )
    what = "MetaRegressor.fit over grouping and learn_bias"
    report(what, f"{fitting / bare:.2f}x", "at most 2.5x")
    tasks = TaskSet.from_arrays(X, y, ids)
    chosen, passed = best(
        lambda: MetaRegressor().fit(X, y, groups=ids),
        lambda: learn_bias(tasks, 1.0, 0.1),
        repeat=3,
    )
    what = "MetaRegressor.fit choosing reg and step over one pass of learn_bias"
    report(what, f"{chosen / passed:.1f}x", "at most 8x")
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
    what = "MetaRegressor.fit over a loop of SGDRegressor.fit"
    report(what, f"{loop / some * T / fitting:.0f}x", "at least 300x")

    W = np.concatenate([model.weights_of(i)[None] for i in ids[::N]])
    row = np.repeat(np.arange(T), N)
    predicting, gather = best(
        lambda: model.predict(X, groups=ids), lambda: np.einsum("id,id->i", X, W[row]), repeat=3
    )
    what = "predict for a million rows over gather and product"
    report(what, f"{predicting / gather:.2f}x", "at most 3x")


def streams(X: Matrix, y: Vector, ids: Ids) -> None:
    rows = 2000
    ours, theirs = (
        MetaRegressor(reg=1.0, step=0.1),
        SGDRegressor(loss="epsilon_insensitive", epsilon=0.0),
    )

    def by_rows() -> None:
        for i in range(rows):
            ours.partial_fit(X[i : i + 1], y[i : i + 1], groups=ids[i : i + 1])

    def their_rows() -> None:
        for i in range(rows):
            theirs.partial_fit(X[i : i + 1], y[i : i + 1])

    mine, others = best(by_rows, their_rows, repeat=3)
    what = "partial_fit of one row over SGDRegressor.partial_fit"
    report(what, f"{mine / others:.2f}x", "at most 1x")

    def by_chunks() -> None:
        chunked = MetaRegressor(reg=1.0, step=0.1)
        for first in range(0, T * N, 1000):
            chunk = slice(first, first + 1000)
            chunked.partial_fit(X[chunk], y[chunk], groups=ids[chunk])

    chunks, batch = best(
        by_chunks, lambda: MetaRegressor(reg=1.0, step=0.1).fit(X, y, groups=ids), repeat=3
    )
    report("partial_fit in chunks of 1,000 rows over fit", f"{chunks / batch:.2f}x", "at most 2x")


ONE = """
import resource, sys, time
from headstart import MetaRegressor
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
other = MetaRegressor.load(sys.argv[2])
other.weights_of(0)
before = resident()
model = MetaRegressor.load(sys.argv[1])
start = time.perf_counter()
model.weights_of(654321)
print(time.perf_counter() - start, resident() - before)
"""


def entities() -> None:
    """A million entities on disk."""
    count = 1_000_000
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((count, D)), rng.standard_normal(count)
    model = MetaRegressor(reg=1.0, step=0.1).fit(X, y, groups=np.arange(count))
    small = MetaRegressor(reg=1.0, step=0.1).fit(X[:10], y[:10], groups=np.arange(10))
    del X, y
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)

        def size() -> int:
            return sum(p.stat().st_size for p in (place / "model").rglob("*.npy"))

        model.save(place / "model")
        plain = np.ones(size() // 8)

        def replace_plain() -> None:
            np.save(place / "new.npy", plain)
            (place / "new.npy").replace(place / "plain.npy")

        writing, bare_write = best(lambda: model.save(place / "model"), replace_plain, repeat=5)
        report(
            f"saving a million entities ({size() / 1e6:.0f} MB) over np.save",
            f"{writing / bare_write:.2f}x",
            "at most 3x",
        )

        def load() -> None:
            loaded = MetaRegressor.load(place / "model")
            loaded._live()

        reading, bare_read = best(load, lambda: np.load(place / "plain.npy"), repeat=5)
        (opening,) = best(lambda: MetaRegressor.load(place / "model"), repeat=5)
        report("loading them over np.load", f"{opening / bare_read:.2f}x", "at most 3x")
        what = "the same with all read, checked and ready to go on"
        report(what, f"{reading / bare_read:.2f}x")
        small.save(place / "small")
        arguments = [str(place / "model"), str(place / "small")]
        out = subprocess.run(
            [sys.executable, "-c", ONE, *arguments], check=True, capture_output=True, text=True
        )
        seconds, megabytes = map(float, out.stdout.split())
        report("one entity's weights after opening", f"{seconds * 1e3:.2f} ms", "under 1 ms")
        report("resident memory for it", f"{megabytes:.1f} MB", "under 50 MB")


if __name__ == "__main__":
    main()
