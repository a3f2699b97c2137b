"""What `MetaRegressor` and `MetaClassifier` share: learning from many tasks.

What they know stands in `learned`, what they answer in `answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart._core.answers import LARGEST, is_finite
from headstart._core.checks import FloatArray, check_generator, check_jobs, read_only
from headstart.estimators.answers import Answers
from headstart.estimators.base import only_priors, only_streams
from headstart.estimators.base_model import fitted_base
from headstart.estimators.dataset import dataset_chunks, fit_dataset, warn_of_nobody
from headstart.estimators.inputs import split_columns
from headstart.estimators.learned import STARTING
from headstart.estimators.parameters import check_unchanged
from headstart.online import (
    AnyStream,
    BiasStream,
    Chunk,
    PriorSettings,
    PriorStream,
    Settings,
    SparseStream,
)
from headstart.tasks.ids import canonical, read_ids, warn_other_kinds
from headstart.tasks.sparse import is_sparse


class Progress(NamedTuple):
    """How far `learn` has come."""

    rows: int
    tasks: int


class Meta(Answers):
    """Many tasks: where all of them start, and every entity's own weights."""

    n_jobs: int | None
    random_state: object

    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__partial_fit: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn where entities start from all of them, then every entity's own weights.

        Parameters
        ----------
        X : array-like, data frame or SciPy sparse matrix of shape (rows, d), or ParquetRows
            A dataset on disk is read in batches and holds labels and ids itself. Of it only the
            start is learned: memory for own weights would grow with the data.
            `headstart.jobs.adapt_all` writes them to disk.
        y : array-like of shape (rows,)
        groups : array-like of shape (rows,), optional
            Whose row it is; not needed with `group`. A row without an id (None, NaN, or all
            rows if there are no groups) is a task of its own, and warned of.
        sample_weight : array-like of shape (rows,), optional
            How often each row counts; with a learned prior only.
        """
        if hasattr(X, "task_sets"):  # cheaper for single rows than asking for TaskStream
            fit_dataset(self, X, y, groups, sample_weight)
            return self
        settings = self.settings()
        jobs, rng = check_jobs(self.n_jobs), self.random_state
        chunk, base = self._chunk(X, y, groups, sample_weight, reset=True), None
        if self.base is not None:
            base, chunk = fitted_base(self.base, chunk)
        stream = self._new_stream(settings, chunk.X)
        stream.fit(chunk, jobs, None if rng is None else check_generator(rng))
        self._known, self.base_, self.run_ = stream, base, None
        return self

    def _go_on(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        ids_inside: bool = True,
    ) -> Self:
        """Go on with rows; unless `ids_inside`, their ids are not in the column `group`."""
        if hasattr(X, "task_sets"):
            for part in dataset_chunks(self, X, y, groups, sample_weight):
                self._go_on(*part, ids_inside=False)
            return self
        settings = self.settings()
        if not self.__sklearn_is_fitted__():
            if self.base is not None:
                raise ValueError("base: a stream goes on with the base as fit left it; fit first")
            with STARTING:
                if not self.__sklearn_is_fitted__():
                    chunk = self._chunk(
                        X, y, groups, sample_weight, classes, reset=True, ids_inside=ids_inside
                    )
                    stream = self._new_stream(settings, chunk.X)
                    stream.take(chunk)
                    self._known = stream
                    return self
        stream = self.stream()
        check_unchanged(stream.settings, settings)
        chunk = self._chunk(X, y, groups, sample_weight, reset=False, ids_inside=ids_inside)
        if is_sparse(chunk.X) and not isinstance(stream, SparseStream):
            raise ValueError("X: expected dense rows, with which this stream began; X.toarray()")
        stream.take(chunk._replace(X=self.with_base(chunk.X)))
        return self

    def _chunk(
        self,
        X: Any,
        y: Any,
        groups: Any,
        sample_weight: ArrayLike | None,
        classes: ArrayLike | None = None,
        *,
        reset: bool,
        ids_inside: bool = True,
    ) -> Chunk:
        """The rows a user gave, checked, as a stream takes them."""
        group = self.group if ids_inside else None
        X, ids, side = split_columns(X, groups, group, self.side, required=True)
        inputs, labels = self._read(X, y, reset=reset, classes=classes)
        column = None if ids is None else read_ids("groups", ids)
        if column is not None:
            column.check_length("groups", len(labels))
        warn_of_nobody(column)
        if not reset and column is not None:
            warn_other_kinds("groups", column, self._known.ids)
        weight = self._weights(sample_weight, len(labels))
        if weight is None or weight.all():
            return Chunk(inputs, labels, column, weight, side)
        used = weight > 0.0  # the others are as if they had not come
        column = None if column is None else column.at(used)
        side = None if side is None else side[used]
        inputs = inputs[used]
        inputs = inputs if is_sparse(inputs) else read_only(inputs)
        return Chunk(inputs, labels[used], column, weight[used], side)

    def finish(self) -> Self:
        """Learn what is to be learned when no more rows are expected, for now.

        With a learned prior: the prior from all rows, and own weights under it. With a number
        for `reg`: the open tasks give their meta-gradients, the first opened first.
        """
        check_is_fitted(self)
        self.stream().finish()
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
        if not isinstance(chunks, Iterable):
            raise TypeError(f"chunks: expected an iterable, found {type(chunks).__name__}")
        for number, chunk in enumerate(chunks):
            if not isinstance(chunk, tuple | list) or not 2 <= len(chunk) <= 3:
                raise TypeError(
                    f"chunks: expected (X, y) or (X, y, groups), found {type(chunk).__name__} "
                    f"as number {number}"
                )
            self._go_on(*chunk)
            if callback is not None:
                stream = self.stream()
                callback(Progress(stream.n_rows, stream.n_tasks))
        return self.finish()

    @only_streams
    def learn_one(self, x: Any, y: Any, id: Hashable) -> None:  # noqa: A002
        """Go on with one row: the same as `partial_fit` of it, in a few microseconds.

        Parameters
        ----------
        x : array of shape (d,), or dict of values by column name
            Without the id; the columns of `side` in their places, if there are any. Of a dict
            what is no column is left aside.
        y : number or label
        id : hashable
            Whose row it is; None if it is nobody's.
        """
        key = canonical(id)
        known = None
        if self.__sklearn_is_fitted__():
            known = self.stream()
        elif isinstance(self, ClassifierMixin):
            raise ValueError(
                "y: a classifier begins with partial_fit and classes=, then goes on by learn_one"
            )
        if not isinstance(known, PriorStream) or self._needs_table() or key is None:
            self._go_on(self._as_table(x), [y], [id], ids_inside=False)
            return
        row, label = self._row(x, known.dtype), self._number_of(y)
        if not (is_finite(row) and abs(label) <= LARGEST):
            raise ValueError(
                f"x, y: expected finite numbers of at most {LARGEST:g}, found {row.tolist()} and "
                f"{label:g}"
            )
        known.take_one(row, label, key)

    @only_priors
    def forget(self, id: Hashable) -> Self:  # noqa: A002
        """Take an entity out, with all that is kept of it; KeyError if it is not known.

        The prior is without it from the next time it is learned: `finish` does so.
        """
        check_is_fitted(self)
        stream = self.stream()
        (stream if isinstance(stream, SparseStream) else self._prior_stream()).forget(id)
        return self

    @only_priors
    def merge(self, other: Any) -> Self:
        """Take in what another model has seen, and learn the prior from both.

        Parameters
        ----------
        other : fitted estimator of the same class and settings
            Of an entity in both, its rows are the newer ones.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        if type(other) is not type(self) or other.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"other: expected a {type(self).__name__} of {self.n_features_in_} features"
            )
        if other._names() != self._names():
            raise ValueError(
                f"other: expected the columns {', '.join(self._names())} in this order, found "
                f"{', '.join(other._names())}"
            )
        if (
            getattr(other, "classes_", np.empty(0)).tolist()
            != getattr(self, "classes_", np.empty(0)).tolist()
        ):
            raise ValueError("other: expected a model of the same classes")
        if self.base_ is not None or other.base_ is not None:
            raise ValueError("other: two models with a base each have their own, and cannot merge")
        self._prior_stream().merge(other._prior_stream())
        return self

    @only_priors
    def drop_summaries(self) -> Self:
        """Keep of each entity its weights alone, once learning is done.

        With k = d + 1 weights an entity then takes 8 k bytes instead of up to
        8 (k (k + 1) / 2 + 2 k + 2). Nothing more can be learned, and for known ids
        there are no standard deviations, and so no intervals and no probabilities.
        """
        check_is_fitted(self)
        self._prior_stream().drop_summaries()
        return self

    def _new_stream(self, settings: PriorSettings | Settings, X: FloatArray) -> AnyStream:
        """A stream for rows such as these."""
        if isinstance(settings, Settings):
            return BiasStream(settings, X.shape[1], X.dtype)
        kind = SparseStream if is_sparse(X) else PriorStream
        stream = kind(settings, X.shape[1], X.dtype)
        stream.n_jobs = check_jobs(self.n_jobs)
        return stream
