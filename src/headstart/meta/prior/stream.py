r"""The prior from a stream of tasks of which nothing may be kept.

The first tasks give a prior and the units of the columns. Task number k then finds its posterior
(w, V) from the prior of the moment, a row at a time, and moves it by :math:`g = k^{-\alpha}`:

.. math:: h \leftarrow h + g(w-h), \qquad
          C \leftarrow (1-g)\bigl(C + g(w-h)(w-h)^\top\bigr) + gV,

and the mean loss of a row likewise, which says how noisy rows are. The estimate is the mean of
all priors so far, weighted by :math:`k^8`: of the newest ninth, more or less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.answers import check_answer, quietly
from headstart._core.assign import assign
from headstart._core.checks import Vector, check_choice, check_flag
from headstart._core.jit import kernel
from headstart.inner.posterior import packed
from headstart.inner.posterior.follow import follow_rows
from headstart.inner.start import Start
from headstart.losses import Form, Loss, get_loss
from headstart.meta.prior.goal import chosen_metric
from headstart.meta.prior.learn import learn_prior
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.units import METRICS
from headstart.tasks import Tasks, TaskSet, as_task_set
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]

FIRST = 32  # tasks that are kept until there is a prior
ALPHA = 0.7
GROWTH = 8.0  # of the weights in the average
GRID = np.linspace(-12.0, 12.0, 97)  # mean losses over the first one, as logarithms


class Moving(NamedTuple):
    """What a task moves: h and the log of the mean loss of a row, C; and their averages."""

    h: Vector
    C: Matrix
    lost: Vector
    mean_h: Vector
    mean_c: Matrix
    mean_lost: Vector


@kernel
def _shaped(C: Matrix, metric: int, shrink: float, V: Matrix) -> None:
    """C in the shape of the metric: full and shrunk, its diagonal, or the mean of that."""
    k = len(C)
    middle = 0.0
    for j in range(k):
        middle += C[j, j] / k
    for j in range(k):
        for m in range(k):
            V[j, m] = C[j, m] * (1.0 - shrink) if metric == 2 else 0.0
        V[j, j] = middle if metric == 0 else C[j, j]


@kernel
def _noise(lost: float, noises: Matrix) -> float:
    """The noise that belongs to a mean loss, by a table of both as logarithms."""
    first, step = noises[0, 0], noises[0, 1] - noises[0, 0]
    place = min(max((math.log(lost) - first) / step, 0.0), noises.shape[1] - 1.000001)
    i = int(place)
    return math.exp(noises[1, i] + (place - i) * (noises[1, i + 1] - noises[1, i]))


@kernel
def _follow_tasks(
    X: Matrix,
    y: Vector,
    offsets: NDArray[np.int64],
    form: Form,
    metric: int,
    noises: Matrix,
    seen: int,
    state: Moving,
) -> None:
    """Move the prior by each task in turn."""
    h, C, lost, mean_h, mean_c, mean_lost = state
    k = h.size
    w, V, share = np.empty(k), np.empty((k, k)), np.ones(len(y))
    for t in range(len(offsets) - 1):
        number = seen + t + 1
        _shaped(C, metric, 2.0 * k / (2.0 * k + number), V)
        assign(w, h)
        b = 1.0 if form.margin else _noise(lost[0], noises)
        begin, end = offsets[t], offsets[t + 1]
        loss = follow_rows(X, y, share, begin, end, form, b, w, V)
        g, part = number**-ALPHA, (1.0 + GROWTH) / (number + GROWTH)
        for j in range(k):
            for m in range(k):
                gone = (w[j] - h[j]) * (w[m] - h[m])
                C[j, m] = (1.0 - g) * (C[j, m] + g * gone) + g * V[j, m]
                mean_c[j, m] += part * (C[j, m] - mean_c[j, m])
        for j in range(k):
            h[j] += g * (w[j] - h[j])
            mean_h[j] += part * (h[j] - mean_h[j])
        lost[0] += g * (loss / (end - begin) - lost[0])
        mean_lost[0] += part * (lost[0] - mean_lost[0])


class PriorState(NamedTuple):
    """A prior in progress, between two batches of tasks.

    `start_prior` makes one and `continue_prior` takes it further; `prior` is the estimate so far.
    Any cutting of the same tasks into batches gives the same bits. Nothing is kept of a task,
    but for the first 32, which are there until the prior learned from them is.

    Attributes
    ----------
    loss, metric, fit_intercept : as in `learn_prior`
    n_tasks : how many tasks were seen
    """

    loss: Loss
    metric: str
    fit_intercept: bool
    n_tasks: int
    waiting: tuple[TaskSet, ...] = ()
    columns: Columns | None = None
    noises: Matrix = np.zeros((2, 2))
    moving: Moving | None = None

    @property
    def prior(self) -> Prior:
        """The estimate; of the first tasks, what `learn_prior` makes of them."""
        if self.moving is None or self.columns is None:
            if not self.waiting:
                raise ValueError("state: expected at least one task, found none")
            return learn_prior(_joined(self.waiting), self.loss, self.metric,
                               fit_intercept=self.fit_intercept)  # fmt: skip
        state, k = self.moving, self.moving.h.size
        V, shape = np.empty((k, k)), chosen_metric(self.metric, self.moving.h.size)
        _shaped(state.mean_c, METRICS.index(shape), 2.0 * k / (2.0 * k + self.n_tasks), V)
        noise = 1.0 if self.loss.binary else self.loss.fit_noise(float(state.mean_lost[0]))
        values, Q = np.linalg.eigh(V)
        whole, precision = np.empty((0, 0)), np.empty(0)
        if shape == "full":
            whole, precision = V, packed((Q / values) @ Q.T)
        log_det, effects = float(np.log(values).sum()), state.mean_h[:, None]
        start = Start(effects, np.diag(V).copy(), whole, precision, log_det, noise)
        return Prior.learned(start, self.columns, self.loss, shape, self.n_tasks, converged=True)


def start_prior(
    loss: str | Loss = "squared", metric: str = "auto", *, fit_intercept: bool = False
) -> PriorState:
    """The state before the first task; parameters as in `learn_prior`."""
    chosen = get_loss(loss)
    chosen.check_inner("posterior")
    check_flag("fit_intercept", fit_intercept)
    check_choice("metric", metric, ["auto", *METRICS])
    return PriorState(chosen, metric, fit_intercept, 0)


def continue_prior(state: PriorState, tasks: Tasks) -> PriorState:
    """The state after these tasks too, each of which is seen once.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> state = start_prior()
    >>> for _ in range(500):
    ...     X, w = rng.standard_normal((10, 2)), rng.normal([4.0, -2.0], [1.0, 0.1])
    ...     state = continue_prior(state, [(X, X @ w + 0.5 * rng.standard_normal(10))])
    >>> print(state.n_tasks, state.prior.bias.round(1))
    500 [ 4.1 -2. ]
    """
    if not isinstance(state, PriorState):
        raise TypeError(
            "state: expected a PriorState from start_prior or continue_prior, "
            f"found {type(state).__name__}"
        )
    task_set = as_task_set(tasks)
    state.loss.check_labels(task_set.y, task_set.place)
    if state.waiting and task_set.n_features != state.waiting[0].n_features:
        raise ValueError(
            f"tasks: expected {state.waiting[0].n_features} features as before, "
            f"found {task_set.n_features}"
        )
    if state.moving is None:
        missing = FIRST - state.n_tasks
        first = _copied(task_set.subset(range(min(missing, len(task_set)))))
        state = state._replace(waiting=(*state.waiting, first), n_tasks=state.n_tasks + len(first))
        if state.n_tasks < FIRST:
            return state
        state = _opened(state)
        if len(task_set) == missing:
            return state
        task_set = task_set.subset(range(missing, len(task_set)))
    return _moved(state, task_set)


def _opened(state: PriorState) -> PriorState:
    """The state with the prior of the first tasks, which are no longer needed."""
    prior = state.prior
    start, columns = prior.standard, prior.columns
    h = start.bias.copy()
    C = np.diag(start.variances) if len(start.covariance) == 0 else start.covariance.copy()
    lost, noises = np.ones(1), state.noises
    if not state.loss.binary:
        lost[0] = state.loss.mean_loss(prior.noise)
        losses = lost[0] * np.exp(GRID)
        noises = np.log([losses, [state.loss.fit_noise(loss) for loss in losses.tolist()]])
    moving = Moving(h, C, lost, h.copy(), C.copy(), lost.copy())
    return state._replace(waiting=(), columns=columns, noises=noises, moving=moving)


def _copied(tasks: TaskSet) -> TaskSet:
    """The same in memory of its own: the caller may use theirs again."""
    return TaskSet.of(tasks.X.copy(), tasks.y.copy(), tasks.offsets, tasks.ids)


def _joined(sets: tuple[TaskSet, ...]) -> TaskSet:
    return TaskSet.from_list([task for some in sets for task in some])


def _moved(state: PriorState, tasks: TaskSet) -> PriorState:
    columns, moving = state.columns, state.moving
    if columns is None or moving is None:
        raise TypeError("state: expected one with a prior")
    if tasks.n_features != columns.centre.size:
        raise ValueError(
            f"tasks: expected {columns.centre.size} features as before, found {tasks.n_features}"
        )
    after = Moving(*(part.copy() for part in moving))
    shape = METRICS.index(chosen_metric(state.metric, columns.width))
    with quietly():
        rows, labels = columns.rows(tasks.X), columns.labels(tasks.y)
    _follow_tasks(
        rows, labels, tasks.offsets, state.loss.form, shape, state.noises, state.n_tasks, after
    )
    check_answer(tuple(after), "tasks")
    return state._replace(n_tasks=state.n_tasks + len(tasks), moving=after)
