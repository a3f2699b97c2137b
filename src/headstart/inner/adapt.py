"""Tasks that start from one bias: their weights, and how well they do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.answers import check_answer
from headstart._core.checks import FloatArray, Vector, check_bias, check_choice, check_jobs
from headstart._core.jit import kernel, run_blocks
from headstart.inner.algorithm import Visit
from headstart.inner.own import InnerFunction, find_inner
from headstart.inner.sgd import PREDICTORS
from headstart.losses import Form, Loss, get_loss
from headstart.losses.scalar import phi, score
from headstart.tasks import ORDERS, Rows, Tasks, TaskSet, as_task_set, check_same_tasks
from headstart.tasks.rows import dot_at


def task_weights(
    tasks: Tasks,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    inner: str | InnerFunction = "sgd",
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
        the same means of its iterates. Of no meaning for ``"erm"`` and for a function.
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
    task_set, chosen = as_task_set(tasks), get_loss(loss)
    algorithm = find_inner(inner, chosen)
    objective = chosen.regularised(reg, algorithm.name)
    chosen.check_labels(task_set.y, task_set.place)
    check_choice("predictor", predictor, PREDICTORS)
    check_choice("order", order, ORDERS)
    h = check_bias("bias", bias, task_set.n_features)
    visit = Visit(predictor, order, random_state, check_jobs(n_jobs))
    return check_answer(algorithm.weights(task_set, h, objective, visit), "tasks, bias, reg")


@kernel
def _query_loss(rows: Rows, form: Form, W: FloatArray, first: int, last: int, out: Vector) -> None:
    X, y = rows.X, rows.y
    for t in range(first, last):
        begin, end = rows.offsets[t], rows.offsets[t + 1]
        total = 0.0
        for i in range(begin, end):
            total += phi(form, score(form, dot_at(X, i, W, t), y[i]))
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
    inner: str | InnerFunction = "sgd",
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
    chosen = get_loss(loss)
    chosen.check_labels(test.y, test.place)
    W = task_weights(train, bias, reg, loss, inner, predictor, order, random_state, n_jobs)
    losses = query_losses(test, chosen.form, W, check_jobs(n_jobs))
    return check_answer(losses, "shots, queries, bias, reg")
