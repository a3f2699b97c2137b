"""Several environments as one: clusters of tasks, and sequences that no chance made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.checks import Vector, check_choice, check_generator
from headstart.environments.linear import Environment
from headstart.tasks import TaskSet


class MixtureDraw(NamedTuple):
    """Tasks drawn from a mixture, the weights that made their labels, and what is known of each.

    `side` has a row for each task, with a 1 in the column of its part; a task on the way from one
    part to the next has shares of both.
    """

    tasks: TaskSet
    weights: NDArray[np.float64]
    side: NDArray[np.float64]


SEQUENCES = ["random", "alternate", "drift"]


@dataclass(frozen=True)
class Mixture:
    """Several environments as one: clusters of tasks, or a sequence that no chance made.

    Attributes
    ----------
    parts : environments of one kind, that differ in `center` and `task_std` alone
    sequence : ``"random"`` draws the part of each task by chance: clusters. ``"alternate"`` takes
        the parts in turn, and ``"drift"`` goes from the first to the last in as many steps as
        there are tasks: what an adversary would do, for whom Algorithm 2 has a guarantee too
        (`theory.meta_regret`).

    Examples
    --------
    Two clusters, far apart. Who knows the cluster of a task knows where it starts:

    >>> from headstart import learn_prior
    >>> from headstart.environments import RegressionEnvironment
    >>> near, far = (RegressionEnvironment(2, center=c, task_std=0.1) for c in (0.0, (5.0, -5.0)))
    >>> draw = Mixture((near, far)).draw(50, 10, random_state=0)
    >>> print(learn_prior(draw.tasks, side=draw.side[:, 1:]).start([1.0]).round())
    [ 5. -5.]
    """

    parts: tuple[Environment, ...]
    sequence: str = "random"

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple | list):
            raise TypeError(f"parts: expected a tuple of environments, found {self.parts!r}")
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts or not all(isinstance(part, Environment) for part in self.parts):
            raise TypeError(f"parts: expected environments, found {self.parts!r}")
        alike = {replace(part, center=0.0, task_std=0.0) for part in self.parts}
        if len({type(part) for part in self.parts}) > 1 or len(alike) > 1:
            raise ValueError(
                "parts: expected environments of one kind that differ in center and task_std "
                f"alone, found {self.parts!r}"
            )
        check_choice("sequence", self.sequence, SEQUENCES)

    @property
    def oracle_bias(self) -> Vector:
        """The mean of the parts' own."""
        return np.asarray(np.mean([part.oracle_bias for part in self.parts], axis=0), np.float64)

    @property
    def about(self) -> str:
        """What a reader of a report must know of the tasks."""
        how = {"random": "drawn at random", "alternate": "in turn", "drift": "one after another"}
        return f"{len(self.parts)} parts, {how[self.sequence]}. First: {self.parts[0].about}"

    def draw(self, n_tasks: int, n_rows: ArrayLike, random_state: object = None) -> MixtureDraw:
        """Draw tasks of `n_rows` rows each, or with one number of rows for every task."""
        first, k = self.parts[0], len(self.parts)
        T, _ = first.sizes(n_tasks, n_rows)
        rng = check_generator(random_state)
        if self.sequence == "drift":
            place = np.linspace(0.0, k - 1.0, T)[:, None]
            side = np.maximum(1.0 - np.abs(place - np.arange(k)), 0.0)
        else:
            part = rng.integers(k, size=T) if self.sequence == "random" else np.arange(T) % k
            side = np.eye(k)[part]
        means, stds = (
            np.array([getattr(p, name) for p in self.parts]) for name in ("mean", "stds")
        )
        weights = side @ means + (side @ stds) * rng.standard_normal((T, first.n_features))
        return MixtureDraw(first.tasks(weights, n_rows, rng), weights, side)
