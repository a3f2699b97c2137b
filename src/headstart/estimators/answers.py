"""Answers of a fitted meta estimator: predictions, variances, and the tasks of new entities."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, Vector, as_floats, read_only
from headstart.estimators.base_model import with_column
from headstart.estimators.inputs import read_inputs, split_columns
from headstart.estimators.learned import Learned
from headstart.estimators.state import Stored
from headstart.meta.prior.units import check_side
from headstart.online import AnyStream, PriorStream, SparseStream, predictions
from headstart.tasks import TaskSet, as_task_set
from headstart.tasks.ids import Column, canonical, read_ids, warn_other_kinds

Positions = NDArray[np.int64]
Matrix = NDArray[np.float64]
Floats = TypeVar("Floats", bound=FloatArray)


class Query(NamedTuple):
    """Rows to predict.

    `known` answers; it is held here because another thread may replace that of the model. Row i
    of `X` is of the entity at ``positions[i]``, -1 if it is unknown, with the columns `side`.
    """

    known: AnyStream | Stored
    X: FloatArray
    positions: Positions
    side: Matrix | None


class Answers(Learned):
    """What can be asked of a model that has learned: rows of known entities, and of new ones."""

    def _scores(self, X: Any, groups: Any = None) -> FloatArray:
        return self._predict_rows(self._query(X, groups))

    def _query(self, X: Any, groups: Any, *, ids_inside: bool = True) -> Query:
        """Rows to predict; unless `ids_inside`, their ids are not in the column `group`."""
        check_is_fitted(self)
        known, group = self._known, self.group if ids_inside else None
        X, ids, side = split_columns(X, groups, group, self.side, required=False)
        inputs = self.with_base(read_inputs(self, X, sparse=isinstance(known, SparseStream)))
        if ids is None:
            return Query(known, inputs, np.full(inputs.shape[0], -1), side)
        column = read_ids("groups", ids)
        column.check_length("groups", inputs.shape[0])
        warn_other_kinds("groups", column, known.ids)
        return Query(known, inputs, column.found_in(known.ids), side)

    def _predict_rows(self, query: Query) -> FloatArray:
        """Linear predictions."""
        known, X, positions, side = query
        if isinstance(known, SparseStream):
            return check_answer(known.predicted(csr_array(X), positions), "X, groups")
        weights, place = known.weights(positions)
        with quietly():
            out, start = np.empty(len(X), X.dtype), known.start.astype(X.dtype)
        predictions(read_only(X), place, read_only(weights), read_only(start), out)
        if self.side is not None and (unknown := positions < 0).any():
            out[unknown] = self.prior_.predict(X[unknown], None if side is None else side[unknown])
        return check_answer(out, "X, groups")

    def _variances(self, query: Query) -> Vector:
        """Variances of linear predictions; the noise of a label is not in them."""
        known = query.known
        with quietly():
            if isinstance(known, SparseStream):
                found = known.variance(csr_array(query.X), query.positions)
            else:
                stream = known if isinstance(known, PriorStream) else self._prior_stream()
                found = stream.variance(query.X, query.positions)
        return check_answer(found, "X, groups")

    def predict_one(self, x: Any, id: Hashable = None) -> Any:  # noqa: A002
        """What `predict` gives for one row; `x` and `id` as in `learn_one`."""
        if self._needs_table() or not self.__sklearn_is_fitted__():
            query = self._query(self._as_table(x), [id], ids_inside=False)
            return self._to_labels(self._predict_rows(query))[0]
        known, key = self._known, canonical(id)
        row = self._row(x, known.dtype)
        if isinstance(known, PriorStream):
            score = known.predict_one(row, key)
        else:
            weights, (place,) = known.weights(np.array(known.ids.find([key])))
            own = known.start if place < 0 else weights[place]
            score = float(np.vdot(own[:-1], row)) + float(own[-1])
        return self._label_of(score if math.isfinite(score) else check_answer(score, "x"))

    def _needs_table(self) -> bool:
        """Whether a single row is not enough: its other columns, or the base, want a table."""
        return self.side is not None or self.base_ is not None

    def _row(self, x: Any, dtype: DTypeLike) -> FloatArray:
        """The features of a row, in the type of the model's."""
        if isinstance(x, Mapping):
            if not hasattr(self, "feature_names_in_"):
                raise TypeError("x: expected an array, since fit had no names of columns")
            try:
                x = [x[name] for name in self.feature_names_in_]
            except KeyError as error:
                raise ValueError(f"x: there is no value for column {error}") from None
        if type(x) is not np.ndarray or x.dtype.kind not in "fiub":
            x = as_floats("x", x, 1)
        row: FloatArray = np.array(x, dtype)  # a copy: kernels are compiled for such arrays alone
        if row.shape != (self.n_features_in_,):
            raise ValueError(f"x: expected {self.n_features_in_} numbers, found shape {row.shape}")
        return row

    def _as_table(self, x: Any) -> Any:
        """One row as a table, as `partial_fit` and `predict` take it."""
        if not isinstance(x, Mapping):
            return as_floats("x", x, 1)[None]
        if not all(isinstance(name, str) for name in x):
            raise TypeError(f"x: expected names of columns that are text, found {list(x)!r}")
        try:
            return pa.table({name: [value] for name, value in x.items() if name != self.group})
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise TypeError(f"x: expected numbers by the names of columns ({error})") from None

    def adapt_tasks(self, tasks: TaskSet, side: ArrayLike | None = None) -> FloatArray:
        """The weights `adapt` gives each of these tasks, the intercept last.

        Parameters
        ----------
        tasks : TaskSet
            Labels are numbers, -1 and +1 for the two classes.
        side : array-like of shape (tasks, p), optional
            What is known of each, if the model has `side`.
        """
        check_is_fitted(self)
        tasks, stream = as_task_set(tasks), self.stream()
        if tasks.n_features != self.n_features_in_:
            wanted = f"{self.n_features_in_} columns"
            raise ValueError(f"tasks: expected {wanted}, found {tasks.n_features}")
        stream.settings.loss.check_labels(tasks.y, tasks.place)
        known = None if side is None else check_side(side, len(tasks))
        X = cast(FloatArray, tasks.inputs) if isinstance(stream, SparseStream) else tasks.X
        with quietly():
            weights = stream.adapted(self.with_base(X), tasks.y, tasks.offsets, known)
        return check_answer(weights, "tasks, side")

    def with_base(self, X: FloatArray) -> FloatArray:
        """Rows of features as the weights of tasks take them: with the base's column, if any."""
        return with_column(self.base_, X)

    def _new_task(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Rows of a new entity, checked to be of one, and the settings of its estimator."""
        check_is_fitted(self)
        rows, ids, side = split_columns(X, None, self.group, self.side, required=False)
        if ids is not None:
            _check_one(read_ids("groups", ids))
        if self.side is not None and side is None:
            raise ValueError(
                f"side: X has no column {next(iter(self.side))!r}; it says where the entity starts"
            )
        read_inputs(self, rows, sparse=isinstance(self._known, SparseStream))
        if side is not None and np.any(side != side[0]):
            raise ValueError("side: expected rows of one entity, found different values in them")
        if self._has_prior():
            prior = self.prior_ if side is None else self.prior_.at(side[0])
            base = None if self.base_ is None else FrozenEstimator(self.base_)
            return rows, {"prior": prior, "fit_intercept": self.fit_intercept, "base": base}
        stream = self._bias_stream()
        return rows, {
            "bias": stream.start[:-1],
            "intercept": float(stream.start[-1]),
            "reg": self.reg,
            "loss": self._loss(),
            "inner": self.inner,
            "predictor": self.predictor,
            "fit_intercept": self.fit_intercept,
            "intercept_scaling": stream.scale or None,
        }

    def _number_of(self, y: Any) -> float:
        """One label as a number."""
        raise NotImplementedError

    def _label_of(self, score: float) -> Any:
        """One score as a label."""
        raise NotImplementedError


def _check_one(column: Column) -> None:
    """Raise if rows are of several entities."""
    others = list(dict.fromkeys(column.values))
    if len(others) > 1:
        one, other, *_ = others
        raise ValueError(
            f"X: expected rows of one entity, found the ids {one!r} and {other!r}; adapt to each "
            "by itself, or go on learning with partial_fit"
        )
