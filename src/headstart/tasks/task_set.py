"""Many small data sets as one: stacked rows and the offsets that cut them into tasks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headstart._core.checks import (
    FloatArray,
    as_floats,
    as_labels,
    check_array,
    check_choice,
    check_count,
    check_generator,
    check_rows,
    first_row,
    read_only,
)
from headstart.tasks.ids import Ids, encode, id_array
from headstart.tasks.rows import Rows
from headstart.tasks.sparse import Csr, as_sparse, check_pair, is_sparse, kernel_view, stack

ORDERS = ["stream", "resample"]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class TaskSet:
    """A set of tasks, each a small data set ``(X_t, y_t)`` with its id.

    Task t owns the rows ``offsets[t]`` to ``offsets[t + 1]`` of the stacked `X` and `y`.
    Build one with `from_arrays` or `from_list`, which check the data; float32 inputs stay
    float32, anything else becomes float64, and labels take the type of the inputs. The
    arrays are views that cannot be written.

    Inputs may be SciPy's sparse matrices: `learn_bias`, `learn_prior` and the estimators take
    such tasks at a cost that grows with the non-zeros. What needs dense rows refuses them.

    Attributes
    ----------
    inputs : array, or SciPy's csr_array, of shape (rows, n_features)
        Inputs of all tasks, stacked.
    X : array of shape (rows, n_features)
        The same; an error where they are sparse.
    y : array of shape (rows,)
        Labels of all tasks.
    offsets : int64 array of shape (tasks + 1,)
        Where each task begins; the last entry is the number of rows.
    ids : array of shape (tasks,)
        What each task is called.

    Examples
    --------
    >>> ts = TaskSet.from_arrays([[1.0], [2.0], [3.0]], [1, 2, 3], groups=["b", "a", "b"])
    >>> ts
    TaskSet(2 tasks, 3 rows, 1 feature, 1 to 2 rows a task)
    >>> X, y = ts[0]
    >>> print(ts.ids[0], y)
    b [1. 3.]
    """

    inputs: FloatArray | Csr
    y: FloatArray
    offsets: NDArray[np.int64]
    ids: Ids

    def __post_init__(self) -> None:
        self._put(*check_pair(self.inputs, self.y, ""), self.offsets, self.ids)

    @classmethod
    def of(cls, inputs: FloatArray | Csr, y: FloatArray, offsets: Offsets, ids: Ids) -> TaskSet:
        """The set of rows that are known to be right; they are not looked at."""
        tasks = object.__new__(cls)
        tasks._put(inputs, y, offsets, ids)
        return tasks

    def _put(self, inputs: FloatArray | Csr, y: FloatArray, offsets: Offsets, ids: Ids) -> None:
        cuts: Offsets = np.asarray(check_array("offsets", offsets, 1))
        names = id_array("ids", ids)
        if not (
            cuts.dtype == np.int64
            and len(cuts) == len(names) + 1 > 1
            and cuts[0] == 0
            and cuts[-1] == inputs.shape[0] == len(y)
            and np.all(cuts[1:] > cuts[:-1])
        ):
            raise ValueError(
                "offsets: expected increasing int64 numbers from 0 to the number of rows, one "
                "more than there are ids; TaskSet.from_arrays and from_list make them"
            )
        views = {"inputs": read_only(inputs) if isinstance(inputs, np.ndarray) else inputs}
        for name, value in {**views, "y": read_only(y), "offsets": cuts, "ids": names}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_arrays(
        cls, X: ArrayLike | Csr, y: ArrayLike, groups: ArrayLike | Iterable[Hashable]
    ) -> TaskSet:
        """Tasks from one table and a column saying which row belongs to which task.

        Rows of a group need not be adjacent. Tasks come in the order in which their ids
        first appear, and the rows of a task keep their order. Where the rows already lie
        that way, `X` is not copied.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (rows, n_features)
        y : array-like of shape (rows,)
        groups : array-like of shape (rows,)
            Ids of any hashable kind; None and NaN are refused.
        """
        inputs: Csr | NDArray[np.generic]
        inputs = as_sparse("X", X) if is_sparse(X) else check_array("X", cast(ArrayLike, X), 2)
        labels = check_array("y", y, 1)
        check_rows(inputs, labels)
        ids, codes = encode("groups", groups)
        if codes.size != len(labels):
            raise ValueError(
                f"groups: expected one id per row of X ({len(labels)}), found {codes.size}"
            )
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(np.bincount(codes, minlength=len(ids)), out=offsets[1:])
        adjacent = bool(np.all(codes[1:] >= codes[:-1]))
        order = None if adjacent else np.argsort(codes, kind="stable")
        stacked: FloatArray | Csr
        if isinstance(inputs, np.ndarray):
            stacked = as_floats("X", inputs, 2, rows=order)
        else:
            stacked = inputs if order is None else inputs[order]
        return cls.of(stacked, as_labels("y", labels, stacked.dtype, order), offsets, ids)

    @classmethod
    def from_list(
        cls,
        tasks: Iterable[tuple[ArrayLike | Csr, ArrayLike]],
        ids: Sequence[Hashable] | None = None,
    ) -> TaskSet:
        """Tasks from pairs ``(X_t, y_t)``; ids are 0, 1, ... unless given.

        Examples
        --------
        >>> TaskSet.from_list([([[1.0, 0.0]], [1.0]), ([[0.0, 1.0], [1.0, 1.0]], [2.0, 3.0])])
        TaskSet(2 tasks, 3 rows, 2 features, 1 to 2 rows a task)
        """
        if not isinstance(tasks, Iterable) or getattr(tasks, "ndim", 1) == 0:
            raise TypeError(f"tasks: expected (X, y) pairs, found {type(tasks).__name__}")
        pairs = []
        for t, pair in enumerate(tasks):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"tasks[{t}]: expected a pair (X, y), found {type(pair).__name__}")
            pairs.append(check_pair(*pair, where=f"tasks[{t}] "))
            if (found := pairs[-1][0].shape[1]) != (wanted := pairs[0][0].shape[1]):
                raise ValueError(
                    f"tasks[{t}] X: expected {wanted} columns as in tasks[0], found {found}"
                )
        if not pairs:
            raise ValueError("tasks: expected at least one task, found none")
        offsets = np.zeros(len(pairs) + 1, np.int64)
        np.cumsum([len(y) for _, y in pairs], out=offsets[1:])
        names = id_array("ids", range(len(pairs)) if ids is None else ids)
        different, _ = encode("ids", names)
        if names.size != len(pairs) or different.size != len(pairs):
            raise ValueError(
                f"ids: expected {len(pairs)} different ids, "
                f"found {different.size} among {names.size}"
            )
        stacked = stack([X for X, _ in pairs])
        labels = as_labels("y", np.concatenate([y for _, y in pairs]), stacked.dtype)
        return cls.of(stacked, labels, offsets, names)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, t: int) -> tuple[FloatArray, FloatArray]:
        """Views of the inputs and labels of task number `t`; sparse inputs are copied."""
        if not isinstance(t, int | np.integer):
            raise TypeError(f"t: a task's position is an integer, found {t!r}; see subset")
        if not -len(self) <= t < len(self):
            raise IndexError(f"t: task {t} of a set of {len(self)}")
        rows = slice(*self.offsets[[t % len(self), t % len(self) + 1]].tolist())
        return cast(FloatArray, self.inputs[rows]), self.y[rows]

    def __iter__(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        return (self[t] for t in range(len(self)))

    def __repr__(self) -> str:
        tasks, rows, columns = len(self), len(self.y), self.n_features
        return (
            f"TaskSet({tasks} task{'s' * (tasks != 1)}, {rows} row{'s' * (rows != 1)}, "
            f"{columns}{' sparse' * self.sparse} feature{'s' * (columns != 1)}, "
            f"{self.sizes.min()} to {self.sizes.max()} rows a task)"
        )

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """The stacked inputs, if they are dense."""
        if isinstance(self.inputs, np.ndarray):
            return self.inputs
        raise ValueError(
            "tasks: expected dense rows, found sparse ones, which only learn_prior and one pass "
            "over the rows can take; X.toarray() is dense"
        )

    @property
    def sparse(self) -> bool:
        """Whether inputs are sparse."""
        return not isinstance(self.inputs, np.ndarray)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The float type of the inputs."""
        return self.inputs.dtype

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.inputs.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each task."""
        return np.diff(self.offsets)

    def rows(self, order: str = "stream", random_state: object = None) -> Rows:
        """The rows each task visits, in turn: its own (``"stream"``), or as many drawn from them.

        ``"resample"`` draws with replacement, as the experiments published with the paper
        did; its analysis covers ``"stream"`` only.
        """
        drawn = np.empty(0, np.int64)
        if check_choice("order", order, ORDERS) == "resample":
            sizes = self.sizes
            within = check_generator(random_state).random(len(self.y)) * np.repeat(sizes, sizes)
            drawn = within.astype(np.int64) + np.repeat(self.offsets[:-1], sizes)
        inputs = self.inputs
        X = inputs if isinstance(inputs, np.ndarray) else cast(FloatArray, kernel_view(inputs))
        return Rows(X, self.y, self.offsets, drawn)

    def place(self, row: int) -> str:
        """Which row of which task a stacked row is, in words."""
        t = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"row {row - self.offsets[t]} of task {_said(self.ids[t])}"

    def resampled(self, random_state: object = None) -> TaskSet:
        """As many rows of every task as it has, drawn from them with replacement."""
        drawn = self.rows("resample", random_state).drawn
        return TaskSet.of(self.inputs[drawn], self.y[drawn], self.offsets, self.ids)

    def astype(self, dtype: DTypeLike) -> TaskSet:
        """The same tasks in float32 or float64; the same set where that is their type already."""
        try:
            kind = None if dtype is None else np.dtype(dtype)
        except (TypeError, ValueError, SyntaxError):
            kind = None
        if kind not in (np.float32, np.float64):
            raise TypeError(f"dtype: expected numpy.float32 or numpy.float64, found {dtype!r}")
        if kind == self.dtype == self.y.dtype:
            return self
        with np.errstate(over="ignore"):
            X, y = self.inputs.astype(kind), self.y.astype(kind)
        return TaskSet(X, y, self.offsets, self.ids)

    def subset(self, indices: ArrayLike) -> TaskSet:
        """The tasks at these positions (or where a mask is True), in that order.

        A run of neighbours shares the memory of this set; anything else is copied.
        """
        chosen: NDArray[Any] = check_array("indices", indices, None)
        if chosen.dtype == np.bool_ and chosen.shape == (len(self),):
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise ValueError(
                f"indices: expected positions or a mask of {len(self)} tasks, at least one, "
                f"found shape {chosen.shape} of {chosen.dtype}"
            )
        outside = first_row((chosen < -len(self)) | (chosen >= len(self)))
        if outside is not None:
            raise IndexError(f"indices: task {chosen[outside]} of a set of {len(self)}")
        chosen = chosen.astype(np.int64) % len(self)
        return self._rows(chosen, self.offsets[chosen], self.offsets[chosen + 1])

    def split_rows(self, n_train: int) -> tuple[TaskSet, TaskSet]:
        """Shots and queries: the first `n_train` rows of every task, and the rest.

        Every task must have more than `n_train` rows; leave the others out first with
        ``ts.subset(ts.sizes > n_train)``.

        Examples
        --------
        >>> ts = TaskSet.from_arrays(np.eye(4), [1, 2, 3, 4], [0, 0, 0, 0])
        >>> shots, queries = ts.split_rows(3)
        >>> print(shots.y, queries.y)
        [1. 2. 3.] [4.]
        """
        n = check_count("n_train", n_train)
        short = first_row(self.sizes <= n)
        if short is not None:
            raise ValueError(
                f"n_train: {n} rows leave no query in task {_said(self.ids[short])}, which has "
                f"{self.sizes[short]}; drop such tasks with ts.subset(ts.sizes > {n})"
            )
        every = np.arange(len(self))
        starts, stops = self.offsets[:-1], self.offsets[1:]
        return self._rows(every, starts, starts + n), self._rows(every, starts + n, stops)

    def _rows(
        self, chosen: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> TaskSet:
        offsets = np.zeros(chosen.size + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        rows: slice | NDArray[np.int64] = slice(int(starts[0]), int(stops[-1]))
        if np.any(starts[1:] != stops[:-1]):
            rows = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], stops - starts)
        return TaskSet.of(self.inputs[rows], self.y[rows], offsets, self.ids[chosen])


def _said(i: object) -> str:
    return repr(i.item() if isinstance(i, np.generic) else i)
