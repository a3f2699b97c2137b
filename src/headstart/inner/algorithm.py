"""Within-task algorithms as objects: what all of them offer, and which there are.

A name such as ``inner="erm"`` is looked up here and nowhere else. To add an algorithm, write a
class, give the door `add_gradient` a text for its scratch, and put it into `ALGORITHMS`. A
function of a user's needs none of this: see `headstart.inner.own`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from headstart._core.checks import FloatArray, Vector, check_choice
from headstart.inner.erm import TOLERANCE, Unsolved, erm_weights, workspace
from headstart.inner.erm.gradient import Solving
from headstart.inner.sgd import sgd_weights
from headstart.inner.sgd.gradient import Pass
from headstart.losses import Objective
from headstart.tasks import Rows, TaskSet, longest


class Visit(NamedTuple):
    """How the rows of tasks are visited, and what of the iterates is the weights."""

    predictor: str = "average"
    order: str = "stream"
    random_state: object = None
    n_jobs: int = 1


class Inner(ABC):
    """A within-task algorithm.

    Attributes
    ----------
    name : what users call it
    exact : whether it solves a task, all rows at once; the others take rows as they come
    constant : whether its steps have one length
    everywhere : whether selection, which tries many biases at once, and streams of rows have
        kernels for it too; otherwise they refuse it
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    constant: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False

    def check(self, tasks: TaskSet) -> None:
        """Raise if it cannot take these tasks."""
        if self.exact and tasks.sparse:
            raise ValueError(
                f"inner: {self.name!r} needs dense rows, found sparse ones; use 'sgd' or 'constant'"
            )

    def check_everywhere(self, argument: str = "inner") -> None:
        """Raise if it has no kernels for selection and streams."""
        if not self.everywhere:
            raise ValueError(
                f"{argument}: {self.name!r} is there for learn_bias and task_weights alone"
            )

    @abstractmethod
    def weights(
        self,
        tasks: TaskSet,
        bias: Vector,
        objective: Objective,
        visit: Visit = Visit(),  # noqa: B008
        unsolved: Unsolved | None = None,
    ) -> FloatArray:
        """The weights of every task from one bias, shape (tasks, n_features).

        Tasks that are not solved are counted in `unsolved`; if there is none, the user is warned.
        """


class Compiled(Inner):
    """A within-task algorithm that kernels know."""

    @abstractmethod
    def work(self, rows: Rows, objective: Objective, width: int, gaps: Vector) -> NamedTuple:
        """Scratch by which `add_gradient` knows the algorithm; every thread needs its own.

        `gaps` has a 0 for each task, and is where those are found that could not be solved.
        """


class OnePass(Compiled):
    """Algorithm 1 of the paper."""

    name = "sgd"
    everywhere = True

    def weights(
        self,
        tasks: TaskSet,
        bias: Vector,
        objective: Objective,
        visit: Visit = Visit(),  # noqa: B008
        unsolved: Unsolved | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """The weights of every task from one bias."""
        return sgd_weights(tasks, bias, objective, *visit, self.constant)

    def work(
        self,
        rows: Rows,
        objective: Objective,  # noqa: ARG002
        width: int,  # noqa: ARG002
        gaps: Vector,  # noqa: ARG002
    ) -> Pass:
        """Scratch by which `add_gradient` knows the algorithm."""
        return Pass(self.constant, np.empty(longest(rows.offsets, 0, len(rows.offsets) - 1)))


class ConstantStep(OnePass):
    """One pass of constant steps, known as fine tuning."""

    name = "constant"
    constant = True


class Exact(Compiled):
    """The exact solution of a task's regularised problem."""

    name = "erm"
    exact = True
    everywhere = True

    def weights(
        self,
        tasks: TaskSet,
        bias: Vector,
        objective: Objective,
        visit: Visit = Visit(),  # noqa: B008
        unsolved: Unsolved | None = None,
    ) -> FloatArray:
        """The weights of every task from one bias; they depend on no order of rows."""
        self.check(tasks)
        return erm_weights(tasks, bias, objective, visit.n_jobs, unsolved)

    def work(self, rows: Rows, objective: Objective, width: int, gaps: Vector) -> Solving:
        """Scratch by which `add_gradient` knows the algorithm."""
        n, target = longest(rows.offsets, 0, len(gaps)), exact_target(objective.lam)
        return Solving(target, gaps, np.empty(width), np.empty(n), workspace(n, width))


def exact_target(lam: float) -> float:
    """The gap at which a task counts as solved."""
    return TOLERANCE * min(1.0, lam)


ALGORITHMS: dict[str, Compiled] = {a.name: a for a in (OnePass(), ConstantStep(), Exact())}
INNER = list(ALGORITHMS)


def get_inner(name: str, argument: str = "inner") -> Compiled:
    """The algorithm of this name."""
    return ALGORITHMS[check_choice(argument, name, INNER)]
