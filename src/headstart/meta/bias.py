r"""Learning the bias from a stream of tasks: Algorithm 2 of the paper.

Task t gives the meta-gradient :math:`\hat\nabla_t = -\lambda(w_t - h_t)`, with ``w_t`` the last
iterate of Algorithm 1 (``inner="sgd"``), or of constant steps (``inner="constant"``), or the
exact solution (``inner="erm"``), and

.. math:: h_{t+1} = h_t - \gamma\hat\nabla_t .

After T tasks the estimate is the mean of ``h_1, ..., h_{T+1}``: the paper averages
``h_1, ..., h_T``, which leaves the newest task unused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import (
    FloatArray,
    Vector,
    check_bias,
    check_count,
    check_generator,
    check_jobs,
    check_number,
    cores,
)
from headstart._core.jit import kernel
from headstart.inner import Compiled, InnerFunction, OwnInner, add_gradient, find_inner
from headstart.inner.algorithm import exact_target
from headstart.inner.erm import warn_of_gaps
from headstart.losses import Loss, Objective, get_loss
from headstart.meta.minibatch import take_rounds
from headstart.meta.own_steps import take_own_steps
from headstart.meta.step import Iterates, close_total, open_total, step_along
from headstart.tasks import Rows, Tasks, TaskSet, TaskStream, as_task_set

MOST_COLUMNS = 1 << 30  # 8 GiB for a bias; columns of sparse rows are 32-bit numbers
TASKS_A_CALL = 1 << 16  # then back to Python, where an interrupt can be noticed


class BiasResult(NamedTuple):
    """A learned bias.

    Attributes
    ----------
    bias : the estimate, the mean of ``h_1, ..., h_{T+1}``
    last : ``h_{T+1}``
    path : ``h_1, ..., h_{T+1}`` as rows if it was kept, else None
    """

    bias: FloatArray
    last: FloatArray
    path: FloatArray | None


class BiasState(NamedTuple):
    """Algorithm 2 in progress, between two batches of tasks.

    `start_bias` makes one and `continue_bias` takes it further. Cutting a stream of tasks at
    any multiple of `batch_size` and continuing gives the bits of one uncut run; with
    ``order="resample"``, if all calls share one `numpy.random.Generator`.

    Attributes
    ----------
    last : the newest iterate h
    total : the sum of all iterates so far
    steps : number of updates made
    """

    last: Vector
    total: Vector
    steps: int

    @property
    def bias(self) -> Vector:
        """The estimate: the mean of all iterates so far."""
        return self.total / (self.steps + 1)


def start_bias(n_features: int, initial: ArrayLike | None = None) -> BiasState:
    """The state before the first task, with ``h_1 = initial`` or 0."""
    d = check_count("n_features", n_features, at_most=MOST_COLUMNS)
    if initial is None:
        return BiasState(np.zeros(d), np.zeros(d), 0)  # which take no memory until they are used
    h = check_bias("initial", initial, d)
    return BiasState(h, h.copy(), 0)


@kernel
def _one_by_one(
    rows: Rows,
    objective: Objective,
    work: NamedTuple,
    step: float,
    seen: int,
    first: int,
    last: int,
    iterates: Iterates,
) -> None:
    """Algorithm 2 over the tasks from `first` to before `last`, `seen` of them being done."""
    X, offsets = rows.X, rows.offsets
    h, total, S, path = iterates
    open_total(X, seen + 1, h, total)
    for t in range(first, last):
        seen += 1
        multiple = add_gradient(work, rows, t, objective, h, S)
        step_along(X, offsets[t], offsets[t + 1], step / multiple, seen, S, h, total)
        if len(path) > 0:
            for j in range(h.size):
                path[t + 1, j] = h[j]
    close_total(X, seen + 1, h, total)


@dataclass(frozen=True)
class Descent:
    """Algorithm 2 with all its settings; those of `learn_bias`, already checked."""

    loss: Loss
    objective: Objective
    inner: Compiled | OwnInner
    step: float
    batch_size: int
    order: str
    random_state: object
    n_jobs: int

    @classmethod
    def of(
        cls,
        reg: float,
        step: float,
        loss: str | Loss,
        inner: str | InnerFunction,
        batch_size: int,
        order: str,
        random_state: object,
        n_jobs: int | None,
    ) -> Descent:
        """The settings as users give them, checked."""
        chosen = get_loss(loss)
        algorithm = find_inner(inner, chosen)
        objective = chosen.regularised(reg, algorithm.name)
        rate = check_number("step", step, at_least=0.0)
        batch = check_count("batch_size", batch_size)
        jobs = min(check_jobs(n_jobs), cores())  # waiting members keep a core busy
        return cls(chosen, objective, algorithm, rate, batch, order, random_state, jobs)

    def advance(self, state: BiasState, tasks: TaskSet, path: FloatArray) -> BiasState:
        """The state after these tasks too; iterates are put into the rows of `path`, if any."""
        self.loss.check_labels(tasks.y, tasks.place)
        self.inner.check(tasks)
        if isinstance(self.inner, OwnInner):
            visited = self.inner.visited(tasks, self.order, self.random_state)
            iterates = Iterates.of(state.last, state.total, path, visited.X)
            size = self.batch_size
            take_own_steps(visited, self.objective, self.inner, size, self.step, iterates)
        else:
            iterates = self._advance_compiled(self.inner, state, tasks, path)
        h, total = iterates.h, iterates.total
        if not np.isfinite(total).all():
            raise ValueError(
                f"step: the bias grew beyond all numbers with step {self.step:g} and reg "
                f"{self.objective.lam:g}; use a smaller step, a larger reg, or scale the columns "
                "of X"
            )
        return BiasState(h.copy(), total.copy(), state.steps + -(-len(tasks) // self.batch_size))

    def _advance_compiled(
        self, inner: Compiled, state: BiasState, tasks: TaskSet, path: FloatArray
    ) -> Iterates:
        rows, gaps = tasks.rows(self.order, self.random_state), np.zeros(len(tasks))
        iterates = Iterates.of(state.last, state.total, path, rows.X)
        width = iterates.h.size
        if self.batch_size == 1:
            work = inner.work(rows, self.objective, width, gaps)
            for first in range(0, len(tasks), TASKS_A_CALL):
                last, seen = min(first + TASKS_A_CALL, len(tasks)), state.steps + first
                _one_by_one(rows, self.objective, work, self.step, seen, first, last, iterates)
        else:
            size = min(self.batch_size, len(tasks))
            take_rounds(rows, self.objective, inner, size, self.step, iterates, gaps, self.n_jobs)
        warn_of_gaps(gaps, exact_target(self.objective.lam))
        return iterates


def continue_bias(
    state: BiasState,
    tasks: Tasks,
    reg: float,
    step: float,
    loss: str | Loss = "absolute",
    inner: str | InnerFunction = "sgd",
    batch_size: int = 1,
    order: str = "stream",
    random_state: object = None,
    n_jobs: int | None = None,
) -> BiasState:
    """The state of Algorithm 2 after these tasks too; parameters as in `learn_bias`.

    Examples
    --------
    >>> tasks = TaskSet.from_list([([[1.0]], [2.0]), ([[1.0]], [3.0])])
    >>> state = start_bias(n_features=1)
    >>> for task in tasks:
    ...     state = continue_bias(state, [task], reg=1.0, step=1.0)
    >>> print(state.bias, learn_bias(tasks, reg=1.0, step=1.0).bias)
    [1.] [1.]
    """
    task_set = as_task_set(tasks)
    if not isinstance(state, BiasState):
        raise TypeError(
            "state: expected a BiasState from start_bias or continue_bias, "
            f"found {type(state).__name__}"
        )
    if task_set.n_features != state.last.size:
        raise ValueError(
            f"tasks: expected {state.last.size} features as in the state, "
            f"found {task_set.n_features}"
        )
    descent = Descent.of(reg, step, loss, inner, batch_size, order, random_state, n_jobs)
    return descent.advance(state, task_set, np.empty((0, state.last.size)))


def learn_bias(
    tasks: Tasks | TaskStream,
    reg: float,
    step: float,
    loss: str | Loss = "absolute",
    inner: str | InnerFunction = "sgd",
    initial: ArrayLike | None = None,
    batch_size: int = 1,
    order: str = "stream",
    random_state: object = None,
    keep_path: bool = False,
    n_jobs: int | None = None,
) -> BiasResult:
    r"""Learn one bias from a stream of tasks, taken once and in order (Algorithm 2).

    Parameters
    ----------
    tasks : TaskSet, list of pairs (X, y), or ParquetRows
        Sizes may differ from task to task. A dataset on disk is read in batches.
    reg : float > 0
        Within-task regularisation :math:`\lambda`.
    step : float >= 0
        Meta step size :math:`\gamma`.
    loss : str or Loss
        One of `LOSSES`: "absolute", "epsilon_insensitive", "pinball", "huber" for numbers,
        "hinge", "smoothed_hinge", "logistic" for labels -1 and +1; or an instance with its
        parameter.
    inner : {"sgd", "constant", "erm"}, or function of (X, y, bias, reg, loss)
        Where meta-gradients come from: one pass of Algorithm 1; one pass of constant steps,
        :math:`w_{k+1} = w_k - u_k x_k/(n\lambda)` from :math:`w_1 = h`; or exact solutions. The
        second is what is known as fine tuning, and its mean loss while it learns is at most
        :math:`\min_w [\frac1n\sum_i\ell_i(\langle x_i, w\rangle) + \frac\lambda2\|w-h\|^2]
        + \frac{1}{2\lambda n^2}\sum_k u_k^2\|x_k\|^2`, without the logarithm of Algorithm 1.
        A function is an algorithm of one's own for one task: it gives the weights and the dual,
        a subgradient for each row, or None for :math:`u` with :math:`X^\top u/n = \lambda(h-w)`.
        It is called once for each task, by one thread.
    initial : array-like of shape (d,), optional
        ``h_1``; 0 by default.
    batch_size : int
        Tasks per update: their gradients are taken at one bias and averaged. Another
        algorithm than one task at a time: fewer, less noisy steps, which can be shared
        by threads. The last batch may be smaller.
    order : {"stream", "resample"}
        Which rows a pass visits, see `biased_sgd`. Exact solutions do not depend on it.
    random_state : None, int or numpy.random.Generator
        Used by ``order="resample"``.
    keep_path : bool
        Keep every iterate.
    n_jobs : int, optional
        Threads, of use when `batch_size` is above 32; -1 for all cores. The result has
        the same bits for any number.

    Returns
    -------
    BiasResult
        ``bias``, the mean of all iterates ``h_1, ..., h_{T+1}``; ``last``; and ``path``
        of shape (T + 1, d) if kept, T being the number of updates.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 10, 3))
    >>> w = [4.0, -2.0, 1.0] + 0.1 * rng.standard_normal((500, 3))
    >>> tasks = TaskSet.from_list([(x, x @ v) for x, v in zip(X, w)])
    >>> learn_bias(tasks, reg=1.0, step=0.1).bias.round(1)
    array([ 3.7, -1.9,  0.9])
    """
    descent = Descent.of(reg, step, loss, inner, batch_size, order, random_state, n_jobs)
    if isinstance(tasks, TaskStream):
        return _learn_stream(tasks, descent, initial, keep_path)
    task_set = as_task_set(tasks)
    state, dtype = start_bias(task_set.n_features, initial), task_set.dtype
    n_rounds = -(-len(task_set) // descent.batch_size)
    path = np.empty((n_rounds + 1 if keep_path else 0, task_set.n_features), dtype)
    if keep_path:
        path[0] = state.last
    state = descent.advance(state, task_set, path)
    return _result(state, dtype, path if keep_path else None)


def _learn_stream(
    tasks: TaskStream, descent: Descent, initial: ArrayLike | None, keep_path: bool
) -> BiasResult:
    if keep_path:
        raise ValueError("keep_path: the iterates of a dataset on disk are not kept in memory")
    state, dtype = start_bias(tasks.n_features, initial), None
    descent = replace(descent, random_state=check_generator(descent.random_state))
    no_path = np.empty((0, tasks.n_features))
    for batch in tasks.task_sets(descent.batch_size, reuse=True):
        state, dtype = descent.advance(state, batch, no_path), batch.dtype
    return _result(state, dtype, None)


def _result(state: BiasState, dtype: DTypeLike | None, path: FloatArray | None) -> BiasResult:
    with quietly():
        found = BiasResult(state.bias.astype(dtype), state.last.astype(dtype), path)
    return check_answer(found, "tasks, reg, step, initial")
