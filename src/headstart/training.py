"""An estimator meta-trained in rounds, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone

from headstart._checks import check_jobs
from headstart.estimators.inputs import read_classes
from headstart.estimators.known import InMemory
from headstart.ids import IdIndex
from headstart.losses import get_loss
from headstart.meta import BiasState
from headstart.online import ROWS, SQUARES, STEPS, WEIGHT, Bias
from headstart.parquet import (
    PARTITION_ROWS,
    ParquetError,
    ParquetRows,
    grouped,
    plan_partitions,
)
from headstart.rounds import Loading, LocalParts, Parts, learn_rounds
from headstart.selection import Selection, select_online
from headstart.tasks import TaskSet

SAMPLE = 400  # tasks that choose reg and step
REGS, STEPS_TRIED = 10.0 ** np.arange(-2.0, 1.6, 0.5), 10.0 ** np.arange(-2.0, 1.1, 0.5)


def fit_rounds(
    model: Any,
    rows: ParquetRows,
    *,
    client: Any = None,
    batch_size: int = 256,
    folder: str | Path | None = None,
    partition_rows: int = PARTITION_ROWS,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Any:
    """Meta-train an estimator in synchronous rounds over all tasks of a dataset.

    It is Algorithm 2 with minibatches, see `headstart.rounds`: another algorithm than `fit`,
    which takes one task after another. The dataset must fit into the memory of the workers.

    Parameters
    ----------
    model : MetaRegressor or MetaClassifier
        With ``inner="sgd"``. If reg or step are ``"auto"``, both are chosen by online
        validation on some tasks of the first partition.
    rows : ParquetRows
    client : distributed.Client or address of a scheduler, optional
        Whose workers keep the partitions; this process by default.
    batch_size : int
        Tasks of a round.
    folder : str or Path, optional
        Where rounds are saved from time to time, to be gone on with, and where scattered rows
        are put together; for a cluster one that all workers see.
    partition_rows, n_jobs, callback
        As in `adapt_all`; the callback is told tasks instead of rows.

    Returns
    -------
    A fitted copy of the model with numbers for reg and step. It knows the bias and no entity.
    """
    if model.inner != "sgd":
        raise ValueError(f"inner: expected 'sgd' for rounds, found {model.inner!r}")
    model._objective()
    place = None if folder is None else Path(folder)
    with ExitStack() as stack:
        cluster = None if client is None else _connected(client, stack, place)
        spread = None if place is None else place / "clustered"
        whole = stack.enter_context(grouped(rows, spread, in_order=False))
        partitions = plan_partitions(whole, partition_rows)
        classes = tuple(_classes(model, rows))
        sample = _sample(Loading(whole, classes=classes), partitions)
        loading = _loading(model, whole, sample, classes)
        fitted = clone(model).set_params(**_chosen(model, sample, loading, cluster))
        parts: Parts
        if cluster is None:
            pool = stack.enter_context(ThreadPoolExecutor(check_jobs(n_jobs)))
            parts = LocalParts([loading.load(p) for p in partitions], pool)
        else:
            from headstart.distributed import ClusterParts

            parts = ClusterParts(cluster, loading, partitions)
        state = learn_rounds(
            *(parts, loading.n_features, fitted.reg, fitted.step, fitted.loss, batch_size),
            *(place, f"{rows.path} {rows.n_rows} {loading[1:]}", callback),
        )
    _put(fitted, rows, state, loading)
    return fitted


def _connected(client: Any, stack: ExitStack, place: Path | None) -> Any:
    from headstart.distributed import connect, watching

    cluster = connect(client)
    kept = "begin again; with a folder it would go on from the last round saved there"
    if place is not None:
        kept = f"the last saved round is in {place}, and the same call goes on from it"
    stack.enter_context(watching(cluster, kept))
    return cluster


def _classes(model: Any, rows: ParquetRows) -> Any:
    return read_classes(rows.labels()) if isinstance(model, ClassifierMixin) else ()


def _sample(loading: Loading, partitions: list[Any]) -> TaskSet:
    tasks = loading.load(partitions[0])
    return tasks.subset(range(min(SAMPLE, len(tasks)))).astype(np.float64)


def _loading(model: Any, rows: ParquetRows, sample: TaskSet, classes: tuple[Any, ...]) -> Loading:
    """The constant column on the scale of the inputs, and regression labels from their middle."""
    if not model.fit_intercept:
        return Loading(rows, classes=classes)
    scale = float(np.sqrt(np.mean(sample.X**2))) or 1.0
    return Loading(rows, scale, 0.0 if classes else float(np.median(sample.y)), classes)


def _chosen(model: Any, sample: TaskSet, loading: Loading, cluster: Any) -> dict[str, float]:
    """Reg and step as given, or both chosen by online validation on the sample."""
    if model.reg != "auto" and model.step != "auto":
        return {}
    n = max(1, int(np.median(sample.sizes)) // 2)
    able = sample.subset(sample.sizes > n) if np.any(sample.sizes > n) else None
    if able is None or len(able) < 4:
        raise ParquetError(
            f"{loading.rows.path}: too few tasks of two rows or more to choose reg and step by; "
            "give numbers"
        )
    column = np.full((len(able.X), loading.n_features - sample.n_features), loading.constant)
    wide = np.concatenate([able.X, column], axis=1)
    tasks = TaskSet(wide, able.y - loading.offset, able.offsets, able.ids)
    half = len(tasks) // 2
    train, valid = tasks.subset(range(half)), tasks.subset(range(half, len(tasks))).split_rows(n)
    square, size = float(np.mean(np.sum(wide**2, axis=1))), float(np.mean(np.abs(tasks.y))) or 1.0
    regs, steps = REGS * square / (n * size), STEPS_TRIED * size / square
    given = (*(train, valid, valid, regs, steps),)
    options: dict[str, Any] = {"loss": get_loss(model.loss), "every": half}
    if cluster is None:
        found: Selection = select_online(*given, **options)
    else:
        from headstart.distributed import select_spread

        found = select_spread(cluster, *given, **options)
    return {"reg": float(found.reg[-1]), "step": float(found.step[-1])}


def _put(model: Any, rows: ParquetRows, state: BiasState, loading: Loading) -> None:
    """Make the state of the rounds that of a fitted estimator."""
    d, count = rows.n_features, state.steps + 1
    model.n_features_in_ = d
    model.feature_names_in_ = np.array(rows.features, object)
    if loading.classes:
        model.classes_ = np.array(loading.classes)
    stream = model._new_stream(np.empty((0, d), rows.dtype), model._pace(moving_on=True))
    h, total = np.zeros(d + 1), np.zeros(d + 1)
    h[:d], total[:d] = state.last[:d], state.total[:d]
    if loading.constant > 0.0:
        h[d] = loading.constant * state.last[d] + loading.offset
        total[d] = loading.constant * state.total[d] + loading.offset * count
    counts, sums = stream.bias.counts, stream.bias.sums
    counts[STEPS], counts[ROWS], sums[WEIGHT] = state.steps, rows.n_rows, count
    sums[SQUARES] = loading.constant**2 * rows.n_rows * d
    stream.bias = Bias(h, total, counts, sums)
    model._known = InMemory(IdIndex(), stream)
