"""What users hand to the estimators: tables of any kind, ids beside or inside them, labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from headstart._core.answers import is_finite
from headstart._core.checks import FloatArray, check_finite, read_only
from headstart.estimators.faults import (
    as_frame,
    check_range,
    column_of_floats,
    explain,
    refuse_dates,
    refuse_masked,
    refuse_missing,
)
from headstart.tasks.sparse import as_sparse

Labels = NDArray[np.generic]
NUMBERS = {float, int, bool}  # labels in a list that need no look at each
FLOATS = [np.float64, np.float32]


def split_columns(
    X: Any,
    groups: Any,
    group: str | int | None,
    side: Sequence[Any] | None = None,
    *,
    required: bool,
) -> tuple[Any, Any, NDArray[np.float64] | None]:
    """`X` without its columns `group` and `side`, the ids, and the columns `side` as floats.

    The ids are the column `group` as it is, or `groups`, or None. Column numbers refer to `X`
    with all its columns. A data frame may lack the columns unless they are `required`.
    """
    if group is not None and groups is not None:
        raise ValueError(
            f"groups: expected None, because the ids are taken from column {group!r} of X; "
            "give either groups or group"
        )
    if side is not None and not isinstance(side, list | tuple):  # changed after fit, say
        raise TypeError(f"side: expected a list of column names or numbers, found {side!r}")
    if (group is None and not side) or issparse(X):
        return X, groups, None
    table = _Table(X)
    group_at = None if group is None else table.find("group", group, required)
    found = [table.find("side", column, required) for column in side or ()]
    if group_at is None and all(column is None for column in found):
        return X, groups, None
    if None in found and found != [None] * len(found):  # some columns, but not this one: raise
        table.find("side", list(side or ())[found.index(None)], required=True)
    side_at = [column for column in found if column is not None]
    if len({group_at, *side_at}) < 1 + len(side_at):
        raise ValueError(f"side: expected columns that differ, and not group, found {side!r}")
    ids = groups if group_at is None else table.take(group_at)
    rest = table.without({group_at, *side_at})
    if not side_at:
        return rest, ids, None
    columns = [column_of_floats(f"side: column {table.label(j)!r}", table.take(j)) for j in side_at]
    return rest, ids, np.column_stack(columns)


class _Table:
    """Columns of a data frame or an array by number."""

    def __init__(self, X: Any) -> None:
        self.names: list[Any] | None = None
        self.take: Callable[[int], Any]  # one column
        self._keep: Callable[[list[int]], Any]  # several, as a table again
        self._X = X
        if nw.dependencies.is_pandas_dataframe(X):  # ten times quicker than by way of narwhals
            names = self.names = X.columns.tolist()
            self.take = lambda j: X[names[j]] if names.count(names[j]) == 1 else X.iloc[:, j]
            self._keep = lambda columns: X.take(columns, axis=1)
        elif nw.dependencies.is_into_dataframe(X):
            frame = as_frame(X)
            names = self.names = frame.columns
            self.take = lambda j: frame.get_column(names[j]).to_native()
            self._keep = lambda columns: frame.select([names[j] for j in columns]).to_native()
        else:
            array = X if hasattr(X, "shape") else np.asarray(X, object)
            self.take = lambda j: array[:, j]
            self._keep = lambda columns: array[:, columns]
            self._X = array
        self._count = self._X.shape[1] if len(self._X.shape) == 2 else -1

    def without(self, columns: set[int | None]) -> Any:
        """The table without these columns."""
        kept = [j for j in range(self._count) if j not in columns]
        if not kept:
            raise ValueError("X: expected columns beside group and side to predict from")
        return self._keep(kept)

    def label(self, j: int) -> Any:
        """What a column is called."""
        return j if self.names is None else self.names[j]

    def find(self, argument: str, column: Any, required: bool) -> int | None:
        """Number of a column that was asked for by number or name, None if it is not there."""
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if -self._count <= column < self._count:
                return int(column) % self._count
            wanted = f"a column's number from 0 to {self._count - 1}"
            raise ValueError(
                f"{argument}: expected {wanted if self._count > 0 else 'X to be a table'}, found "
                f"{column}; X has shape {self._X.shape}"
            )
        if not isinstance(column, Hashable):
            raise TypeError(f"{argument}: expected a column's name or number, found {column!r}")
        if self.names is None:
            raise TypeError(
                f"{argument}: column {column!r} can be found in a data frame only, and X is of "
                f"type {type(self._X).__name__}; "
                + ("give groups, or the column's number" if argument == "group" else "give numbers")
            )
        if (found := self.names.count(column)) == 1:
            return self.names.index(column)
        if found > 1:
            raise ValueError(f"{argument}: X has {found} columns {column!r}; give them other names")
        if required:
            raise ValueError(f"{argument}: X has no column {column!r}; it has {_named(self.names)}")
        return None


def _named(columns: list[Any]) -> str:
    shown = ", ".join(map(repr, columns[:10]))
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")


def read_inputs(estimator: Any, X: Any, *, sparse: bool = False) -> FloatArray:
    """Inputs of a fitted estimator as floats, their number and names checked.

    With `sparse` the result is SciPy's matrix, whatever X is; who asks for that knows it.
    """
    inputs = _plain_inputs(estimator, X)
    if inputs is None:
        refuse_masked("X", X)
        refuse_dates(X)
        accepted = {"accept_sparse": "csr" if sparse else False, "dtype": FLOATS, "order": "C"}
        try:
            inputs = validate_data(estimator, X, reset=False, **accepted)
        except (ValueError, TypeError, OverflowError) as error:
            explain(X, error)
            raise
        check_range(X, inputs)
    return cast(FloatArray, as_sparse("X", csr_array(inputs))) if sparse else read_only(inputs)


def read_rows(
    estimator: Any, X: Any, y: ArrayLike, *, reset: bool, numeric: bool, sparse: bool = False
) -> tuple[FloatArray, Labels]:
    """Inputs as floats and labels, checked to belong together; labels are floats if `numeric`.

    With `sparse` inputs may be SciPy's matrices, and then stay so.
    """
    inputs = None if reset else _plain_inputs(estimator, X)
    labels = None if inputs is None else _plain_labels(y, len(inputs), numeric)
    if inputs is None or labels is None:
        refuse_masked("X", X)
        refuse_dates(X)
        if y is not None:
            refuse_missing("y", y)
        try:
            accepted = {"accept_sparse": "csr" if sparse else False, "dtype": FLOATS, "order": "C"}
            inputs, labels = validate_data(estimator, X, y, reset=reset, **accepted)
        except (ValueError, TypeError, OverflowError) as error:
            explain(X, error)
            raise
        check_range(X, inputs)
        if numeric and labels.dtype.kind not in "fiub":
            labels = column_of_floats("y", labels)
        if numeric and labels.dtype.kind == "f":
            check_finite("y", labels)
    if issparse(inputs):
        return cast(FloatArray, as_sparse("X", inputs)), labels
    return read_only(inputs), labels


def _plain_inputs(estimator: Any, X: Any) -> FloatArray | None:
    """Inputs that need no further check, in one conversion; None if scikit-learn must look.

    A stream of single rows would spend its time on scikit-learn's checks.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if type(X) is np.ndarray:
        array: NDArray[Any] = X
        same = names is None
    elif names is not None and nw.dependencies.is_pandas_dataframe(X):
        same = X.columns.tolist() == names.tolist()
        array = X.to_numpy() if same else np.empty(0)
    elif names is not None and nw.dependencies.is_polars_dataframe(X):
        dates = any(kind.is_temporal() for kind in X.dtypes)  # which would become numbers
        same = X.columns == names.tolist() and not dates
        array = X.to_numpy() if same else np.empty(0)
    else:
        return None
    if not same or array.ndim != 2 or array.dtype.kind not in "fiub":
        return None
    if len(array) == 0 or array.shape[1] != estimator.n_features_in_:
        return None
    floats = np.ascontiguousarray(array, array.dtype if array.dtype in FLOATS else np.float64)
    return floats if is_finite(floats) else None


