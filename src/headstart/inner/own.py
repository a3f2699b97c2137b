"""A within-task algorithm of one's own: a function that no kernel knows, slow but general."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.checks import FloatArray, Vector, check_array
from headstart.inner.algorithm import Compiled, Inner, Visit, get_inner
from headstart.inner.erm import Unsolved
from headstart.losses import Loss, Objective
from headstart.tasks import TaskSet

InnerFunction = Callable[..., tuple[ArrayLike, ArrayLike | None]]  # of X, y, bias, reg and loss


class OwnInner(Inner):
    r"""The algorithm that a function is: ``function(X, y, bias, reg, loss)``.

    It gives the weights of a task, and its dual: a subgradient :math:`u_i` for each row, so that
    the meta-gradient is :math:`X^\top u/n`. Instead of the dual it may give None, where the
    meta-gradient is :math:`\lambda(h - w)`.

    Examples
    --------
    >>> from headstart import learn_bias
    >>> def ridge(X, y, bias, reg, loss):
    ...     gram = X.T @ X / len(y) + reg * np.eye(len(bias))
    ...     return np.linalg.solve(gram, X.T @ y / len(y) + reg * bias), None
    >>> tasks = [([[1.0], [2.0]], [2.0, 4.0]), ([[1.0]], [3.0])]
    >>> print(learn_bias(tasks, reg=1.0, step=1.0, loss="squared", inner=ridge).bias.round(3))
    [1.214]
    """

    name = "own"
    everywhere = True

    def __init__(self, function: InnerFunction, loss: Loss) -> None:
        self.function, self.loss = function, loss

    def check(self, tasks: TaskSet) -> None:
        """Raise if the rows are sparse."""
        if tasks.sparse:
            raise ValueError(
                "inner: a function of one's own needs dense rows, found sparse ones; use 'sgd' or "
                "'constant'"
            )

    def weights(
        self,
        tasks: TaskSet,
        bias: Vector,
        objective: Objective,
        visit: Visit = Visit(),  # noqa: B008
        unsolved: Unsolved | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """The weights of every task from one bias, one task after another."""
        self.check(tasks)
        visited = self.visited(tasks, visit.order, visit.random_state)
        out = np.empty((len(tasks), tasks.n_features), tasks.dtype)
        for t in range(len(tasks)):
            out[t], _ = self._solved(visited, t, bias, objective.lam)
        return out

    def visited(self, tasks: TaskSet, order: str, random_state: object) -> TaskSet:
        """The tasks with the rows that are visited in their place."""
        return tasks if order == "stream" else tasks.resampled(random_state)

    def gradient(self, tasks: TaskSet, t: int, bias: Vector, lam: float) -> Vector:
        """The meta-gradient of task t."""
        w, u = self._solved(tasks, t, bias, lam)
        X = np.asarray(tasks[t][0], np.float64)
        return lam * (bias - w) if u is None else np.asarray(X.T @ u / len(u), np.float64)

    def _solved(
        self, tasks: TaskSet, t: int, bias: Vector, lam: float
    ) -> tuple[Vector, Vector | None]:
        """What the function gives for task t, checked."""
        X, y = tasks.X[tasks.offsets[t] : tasks.offsets[t + 1]], tasks[t][1]
        try:
            answer = self.function(X, y, bias.copy(), lam, self.loss)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside the function, whose fault it is
            raise TypeError(
                f"inner: expected a function of (X, y, bias, reg, loss), found one that does not "
                f"take these: {error}"
            ) from None
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(
                "inner: expected a function that gives a pair (weights, dual), found one that "
                f"gives {type(answer).__name__}"
            )
        w = check_array("inner: weights", answer[0], None).astype(np.float64)
        u = (
            None
            if answer[1] is None
            else check_array("inner: dual", answer[1], None).astype(np.float64)
        )
        for name, found, size in (("weights", w, bias.size), ("dual", u, len(y))):
            if found is not None and found.shape != (size,):
                raise ValueError(f"inner: {name}: expected shape {(size,)}, found {found.shape}")
        return w, u


def find_inner(
    inner: str | InnerFunction, loss: Loss, argument: str = "inner"
) -> Compiled | OwnInner:
    """The algorithm of this name, or that a function is."""
    if callable(inner):
        return OwnInner(inner, loss)
    return get_inner(inner, argument)
