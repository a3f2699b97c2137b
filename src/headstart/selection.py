r"""Choosing reg and step online, by validation tasks: the paper's tuning procedure.

Every candidate :math:`(\lambda, \gamma)` keeps its own bias. Each new task updates all of
them; then each is tried on the validation tasks (train on their shots, test on their
queries) and the best is reported on the test tasks. Candidates are columns: one task
costs a few matrix products for all of them together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from headstart._checks import (
    Vector,
    as_floats,
    check_bias,
    check_choice,
    check_count,
    check_generator,
    check_jobs,
)
from headstart._jit import kernel, run_blocks
from headstart.adaptation import INNER, evaluate_bias
from headstart.erm import MAX_ITER, TOLERANCE, solve_task, workspace
from headstart.losses import Loss, Objective, get_loss
from headstart.losses.many import sum_losses
from headstart.sgd.batch import drawn_gram_pass, gram_pass
from headstart.sgd.one_pass import AVERAGE, averaging
from headstart.tasks import ORDERS, Rows, Tasks, TaskSet, as_task_set, check_same_tasks, longest

Matrix = NDArray[np.float64]
Pair = tuple[Tasks, Tasks]


class Selection(NamedTuple):
    """What was chosen after each number of observed tasks; a row for each of them.

    Attributes
    ----------
    tasks : numbers of observed tasks, beginning with 0
    validation_loss : of every candidate, shape (rows, len(regs), len(steps))
    reg, step : of the best candidate
    bias : of the best candidate, shape (rows, d)
    test_loss : mean loss of the best candidate on the test tasks
    """

    tasks: NDArray[np.int64]
    validation_loss: Matrix
    reg: Vector
    step: Vector
    bias: Matrix
    test_loss: Vector


class RegSelection(NamedTuple):
    """What was chosen for a fixed bias: `validation_loss` of every reg, the best one, its test."""

    validation_loss: Vector
    reg: float
    test_loss: float


class Candidates(NamedTuple):
    """What kernels see of the candidates: a column of H and one lam and gamma for each."""

    H: Matrix
    lams: Vector
    gammas: Vector
    code: int
    c: float


@kernel
def _learn_sgd(rows: Rows, t: int, candidates: Candidates, drawn: NDArray[np.int64]) -> None:
    """Update every candidate's bias with task t, meta-gradients by Algorithm 1.

    `drawn` has a column of row numbers for each candidate, or is empty: each row in turn.
    """
    H, lams, gammas, code, c = candidates
    begin, end = rows.offsets[t], rows.offsets[t + 1]
    X, n, (d, m) = rows.X[begin:end], end - begin, H.shape
    U, G = np.empty((n, m)), np.empty((d, m))
    K, P, y = np.dot(X, X.T), np.dot(X, H), rows.y[begin:end]
    if drawn.size > 0:
        drawn_gram_pass(K, P, y, drawn, lams, code, c, U)
    else:
        gram_pass(K, P, y, lams, code, c, U)
    np.dot(X.T, U, G)
    for j in range(d):
        for q in range(m):
            H[j, q] -= gammas[q] / n * G[j, q]


@kernel
def _learn_erm(rows: Rows, t: int, candidates: Candidates) -> None:
    """Update every candidate's bias with task t, exact meta-gradients."""
    H, lams, gammas, code, c = candidates
    begin, end = rows.offsets[t], rows.offsets[t + 1]
    X, y = rows.X[begin:end], rows.y[begin:end]
    d, m = H.shape
    work, w, h, b = workspace(end - begin, d), np.empty(d), np.empty(d), np.zeros(end - begin)
    for q in range(m):
        h[:] = H[:, q]
        target = TOLERANCE * min(1.0, lams[q])
        objective = Objective(lams[q], code, c)
        solve_task(X, y, objective, h, w, b, target, MAX_ITER, work)
        for j in range(d):
            H[j, q] -= gammas[q] * lams[q] * (h[j] - w[j])


@kernel
def _query_losses(
    queries: Rows, t: int, W: Matrix, code: int, c: float, Z: Matrix, out: Vector
) -> None:
    """Mean loss on task t's queries of every column of weights."""
    begin, end = queries.offsets[t], queries.offsets[t + 1]
    n = end - begin
    np.dot(queries.X[begin:end], W, Z[:n])
    sum_losses(code, c, Z, queries.y, begin, n, out)
    for q in range(out.size):
        out[q] /= n