def _plain_labels(y: Any, rows: int, numeric: bool) -> Labels | None:
    """Labels that need no further check; None if scikit-learn must look."""
    if nw.dependencies.is_pandas_series(y) and isinstance(y.dtype, np.dtype):
        array: NDArray[Any] = y.to_numpy()
    elif type(y) is np.ndarray:
        array = y
    elif type(y) is list and numeric and set(map(type, y)) <= NUMBERS:
        array = np.array(y)
    else:
        return None
    if array.shape != (rows,) or array.dtype.kind not in ("iubf" if numeric else "iubfU"):
        return None
    if array.dtype.kind == "f":
        return array if is_finite(array) else None
    return array


def read_classes(y: Labels, classes: ArrayLike | None = None) -> Labels:
    """The two values labels may have, sorted."""
    refuse_missing("y", y)
    if classes is not None:
        refuse_missing("classes", classes)
    try:
        check_classification_targets(y)
        found = np.unique(y if classes is None else _labels("classes", classes))
    except TypeError as error:  # of kinds that have no order
        name = "y" if classes is None else "classes"
        raise TypeError(f"{name}: expected two labels of one kind ({error})") from None
    if found.size > 2:
        raise ValueError(
            "Only binary classification is supported. "
            f"The type of the target is {type_of_target(found)}: y has {found.size} classes; for "
            'one against the rest, OneVsRestClassifier(MetaClassifier(group="...")) takes the ids '
            "from a column of X (groups would not reach the classifiers inside)"
        )
    if found.size == 0:
        raise ValueError(f"{'y' if classes is None else 'classes'}: expected two, found none")
    if found.size < 2:
        raise ValueError(
            f"y: expected two classes, found one class only ({found.tolist()[0]!r})"
            + ("; a stream needs classes= at its first rows" if classes is None else "")
        )
    return found


def _labels(name: str, values: ArrayLike) -> Labels:
    """Labels as an array, if they can be one."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected two labels, found {values!r}") from None


def as_numbers(y: Labels, classes: Labels | None, dtype: DTypeLike) -> FloatArray:
    """Labels as numbers the losses take."""
    numbers = np.asarray(y, np.float64) if classes is None else as_signs(y, classes)
    return numbers.astype(dtype, copy=False)


def as_signs(y: Labels, classes: Labels) -> NDArray[np.float64]:
    """-1 for the first class and +1 for the second."""
    second = y == classes[1]
    known = second | (y == classes[0])
    if not np.all(known):
        refuse_missing("y", y)
        row = int(np.argmin(known)) if np.ndim(known) else 0
        raise ValueError(
            f"y: expected the classes {classes.tolist()}, found {y[row]!r} in row {row}"
        )
    return np.where(second, 1.0, -1.0)
