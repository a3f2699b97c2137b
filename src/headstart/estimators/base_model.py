"""A model of all rows below that of the tasks: what it predicts is one more column.

Any estimator of scikit-learn can be the base. It is fitted to the rows of all entities. Of rows
it has seen it says too much, so that the column to learn from comes from models that have not
seen the row's entity: entities are dealt into folds, and each fold is predicted by a model of
the others. Which fold an entity is in depends on its id alone, not on the order of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from headstart._core.checks import FloatArray, Vector, read_only
from headstart._core.places import Place
from headstart.online import Chunk
from headstart.store import StoreError
from headstart.tasks.ids import Column, hash_ids
from headstart.tasks.sparse import is_sparse

FOLDS = 5
SURE = 1e-6  # probabilities nearer to 0 or 1 are taken to be this near

Positions = NDArray[np.int64]


def check_base(base: Any, *, binary: bool) -> None:
    """Raise unless the base predicts labels of this kind."""
    right = is_classifier if binary else is_regressor
    if not hasattr(base, "__sklearn_tags__") or isinstance(base, type) or not right(base):
        kind = "classifier" if binary else "regressor"
        raise TypeError(
            f"base: expected a {kind} of scikit-learn or None, found {type(base).__name__}"
        )


def fitted_base(base: Any, chunk: Chunk) -> tuple[Any, Chunk]:
    """The base fitted to all rows, and the rows with a column from models without their entity."""
    X, y, ids, weight, _ = chunk
    if is_sparse(X):
        raise ValueError("X: expected dense rows with a base, found a sparse matrix; X.toarray()")
    if weight is not None and not has_fit_parameter(base, "sample_weight"):
        raise ValueError(f"sample_weight: the base, {type(base).__name__}, takes no weights")
    fold = _folds(ids, len(y))
    if len(y) == 0 or np.all(fold == fold[0]):
        raise ValueError(
            "base: expected rows of two entities at least, so that each is predicted by a model "
            "that has not seen it"
        )
    column = np.empty(len(y), X.dtype)
    for number in np.unique(fold):
        held_out = fold == number
        column[held_out] = said(_fitted(base, X, y, weight, ~held_out), X[held_out])
    everything = np.ones(len(y), np.bool_)
    return _fitted(base, X, y, weight, everything), chunk._replace(X=_beside(X, column))


def with_column(base: Any, X: FloatArray) -> FloatArray:
    """The rows with what a fitted base says of them as the last column; as they are without."""
    return X if base is None else _beside(X, said(base, X).astype(X.dtype))


def said(base: Any, X: FloatArray) -> Vector:
    """Predictions of a fitted base: numbers, or log odds of the second class."""
    if not is_classifier(base):
        column = base.predict(X)
    elif hasattr(base, "predict_proba"):
        second = np.clip(base.predict_proba(X)[:, -1], SURE, 1.0 - SURE)
        column = np.log(second / (1.0 - second))
    else:
        column = base.decision_function(X)
    numbers = np.asarray(column, np.float64)
    if numbers.shape != (len(X),) or not np.isfinite(numbers).all():
        raise ValueError(
            f"base: expected a finite prediction for every row, found otherwise in what "
            f"{type(base).__name__} predicts"
        )
    return numbers


def to_bytes(base: Any) -> bytes:
    """A fitted base as bytes, without a pickle."""
    data: bytes = _skops("save").dumps(base)
    return data


def from_bytes(data: bytes, folder: Place, *, binary: bool, trusted: bool) -> Any:
    """The fitted base whose bytes these are, in a model in this folder."""
    if not trusted:
        raise StoreError(
            f"{folder} holds a base, whose author could make it harm this process: if you know "
            "who saved it, load with trusted=True, on the command line --trust"
        )
    skops = _skops("load")
    try:
        base = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
        check_base(base, binary=binary)
    except Exception as error:  # whatever reading strange bytes may end in
        raise StoreError(f"{folder} is damaged: its base cannot be read: {error}") from error
    return base


def _skops(purpose: str) -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            f"base: to {purpose} a model with a base, install skops (headstart[base])"
        ) from None
    return skops.io


def _fitted(
    base: Any, X: FloatArray, y: FloatArray, weight: Vector | None, rows: NDArray[np.bool_]
) -> Any:
    weights = {} if weight is None else {"sample_weight": weight[rows]}
    return clone(base).fit(X[rows], y[rows], **weights)


def _beside(X: FloatArray, column: FloatArray) -> FloatArray:
    return read_only(np.column_stack([X, column]))


def _folds(ids: Column | None, rows: int) -> Positions:
    """The fold of every row: entities by the order of their hashes, rows of nobody by place."""
    if ids is None:
        return np.arange(rows) % FOLDS
    hashes = hash_ids(np.fromiter(ids.values, object, len(ids.values)))
    _, rank = np.unique(hashes, return_inverse=True)
    by_run = np.append(rank, 0)[ids.codes]
    return ids.by_row(np.where(ids.missing, ids.starts, by_run) % FOLDS)
