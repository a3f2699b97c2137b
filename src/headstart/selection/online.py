r"""Choosing reg and step online, by validation tasks: the paper's tuning procedure.

Every candidate :math:`(\lambda, \gamma)` keeps its own bias. Each new task updates all of
them; then each is tried on the validation tasks (train on their shots, test on their
queries) and the best is reported on the test tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from headstart._core.answers import quietly
from headstart._core.checks import (
    Vector,
    check_bias,
    check_choice,
    check_count,
    check_generator,
    check_jobs,
    check_regs,
)
from headstart.inner import Inner, InnerFunction, OwnInner, find_inner
from headstart.inner.adapt import query_losses
from headstart.inner.erm import Unsolved
from headstart.losses import Loss, Objective, get_loss
from headstart.selection.grid import Candidates, Matrix, learn_exactly, learn_passing, mean_losses
from headstart.selection.own import learn_own, own_losses
from headstart.tasks import ORDERS, Tasks, TaskSet, as_task_set, check_same_tasks

Pair = tuple[Tasks, Tasks]


class Selection(NamedTuple):
    """What was chosen after each number of observed tasks; a row for each of them.

    Attributes
    ----------
    tasks : numbers of observed tasks, beginning with 0
    validation_loss : of every candidate, shape (rows, len(regs), len(steps)); infinite where
        numbers overflow
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


