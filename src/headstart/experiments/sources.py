"""Where the tasks of an experiment come from: drawn from an environment, or dealt from data.

A source of one's own is a subclass of `Source` with one method, `draw`. Two kinds are ready:
`Drawn` takes any environment, `Dealt` any data set of shots and queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

from headstart._core.checks import Vector, check_number
from headstart.datasets import EXAM_SCHOOLS, LENK_PEOPLE, load_exam, load_lenk
from headstart.tasks import TaskSet, check_same_tasks

Pair = tuple[TaskSet, TaskSet]


class Sizes(NamedTuple):
    """How much is to be drawn: tasks of each part, and rows of a task.

    None for rows means as many as the source has.
    """

    n_tasks: int
    n_valid: int
    n_test: int
    n_shots: int | None = None
    n_queries: int | None = None


@dataclass(frozen=True)
class Data:
    """What a repetition works on: the oracle's bias is None where it is unknown."""

    train: TaskSet
    valid: Pair
    test: Pair
    oracle_bias: Vector | None = None


class Source(ABC):
    """Gives the tasks of a repetition of an experiment.

    Its ``repr`` must say all that its tasks depend on: finished pieces of work are told apart by
    it. A frozen dataclass has such a ``repr`` by itself.

    Attributes
    ----------
    n_available : how many tasks there are in all, None if they can be drawn without end
    has_mean : whether `Data.oracle_bias` is given, which the methods MEAN need
    about : a sentence or two on the tasks, for the report
    """

    n_available: int | None = None
    has_mean: bool = False

    @property
    def about(self) -> str:
        """What a reader of the report must know of the tasks."""
        return repr(self)

    @abstractmethod
    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        """The tasks of a repetition; the same generator gives the same tasks."""


class _HasTasks(Protocol):
    @property
    def tasks(self) -> TaskSet: ...


class Drawable(Protocol):
    """What `Drawn` asks of an environment."""

    @property
    def oracle_bias(self) -> Vector:
        """The bias of the methods MEAN."""

    def draw(self, n_tasks: int, n_rows: int, random_state: object) -> _HasTasks:
        """So many tasks of so many rows."""


@dataclass(frozen=True)
class Drawn(Source):
    """Tasks of an environment, see `headstart.environments`."""

    environment: Drawable
    has_mean = True

    @property
    def about(self) -> str:
        """What the environment says of itself."""
        return str(getattr(self.environment, "about", repr(self.environment)))

    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        """Training tasks of shots alone; validation and test tasks of shots and queries."""
        if sizes.n_shots is None or sizes.n_queries is None:
            raise ValueError("n_shots, n_queries: expected numbers for tasks that are drawn")
        draw, rows = self.environment.draw, sizes.n_shots + sizes.n_queries
        return Data(
            draw(sizes.n_tasks, sizes.n_shots, rng).tasks,
            draw(sizes.n_valid, rows, rng).tasks.split_rows(sizes.n_shots),
            draw(sizes.n_test, rows, rng).tasks.split_rows(sizes.n_shots),
            self.environment.oracle_bias,
        )


class Dealt(Source):
    """A data set of one's own: each repetition deals its tasks to train, valid and test anew.

    Parameters
    ----------
    name : str
    shots, queries : TaskSet
        The same tasks in the same order, as `TaskSet.split_rows` gives them.
    """

    def __init__(self, name: str, shots: TaskSet, queries: TaskSet) -> None:
        check_same_tasks(shots, queries)
        self.name, self.shots, self.queries = name, shots, queries
        self.n_available = len(shots)
        digest = blake2b(digest_size=8)
        for tasks in (shots, queries):
            for array in (tasks.X, tasks.y, tasks.offsets):
                digest.update(np.ascontiguousarray(array).tobytes())
        self._digest = digest.hexdigest()

    def __repr__(self) -> str:
        return f"Dealt({self.name!r}, {self.n_available} tasks, digest {self._digest})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dealt) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def about(self) -> str:
        """How many tasks it has."""
        return f"{self.name}: {self.n_available} tasks, dealt anew in each run."

    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        """Deal the tasks."""
        return deal(self.shots, self.queries, sizes, rng)


