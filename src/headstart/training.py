"""Estimators fitted to datasets on disk: the prior, or the paper's bias in rounds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sklearn.base import clone

from headstart._core.checks import check_count, check_jobs
from headstart._core.files import clear_asides
from headstart._core.jit import source_digest
from headstart._core.places import AnyPath, full
from headstart._core.runs import digest_of
from headstart.estimators.dataset import dataset_classes, learn_dataset, noted
from headstart.estimators.protocol import MetaModel
from headstart.inner.algorithm import OnePass
from headstart.meta import BiasState
from headstart.meta.prior.goal import MAX_TASKS
from headstart.meta.prior.prior import Prior
from headstart.meta.rounds import Loading, RoundSettings, learn_rounds
from headstart.online import BiasStream, PriorSettings, Settings
from headstart.parquet import PARTITION_ROWS, ParquetRows, Partition, grouped_by, plan_partitions
from headstart.parquet.engine import Engine, LocalEngine
from headstart.tasks import TaskSet

if TYPE_CHECKING:  # an extra, imported below where it is used
    from headstart.distributed import Cluster

SAMPLE = 400  # tasks that say how large inputs and labels are
Model = TypeVar("Model", bound=MetaModel)


def fit(
    model: Model,
    rows: ParquetRows,
    *,
    client: Cluster | str | None = None,
    folder: AnyPath | None = None,
    max_tasks: int | None = MAX_TASKS,
    partition_rows: int = PARTITION_ROWS,
    initial: Prior | None = None,
) -> Model:
    """Learn the prior of a dataset, here or on a cluster: the same one, to the last bit.

    The sample of `max_tasks` tasks is that of `learn_prior`. Workers read the ids, then the rows
    of the sample. With ``max_tasks=None`` and the squared loss, what all tasks have shown stays
    with the workers that have read them, and sums alone travel.

    Parameters
    ----------
    model : MetaRegressor or MetaClassifier
        With ``reg="auto"``; for the paper's algorithms see `fit_rounds`.
    rows : ParquetRows
        Rows of a task may lie anywhere in it.
    client : distributed.Client or address of a scheduler, optional
        Who reads; threads of this process by default.
    folder : str or Path, optional
        Where scattered rows are put together if all tasks are asked for; for a cluster one that
        all workers see, or an address on an object store.
    max_tasks : int, optional
        As in `learn_prior`.
    partition_rows : int
        About how many rows one call reads.
    initial : Prior, optional
        As in `learn_prior`: ``initial=yesterday.prior_`` takes fewer passes to the same prior. Its
        columns are taken to be those of `rows`, in their order.

    Returns
    -------
    A fitted copy of the model. It knows the prior and no entity: `headstart.jobs.adapt_all` writes
    the weights of all.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> from headstart import MetaRegressor
    >>> rng = np.random.default_rng(0)
    >>> ids, x = np.repeat(np.arange(200), 5), rng.standard_normal(1000)
    >>> y = 3.0 + 2.0 * x + rng.standard_normal(200)[ids] + 0.1 * rng.standard_normal(1000)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     parquet.write_table(pa.table({"id": ids, "x": x, "y": y}), f"{place}/a.parquet")
    ...     model = fit(MetaRegressor(), ParquetRows(place, "id", "y"))
    >>> print(model.bias_.round(1), model.n_tasks_)
    [2.] 200
    """
    fitted = clone(model)
    if not isinstance(fitted.settings(), PriorSettings):
        raise ValueError(
            "reg: expected 'auto', to learn a prior, found a number; fit_rounds is for the paper's "
            "algorithm"
        )
    place = None if folder is None else full(folder)  # workers may be in another one
    with ExitStack() as stack:
        engine: Engine | None = None
        if client is not None:
            engine = _connected(client, stack, "begin again: nothing was changed")
        stack.enter_context(noted(fitted, rows, max_tasks))
        learn_dataset(
            *(fitted, rows),
            engine=engine,
            folder=place,
            max_tasks=max_tasks,
            partition_rows=partition_rows,
            initial=initial,
        )
    return fitted


def fit_rounds(
    model: Model,
    rows: ParquetRows,
    *,
    client: Cluster | str | None = None,
    batch_size: int = 256,
    folder: AnyPath | None = None,
    partition_rows: int = PARTITION_ROWS,
    memory: int | None = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Model:
    """Meta-train an estimator in synchronous rounds over all tasks of a dataset.

    It is Algorithm 2 with minibatches, see `headstart.meta.rounds`: another algorithm than
    `fit` of the estimator, which takes one task after another.

    Parameters
    ----------
    model : MetaRegressor or MetaClassifier
        With ``inner="sgd"`` and numbers for reg and step.
    rows : ParquetRows
    client : distributed.Client or address of a scheduler, optional
        Whose workers keep the partitions; this process by default.
    batch_size : int
        Tasks of a round; at least one of each partition.
    folder : str or Path, optional
        Where rounds are saved from time to time, to resume from, and where scattered rows
        are put together; for a cluster one that all workers see, or an address on an object store.
    partition_rows, n_jobs
        As in `adapt_all`.
    memory : int, optional
        Bytes of partitions that are kept in each process; those beyond are read again in every
        round. By default two fifths of the memory of the worker, or of this machine.
    callback : function of two numbers, optional
        Called after every round with the tasks done and the tasks there are.

    Returns
    -------
    A fitted copy of the model. It knows the bias and no entity.
    """
    if model.inner != OnePass.name:
        raise ValueError(f"inner: expected 'sgd' for rounds, found {model.inner!r}")
    fitted = clone(model)
    settings = fitted.settings()
    if not isinstance(settings, Settings) or settings.step is None:
        raise ValueError(
            f"reg, step: expected numbers for rounds, found {model.reg!r} and {model.step!r}; "
            "headstart.training.fit learns a prior, which needs none"
        )
    if memory is not None:
        check_count("memory", memory, at_least=0)
    place = None if folder is None else full(folder)  # workers may be in another one
    what_stays = "begin again; with a folder it would resume from the last round saved there"
    if place is not None:
        clear_asides(place)  # of a run that was killed
        what_stays = f"the last saved round is in {place}, and the same call resumes from it"
    with ExitStack() as stack:
        stack.enter_context(noted(fitted, rows, None))
        engine: Engine = LocalEngine(check_jobs(n_jobs))
        if client is not None:
            engine = _connected(client, stack, what_stays)
        copy_to = None if place is None else place / "clustered"
        alone = client is None
        together = stack.enter_context(grouped_by(engine.map, rows, copy_to, alone=alone))
        partitions = plan_partitions(together, partition_rows)
        classes = dataset_classes(model, rows, engine)
        if classes is None:
            rows.check_numbers()
        loading = Loading(together, classes=() if classes is None else tuple(classes))
        if model.fit_intercept:
            loading = _loading(loading, _sample(loading, partitions))
        state = learn_rounds(
            *(engine.hold(loading.parts(partitions, memory)), loading.n_features),
            RoundSettings(settings.reg, settings.step, settings.loss, batch_size),
            folder=place,
            job=_job(rows, loading),
            callback=callback,
        )
        stream = _stream(settings, rows, loading, state)
        names = np.array(loading.classes) if loading.classes else None
        fitted.know(stream, tuple(rows.features or ()), names)
    return fitted


def _job(rows: ParquetRows, loading: Loading) -> str:
    """Digest of what the rounds are about: files as they are now, columns, and the code."""
    return digest_of(source_digest(), rows.columns, sorted(rows.stamps().items()), loading[1:])


def _connected(client: Cluster | str, stack: ExitStack, what_stays: str) -> Engine:
    """The cluster as an engine; if it is lost, the error says what stays."""
    from headstart.distributed import ClusterEngine, connect, watching

    cluster = connect(client)
    if isinstance(client, str):  # nobody else has it
        stack.callback(cluster.close, timeout=2)
    stack.enter_context(watching(cluster, what_stays))
    return ClusterEngine(cluster)


def _sample(loading: Loading, partitions: list[Partition]) -> TaskSet:
    """The first tasks, as they are in the dataset."""
    tasks = loading.load(partitions[0])
    return tasks.subset(range(min(SAMPLE, len(tasks)))).astype(np.float64)


def _loading(unscaled: Loading, sample: TaskSet) -> Loading:
    """With a constant column on the scale of inputs, and regression labels less their median."""
    scale = float(np.sqrt(np.mean(sample.X**2))) or 1.0
    offset = 0.0 if unscaled.classes else float(np.median(sample.y))
    return unscaled._replace(constant=scale, offset=offset)


def _stream(
    settings: Settings, rows: ParquetRows, loading: Loading, state: BiasState
) -> BiasStream:
    """What the rounds have learned, in the units of the data: the intercept is the label at 0."""
    last, total = (loading.column.outward(iterate) for iterate in (state.last, state.total))
    last[-1] += loading.offset
    total[-1] += loading.offset * (state.steps + 1)
    stream = BiasStream(settings, rows.n_features, rows.dtype)
    square = loading.constant**2
    stream.set_bias(last, total, steps=state.steps, rows=rows.n_rows, mean_square=square)
    return stream
