"""Meta estimators and datasets on disk: learning from one, and adapting to blocks of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from headstart._checks import FloatArray, check_count, read_only
from headstart.estimators.inputs import Labels, read_classes
from headstart.estimators.known import InMemory
from headstart.ids import IdIndex
from headstart.losses import get_loss
from headstart.online import OPEN, Bias, TunedStream, Tuning
from headstart.tasks import TaskSet

Counts = NDArray[np.int64]


def fit_dataset(model: Any, rows: Any, y: object, groups: object) -> None:
    """Learn the bias from a `ParquetRows`, in bounded memory and with the bits of `fit`."""
    from headstart.parquet import grouped

    objective, pace = model._objective(), model._pace(moving_on=True)
    _refuse(y=y, groups=groups, random_state=model.random_state)
    if model.inner == "erm" or model._held_out_share() > 0.0:
        raise ValueError(
            "X: with a dataset on disk there is no inner='erm' and no validation_fraction; "
            "learn_bias has exact solutions"
        )
    if model.group not in (None, rows.group):
        raise ValueError(f"group: expected {rows.group!r} as in the dataset, or None")
    model.n_features_in_ = rows.n_features
    model.feature_names_in_ = np.array(rows.features, object)
    if isinstance(model, ClassifierMixin):
        setattr(model, "classes_", read_classes(rows.labels()))  # noqa: B010
    stream = model._new_stream(np.empty((0, rows.n_features), rows.dtype), pace)
    with grouped(rows) as whole:
        for _ in range(check_count("passes", model.passes)):
            last = None
            for block in whole.blocks(reuse=True):
                goes_on = last is not None and block.keys[0].equals(last)
                labels = model._numbers(block.y).astype(block.X.dtype, copy=False)
                run = np.where(block.missing, -1, np.arange(len(block.starts)))
                inputs = read_only(block.X)
                stream.learn_runs(inputs, labels, block.spread(run), goes_on, objective, pace)
                last = None if block.missing[-1] else block.keys[-1]
            stream.finish(objective, pace)
    stream.forget()
    model._known = InMemory(IdIndex(), stream)


def feed_dataset(model: Any, rows: Any, y: object, groups: object) -> None:
    """`partial_fit` on every batch of a `ParquetRows`, as it comes."""
    _refuse(y=y, groups=groups)
    classes = read_classes(rows.labels()) if isinstance(model, ClassifierMixin) else None
    for block in rows.blocks():
        ids = np.fromiter(block.ids.to_pylist(), object, len(block.starts))
        model._go_on(block.X, block.y, block.spread(ids), classes)


def _refuse(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: expected None with a dataset, which says it itself")


def start_only(model: Any) -> Any:
    """A copy of a model that knows the bias, which new tasks start from, and no entity."""
    check_is_fitted(model)
    copy = clone(model)
    for name in ("n_features_in_", "feature_names_in_", "classes_"):
        if hasattr(model, name):
            setattr(copy, name, getattr(model, name))
    known = model._known
    empty = np.empty((0, model.n_features_in_), known.dtype)
    stream = model._new_stream(empty, model._pace(moving_on=True))
    h, total, counts, sums = (array.copy() for array in known.bias)
    counts[OPEN] = 0
    stream.bias = Bias(h, total, counts, sums)
    if isinstance(stream, TunedStream) and known.tuning is not None:
        stream.tuning = Tuning(**{k: a.copy() for k, a in known.tuning._asdict().items()})
    copy._known = InMemory(IdIndex(), stream)
    return copy


def state_of(model: Any) -> list[NDArray[Any]]:
    """The arrays that decide what `adapt` gives."""
    tuning = model._known.tuning
    return [*model._known.bias, *(() if tuning is None else tuning)]


def weights_after(model: Any, X: FloatArray, y: Labels, sizes: Counts) -> FloatArray:
    """Weights of new entities after their rows, which lie together; some may have none.

    These are the weights that `adapt` gives, the intercept last, and the bias without rows.
    """
    labels = model._numbers(y).astype(X.dtype, copy=False)
    get_loss(model.loss).check_labels(labels)
    some = np.flatnonzero(sizes)
    found: FloatArray = model._start()[None, :]
    if some.size:
        offsets = np.append(0, np.cumsum(sizes[some]))
        found = model._adapted(TaskSet(X, labels, offsets, some))
    if some.size == sizes.size > 0:
        return found
    weights = np.tile(model._start(), (sizes.size, 1)).astype(X.dtype)
    weights[some] = found
    return weights
