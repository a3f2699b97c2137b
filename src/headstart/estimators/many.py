"""What `MetaRegressor` and `MetaClassifier` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from headstart._checks import (
    FloatArray,
    check_count,
    check_generator,
    check_jobs,
    check_number,
    read_only,
)
from headstart.estimators.base import only_streams
from headstart.estimators.dataset import feed_dataset, fit_dataset
from headstart.estimators.exact import adapt_exactly, fit_exactly
from headstart.estimators.inputs import read_inputs, take_group
from headstart.estimators.known import AnyStream, InMemory, Stored
from headstart.estimators.learned import Learned
from headstart.ids import Column, IdIndex, read_ids
from headstart.losses import get_loss
from headstart.online import (
    AUTO,
    GRADIENTS,
    ROWS,
    STEPS,
    WEIGHT,
    Pace,
    Stream,
    TunedStream,
    predictions,
)
from headstart.tasks import TaskSet

Counts = NDArray[np.int64]


class Progress(NamedTuple):
    """How far `learn` has come."""

    rows: int
    tasks: int


class Meta(Learned):
    """Many tasks: Algorithm 2, and every entity's own weights."""

    group: str | int | None
    passes: int
    validation_fraction: float | None
    n_jobs: int | None
    random_state: object
    _or_auto = " or 'auto'"

    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__partial_fit: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn the bias from all tasks, then every task's own weights from that bias.

        Tasks are taken in the order in which their ids first appear, or in a random one if
        `random_state` is given. The bias is that of `partial_fit` with the same tasks one
        after another, and `finish`.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, d), or ParquetRows
            A dataset on disk is read in batches, in the order of its files, and holds labels
            and ids itself. Of it only the bias is learned, with the same bits: memory for own
            weights would grow with the data. `headstart.jobs.adapt_all` writes them to disk.
        y : array-like of shape (rows,)
        groups : array-like of shape (rows,), optional
            Whose row it is; not needed with `group`. A row without an id (None, NaN, or all
            rows if there are no groups) is a task of its own.
        """
        if hasattr(X, "task_sets"):  # cheaper for single rows than asking for TaskStream
            fit_dataset(self, X, y, groups)
            return self
        objective, pace = self._objective(), self._pace(moving_on=True)
        X, groups = take_group(X, groups, self.group, required=True)
        column = self._column(groups)
        inputs, labels = self._read(X, y, reset=True)
        index = IdIndex()
        entity = self._entities(column, len(labels), index)
        together = column is not None and len(column.keys) == len(index)  # a run for each id
        order = _task_order(entity, self.random_state, together)
        if order is not None:
            inputs, labels, entity = read_only(inputs[order]), labels[order], entity[order]
        stream = self._new_stream(inputs, pace, len(index))
        jobs, passes = check_jobs(self.n_jobs), check_count("passes", self.passes)
        if self.inner == "erm" and isinstance(stream, Stream):
            loss = get_loss(self.loss)
            fit_exactly(stream, inputs, labels, entity, objective.lam, loss, pace, passes, jobs)
        elif isinstance(stream, TunedStream):
            share = self._held_out_share()
            stream.fit(inputs, labels, entity, objective, pace, passes, jobs, share)
        else:
            stream.fit(inputs, labels, entity, objective, pace, passes, jobs)
        self._known = InMemory(index, stream)
        return self

    def _go_on(self, X: Any, y: Any, groups: Any = None, classes: ArrayLike | None = None) -> Self:
        if hasattr(X, "task_sets"):  # cheaper for single rows than asking for TaskStream
            feed_dataset(self, X, y, groups)
            return self
        objective, pace = self._objective(), self._pace(moving_on=self.task_size is None)
        if self._held_out_share() > 0.0:
            raise ValueError(
                "validation_fraction: a stream has no end to hold tasks out from; set it to None, "
                "or use fit"
            )
        X, groups = take_group(X, groups, self.group, required=True)
        column = self._column(groups)
        begun = self.__sklearn_is_fitted__()
        inputs, labels = self._read(X, y, reset=not begun, classes=classes)
        index, stream = self._live() if begun else (IdIndex(), self._new_stream(inputs, pace))
        self._check_same_kind(stream, pace)
        entity = self._entities(column, len(labels), index)
        stream.take(inputs, labels, entity, len(index), objective, pace)
        if not begun:
            self._known = InMemory(index, stream)
        return self

    def _check_same_kind(self, stream: AnyStream, pace: Pace) -> None:
        """A stream that was begun with numbers cannot go on choosing, nor the other way round."""
        chosen = isinstance(stream, TunedStream) and stream.tuning.given[0] == 0.0
        if chosen != self._is_tuned():
            raise ValueError("reg: 'auto' or a number is for a whole stream; fit anew to change it")
        sums = stream.bias.sums
        if (sums[WEIGHT] == 0.0 or sums[GRADIENTS] > 0.0) != (pace.step == AUTO):
            raise ValueError(
                "step: 'auto' or a number is for a whole stream; fit anew to change it"
            )

    def finish(self) -> Self:
        """Close the open tasks: each gives its meta-gradient, the first opened first."""
        check_is_fitted(self)
        self._live()[1].finish(self._objective(), self._pace(moving_on=True))
        return self

    @only_streams
    def learn(
        self,
        chunks: Iterable[tuple[Any, ...]],
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """`partial_fit` on every chunk, then `finish`.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, groups)
            Read one at a time, so that a generator needs memory for one only.
        callback : function of a `Progress`, optional
            Called after every chunk with the rows and tasks of the whole stream so far.
        """
        for number, chunk in enumerate(chunks):
            if not isinstance(chunk, tuple | list) or not 2 <= len(chunk) <= 3:
                raise TypeError(
                    f"chunks: expected (X, y) or (X, y, groups), found {type(chunk).__name__} "
                    f"as number {number}"
                )
            self._go_on(*chunk)
            if callback is not None:
                counts = self._live()[1].bias.counts
                callback(Progress(int(counts[ROWS]), int(counts[STEPS])))
        return self.finish()

    def _scores(self, X: Any, groups: Any = None) -> FloatArray:
        check_is_fitted(self)
        X, groups = take_group(X, groups, self.group, required=False)
        column = self._column(groups)
        inputs = read_inputs(self, X)
        positions = self._positions(column, len(inputs))
        weights, entity = self._known.weights(positions)
        out = np.empty(len(inputs), inputs.dtype)
        predictions(inputs, entity, read_only(weights), read_only(self._start()), out)
        return out

    def _positions(self, column: Column | None, n_rows: int) -> Counts:
        if column is None:
            return np.full(n_rows, -1)
        _check_length(column, n_rows)
        return column.spread(self._known.find(column.keys))

    def _entities(self, column: Column | None, n_rows: int, index: IdIndex) -> Counts:
        if column is None:
            return np.full(n_rows, -1)
        _check_length(column, n_rows)
        return column.spread(index.add(column.keys, column.missing))

    def _column(self, groups: Any) -> Column | None:
        return None if groups is None else read_ids("groups", groups)

    def _held_out_share(self) -> float:
        share = self.validation_fraction
        if share is None:
            return 0.0
        if not self._is_tuned():
            raise ValueError("validation_fraction: nothing is to be chosen, because reg is given")
        return check_number("validation_fraction", share, above=0.0, below=1.0)

    def _new_stream(self, X: FloatArray, pace: Pace, n_entities: int = 0) -> AnyStream:
        zero = np.zeros(X.shape[1] + 1)
        if self._is_tuned():
            return TunedStream.start(zero, X.dtype, pace.step, n_entities)
        if self.inner == "constant":
            eta = 1.0 / self._objective().lam
            return TunedStream.start(zero, X.dtype, pace.step, n_entities, eta)
        return Stream.start(zero, X.dtype, pace.step, self.predictor, n_entities)

    def _live(self) -> tuple[IdIndex, AnyStream]:
        """The state in memory and writable."""
        if isinstance(self._known, Stored):
            self._known = self._known.in_memory()
        return self._known.ids, self._known.stream

    def __getstate__(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            self._live()
        return super().__getstate__()

    def _task_settings(self) -> dict[str, Any]:
        """Parameters of an estimator for a new entity."""
        return {
            "bias": self.bias_,
            "intercept": self.intercept_,
            "reg": self.reg_,
            "loss": self.loss,
            "inner": "constant" if self._is_tuned() else self.inner,
            "predictor": self.predictor,
            "fit_intercept": self.fit_intercept,
            "intercept_scaling": self._known.bias.scale,
        }

    def _adapted(self, tasks: TaskSet) -> FloatArray:
        """The weights `adapt` gives each of these tasks, the intercept last; labels are numbers."""
        objective, pace = self._objective(), self._pace(moving_on=True)
        _, stream = self._live()
        if self.inner == "erm" and isinstance(stream, Stream):
            return adapt_exactly(stream, tasks, objective.lam, get_loss(self.loss), pace)
        return stream.adapted(tasks.X, tasks.y, tasks.offsets, objective, pace)

    def _task_rows(self, X: Any) -> Any:
        """Rows of a new entity, their columns checked to be those of `fit`."""
        check_is_fitted(self)
        rows, _ = take_group(X, None, self.group, required=False)
        read_inputs(self, rows)
        return rows

    def save(self, path: str | Path) -> None:
        """Write the model into the folder `path`, in the place of an older model there.

        Plain arrays and JSON, no pickle. What was there stays whole until the new model is.
        """
        check_is_fitted(self)
        InMemory(*self._live()).write(Path(path), self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model in the folder `path`, as it was when it was saved.

        Weights are read from disk as they are needed; files that are not whole are refused.
        """
        model: Self = Stored.read(Path(path), cls)
        return model


def _check_length(column: Column, n_rows: int) -> None:
    if column.ids.size != n_rows:
        raise ValueError(
            f"groups: expected one id per row of X ({n_rows}), found {column.ids.size}"
        )


def _task_order(entity: Counts, random_state: object, together: bool) -> Counts | None:
    """The order that puts rows of a task together, tasks by first appearance or at random."""
    if together and random_state is None:
        return None
    newest = np.maximum.accumulate(entity)
    first = np.flatnonzero(entity > np.append(-1, newest[:-1]))
    appeared = np.where(entity >= 0, first[entity] if first.size else 0, np.arange(entity.size))
    if random_state is not None:
        starts, task = np.unique(appeared, return_inverse=True)
        appeared = check_generator(random_state).permutation(starts.size)[task]
    if bool(np.all(appeared[1:] >= appeared[:-1])):
        return None
    return np.argsort(appeared, kind="stable")
