"""Meta estimators and datasets on disk: learning from one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from sklearn.base import ClassifierMixin

from headstart._core.checks import FloatArray, read_only, warn_user
from headstart._core.jit import source_digest
from headstart._core.places import Place
from headstart._core.runs import Clock, digest_of, peak_memory
from headstart.estimators.inputs import Labels, as_numbers, read_classes
from headstart.estimators.protocol import MetaModel
from headstart.estimators.run import FitRun
from headstart.estimators.sparse_dataset import learn_sparse
from headstart.meta.prior.dataset import Reading
from headstart.meta.prior.from_dataset import dataset_prior
from headstart.meta.prior.goal import MAX_TASKS, Goal
from headstart.meta.prior.prior import Prior
from headstart.online import AnyStream, BiasStream, PriorSettings, PriorStream, Settings
from headstart.online.own import warn_unsettled
from headstart.parquet import PARTITION_ROWS, ParquetRows, grouped
from headstart.parquet.columns import Array
from headstart.parquet.draw import all_labels
from headstart.parquet.engine import Engine, LocalEngine
from headstart.tasks.ids import Column


def fit_dataset(
    model: MetaModel, rows: ParquetRows, y: object, groups: object, sample_weight: object
) -> None:
    """Learn where entities start from a dataset, in bounded memory."""
    _refuse(y=y, groups=groups, sample_weight=sample_weight)
    with noted(model, rows, MAX_TASKS):
        learn_dataset(model, rows)


@contextmanager
def noted(model: MetaModel, rows: ParquetRows, max_tasks: int | None) -> Iterator[None]:
    """Let a model know how it was learned from a dataset meanwhile."""
    clock, content = Clock(), content_of(model, rows, max_tasks)
    yield
    stream = model.stream()
    passes = 0 if isinstance(stream, BiasStream) or stream.prior is None else stream.prior.n_iter
    amounts = len(rows.files), rows.n_rows, stream.n_tasks, passes
    model.run_ = FitRun(clock.started, clock.seconds, peak_memory(), *amounts, content)


def content_of(model: MetaModel, rows: ParquetRows, max_tasks: int | None) -> str:
    """Digest of all that decides what is learned: files as they are now, settings, and the code."""
    asked = type(model).__name__, model.settings(), rows.columns, max_tasks
    return digest_of(source_digest(), asked, sorted(rows.stamps().items()))


def learn_dataset(
    model: MetaModel,
    rows: ParquetRows,
    *,
    engine: Engine | None = None,
    folder: Place | None = None,
    max_tasks: int | None = MAX_TASKS,
    partition_rows: int = PARTITION_ROWS,
    initial: Prior | None = None,
) -> None:
    """Fit a model to a dataset, by threads of this process or by another engine."""
    settings = model.settings()
    _refuse(random_state=model.random_state, base=model.base)
    if model.group not in (None, rows.group):
        raise ValueError(f"group: expected {rows.group!r} as in the dataset, or None")
    side = side_names(model)
    if set(side) & set(rows.features or ()):
        features = tuple(name for name in rows.features or () if name not in side)
        rows = replace(rows, features=features)
    classes = dataset_classes(model, rows, engine)
    if classes is None:
        rows.check_numbers()
    stream: AnyStream
    if rows.sparse is not None:
        if not isinstance(settings, PriorSettings):
            raise ValueError("reg: expected 'auto' with a dataset of sparse rows, found a number")
        if initial is not None:
            raise ValueError("initial: expected None with a dataset of sparse rows, found a prior")
        goal = Goal.checked(settings.metric, n_jobs=model.n_jobs, max_tasks=max_tasks)
        run = LocalEngine() if engine is None else engine
        stream = learn_sparse(rows, classes, settings, goal, run, partition_rows)
        model.know_columns(stream, rows.n_features, classes)
        return
    if isinstance(settings, PriorSettings):
        labels = () if classes is None else tuple(classes.tolist())
        reading = Reading(
            *(rows, settings.loss, settings.fit_intercept, side, labels),
            nameless=True,
            partition_rows=partition_rows,
        )
        goal = Goal.checked(
            settings.metric, n_jobs=model.n_jobs, max_tasks=max_tasks, initial=initial
        )
        found = dataset_prior(reading, goal, engine, folder)
        if found.n_nameless:
            warn_nameless(found.n_nameless, rows.n_rows)
        warn_unsettled(found.prior)
        stream = PriorStream.of(found.prior, settings, rows.dtype, rows.n_rows, found.n_tasks)
    else:
        stream = _learn_bias(rows, classes, settings)
    model.know(stream, tuple(rows.features or ()), classes)


def side_names(model: MetaModel) -> tuple[str, ...]:
    """The columns of a dataset that describe the entity."""
    for name in model.side or ():
        if not isinstance(name, str):
            raise TypeError(
                f"side: expected names of columns with a dataset on disk, found {name!r}"
            )
    return tuple(str(name) for name in model.side or ())


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


def dataset_classes(
    model: MetaModel, rows: ParquetRows, engine: Engine | None = None
) -> Labels | None:
    """The two labels in a dataset if the model is a classifier, else None."""
    if not isinstance(model, ClassifierMixin):
        return None
    return read_classes(all_labels(rows, LocalEngine() if engine is None else engine))


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
        warn_nameless(int(np.count_nonzero(column.missing)), column.size)  # each a run of its own
    else:
        return False
    return True


def warn_nameless(count: int, n_rows: int) -> None:
    """Warn that rows without an id are tasks of their own."""
    warn_user(
        f"groups: {count} of {n_rows} rows have no id; each is a task of its own, which "
        "helps to learn the start and is not known later",
        UserWarning,
    )


def _refuse(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name}: expected None with a dataset on disk, found a value")
