"""The same jobs on a Dask cluster, given a running client or a scheduler's address.

Dask runs a function over partitions, at least once and in any order. This library sees to it
that results do not depend on that: partitions hold whole tasks, results go by the partition's
number so that a second run replaces the first, sums are added in the order of the partitions,
and rows are counted. Every call carries the digest of the client's code, and a worker with other
code refuses it, whenever that worker came. Partitions are loaded by the workers: if one is lost,
another loads its partitions again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
from distributed import Client, KilledWorker, get_worker
from distributed.comm.addressing import resolve_address
from distributed.comm.core import CommClosedError
from numpy.typing import ArrayLike, NDArray

from headstart._core.checks import Vector
from headstart._core.jit import source_digest
from headstart.losses import Objective
from headstart.meta.rounds import Bounds, Loading, sum_part
from headstart.parquet import Partition
from headstart.selection import Pair, Selection, select_online
from headstart.tasks import Tasks

TIMEOUT = 10.0  # seconds to wait for a scheduler, and for the first worker
RETRIES = 2  # of a call that failed; one whose worker died is run again anyway
Cluster = Any  # a `Client`, whose methods have no types


class ClusterError(RuntimeError):
    """A cluster that cannot be used, or was lost."""


@cache
def _code_here() -> str:
    """Digest of the code of this process."""
    return source_digest()


@dataclass(frozen=True)
class SameCode:
    """A function that runs only where the code is that of the client."""

    function: Callable[..., Any]
    digest: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it, if the code here is the same."""
        if _code_here() != self.digest:
            raise ClusterError(
                f"{_worker_here()}: has other code of headstart than the client; install the same "
                "there, or stop this worker"
            )
        return self.function(*args, **options)


def same_code(function: Callable[..., Any]) -> SameCode:
    """The function, to be run by workers with the code of this process."""
    return SameCode(function, _code_here())


def _worker_here() -> str:
    """The address of the worker that this process is."""
    try:
        return str(get_worker().address)
    except ValueError:
        return "a worker"


class _SameCodeExecutor(Executor):
    """The executor of a cluster, whose workers refuse calls by other code."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """One call."""
        return self._inner.submit(same_code(fn), *args, **kwargs)

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **options: Any) -> Any:
        """A call for each, results in order."""
        return self._inner.map(same_code(fn), *iterables, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End it."""
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


def connect(where: Cluster | str) -> Cluster:
    """A client whose workers all have this version of this package; an error names who has not.

    Parameters
    ----------
    where : str or distributed.Client
        The address of a scheduler, ``tcp://...``, or a running client.
    """
    client: Cluster = where
    if not isinstance(where, Client):
        try:
            resolve_address(where)  # a client that cannot begin complains again when it is dropped
            client = Client(where, timeout=TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"{where}: no scheduler answers there ({error})") from None
    address = client.scheduler.address
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise ClusterError(f"{address}: the scheduler has no workers; start some first") from None
    version = metadata.version("headstart")
    for worker, found in client.run(metadata.version, "headstart", on_error="return").items():
        if isinstance(found, Exception):
            raise ClusterError(
                f"{worker}: headstart is not installed there; install headstart {version}"
            )
        if found != version:
            raise ClusterError(f"{worker}: has headstart {found}, here it is {version}")
    for worker, found in client.run(source_digest, on_error="return").items():
        if found != _code_here():
            raise ClusterError(
                f"{worker}: has other code of headstart {version} than there is here"
            )
    return client


@contextmanager
def watching(client: Cluster, what_stays: str = "") -> Iterator[None]:
    """Turn the loss of the cluster into an error that says what stays and how to go on."""
    address = client.scheduler.address
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"{address}: a partition brought down its worker several times ({error}); give the "
            "workers more memory, or plan smaller partitions"
        ) from None
    except (CommClosedError, CancelledError, TimeoutError, OSError) as error:
        if client.status == "running" and isinstance(error, OSError) and error.filename:
            raise  # a file's, not the cluster's
        raise ClusterError(
            f"{address}: the scheduler was lost; {what_stays or 'begin again'}"
        ) from None


def executor(client: Cluster) -> Executor:
    """The cluster as an executor, for `adapt_all`, `diagnose` and `reproduce`."""
    return _SameCodeExecutor(client.get_executor(pure=False, retries=RETRIES))


def threads(client: Cluster) -> int:
    """How many calls the cluster runs at once."""
    return sum(client.nthreads().values())


class ClusterParts:
    """Partitions in the memory of the workers, loaded where they are needed."""

    def __init__(self, client: Cluster, loading: Loading, partitions: list[Partition]) -> None:
        self._client = client
        self._parts = client.map(same_code(loading.load), partitions, pure=False, retries=RETRIES)
        self._sizes: list[int] = client.gather(client.map(same_code(len), self._parts, pure=False))

    def sizes(self) -> list[int]:
        """Number of tasks of each."""
        return self._sizes

    def sums(self, h: Vector, bounds: Bounds, objective: Objective) -> list[Vector]:
        """Sums of the meta-gradients at h of the tasks within these bounds, in order."""
        busy = [k for k, (first, last) in enumerate(bounds) if last > first]
        found: list[Vector] = self._client.gather(
            self._client.map(
                same_code(sum_part),
                [self._parts[k] for k in busy],
                [h] * len(busy),
                [bounds[k] for k in busy],
                [objective] * len(busy),
                pure=False,
                retries=RETRIES,
            )
        )
        return found


def select_spread(
    client: Cluster,
    train: Tasks,
    valid: Pair,
    test: Pair,
    regs: ArrayLike,
    steps: ArrayLike,
    **options: Any,
) -> Selection:
    """`select_online` with the regs dealt to the workers; the same numbers as on one machine.

    Every candidate has a bias of its own, so parts of the grid are independent: the best of
    their best is the best of all. Options are those of `select_online`, but not
    ``order="resample"``, whose random draws depend on the whole grid.
    """
    if options.get("order", "stream") != "stream":
        raise ValueError("order: only 'stream' can be dealt to workers")
    grid = np.atleast_1d(np.asarray(regs, np.float64))
    parts = np.array_split(grid, min(len(grid), max(threads(client), 1)))
    with watching(client):
        futures = [
            client.submit(
                *(same_code(select_online), train, valid, test, part, steps),
                **options,
                pure=False,
                retries=RETRIES,
            )
            for part in parts
        ]
        return best_of(client.gather(futures))


def best_of(parts: list[Selection]) -> Selection:
    """The selection over a whole grid from those over parts of its regs, in their order."""
    losses = np.array([part.validation_loss.min(axis=(1, 2)) for part in parts])
    best = losses.argmin(axis=0)  # the first of equal ones, as in the whole grid
    row = np.arange(len(best))

    def chosen(name: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.array([getattr(p, name) for p in parts])[best, row]
        return found

    return Selection(
        parts[0].tasks,
        np.concatenate([part.validation_loss for part in parts], axis=1),
        *(chosen(name) for name in ("reg", "step", "bias", "test_loss")),
    )