def select_online(
    train: Tasks,
    valid: Pair,
    test: Pair,
    regs: ArrayLike,
    steps: ArrayLike,
    loss: str | Loss = "absolute",
    inner: str | InnerFunction = "sgd",
    evaluate_with: str | InnerFunction = "sgd",
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
    inner, evaluate_with : {"sgd", "constant", "erm"}, or function of (X, y, bias, reg, loss)
        The within-task algorithm of the meta-gradients, and of validation and test; a function
        is as in `learn_bias`.
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

    Raises
    ------
    ValueError
        When no candidate is left whose bias and validation loss are finite.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When exact solutions of some tasks were not reached.

    Examples
    --------
    >>> from headstart.environments import RegressionEnvironment
    >>> draw, rng = RegressionEnvironment(n_features=3).draw, np.random.default_rng(0)
    >>> valid, test = (draw(20, 30, rng).tasks.split_rows(10) for _ in range(2))
    >>> chosen = select_online(draw(50, 10, rng).tasks, valid, test, [0.1, 1.0], [0.1, 1.0])
    >>> print(chosen.validation_loss.shape, chosen.test_loss[[0, -1]].round(1))
    (51, 2, 2) [2.3 1.2]
    """
    chosen, rng, jobs = get_loss(loss), check_generator(random_state), check_jobs(n_jobs)
    teacher = find_inner(inner, chosen)
    examiner = find_inner(evaluate_with, chosen, "evaluate_with")
    teacher.check_everywhere()
    chosen.check_inner(teacher.name)
    apart = check_count("every", every)
    grid = np.meshgrid(_grid("regs", regs), _grid("steps", steps), indexing="ij")
    trial = _prepared_pair("valid", valid, chosen, examiner, order, rng)
    final = _prepared_pair("test", test, chosen, examiner, order, rng)
    tasks = _checked("train", train, chosen).astype(np.float64)
    T, d, m = len(tasks), tasks.n_features, grid[0].size
    for name, (shots, _) in (("valid", trial), ("test", final)):
        if shots.n_features != d:
            raise ValueError(f"{name}: expected {d} features as in train, found {shots.n_features}")

    H, total = np.zeros((d, m)), np.zeros((d, m))
    lams, gammas = grid[0].ravel(), grid[1].ravel()
    duals, gaps, unsolved = np.zeros((len(trial[0].X), m)), np.empty(m), Unsolved()
    rows, drawn = tasks.rows(), np.empty((0, m), np.int64)
    seen = [t for t in range(T + 1) if t % apart == 0 or t == T]
    validation, best, biases, tested = [], [], [], []
    with threadpool_limits(1, user_api="blas"), quietly():
        for t in range(T + 1):
            if t > 0:
                now = Candidates(H, lams, gammas, chosen.form)
                if teacher.exact:
                    learn_exactly(rows, t - 1, now, gaps)
                    unsolved.add(gaps, now.targets)
                else:
                    if order == "resample":
                        n = int(tasks.sizes[t - 1])
                        drawn = rng.integers(n, size=(n, m))
                    if isinstance(teacher, OwnInner):
                        learn_own(tasks, t - 1, now, teacher, drawn)
                    else:
                        learn_passing(rows, t - 1, now, teacher.constant, drawn)
            total += H
            if t % apart != 0 and t != T:
                continue
            mean = Candidates(total / (t + 1), lams, gammas, chosen.form)
            validation.append(_losses(trial, mean, examiner, duals, unsolved, jobs))
            best.append(_best(validation[-1], "regs, steps", "smaller steps, larger regs"))
            biases.append(mean.H[:, best[-1]].copy())
            objective = Objective(float(lams[best[-1]]), chosen.form)
            tested.append(_mean_loss(final, biases[-1], objective, examiner, unsolved))
    unsolved.warn()
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
    evaluate_with: str | InnerFunction = "sgd",
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
    lams, examiner = _grid("regs", regs), find_inner(evaluate_with, chosen, "evaluate_with")
    trial = _prepared_pair("valid", valid, chosen, examiner, order, rng)
    final = _prepared_pair("test", test, chosen, examiner, order, rng)
    h = check_bias("bias", bias, trial[0].n_features)
    H = np.repeat(h[:, None], lams.size, axis=1)
    candidates = Candidates(H, lams, np.zeros_like(lams), chosen.form)
    duals, unsolved = np.zeros((len(trial[0].X), lams.size)), Unsolved()
    with threadpool_limits(1, user_api="blas"), quietly():
        losses = _losses(trial, candidates, examiner, duals, unsolved, jobs)
        reg = float(lams[_best(losses, "regs", "larger regs")])
        tested = _mean_loss(final, h, Objective(reg, chosen.form), examiner, unsolved)
    unsolved.warn()
    return RegSelection(losses, reg, tested)


def _losses(
    pair: tuple[TaskSet, TaskSet],
    candidates: Candidates,
    examiner: Inner,
    duals: Matrix,
    unsolved: Unsolved,
    n_jobs: int,
) -> Vector:
    """Mean query loss of every candidate."""
    if isinstance(examiner, OwnInner):
        return own_losses(pair, candidates, examiner)
    return mean_losses(pair, candidates, examiner, duals, unsolved, n_jobs)


def _best(losses: Vector, names: str, remedy: str) -> int:
    """The first of the candidates with the smallest loss, which must be a number."""
    best = int(np.argmin(losses))
    if losses[best] == np.inf:
        raise ValueError(
            f"{names}: the bias or the validation loss of every candidate grew beyond all numbers; "
            f"use {remedy}, or scale the columns of X"
        )
    return best


def _mean_loss(
    pair: tuple[TaskSet, TaskSet],
    bias: Vector,
    objective: Objective,
    examiner: Inner,
    unsolved: Unsolved,
) -> float:
    """Mean query loss over tasks that start from one bias."""
    W = examiner.weights(pair[0], bias, objective, unsolved=unsolved)
    losses = query_losses(pair[1], objective.form, W)
    if not (np.isfinite(W).all() and np.isfinite(losses.mean())):
        raise ValueError(
            "test: the weights or losses of a task are beyond all numbers with the reg and bias "
            "that validation chose; use other units of X and y, or larger regs"
        )
    return float(losses.mean())


def _grid(name: str, values: ArrayLike) -> Vector:
    grid = np.atleast_1d(check_regs(name, values))
    if grid.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array, found shape {grid.shape}")
    return grid


def _prepared_pair(
    name: str, pair: Pair, loss: Loss, examiner: Inner, order: str, rng: np.random.Generator
) -> tuple[TaskSet, TaskSet]:
    """Shots and queries in float64 and checked, rows drawn if Algorithm 1 is to visit such."""
    examiner.check_everywhere("evaluate_with")
    loss.check_inner(examiner.name)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"{name}: expected a pair (shots, queries), found {type(pair).__name__}")
    shots, queries = _checked(name, pair[0], loss), _checked(name, pair[1], loss)
    check_same_tasks(shots, queries, f"{name} queries")
    if check_choice("order", order, ORDERS) == "resample" and not examiner.exact:
        shots = shots.resampled(rng)
    return shots.astype(np.float64), queries.astype(np.float64)


def _checked(name: str, given: Tasks, loss: Loss) -> TaskSet:
    """Tasks with dense rows and labels that the loss takes."""
    tasks = as_task_set(given)
    if tasks.sparse:
        raise ValueError(f"{name}: expected dense rows, found sparse ones; see X.toarray()")
    loss.check_labels(tasks.y, tasks.place)
    return tasks
