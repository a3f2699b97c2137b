"""How fast the prior is learned, as ratios measured in one run: part of ``make bench``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from core import REG, STEP, best, report, tasks_of
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headstart import TaskSet, get_loss, learn_bias, learn_prior
from headstart.meta.prior.em import Learning
from headstart.meta.prior.shapes import Full
from headstart.meta.prior.shown import task_evidence

Matrix = NDArray[np.float64]

LME4 = -85_430.93  # lmer(y ~ a+b+c+d + (1+a+b+c+d | g), REML=FALSE) of lme4 on the same table


def pupils() -> TaskSet:
    """Teachers' pupils, columns standardised, and a column of ones."""
    path = Path(__file__).parent.parent / "examples" / "data" / "pupils.parquet"
    table = pd.read_parquet(path)
    X = table[["read", "girl", "free_lunch", "white"]].to_numpy(float)
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    return TaskSet.from_arrays(X, table["math"].to_numpy(float), table["teacher"].to_numpy())


def against_mixed_models() -> None:
    tasks = pupils()
    ours = best(lambda: learn_prior(tasks, metric="full", shrink=0.0), repeat=5)[0]
    prior = learn_prior(tasks, metric="full", shrink=0.0)
    above = prior.log_likelihood(tasks) - LME4
    report("star: log-likelihood above lme4's", f"{above:+.3f}", "at least -1")
    report("star: passes, and milliseconds", f"{prior.n_iter}, {1e3 * ours:.0f}")
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = np.repeat(np.arange(len(tasks)), tasks.sizes)
        fit = sm.MixedLM(tasks.y, tasks.X, groups, exog_re=tasks.X).fit(reml=False)
    theirs = time.perf_counter() - start
    what = f"star: MixedLM of statsmodels over learn_prior ({theirs:.0f} s, {fit.llf - LME4:+.3f})"
    report(what, f"{theirs / ours:.0f}x", "at least 100x")


def passes(tasks: TaskSet, n_jobs: int = 1) -> Callable[[], object]:
    """One pass over the tasks and one step of the prior, everything made ready before."""
    loss = get_loss("squared")
    e, *_ = task_evidence(tasks, loss)
    learning = Learning(e, loss, Full(), n_jobs)
    return lambda: learning.take(learning.first, learning.moments)


def einsum_pass(tasks: TaskSet) -> Callable[[], object]:
    """The same sums in NumPy, for all tasks at once."""
    T, d = len(tasks), tasks.n_features
    X, y = tasks.X.reshape(T, -1, d), tasks.y.reshape(T, -1)
    A, c = np.einsum("tni,tnj->tij", X, X), np.einsum("tni,tn->ti", X, y)
    h, b, inverse = np.full(d, 4.0), 0.1, np.eye(d)

    def work() -> tuple[Matrix, Matrix]:
        V = np.linalg.inv(inverse + A / b)
        delta = np.einsum("tij,tj->ti", V, (c - A @ h) / b)
        return V.sum(axis=0), np.einsum("ti,tj->ij", delta, delta)

    return work


def speed() -> None:
    tasks = tasks_of(50_000, 10, 10)
    one, two, bias, numpy = best(
        passes(tasks), passes(tasks, 2), lambda: learn_bias(tasks, REG, STEP), einsum_pass(tasks)
    )
    report("a pass over one of learn_bias: n=10, d=10", f"{one / bias:.1f}x", "at most 12x")
    report("the same in batched NumPy over ours", f"{numpy / one:.1f}x", "at least 5x")
    report("two threads over one", f"{one / two:.2f}x", "at least 1.6x")
    many, few = best(passes(tasks_of(5_000, 1_000, 10)), passes(tasks_of(5_000, 10, 10)))
    report(
        "a pass over tasks of n=1,000 over one of n=10", f"{many / few:.2f}x", "1: sums, not rows"
    )
    tasks = tasks_of(20_000, 10, 30)
    ours, two, bias, numpy = best(
        passes(tasks),
        passes(tasks, 2),
        lambda: learn_bias(tasks, REG, STEP),
        einsum_pass(tasks),
        repeat=5,
    )
    report("n=10, d=30: microseconds a task", f"{ours / len(tasks) * 1e6:.1f}", "at most 10")
    report("n=10, d=30: over learn_bias", f"{ours / bias:.1f}x")
    report("n=10, d=30: batched NumPy over ours", f"{numpy / ours:.1f}x", "at least 5x")
    report("n=10, d=30: two threads over one", f"{ours / two:.2f}x", "at least 1.6x")


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):  # as learn_prior has it; and NumPy too
        speed()
    against_mixed_models()
