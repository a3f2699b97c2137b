"""Errors that say which column or label is wrong, in which row, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from headstart._core.answers import IF_MISSING, is_finite
from headstart._core.checks import Vector, as_floats, as_numbers, check_finite, first_row
from headstart.tasks.ids.canonical import canonical

COMPLETE = frozenset({str, int, bool, bytes})  # types that have no missing value
FILL_IN = "fill it in, or leave the row out"
NUMPY_SAYS = (  # of what is no table at all
    "could not convert", "float() argument", "setting an array element", "inhomogeneous",
    "must be real", "not support", "truth value", "data type", "has no len", "Cannot",
    "too large",
)  # fmt: skip
CONVERT = "turn the column into numbers, or leave it out"


def refuse_masked(name: str, values: Any) -> None:
    """Raise if an entry is masked: what lies behind a mask is not data."""
    if isinstance(values, np.ma.MaskedArray) and (hidden := np.ma.getmaskarray(values)).any():
        if hidden.ndim == 0:
            raise ValueError(f"{name}: expected rows, found a masked value alone")
        row, *column = np.argwhere(hidden)[0].tolist()
        where = f"{name}: column {column[0]}" if column else name
        raise ValueError(
            f"{where}: expected finite numbers, found a masked value in row {row}; {FILL_IN}"
        )


def as_frame(X: Any, name: str = "X") -> nw.DataFrame[Any]:
    """A data frame of any library, whose columns have different names."""
    try:
        frame: nw.DataFrame[Any] = nw.from_native(X, eager_only=True)
        _ = frame.schema  # some tell of columns of one name only here
    except nw.exceptions.NarwhalsError as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{name}: expected columns of different names ({said})") from None
    return frame


def refuse_dates(X: Any) -> None:
    """Raise if a column has dates, times or durations, which some libraries turn into numbers."""
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "Mm":
            raise TypeError(f"X: expected numbers, found {X.dtype}; turn them into numbers first")
    elif nw.dependencies.is_into_dataframe(X):
        for name, kind in as_frame(X).schema.items():
            if kind.is_temporal():
                raise TypeError(f"X: column {name!r}: expected numbers, found {kind}; {CONVERT}")


def refuse_missing(name: str, labels: Any) -> None:
    """Raise if a label is missing, infinite or a list; other shapes are left to later checks."""
    if nw.dependencies.is_into_dataframe(labels):
        as_frame(labels, name)
    try:
        array: NDArray[Any] = np.asarray(labels)
    except ValueError:
        raise ValueError(
            f"{name}: expected one value for each row, found lists of different lengths"
        ) from None
    if array.ndim not in (1, 2) or array.dtype.kind in "iubUS":
        missing = np.zeros(len(array) if array.ndim else 0, np.bool_)
    elif array.dtype.kind in "fcMm":
        missing = np.asarray(array != array)
    else:
        items = array.reshape(-1).tolist()
        complete = set(map(type, items)) <= COMPLETE
        missing = np.array([not complete and _is_missing(item) for item in items], np.bool_)
    if isinstance(labels, np.ma.MaskedArray):
        missing = missing | np.ma.getmaskarray(labels)
    if (row := first_row(missing)) is not None:
        raise ValueError(
            f"{name}: a value is missing in row {row}; {IF_MISSING} (Input contains NaN)"
        )
    if array.ndim and array.dtype.kind == "f" and (row := first_row(np.isinf(array))) is not None:
        raise ValueError(
            f"{name}: expected finite numbers, found {array[row]} in row {row}; leave the row out, "
            "or correct it (Input contains infinity)"
        )


def check_scored(labels: Any, sample_weight: Any, *, numeric: bool) -> None:
    """Raise if labels to score by, or their weights, are not what scikit-learn can look at."""
    refuse_missing("y", labels)
    if numeric:
        as_numbers("y", labels)
    if sample_weight is not None:
        as_floats("sample_weight", sample_weight, 1)


def _is_missing(item: object) -> bool:
    try:
        return canonical(item) is None
    except TypeError:  # of an unhashable type, which a label is not
        return False


def explain(X: Any, error: Exception) -> None:
    """Raise what is wrong with a column of X, if that is why it could not be read."""
    message = str(error)
    clear = ("eature names", " features, but", "Complex")  # scikit-learn names the fault itself
    if issparse(X) or any(words in message for words in clear):
        return
    for label, values in _columns(X):
        column_of_floats(f"X: column {label!r}", values)
    if any(words in message for words in NUMPY_SAYS):
        kind = type(error) if type(error) in (ValueError, TypeError) else ValueError
        raise kind(
            f"X: expected a table of numbers, found {type(X).__name__} ({message})"
        ) from None


def check_range(X: Any, inputs: Any) -> None:
    """Raise if a number is too large to be squared, naming its column as X does."""
    if issparse(inputs) or is_finite(inputs):
        return
    for j, (label, _) in enumerate(_columns(X)):
        check_finite(f"X: column {label!r}", np.ascontiguousarray(inputs[:, j]))


def _columns(X: Any) -> Iterator[tuple[str | int, Any]]:
    if nw.dependencies.is_into_dataframe(X):
        frame = as_frame(X)
        for name in frame.columns:
            yield name, frame.get_column(name).to_native()
        return
    try:
        array = X if isinstance(X, np.ndarray) else np.asarray(X, object)
    except ValueError:  # rows of different lengths
        return
    if array.ndim == 2:
        for j in range(array.shape[1]):
            yield j, array[:, j]


def column_of_floats(where: str, values: Any) -> Vector:
    """A column as finite float64, or an error that says where it has something else."""
    refuse_masked(where, values)
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind in "Mmc":
        raise TypeError(f"{where}: expected numbers, found {array.dtype}; {CONVERT}")
    try:
        floats: Vector = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        floats = np.array([_float(where, row, item) for row, item in enumerate(array.tolist())])
    if (row := first_row(~np.isfinite(floats))) is not None:
        found = "NaN" if np.isnan(floats[row]) else floats[row]
        raise ValueError(f"{where}: expected finite numbers, found {found} in row {row}; {FILL_IN}")
    return floats


def _float(where: str, row: int, item: Any) -> float:
    if item is None or _is_missing(item):
        return float("nan")
    try:
        return float(item)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{where}: expected numbers, found {item!r} in row {row}; {CONVERT}"
        ) from None
    except TypeError as error:
        raise TypeError(
            f"{where}: expected numbers, found {type(item).__name__} in row {row}; "
            f"{CONVERT} ({error})"
        ) from None
