"""Meta estimators and datasets on disk: learning from one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import ClassifierMixin

from headstart._core.checks import FloatArray, check_jobs, read_only, warn_user
from headstart.estimators.inputs import Labels, as_numbers, read_classes
from headstart.estimators.protocol import MetaModel
from headstart.estimators.sparse_dataset import learn_sparse
from headstart.meta.prior.learn import MAX_TASKS, learn_prior, summarised
from headstart.online import AnyStream, BiasStream, PriorSettings, PriorStream, Settings
from headstart.parquet import ParquetRows, grouped
from headstart.parquet.columns import Array
from headstart.tasks.ids import Column, read_ids


def fit_dataset(
    model: MetaModel, rows: ParquetRows, y: object, groups: object, sample_weight: object
) -> None:
    """Learn where entities start from a dataset, in bounded memory."""
    settings = model.settings()
    _refuse(
        y=y, groups=groups, sample_weight=sample_weight, random_state=model.random_state,
        side=model.side, base=model.base,
    )  # fmt: skip
    if model.group not in (None, rows.group):
        raise ValueError(f"group: expected {rows.group!r} as in the dataset, or None")
    classes = dataset_classes(model, rows)
    if classes is None:
        rows.check_numbers()
    stream: AnyStream
    if rows.sparse is not None:
        if not isinstance(settings, PriorSettings):
            raise ValueError("reg: expected 'auto' with a dataset of sparse rows, found a number")
        stream = learn_sparse(rows, classes, settings, check_jobs(model.n_jobs))
        model.know_columns(stream, rows.n_features, classes)
        return
    if isinstance(settings, PriorSettings):
        stream = _learn_prior(rows, classes, settings, check_jobs(model.n_jobs))
    else:
        stream = _learn_bias(rows, classes, settings)
    model.know(stream, tuple(rows.features or ()), classes)


def dataset_chunks(
    model: MetaModel, rows: ParquetRows, y: object, groups: object, sample_weight: object
) -> Iterator[tuple[FloatArray, Labels, Array, None, Labels | None]]:
    """The batches of a dataset as they come: inputs, labels, ids, no weights, and the classes."""
    _refuse(y=y, groups=groups, sample_weight=sample_weight, side=model.side, base=model.base)
    classes = dataset_classes(model, rows)
    if classes is None:
        rows.check_numbers()
    for block in rows.blocks():
        yield block.X, block.y, block.row_ids, None, classes


def dataset_classes(model: MetaModel, rows: ParquetRows) -> Labels | None:
    """The two labels in a dataset if the model is a classifier, else None."""
    return read_classes(rows.labels()) if isinstance(model, ClassifierMixin) else None


def _learn_prior(
    rows: ParquetRows, classes: Labels | None, settings: PriorSettings, n_jobs: int
) -> PriorStream:
    """The prior of those entities with the smallest hashes; rows may come in any order."""
    parts = _labelled_parts(rows, classes, settings)
    summaries = summarised(parts, settings.loss, settings.fit_intercept, MAX_TASKS)
    prior = learn_prior(summaries, metric=settings.metric, n_jobs=n_jobs)
    return PriorStream.of(prior, settings, rows.dtype, rows.n_rows, len(summaries))


def _labelled_parts(
    rows: ParquetRows, classes: Labels | None, settings: PriorSettings
) -> Iterator[tuple[FloatArray, FloatArray, Column]]:
    warned = False
    for block in rows.blocks():
        labels = as_numbers(block.y, classes, block.X.dtype)
        settings.loss.check_labels(labels)
        runs = read_ids(rows.group, block.ids)
        starts = block.starts[runs.starts]
        column = Column(len(labels), starts, runs.codes, runs.values, runs.kinds)  # by row
        warned = warned or warn_of_nobody(column)
        yield block.X, labels, column


def _learn_bias(rows: ParquetRows, classes: Labels | None, settings: Settings) -> BiasStream:
    """Algorithm 2, one task after another, with the bits of `fit`."""
    if settings.exact:
        raise ValueError(
            "X: with a dataset on disk there is no inner='erm'; learn_bias has exact solutions"
        )
    stream = BiasStream(settings, rows.n_features, rows.dtype)
    with grouped(rows) as together:
        last_key = None
        for block in together.blocks(reuse=True):
            labels = as_numbers(block.y, classes, block.X.dtype)
            run = np.where(block.missing, -1, np.arange(len(block.starts)))
            goes_on = block.continues(last_key)
            stream.learn_runs(read_only(block.X), labels, block.by_row(run), goes_on)
            last_key = block.keys[-1]
    stream.finish()
    return stream.without_entities()


def warn_of_nobody(column: Column | None) -> bool:
    """Warn that rows without an id are tasks of their own; whether there are any."""
    if column is None:
        warn_user(
            "groups: there are no ids, so that every row is a task of its own; give groups=, or "
            "name the column of ids with group=",
            UserWarning,
        )
    elif column.missing.any():
        count = int(np.count_nonzero(column.missing))  # each is a run of its own
        warn_user(
            f"groups: {count} of {column.size} rows have no id; each is a task of its own, which "
            "helps to learn the start and is not known later",
            UserWarning,
        )
    else:
        return False
    return True


def _refuse(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name}: expected None with a dataset on disk, found a value")