@kernel
def _try_sgd(
    shots: Rows, queries: Rows, candidates: Candidates, first: int, last: int, out: Matrix
) -> None:
    """Mean query loss of every candidate on each task: Algorithm 1, averaged iterates."""
    H, lams, _, code, c = candidates
    d, m = H.shape
    most = longest(shots.offsets, first, last)
    P, U, W = np.empty((most, m)), np.empty((most, m)), np.empty((d, m))
    Z = np.empty((longest(queries.offsets, first, last), m))
    share = np.empty(0)
    for t in range(first, last):
        begin, end = shots.offsets[t], shots.offsets[t + 1]
        X, n = shots.X[begin:end], end - begin
        if share.size != n:
            share = averaging(AVERAGE, n)
        np.dot(X, H, P[:n])
        gram_pass(np.dot(X, X.T), P[:n], shots.y[begin:end], lams, code, c, U[:n])
        for k in range(n):
            for q in range(m):
                U[k, q] *= share[k] / lams[q]
        np.dot(X.T, U[:n], W)
        for j in range(d):
            for q in range(m):
                W[j, q] = H[j, q] - W[j, q]
        _query_losses(queries, t, W, code, c, Z, out[t])


@kernel
def _try_erm(
    shots: Rows,
    queries: Rows,
    candidates: Candidates,
    duals: Matrix,
    first: int,
    last: int,
    out: Matrix,
) -> None:
    """Mean query loss of every candidate on each task: exact solutions.

    `duals` holds a row for each candidate with the dual points of all shots, from which
    the next bias starts: it moves little from task to task.
    """
    H, lams, _, code, c = candidates
    d, m = H.shape
    n = longest(shots.offsets, first, last)
    work, w, h = workspace(n, d), np.empty(d), np.empty(d)
    W, Z = np.empty((d, m)), np.empty((longest(queries.offsets, first, last), m))
    for t in range(first, last):
        begin, end = shots.offsets[t], shots.offsets[t + 1]
        X, y = shots.X[begin:end], shots.y[begin:end]
        for q in range(m):
            h[:] = H[:, q]
            objective = Objective(lams[q], code, c)
            target = TOLERANCE * min(1.0, lams[q])
            b = duals[q, begin:end]
            solve_task(X, y, objective, h, w, b, target, MAX_ITER, work)
            W[:, q] = w
        _query_losses(queries, t, W, code, c, Z, out[t])


def select_online(
    train: Tasks,
    valid: Pair,
    test: Pair,
    regs: ArrayLike,
    steps: ArrayLike,
    loss: str | Loss = "absolute",
    inner: str = "sgd",
    evaluate_with: str = "sgd",
    order: str = "stream",
    random_state: object = None,
    every: int = 1,
    n_jobs: int | None = 1,
) -> Selection:
    """Learn a bias with every (reg, step), choosing among them online by validation tasks.

    Parameters
    ----------
    train : TaskSet, or list of pairs (X, y)
        The tasks to learn from, in the order in which they come.
    valid, test : pairs (shots, queries)
        Tasks to choose by and to report on, as `TaskSet.split_rows` gives them.
    regs, steps : array-like
        The candidates are all pairs; ties go to the first in this order.
    inner, evaluate_with : {"sgd", "erm"}
        The within-task algorithm of the meta-gradients, and of validation and test.
    order : {"stream", "resample"}
        Which rows Algorithm 1 visits. With ``"resample"`` every candidate draws its own
        rows of a training task, as a run of its own would; those of validation and test
        tasks are drawn once.
    every : int
        Evaluate after every so many tasks, and after the last.
    n_jobs : int, optional
        Threads over the validation tasks; the result has the same bits for any number.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from headstart.environments import RegressionEnvironment
    >>> draw, rng = RegressionEnvironment(n_features=3).draw, np.random.default_rng(0)
    >>> valid, test = (draw(20, 30, rng).tasks.split_rows(10) for _ in range(2))
    >>> chosen = select_online(draw(50, 10, rng).tasks, valid, test, [0.1, 1.0], [0.1, 1.0])
    >>> print(chosen.validation_loss.shape, chosen.test_loss[[0, -1]].round(1))
    (51, 2, 2) [2.3 1.2]
    """
    check_choice("inner", inner, INNER)
    chosen, rng, jobs = get_loss(loss), check_generator(random_state), check_jobs(n_jobs)
    apart = check_count("every", every)
    grid = np.meshgrid(_grid("regs", regs), _grid("steps", steps), indexing="ij")
    trial = _prepared_pair("valid", valid, chosen, evaluate_with, order, rng)
    final = _prepared_pair("test", test, chosen, evaluate_with, order, rng)
    tasks = as_task_set(train).astype(np.float64)
    chosen.check_labels(tasks.y, tasks.place)
    T, d, m = len(tasks), tasks.n_features, grid[0].size
    for name, (shots, _) in (("valid", trial), ("test", final)):
        if shots.n_features != d:
            raise ValueError(f"{name}: expected {d} features as in train, found {shots.n_features}")

    H, total = np.zeros((d, m)), np.zeros((d, m))
    lams, gammas = grid[0].ravel(), grid[1].ravel()
    duals = np.zeros((m, len(trial[0].X)))
    rows, drawn = tasks.rows(), np.empty((0, m), np.int64)
    seen = [t for t in range(T + 1) if t % apart == 0 or t == T]
    validation, best, biases, tested = [], [], [], []
    with threadpool_limits(1, user_api="blas"):
        for t in range(T + 1):
            if t > 0:
                now = Candidates(H, lams, gammas, chosen.code, chosen.parameter)
                if inner == "erm":
                    _learn_erm(rows, t - 1, now)
                else:
                    if order == "resample":
                        n = int(tasks.sizes[t - 1])
                        drawn = rng.integers(n, size=(n, m))
                    _learn_sgd(rows, t - 1, now, drawn)
            total += H
            if t % apart != 0 and t != T:
                continue
            mean = Candidates(total / (t + 1), lams, gammas, chosen.code, chosen.parameter)
            validation.append(_mean_losses(trial, mean, evaluate_with, duals, jobs))
            best.append(int(np.argmin(validation[-1])))
            biases.append(mean.H[:, best[-1]].copy())
            reg = float(lams[best[-1]])
            tested.append(evaluate_bias(*final, biases[-1], reg, chosen, evaluate_with).mean())
    return Selection(
        np.array(seen),
        np.reshape(validation, (len(seen), *grid[0].shape)),
        lams[best],
        gammas[best],
        np.array(biases),
        np.array(tested),
    )


