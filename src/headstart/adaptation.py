"""Tasks that start from one bias: their weights, and how well they do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headstart._checks import FloatArray, Vector, check_bias, check_choice, check_jobs
from headstart._jit import kernel, run_blocks
from headstart.erm import erm_weights
from headstart.losses import Form, Loss, Objective, get_loss
from headstart.losses.scalar import phi, score
from headstart.sgd import PREDICTORS, sgd_weights
from headstart.tasks import ORDERS, Rows, Tasks, TaskSet, as_task_set, check_same_tasks

INNER = ["sgd", "constant", "erm"]


def check_problem(
    tasks: TaskSet, reg: float, loss: str | Loss, inner: str
) -> tuple[Loss, Objective]:
    """The loss and the objective, if the labels and the other arguments suit them."""
    check_choice("inner", inner, INNER)
    chosen = get_loss(loss)
    objective = chosen.regularised(reg, inner)
    chosen.check_labels(tasks.y, tasks.place)
    return chosen, objective


def task_weights(
    tasks: Tasks,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    inner: str = "sgd",
    predictor: str = "average",
    order: str = "stream",
    random_state: object = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """The weights of every task after the inner algorithm from one bias.

    Parameters
    ----------
    tasks : TaskSet, or list of pairs (X, y)
    bias : array-like of shape (d,)
    reg, loss, inner, order, random_state
        As in `learn_bias`.
    predictor : {"average", "last", "suffix", "poly"}
        What Algorithm 1 returns, see `weights_from_dual`, and what the constant step does:
        the same means of its iterates. Of no meaning for ``"erm"``.
    n_jobs : int, optional
        Threads over the tasks; -1 for all cores.

    Returns
    -------
    array of shape (tasks, d)

    Examples
    --------
    >>> print(task_weights([([[1.0]], [2.0])], bias=[1.0], reg=0.5, inner="erm"))
    [[2.]]
    """
    task_set = as_task_set(tasks)
    _, objective = check_problem(task_set, reg, loss, inner)
    check_choice("predictor", predictor, PREDICTORS)
    check_choice("order", order, ORDERS)
    h, jobs = check_bias("bias", bias, task_set.n_features), check_jobs(n_jobs)
    if inner == "erm":
        return erm_weights(task_set, h, objective, jobs)
    constant = inner == "constant"
    return sgd_weights(task_set, h, objective, predictor, order, random_state, jobs, constant)


@kernel
def _query_loss(rows: Rows, form: Form, W: FloatArray, first: int, last: int, out: Vector) -> None:
    X, y = rows.X, rows.y
    for t in range(first, last):
        begin, end = rows.offsets[t], rows.offsets[t + 1]
        total = 0.0
        for i in range(begin, end):
            z = 0.0
            for j in range(X.shape[1]):
                z += np.float64(X[i, j]) * W[t, j]
            total += phi(form, score(form, z, y[i]))
        out[t] = total / (end - begin)


def query_losses(queries: TaskSet, form: Form, W: FloatArray, n_jobs: int = 1) -> Vector:
    """The mean loss over each task's queries with that task's row of weights."""
    rows, out = queries.rows(), np.empty(len(queries))
    run_blocks(
        lambda first, last: _query_loss(rows, form, W, first, last, out), len(queries), n_jobs
    )
    return out


def evaluate_bias(
    shots: Tasks,
    queries: Tasks,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    inner: str = "sgd",
    predictor: str = "average",
    order: str = "stream",
    random_state: object = None,
    n_jobs: int | None = None,
) -> Vector:
    """How well tasks do that start from a bias: train on shots, take the mean loss on queries.

    Parameters
    ----------
    shots, queries : TaskSet, or list of pairs (X, y)
        The same tasks in the same order, as `TaskSet.split_rows` gives them.
    bias, reg, loss, inner, predictor, order, random_state, n_jobs
        As in `task_weights`.

    Returns
    -------
    array of shape (tasks,)
        The mean loss over each task's queries.

    Examples
    --------
    >>> shots, queries = [([[1.0]], [2.0])], [([[1.0], [2.0]], [2.0, 5.0])]
    >>> evaluate_bias(shots, queries, bias=[2.0], reg=1.0)
    array([0.5])
    """
    train, test = as_task_set(shots), as_task_set(queries)
    check_same_tasks(train, test)
    chosen, _ = check_problem(test, reg, loss, inner)
    W = task_weights(train, bias, reg, loss, inner, predictor, order, random_state, n_jobs)
    return query_losses(test, chosen.form, W, check_jobs(n_jobs))
