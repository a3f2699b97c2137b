"""The paper's stream: the bias by Algorithm 2, and the own weights of every entity from it.

A task opens at its first row with the bias of that moment and gives one meta-gradient when it
closes: after `task_size` rows, or when the stream moves on to another entity. Each entity's own
weights start from the averaged bias of the same moment and are trained by all its rows, also
those after its task has closed. A row without an id is a task of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.answers import quietly
from headstart._core.checks import FloatArray, Vector, read_only
from headstart._core.jit import run_blocks
from headstart._core.saved import named
from headstart.online.bias import CLOSED, NEW, Begin, Bias, Counts, begin_now
from headstart.online.exact import learn_exactly, solve_exactly
from headstart.online.order import task_cuts, task_order
from headstart.online.rows import learn_rows, train_rows
from headstart.online.settings import Rules, Settings
from headstart.online.state import Entities, OpenTasks
from headstart.online.stream import Arrays, Chunk, Positions, Stream
from headstart.tasks import TaskSet
from headstart.tasks.columns import Constant
from headstart.tasks.ids import IdIndex

NOBODY = np.zeros(0, np.int64)


class BiasStream(Stream):
    """A stream that learns the paper's bias.

    Parameters
    ----------
    settings : Settings
    n_features : int
    dtype : of own weights, float32 or float64 as the inputs
    initial : the first bias, d + 1 numbers; 0 by default, and for an intercept if there is none
    ids : the entities it knows

    Examples
    --------
    >>> from headstart.tasks.ids import read_ids
    >>> from headstart.losses import get_loss
    >>> settings = Settings(get_loss("absolute"), reg=1.0, step=1.0, fit_intercept=False)
    >>> stream = BiasStream(settings, n_features=1)
    >>> stream.take(Chunk(np.ones((2, 1)), np.array([2.0, 3.0]), read_ids("ids", ["a", "b"])))
    >>> stream.finish()
    >>> print(stream.n_tasks, stream.start)
    2 [1. 0.]
    """

    def __init__(
        self,
        settings: Settings,
        n_features: int,
        dtype: DTypeLike = np.float64,
        initial: Vector | None = None,
        ids: IdIndex | None = None,
    ) -> None:
        super().__init__(ids)
        self.settings, self._rules = settings, settings.rules()
        first = np.zeros(n_features + 1) if initial is None else initial.copy()
        first[-1] *= settings.fit_intercept
        self._bias = Bias.begin(first, self._rules.auto)
        self._tasks = OpenTasks.room(first.size)
        self._entities = Entities.room(first.size, dtype, 0, exact=settings.exact)
        self._publish()

    @property
    def start(self) -> Vector:
        """The mean of all iterates: where a new task starts."""
        return self._begin.weights

    @property
    def scale(self) -> float:
        """The value of the constant column for a new task; 0 without an intercept."""
        return Constant.of(self._begin.metric).b

    @property
    def step(self) -> float:
        """The meta step size: that of the settings, or the newest of DoG's."""
        if self.settings.step is not None:
            return self.settings.step
        return self._bias.newest_step

    @property
    def n_tasks(self) -> int:
        """Number of meta-gradients the bias has taken."""
        return self._bias.steps

    @property
    def n_rows(self) -> int:
        """Number of rows seen."""
        return self._bias.rows

    @property
    def n_features(self) -> int:
        """Number of columns of the inputs."""
        return self._bias.h.size - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The float type of own weights, which is that of the inputs."""
        return self._entities.weights.dtype

    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Own weights as rows of d + 1, and for each position the row among them."""
        own, ready = self._own
        if positions.max(initial=-1) < ready:
            return own, positions
        return own, np.where(positions < ready, positions, -1)  # another thread is adding them

    def adapted(
        self,
        X: FloatArray,
        y: FloatArray,
        offsets: Positions,
        side: NDArray[np.float64] | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """Weights of new tasks from the bias as it is now, shape (tasks, d + 1)."""
        count = len(offsets) - 1
        if self.settings.exact:
            return self._solved(TaskSet.of(X, y, offsets, np.arange(count)), n_jobs=1)
        new = Entities.room(self.n_features + 1, X.dtype, count)
        entity = np.repeat(np.arange(count), np.diff(offsets))
        return self._trained(X, y, entity, new, n_jobs=1).weights

    def learn_runs(self, X: FloatArray, y: FloatArray, run: Counts, goes_on: bool) -> None:
        """Learn the bias alone from rows lying together, numbered by task from 0, or -1.

        The first task may be the one before that `goes_on`. No entity is remembered. The bias is
        that of `fit` with the same tasks.
        """
        with self.lock:
            self._tasks = self._tasks.with_room(self._bias.n_open, 1)
            entity = run if goes_on else np.where(run >= 0, run + 1, run)  # 0: the task before
            slot = np.full(int(entity.max(initial=0)) + 1, NEW)
            slot[0] = 0 if self._bias.n_open else CLOSED
            self._tasks.entity[0] = self._bias.tally["current"] = 0
            self._entities = self._room(0)._replace(slot=slot)
            self._learn(X, y, entity, self._rules._replace(moving_on=True))

    def set_bias(
        self, last: Vector, total: Vector, *, steps: int, rows: int, mean_square: float
    ) -> None:
        """Go on from a bias learned elsewhere, with a number for step.

        Parameters
        ----------
        last, total : the newest iterate and the sum of all ``steps + 1``, intercepts last
        steps, rows : from how many tasks and rows it was learned
        mean_square : of their inputs
        """
        with self.lock:
            tally = self._bias.tally
            self._bias.h[:], self._bias.total[:] = last, total
            tally["steps"], tally["rows"], tally["weight"] = steps, rows, steps + 1
            tally["squares"] = mean_square * rows * self.n_features
            self._publish()

    def arrays(self) -> Arrays:
        """The bias, the open tasks and the entities, by name."""
        n_open, count, own = self._bias.n_open, self.ids.room, self._entities
        known = {f"own_{name}": array[:count] for name, array in own._asdict().items()}
        if len(own.starts) == 1:  # for all of them, be there any or not
            known["own_starts"] = own.starts
        tasks = {f"open_{name}": array[:n_open] for name, array in self._tasks._asdict().items()}
        return {**self._bias.arrays(), **tasks, **known}

    @classmethod
    def from_arrays(
        cls, settings: Settings, ids: IdIndex, arrays: Mapping[str, NDArray[Any]]
    ) -> Self:
        """The stream whose `arrays` these are; those that can be written become its own."""
        stream = cls.__new__(cls)
        stream.__setstate__({"settings": settings, "ids": ids, "arrays": arrays})
        return stream

    def without_entities(self) -> Self:
        """A copy that knows the bias and no entity."""
        copy = type(self)(self.settings, self.n_features, self.dtype)
        copy._bias = self._bias.copy()
        copy._bias.tally["n_open"] = 0
        copy._begin = self._begin
        return copy

    def _take(self, chunk: Chunk, entity: Positions) -> None:
        if self.settings.exact:
            raise ValueError("inner: 'erm' needs all rows of a task at once; use fit")
        room = self.ids.room
        self._entities = self._entities.with_room(room)
        self._tasks = self._tasks.with_room(self._bias.n_open, min(len(chunk.y), room) + 1)
        self._learn(chunk.X, chunk.y, entity, self._rules)

    def _finish(self) -> None:
        opened = self._tasks.by_opening(self._bias.n_open)
        none = np.empty((0, self.n_features), self.dtype)
        self._learn(none, none[:, 0], NOBODY, self._rules, opened)
        self._bias.tally["current"] = NEW

    def _fit(
        self, chunk: Chunk, entity: Positions, n_jobs: int, rng: np.random.Generator | None
    ) -> None:
        X, y, order = chunk.X, chunk.y, task_order(entity, rng)
        if order is not None:
            X, y, entity = X[order], y[order], entity[order]
        known = self._room(self.ids.room)
        if self.settings.exact:
            self._fit_exactly(X, y, entity, known, n_jobs)
            return
        self._tasks = self._tasks.with_room(self._bias.n_open, 1)
        self._entities = self._room(0)._replace(slot=known.slot)
        self._learn(X, y, entity, self._rules._replace(moving_on=True))
        self._finish()
        self._entities = self._trained(X, y, entity, known, n_jobs)
        self._publish()

    def _fit_exactly(
        self, X: FloatArray, y: FloatArray, entity: Positions, known: Entities, n_jobs: int
    ) -> None:
        tally, cuts = self._bias.tally, task_cuts(entity)
        tally["rows"], tally["squares"] = len(y), np.einsum("id,id->", X, X, dtype=np.float64)
        tasks = TaskSet.of(X, y, cuts, np.arange(len(cuts) - 1))
        column = Constant.of(begin_now(self._bias, self._rules)[1])
        learn_exactly(self._bias, self._rules, self.settings.algorithm, tasks, column)
        self._publish()
        owner = entity[cuts[:-1]]
        if known.rows.size:
            mine = owner >= 0
            known.weights[owner[mine]] = self._solved(tasks.subset(mine), n_jobs)
            known.rows[owner[mine]], known.slot[:] = tasks.sizes[mine], CLOSED
        self._entities = known
        self._publish()

    def _learn(
        self,
        X: FloatArray,
        y: FloatArray,
        entity: Positions,
        rules: Rules,
        closing: Counts = NOBODY,
    ) -> None:
        state = self._bias, self._tasks, self._entities, closing
        self._publish(learn_rows(read_only(X), read_only(y), entity, rules, *state))

    def _trained(
        self, X: FloatArray, y: FloatArray, entity: Positions, entities: Entities, n_jobs: int
    ) -> Entities:
        """Train entities, whose rows lie together, from the bias as it is now."""
        begin = self._begin
        with quietly():
            starts = begin.weights.astype(X.dtype)
        begin._replace(finite=bool(np.isfinite(starts).all())).check(self.settings.step)
        known = entities._replace(starts=starts[None, :])
        inputs = read_only(X), read_only(y), entity, np.full(len(y), begin.metric)
        cuts = task_cuts(entity)
        run_blocks(
            lambda a, b: train_rows(*inputs, self._rules, known, cuts[a], cuts[b]),
            len(cuts) - 1,
            n_jobs,
        )
        return known

    def _solved(self, tasks: TaskSet, n_jobs: int) -> FloatArray:
        (weights, metric, _), inner = self._begin, self.settings.algorithm
        return solve_exactly(weights, self._rules, inner, tasks, Constant.of(metric), n_jobs)

    def _publish(self, known: tuple[Vector, float, bool] | None = None) -> None:
        """Let those who do not learn see what is known now: whole, and nothing of what comes."""
        begin = Begin(*(begin_now(self._bias, self._rules) if known is None else known))
        begin.check(self.settings.step)
        own = self._entities.weights
        self._begin, self._own = begin, (own, min(self.ids.room, len(own)))

    def _room(self, count: int) -> Entities:
        width = self.n_features + 1
        return Entities.room(width, self.dtype, count, exact=self.settings.exact)

    def __getstate__(self) -> dict[str, Any]:
        """As it is saved: without room that is not in use, nor addresses of this process."""
        return {"settings": self.settings, "ids": self.ids, "arrays": self.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Stream.__init__(self, state["ids"])
        arrays, exact = state["arrays"], state["settings"].exact
        self.settings, self._rules = state["settings"], state["settings"].rules()
        width, count = named(arrays, "bias_last").size, self.ids.room
        self._bias = Bias.from_arrays(arrays, width, count)
        self._entities = Entities.from_arrays(arrays, width, count, exact=exact)
        self._tasks = OpenTasks.from_arrays(arrays, self._bias, self._entities.slot)
        self._publish()
