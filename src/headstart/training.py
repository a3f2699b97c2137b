"""An estimator meta-trained in rounds, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from headstart._core.checks import check_jobs
from headstart._core.leftovers import clear_asides
from headstart.estimators.dataset import dataset_classes
from headstart.estimators.protocol import MetaModel
from headstart.inner.algorithm import OnePass
from headstart.losses import Loss
from headstart.meta import BiasState
from headstart.meta.rounds import Loading, LocalParts, Parts, RoundSettings, learn_rounds
from headstart.online import BiasStream, Settings
from headstart.parquet import (
    PARTITION_ROWS,
    ParquetError,
    ParquetRows,
    Partition,
    grouped,
    plan_partitions,
)
from headstart.selection import Selection, select_online
from headstart.tasks import TaskSet

if TYPE_CHECKING:  # an extra, imported below where it is used
    from headstart.distributed import Cluster

SAMPLE = 400  # tasks that choose reg and step
REGS, STEPS = 10.0 ** np.arange(-2.0, 1.6, 0.5), 10.0 ** np.arange(-2.0, 1.1, 0.5)
Model = TypeVar("Model", bound=MetaModel)


class Trial(NamedTuple):
    """The grid of regs and steps, and the tasks that choose among them.

    Attributes
    ----------
    train : tasks to learn a bias from
    valid : shots and queries of other tasks
    regs, steps : in the units of the tasks
    """

    train: TaskSet
    valid: tuple[TaskSet, TaskSet]
    regs: np.ndarray
    steps: np.ndarray


def fit_rounds(
    model: Model,
    rows: ParquetRows,
    *,
    client: Cluster | str | None = None,
    batch_size: int = 256,
    folder: str | Path | None = None,
    partition_rows: int = PARTITION_ROWS,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Model:
    """Meta-train an estimator in synchronous rounds over all tasks of a dataset.

    It is Algorithm 2 with minibatches, see `headstart.meta.rounds`: another algorithm than
    `fit`, which takes one task after another. The dataset must fit into the memory of the workers.

    Parameters
    ----------
    model : MetaRegressor or MetaClassifier
        With ``inner="sgd"``. If reg or step are ``"auto"``, both are chosen by online
        validation on tasks of the first partition.
    rows : ParquetRows
    client : distributed.Client or address of a scheduler, optional
        Whose workers keep the partitions; this process by default.
    batch_size : int
        Tasks of a round.
    folder : str or Path, optional
        Where rounds are saved from time to time, to resume from, and where scattered rows
        are put together; for a cluster one that all workers see.
    partition_rows, n_jobs
        As in `adapt_all`.
    callback : function of two numbers, optional
        Called after every round with the tasks done and the tasks there are.

    Returns
    -------
    A fitted copy of the model with numbers for reg and step. It knows the bias and no entity.
    """
    if model.inner != OnePass.name:
        raise ValueError(f"inner: expected 'sgd' for rounds, found {model.inner!r}")
    loss = _paper_loss(model)
    place = None if folder is None else Path(folder)
    if place is not None:
        clear_asides(place)  # of a run that was killed
    with ExitStack() as stack:
        cluster = None if client is None else _connected(client, stack, place)
        copy_to = None if place is None else place / "clustered"
        together = stack.enter_context(grouped(rows, copy_to, in_order=False))
        partitions = plan_partitions(together, partition_rows)
        classes = dataset_classes(model, rows)
        if classes is None:
            rows.check_numbers()
        unscaled = Loading(together, classes=() if classes is None else tuple(classes))
        sample = _sample(unscaled, partitions)
        loading = _loading(unscaled, sample) if model.fit_intercept else unscaled
        fitted = clone(model)
        if "auto" in (model.reg, model.step):
            fitted.set_params(**_chosen(trial_of(sample, loading), loss, cluster))
        settings = fitted.settings()
        if not isinstance(settings, Settings) or settings.step is None:
            raise TypeError(f"reg, step: expected numbers by now, found {settings}")
        parts: Parts
        if cluster is None:
            pool = stack.enter_context(ThreadPoolExecutor(check_jobs(n_jobs)))
            parts = LocalParts([loading.load(p) for p in partitions], pool)
        else:
            from headstart.distributed import ClusterParts

            parts = ClusterParts(cluster, loading, partitions)
        state = learn_rounds(
            *(parts, loading.n_features),
            RoundSettings(settings.reg, settings.step, loss, batch_size),
            folder=place,
            job=f"{rows.path} {rows.n_rows} {loading[1:]}",
            callback=callback,
        )
    stream = _stream(settings, rows, loading, state)
    names = np.array(loading.classes) if loading.classes else None
    fitted.know(stream, tuple(rows.features or ()), names)
    return fitted


def _connected(client: Cluster | str, stack: ExitStack, place: Path | None) -> Cluster:
    from headstart.distributed import connect, watching

    cluster = connect(client)
    what_stays = "begin again; with a folder it would resume from the last round saved there"
    if place is not None:
        what_stays = f"the last saved round is in {place}, and the same call resumes from it"
    stack.enter_context(watching(cluster, what_stays))
    return cluster


def _sample(loading: Loading, partitions: list[Partition]) -> TaskSet:
    """The first tasks, as they are in the dataset."""
    tasks = loading.load(partitions[0])
    return tasks.subset(range(min(SAMPLE, len(tasks)))).astype(np.float64)


def _loading(unscaled: Loading, sample: TaskSet) -> Loading:
    """With a constant column on the scale of inputs, and regression labels less their median."""
    scale = float(np.sqrt(np.mean(sample.X**2))) or 1.0
    offset = 0.0 if unscaled.classes else float(np.median(sample.y))
    return unscaled._replace(constant=scale, offset=offset)


def _paper_loss(model: MetaModel) -> Loss:
    """The loss of the paper's algorithms, whatever reg is now: it will be a number."""
    return clone(model).set_params(reg=1.0).settings().loss


def trial_of(sample: TaskSet, loading: Loading) -> Trial:
    """Half of the tasks to learn from, half to validate: on n of their rows, then the others.

    The grid follows the units of the data: with inputs of mean square norm s and labels of mean
    size a, weights are of size a / sqrt(s) and meta-gradients of size sqrt(s), so that regs are
    in units of s / (n a) and steps in units of a / s.
    """
    n = max(1, int(np.median(sample.sizes)) // 2)
    able = sample.subset(sample.sizes > n) if np.any(sample.sizes > n) else None
    if able is None or len(able) < 4:
        raise ParquetError(
            f"{loading.rows.path}: too few tasks of two rows or more to choose reg and step by; "
            "give numbers"
        )
    X = loading.column.rows(able.X)
    tasks = TaskSet.of(X, able.y - loading.offset, able.offsets, able.ids)
    half = len(tasks) // 2
    train, valid = tasks.subset(range(half)), tasks.subset(range(half, len(tasks))).split_rows(n)
    square, size = float(np.mean(np.sum(X**2, axis=1))), float(np.mean(np.abs(tasks.y))) or 1.0
    return Trial(train, valid, REGS * square / (n * size), STEPS * size / square)


def _chosen(trial: Trial, loss: Loss, cluster: Cluster | None) -> dict[str, float]:
    """Reg and step by online validation."""
    grid = trial.train, trial.valid, trial.valid, trial.regs, trial.steps
    options: dict[str, Any] = {"loss": loss, "every": len(trial.train)}
    if cluster is None:
        found: Selection = select_online(*grid, **options)
    else:
        from headstart.distributed import select_spread

        found = select_spread(cluster, *grid, **options)
    return {"reg": float(found.reg[-1]), "step": float(found.step[-1])}


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
