"""What every stream of rows is: ids, a lock, and what can be asked of it.

Rows of many entities arrive in chunks, in any order. A stream learns from them where all
entities start and each entity's own weights. There are two kinds: the paper's (`BiasStream`),
and one that learns a prior.

Vectors of weights have one number more than there are features, the intercept, which comes last
and is 0 where there is none.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart.tasks.ids import Column, IdIndex

Positions = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]  # of any kind: numbers by name, as they are saved


class Chunk(NamedTuple):
    """Rows as they arrive, already checked.

    Attributes
    ----------
    X : inputs of shape (rows, d), float32 or float64
    y : labels as numbers the loss takes, of the same type
    ids : whose row it is; a missing id, or None for all, makes a row a task of its own
    weight : how much each row counts
    side : what is known of the entity beside its rows, of shape (rows, columns)
    """

    X: FloatArray
    y: FloatArray
    ids: Column | None = None
    weight: Vector | None = None
    side: NDArray[np.float64] | None = None


class Stream(ABC):
    """A stream of rows in progress.

    Learning takes the lock, so that rows from several threads come one chunk after another;
    asking for weights and predicting do not. A copy made by pickle has a lock of its own; hold
    `lock` while making one, if others may be learning.

    Each kind has a class method ``from_arrays(settings, ids, arrays)`` that gives back the
    stream whose `arrays` these are. It goes on with the same bits.

    Attributes
    ----------
    ids : all entities with own weights; their positions are those of `weights`
    lock : held while learning
    """

    def __init__(self, ids: IdIndex | None = None) -> None:
        self.ids = IdIndex() if ids is None else ids
        self.lock = threading.RLock()

    def take(self, chunk: Chunk) -> None:
        """Go on with these rows; any cutting of the same rows gives the same bits."""
        with self.lock:
            self._take(chunk, self._positions(chunk))

    def finish(self) -> None:
        """Learn what can only be learned when no more rows are expected, for now."""
        with self.lock:
            self._finish()

    def fit(self, chunk: Chunk, n_jobs: int = 1, rng: np.random.Generator | None = None) -> None:
        """Learn from a whole table, which must be the first rows of this stream.

        Tasks come in the order of their first rows, or in a random one if there is an `rng`;
        where the order is of no meaning it is not used.
        """
        with self.lock:
            if self.n_rows > 0:
                raise ValueError("fit: expected a new stream, found one that has seen rows")
            self._fit(chunk, self._positions(chunk), n_jobs, rng)

    @abstractmethod
    def adapted(
        self,
        X: FloatArray,
        y: FloatArray,
        offsets: Positions,
        side: NDArray[np.float64] | None = None,
    ) -> FloatArray:
        """Weights of new tasks, shape (tasks, d + 1), in the type of X; nothing is learned.

        Task t has the rows ``offsets[t]`` to ``offsets[t + 1]``, one at least, and row t of
        `side`.
        """

    @abstractmethod
    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Own weights as rows of d + 1, and for each position the row among them.

        That row is -1 where the position is, and where an entity has no own weights yet.
        """

    @property
    @abstractmethod
    def start(self) -> Vector:
        """Where a new task starts: d + 1 numbers."""

    @property
    @abstractmethod
    def n_tasks(self) -> int:
        """Number of tasks the start has been learned from."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows seen."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """All that is known but ids and settings, as named arrays.

        Own weights are in ``"own_weights"``, a row for each position. The arrays may be those
        in use: save them while holding the lock.
        """

    @abstractmethod
    def without_entities(self) -> Self:
        """A copy that knows where new tasks start and how they are adapted, and no entity."""

    @abstractmethod
    def _take(self, chunk: Chunk, entity: Positions) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def _fit(
        self, chunk: Chunk, entity: Positions, n_jobs: int, rng: np.random.Generator | None
    ) -> None: ...

    def _positions(self, chunk: Chunk) -> Positions:
        """The position of each row's entity, new ones being given the next; -1 without an id."""
        column, n_rows = chunk.ids, len(chunk.y)
        if column is None:
            return np.full(n_rows, -1)
        column.check_length("groups", n_rows)
        return column.added_to(self.ids)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.lock = threading.RLock()