@dataclass(frozen=True)
class Lenk(Source):
    """The computer survey of the paper; ratings of at least `threshold` are the class +1."""

    threshold: float | None = None
    n_available = LENK_PEOPLE

    @property
    def about(self) -> str:
        """What was asked of whom."""
        label = (
            "the label is the rating, from 0 to 10"
            if self.threshold is None
            else f"the label is +1 for ratings of at least {self.threshold:g} (the authors' code; "
            f"the paper says above {self.threshold:g})"
        )
        return (
            f"{LENK_PEOPLE} people, each a task, rated 20 computers by 13 attributes; {label}. "
            "The first 8 of 16 computers are learned from, 4 others tested on. People are dealt "
            "anew in each run."
        )

    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        """Deal the people."""
        return deal(*load_lenk(self.threshold), sizes, rng)


@dataclass(frozen=True)
class Exam(Source):
    """Exam scores by school; of each school's rows a random `share` is learned from.

    The conventional protocol of the school data: three quarters to train, a quarter to test.
    """

    share: float = 0.75
    n_available = EXAM_SCHOOLS

    def __post_init__(self) -> None:
        check_number("share", self.share, above=0.0, below=1.0)

    @property
    def about(self) -> str:
        """What is predicted, for whom."""
        return (
            f"Standardised exam scores of 4,059 pupils in {EXAM_SCHOOLS} schools of inner London, "
            "each a task, by intake score, bands, sex and the school's average and kind. Of each "
            f"school's pupils {100 * self.share:g} % are learned from and the others tested on; "
            "rows and schools are dealt anew in each run."
        )

    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        """Deal the rows of each school, then the schools."""
        pupils = load_exam()
        shots, queries = [], []
        for X, y in pupils:
            order = rng.permutation(len(y))
            cut = min(max(round(self.share * len(y)), 1), len(y) - 1)
            shots.append((X[order[:cut]], y[order[:cut]]))
            queries.append((X[order[cut:]], y[order[cut:]]))
        return deal(TaskSet.from_list(shots), TaskSet.from_list(queries), sizes, rng)


def deal(shots: TaskSet, queries: TaskSet, sizes: Sizes, rng: np.random.Generator) -> Data:
    r"""Tasks dealt at random to train, valid and test; none is in two of them.

    Examples
    --------
    >>> tasks = TaskSet.from_list([([[1.0], [2.0]], [1.0, 2.0])] * 5)
    >>> data = deal(*tasks.split_rows(1), Sizes(2, 1, 1), np.random.default_rng(0))
    >>> print(data.train, data.test[1], sep="\n")
    TaskSet(2 tasks, 2 rows, 1 feature, 1 to 1 rows a task)
    TaskSet(1 task, 1 row, 1 feature, 1 to 1 rows a task)
    """
    counts = sizes[:3]
    if sum(counts) > len(shots):
        raise ValueError(
            f"n_tasks, n_valid, n_test: expected at most {len(shots)} tasks in all, which the "
            f"data has, found {' + '.join(map(str, counts))}"
        )
    shots, queries = _first(shots, sizes.n_shots, "shots"), _first(queries, sizes.n_queries, "")
    parts = np.split(rng.permutation(len(shots))[: sum(counts)], np.cumsum(counts)[:-1])
    train, valid, test = ((shots.subset(part), queries.subset(part)) for part in parts)
    return Data(train[0], valid, test)


def _first(tasks: TaskSet, rows: int | None, which: str) -> TaskSet:
    """The first rows of each task; all if None."""
    if rows is None or np.all(tasks.sizes == rows):
        return tasks
    if np.any(tasks.sizes < rows):
        raise ValueError(
            f"n_{which or 'queries'}: expected at most {tasks.sizes.min()}, the rows of the "
            f"smallest task, found {rows}"
        )
    cuts = tasks.offsets[:-1, None] + np.arange(rows)
    return TaskSet.of(
        tasks.X[cuts.ravel()], tasks.y[cuts.ravel()], np.arange(len(tasks) + 1) * rows, tasks.ids
    )
