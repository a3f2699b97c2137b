"""How fast the online validation is, as ratios measured in one run: ``make bench``.

Full scale is the paper's synthetic regression: 100 candidates, 100 validation tasks with
10 rows to learn from and 100 to test on, d = 30.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from core import best, report
from reference import algorithm_2, algorithm_4, online_validation
from threadpoolctl import threadpool_limits

from headstart.environments import RegressionEnvironment
from headstart.experiments import EXPERIMENTS, Piece, PieceFolder, run_pieces
from headstart.selection import select_online

GRID = np.geomspace(1e-6, 1e3, 10)


def main() -> None:
    environment, rng = RegressionEnvironment(), np.random.default_rng(0)
    train = environment.draw(200, 10, rng).tasks
    valid, test = (environment.draw(T, 110, rng).tasks.split_rows(10) for T in (100, 200))
    H = rng.standard_normal((30, 100))

    def bare() -> None:
        for _ in range(len(train) + 1):
            valid[1].X @ H

    def ours(inner: str) -> None:
        select_online(train, valid, test, GRID, GRID, inner=inner, evaluate_with=inner)

    for inner in ("sgd", "erm"):
        ours(inner)
    with threadpool_limits(1, user_api="blas"):
        passes, exact, products = best(lambda: ours("sgd"), lambda: ours("erm"), bare, repeat=5)
    report("online validation over its bare products", f"{passes / products:.2f}x", "at most 2.5x")
    report("the same with exact solutions", f"{exact / products:.2f}x", "at most 5x")
    against_transcriptions()
    cores_over_one()


def against_transcriptions() -> None:
    """Slices: 10 tasks, all candidates and 20 validation tasks; 3, 4 and 10 for exact solutions."""
    environment, rng = RegressionEnvironment(), np.random.default_rng(0)
    train = environment.draw(10, 10, rng).tasks
    valid = environment.draw(20, 110, rng).tasks.split_rows(10)
    pairs = [(*s, *q) for s, q in zip(*valid, strict=True)]
    ours, naive = best(
        lambda: select_online(train, valid, valid, GRID, GRID),
        lambda: online_validation(list(train), pairs, [*GRID], [*GRID], "absolute", 0.0),
        repeat=3,
    )
    report(
        "SGD-SGD over its NumPy transcription, on a slice", f"{naive / ours:.0f}x", "at least 100x"
    )

    few, valid = train.subset(range(3)), (valid[0].subset(range(10)), valid[1].subset(range(10)))
    regs, steps = [0.01, 0.1], [0.1, 1.0]

    def exact() -> None:
        for reg in regs:
            for step in steps:
                path = algorithm_2(list(few), reg, step, "absolute", 0.0, np.zeros(30))
                for t in range(len(path)):
                    for X, y, X_new, y_new in pairs[:10]:
                        w = algorithm_4(X, y, path[: t + 1].mean(axis=0), reg)
                        np.abs(X_new @ w - y_new).mean()

    def ours_exact() -> None:
        select_online(few, valid, valid, regs, steps, inner="erm", evaluate_with="erm")

    ours_exact()
    ours, naive = best(ours_exact, exact, repeat=2)
    report(
        "ERM-ERM over its NumPy transcription, on a slice", f"{naive / ours:.0f}x", "at least 300x"
    )


def cores_over_one() -> None:
    """Pieces of the experiments on one core and on two."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    e = replace(EXPERIMENTS["synthetic-regression"], n_tasks=200)
    pieces = [Piece(e, "ltl-sgd-sgd", seed) for seed in range(4)]

    def run(jobs: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            list(run_pieces(pieces, {e: PieceFolder(Path(folder), e, print)}, jobs))

    one, two = best(lambda: run(1), lambda: run(2), repeat=3)
    report("experiments: two cores over one", f"{one / two:.2f}x", "at least 1.7x")


if __name__ == "__main__":
    main()
