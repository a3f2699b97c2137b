"""How fast the core is, as ratios measured in one run: ``make bench`` prints the table.

Every figure compares two things timed in turn on this machine; the best of several
repetitions counts, since everything else running here can only add time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor
from sklearn.svm import LinearSVR

from headstart import TaskSet, learn_bias, task_weights
from headstart.theory import primal_value

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference import algorithm_2

REG, STEP = 0.3, 0.01


def best(
    *works: Callable[[], object], repeat: int = 15, before: Callable[[], object] = list
) -> list[float]:
    """Shortest seconds of each, taken in turn, without what is done `before` each."""
    seconds = [float("inf")] * len(works)
    for _ in range(repeat):
        for k, work in enumerate(works):
            before()
            start = perf_counter()
            work()
            seconds[k] = min(seconds[k], perf_counter() - start)
    return seconds


def tasks_of(T: int, n: int, d: int) -> TaskSet:
    """The paper's regression tasks: inputs on the unit sphere, weights around 4."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((T * n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.einsum("tnd,td->tn", X.reshape(T, n, d), rng.normal(4.0, 1.0, (T, d)))
    y += rng.standard_normal(y.shape) * y.std(axis=1, keepdims=True) / np.sqrt(10.0)
    return TaskSet.from_arrays(X, y.ravel(), np.repeat(np.arange(T), n))


def report(what: str, figure: str, target: str = "") -> None:
    print(f"{what:80} {figure:>8}   {target}", flush=True)


def stream_speed() -> None:
    tasks = tasks_of(200_000, 10, 30)
    ours = bandwidth(tasks, "at least 0.5")
    against_loops(tasks, ours / len(tasks))
    threads(tasks)
    del tasks
    bandwidth(tasks_of(20_000, 10, 300))
    bandwidth(tasks_of(20_000, 100, 30))


def bandwidth(tasks: TaskSet, target: str = "") -> float:
    ours, bare = best(lambda: learn_bias(tasks, REG, STEP), tasks.X.sum)
    n, d = tasks.sizes[0], tasks.n_features
    what = f"learn_bias over X.sum(), bytes a second: n={n}, d={d}"
    report(what, f"{bare / ours:.2f}", target)
    return ours


def against_loops(tasks: TaskSet, ours: float) -> None:
    pairs = list(tasks.subset(range(200)))
    model = SGDRegressor(
        loss="epsilon_insensitive", epsilon=0.0, alpha=REG, max_iter=1, tol=None,
        fit_intercept=False, shuffle=False,
    )  # fmt: skip

    def transcription() -> None:
        algorithm_2(pairs, REG, STEP, "absolute", 0.0, np.zeros(tasks.n_features))

    def fits() -> None:
        for X, y in pairs:
            model.fit(X, y)

    naive, sklearn = (s / len(pairs) for s in best(transcription, fits, repeat=3))
    report(
        "learn_bias over its NumPy transcription, per task", f"{naive / ours:.0f}x", "at least 100x"
    )
    report(
        "learn_bias over SGDRegressor, one epoch a task", f"{sklearn / ours:.0f}x", "at least 800x"
    )


def threads(tasks: TaskSet) -> None:
    one, two = best(
        lambda: learn_bias(tasks, REG, STEP, batch_size=256, n_jobs=1),
        lambda: learn_bias(tasks, REG, STEP, batch_size=256, n_jobs=2),
    )
    report("learn_bias, batch_size=256: two threads over one", f"{one / two:.2f}x", "at least 1.6x")


def exact_speed() -> None:
    for n, d, regs, target in (
        (10, 30, (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0), "at least 80x"),
        (100, 30, (1e-2, 0.1, 1.0, 10.0), "at least 15x"),
    ):
        tasks = tasks_of(1000, n, d)
        for reg in regs:
            ours, theirs = exact_against_liblinear(tasks, reg)
            what = f"exact solution over LinearSVR at gap 1e-6: n={n}, d={d}, reg={reg:g}"
            report(f"{what} ({ours * 1e6:.1f} us)", f"{theirs / ours:.0f}x", target)


def exact_against_liblinear(tasks: TaskSet, reg: float) -> tuple[float, float]:
    """Seconds a task for both, liblinear at the loosest tolerance that gets all within 1e-6."""
    d, pairs, bias = tasks.n_features, [tasks[t] for t in range(30)], np.zeros(tasks.n_features)
    exact = task_weights(tasks, bias, reg, inner="erm")
    for tol in 10.0 ** -np.arange(1.0, 12.0):
        model = LinearSVR(
            epsilon=0.0, C=1.0 / (reg * len(pairs[0][1])), fit_intercept=False,
            tol=float(tol), max_iter=10**6,
        )  # fmt: skip
        excess = [
            primal_value(X, y, model.fit(X, y).coef_, bias, reg) - primal_value(X, y, w, bias, reg)
            for (X, y), w in zip(pairs, exact, strict=False)
        ]
        if max(excess) <= 1e-6:
            break

    def fits() -> None:
        for X, y in pairs:
            model.fit(X, y)

    ours, theirs = best(lambda: task_weights(tasks, np.zeros(d), reg, inner="erm"), fits, repeat=5)
    return ours / len(tasks), theirs / len(pairs)


MEMORY = """
import sys; sys.path.insert(0, {here!r})
from core import *
tasks = tasks_of(200_000, 10, 30)
learn_bias(tasks.subset([0]), REG, STEP)
def status(name):
    lines = open('/proc/self/status').read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024
open('/proc/self/clear_refs', 'w').write('5')  # the peak starts again from here
before = status('VmRSS')
learn_bias(tasks, REG, STEP)
print((status('VmHWM') - before) / tasks.X.nbytes)
"""
BARE = "from time import perf_counter as t; a = t(); import numba, sklearn.base; print(t() - a)"
OURS = "from time import perf_counter as t; a = t(); import headstart; print(t() - a)"
FIRST = """
from time import perf_counter
import numpy as np
from headstart import learn_bias
start = perf_counter()
learn_bias([(np.eye(3), np.ones(3))], 1.0, 1.0)
print(perf_counter() - start)
"""


def in_new_process(code: str, cache: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def cold_start() -> None:
    with tempfile.TemporaryDirectory() as cache:
        report(
            "first learn_bias on an empty cache",
            f"{in_new_process(FIRST, cache):.2f} s",
            "at most 8 s",
        )
        again = min(in_new_process(FIRST, cache) for _ in range(5))
        report("first learn_bias of a second process", f"{again:.2f} s", "at most 0.3 s")
        times = [(in_new_process(BARE, cache), in_new_process(OURS, cache)) for _ in range(9)]
        bare, ours = (min(side) for side in zip(*times, strict=True))
        what = "import headstart over importing numba and sklearn.base"
        report(what, f"{ours / bare:.2f}x", "at most 1.3x")
        if Path("/proc/self/clear_refs").exists():
            share = in_new_process(MEMORY.format(here=str(Path(__file__).parent)), cache)
            report(
                "memory of learn_bias beyond the data, of X", f"{100 * share:.2f} %", "under 5 %"
            )


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    stream_speed()
    exact_speed()
    cold_start()


if __name__ == "__main__":
    main()