def select_reg(
    valid: Pair,
    test: Pair,
    bias: ArrayLike,
    regs: ArrayLike,
    loss: str | Loss = "absolute",
    evaluate_with: str = "sgd",
    order: str = "stream",
    random_state: object = None,
    n_jobs: int | None = 1,
) -> RegSelection:
    """Choose reg for a fixed bias by validation tasks; parameters as in `select_online`.

    With bias 0 this is independent task learning, the paper's ITL; with the environment's
    mean it is the paper's MEAN.

    Examples
    --------
    >>> from headstart.environments import RegressionEnvironment
    >>> draw, rng = RegressionEnvironment(n_features=3).draw, np.random.default_rng(0)
    >>> valid, test = (draw(20, 30, rng).tasks.split_rows(10) for _ in range(2))
    >>> select_reg(valid, test, [4.0, 4.0, 4.0], [0.1, 1.0, 10.0]).reg
    1.0
    """
    chosen, rng, jobs = get_loss(loss), check_generator(random_state), check_jobs(n_jobs)
    lams = _grid("regs", regs)
    trial = _prepared_pair("valid", valid, chosen, evaluate_with, order, rng)
    final = _prepared_pair("test", test, chosen, evaluate_with, order, rng)
    h = check_bias("bias", bias, trial[0].n_features)
    H = np.repeat(h[:, None], lams.size, axis=1)
    candidates = Candidates(H, lams, np.zeros_like(lams), chosen.code, chosen.parameter)
    duals = np.zeros((lams.size, len(trial[0].X)))
    with threadpool_limits(1, user_api="blas"):
        losses = _mean_losses(trial, candidates, evaluate_with, duals, jobs)
        reg = float(lams[np.argmin(losses)])
        tested = evaluate_bias(*final, h, reg, chosen, evaluate_with).mean()
    return RegSelection(losses, reg, float(tested))


def _mean_losses(
    pair: tuple[TaskSet, TaskSet],
    candidates: Candidates,
    evaluate_with: str,
    duals: Matrix,
    n_jobs: int,
) -> Vector:
    """Loss of every candidate, the mean over tasks of the means over their queries."""
    shots, queries = pair[0].rows(), pair[1].rows()
    out = np.empty((len(pair[0]), candidates.lams.size))
    if evaluate_with == "sgd":
        run_blocks(
            lambda first, last: _try_sgd(shots, queries, candidates, first, last, out),
            len(out),
            n_jobs,
        )
    else:
        run_blocks(
            lambda first, last: _try_erm(shots, queries, candidates, duals, first, last, out),
            len(out),
            n_jobs,
        )
    return np.asarray(out.mean(axis=0), np.float64)


def _grid(name: str, values: ArrayLike) -> Vector:
    grid = as_floats(name, np.atleast_1d(values), 1).astype(np.float64)
    if grid.size == 0 or not (grid > 0.0).all():
        raise ValueError(f"{name}: expected numbers > 0, at least one, found {grid.tolist()}")
    return grid


def _prepared_pair(
    name: str, pair: Pair, loss: Loss, evaluate_with: str, order: str, rng: np.random.Generator
) -> tuple[TaskSet, TaskSet]:
    """Shots and queries in float64 and checked, rows drawn if Algorithm 1 is to visit such."""
    check_choice("evaluate_with", evaluate_with, INNER)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"{name}: expected a pair (shots, queries), found {type(pair).__name__}")
    shots, queries = as_task_set(pair[0]), as_task_set(pair[1])
    check_same_tasks(shots, queries, f"{name} queries")
    for tasks in (shots, queries):
        loss.check_labels(tasks.y, tasks.place)
    if check_choice("order", order, ORDERS) == "resample" and evaluate_with == "sgd":
        shots = shots.resampled(rng)
    return shots.astype(np.float64), queries.astype(np.float64)
