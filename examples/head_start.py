"""What a head start is worth: the paper's synthetic regression, seen in a few seconds.

Tasks have weights w ~ N(4, 1) in each of 30 coordinates, inputs on the unit sphere and
10 noisy rows each. A new task is trained on its 10 rows from three starting points and
tested on 100 further rows.
"""

from time import perf_counter

import numpy as np

from headstart import TaskSet, evaluate_bias, learn_bias

D, SHOTS, QUERIES = 30, 10, 100


def draw_tasks(count: int, rows: int, rng: np.random.Generator) -> TaskSet:
    """Linear tasks whose weights scatter around a common vector."""
    X = rng.normal(size=(count, rows, D))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    signal = np.einsum("tnd,td->tn", X, rng.normal(4.0, 1.0, size=(count, D)))
    noise = rng.normal(size=signal.shape) * signal.std(axis=1, keepdims=True) / np.sqrt(10.0)
    ids = np.repeat(np.arange(count), rows)
    return TaskSet.from_arrays(X.reshape(-1, D), (signal + noise).ravel(), ids)


def main() -> None:
    """Learn a bias from more and more tasks and print the error of new ones."""
    rng = np.random.default_rng(0)
    train = draw_tasks(1000, SHOTS, rng)
    valid = draw_tasks(100, SHOTS + QUERIES, rng).split_rows(SHOTS)
    test = draw_tasks(500, SHOTS + QUERIES, rng).split_rows(SHOTS)
    regs = np.logspace(-3, 1, 9)

    def error(bias: np.ndarray, reg: float) -> float:
        return float(evaluate_bias(*test, bias, reg).mean())

    def tuned(bias: np.ndarray) -> float:
        reg = min(regs, key=lambda r: evaluate_bias(*valid, bias, r).mean())
        return error(bias, reg)

    print("mean absolute error of new tasks, 10 rows each to learn from\n")
    print(f"  {'each task alone (bias 0)':42} {tuned(np.zeros(D)):.3f}")
    learn_bias(train.subset([0]), reg=0.1, step=1.0)  # compiled now, timed below
    for count in (10, 100, 1000):
        seen = train.subset(np.arange(count))
        start = perf_counter()
        candidates = [
            (reg, learn_bias(seen, reg, step).bias) for reg in regs for step in (0.1, 1.0, 10.0)
        ]
        seconds = perf_counter() - start
        reg, bias = min(candidates, key=lambda c: evaluate_bias(*valid, c[1], c[0]).mean())
        told = f"a head start learned from {count} tasks"
        print(f"  {told:42} {error(bias, reg):.3f}   (27 candidates in {seconds:.3f} s)")
    print(f"  {'the true mean of all tasks':42} {tuned(np.full(D, 4.0)):.3f}")


if __name__ == "__main__":
    main()
