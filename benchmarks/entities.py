"""A million entities: memory, and models of them on disk. Part of ``make bench``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from core import best, report

from headstart import MetaRegressor

COUNT, D = 1_000_000, 20

KEPT = """
import gc, sys
import numpy as np
from headstart import MetaRegressor
def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1e6
count, d = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
def rows(part):
    X = rng.standard_normal((12 * len(part), d))
    return X, X.sum(axis=1) + rng.standard_normal(len(X)), np.repeat(part, 12)
X, y, ids = rows(np.arange(100))
MetaRegressor().fit(X, y, groups=ids).predict(X, ids)
before = resident()
model = MetaRegressor()
for part in np.array_split(np.arange(count), 100):
    X, y, ids = rows(part)
    model.partial_fit(X, y, groups=ids)
model.finish()
del X, y, ids
kept = resident() - before
model.drop_summaries()
print(kept, resident() - before)
"""

ONE = """
import sys, time
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


def told(code: str, *arguments: object) -> list[float]:
    """The numbers a process of its own prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    place = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed goes back at once
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=place)
    return [float(number) for number in out.stdout.split()]


def memory() -> None:
    whole, weights = told(KEPT, COUNT, D)
    report(
        "memory of a million entities, d=20: with summaries", f"{whole:.2f} GB", "at most 2.5 GB"
    )
    report("the same: weights alone", f"{weights:.2f} GB", "at most 0.4 GB")


def on_disk() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((COUNT, D)), rng.standard_normal(COUNT)
    model = MetaRegressor().fit(X, y, groups=np.arange(COUNT))
    small = MetaRegressor().fit(X[:10], y[:10], groups=np.arange(10))
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
        what = f"saving a million entities of one row ({size() / 1e6:.0f} MB) over np.save"
        report(what, f"{writing / bare_write:.2f}x", "at most 3x")

        def load() -> None:
            loaded = MetaRegressor.load(place / "model")
            loaded.finish()  # which reads and checks all of it

        reading, bare_read = best(load, lambda: np.load(place / "plain.npy"), repeat=3)
        (opening,) = best(lambda: MetaRegressor.load(place / "model"), repeat=5)
        report("loading them over np.load", f"{opening / bare_read:.2f}x", "at most 3x")
        what = "the same with all read, checked and ready to go on"
        report(what, f"{reading / bare_read:.2f}x")
        small.save(place / "small")
        seconds, megabytes = told(ONE, place / "model", place / "small")
        report("one entity's weights after opening", f"{seconds * 1e3:.2f} ms", "under 1 ms")
        report("resident memory for it", f"{megabytes:.1f} MB", "under 50 MB")


if __name__ == "__main__":
    memory()
    on_disk()
