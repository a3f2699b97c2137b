"""What users hand to the estimators: tables of any kind, ids beside or inside them, labels."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from headstart._checks import FloatArray, read_only

Labels = NDArray[np.generic]


def take_group(X: Any, groups: Any, group: str | int | None, *, required: bool) -> tuple[Any, Any]:
    """`X` without its column `group`, and the ids: that column, or `groups`, or None.

    Only where it is `required` must the column be there.
    """
    if group is None:
        return X, groups
    if groups is not None:
        raise ValueError(
            f"groups: expected None, because the ids are taken from column {group!r} of X; "
            "give either groups or group"
        )
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        columns = frame.columns
        name = columns[group] if isinstance(group, int) else group
        if name in columns:
            return frame.drop(name).to_native(), frame[name].to_numpy()
        if required:
            raise ValueError(f"group: X has no column {group!r}; it has {_named(columns)}")
        return X, None
    array = X if hasattr(X, "shape") else np.asarray(X, object)
    if not isinstance(group, int):
        raise TypeError(
            f"group: column {group!r} can be found in a data frame only, and X is of type "
            f"{type(X).__name__}; give groups, or the column's number"
        )
    if array.ndim != 2 or not -array.shape[1] <= group < array.shape[1]:
        raise ValueError(f"group: X of shape {array.shape} has no column number {group}")
    return np.delete(array, int(group), axis=1), array[:, int(group)]


def _named(columns: list[str]) -> str:
    shown = ", ".join(map(repr, columns[:10]))
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")


def read_inputs(estimator: Any, X: Any) -> FloatArray:
    """Inputs of a fitted estimator as floats, their number and names checked."""
    if _is_plain(estimator, X):
        return read_only(X)
    floats = [np.float64, np.float32]
    return read_only(validate_data(estimator, X, reset=False, dtype=floats, order="C"))


def read_rows(
    estimator: Any, X: Any, y: ArrayLike, *, reset: bool, numeric: bool
) -> tuple[FloatArray, Labels]:
    """Inputs as floats and labels, checked to belong together."""
    if (
        not reset
        and _is_plain(estimator, X)
        and isinstance(y, np.ndarray)
        and y.shape == (len(X),)
        and (y.dtype.kind in "iub" or (y.dtype.kind == "f" and np.isfinite(y.sum())))
    ):
        return read_only(X), y
    floats = [np.float64, np.float32]
    inputs, labels = validate_data(
        estimator, X, y, reset=reset, dtype=floats, order="C", y_numeric=numeric
    )
    return read_only(inputs), labels


def _is_plain(estimator: Any, X: Any) -> bool:
    """Whether nothing needs to be done: a stream of single rows would spend its time on checks."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and len(X) > 0
        and X.flags.c_contiguous
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        and bool(np.isfinite(X.sum(dtype=np.float64)))
    )


def read_classes(y: Labels, classes: ArrayLike | None = None) -> Labels:
    """The two values labels may have, sorted."""
    check_classification_targets(y)
    found = np.unique(np.asarray(y if classes is None else classes))
    if found.size > 2:
        raise ValueError(
            "Only binary classification is supported. "
            f"The type of the target is {type_of_target(y)}: y has {found.size} classes"
        )
    if found.size < 2:
        raise ValueError(
            f"y: expected two classes, found one class only ({found.tolist()[0]!r})"
            + ("; a stream needs classes= at its first rows" if classes is None else "")
        )
    return found


def as_signs(y: Labels, classes: Labels) -> NDArray[np.float64]:
    """-1 for the first class and +1 for the second."""
    known = np.isin(y, classes)
    if not known.all():
        row = int(np.argmin(known))
        raise ValueError(
            f"y: expected the classes {classes.tolist()}, found {y[row]!r} in row {row}"
        )
    return np.where(y == classes[1], 1.0, -1.0)
