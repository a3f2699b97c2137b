"""The same jobs on a Dask cluster, given a running client or a scheduler's address.

Dask runs a function over partitions, at least once and in any order. This library sees to it
that results do not depend on that: results go by the partition's number so that a second run
replaces the first, sums are added in an order that partitions alone decide, and rows are counted.
Every call carries the digest of the client's code, and a worker with other code refuses it,
whenever that worker came. Partitions are loaded by the workers: if one is lost, another loads its
partitions again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import chain
from typing import Any, TypeVar

from distributed import Client, KilledWorker, get_worker
from distributed.comm.addressing import resolve_address
from distributed.comm.core import CommClosedError

from headstart._core.checks import Vector
from headstart._core.jit import source_digest
from headstart.parquet.engine import SHARE, Parts, added, in_pairs, memory

TIMEOUT = 10.0  # seconds to wait for a scheduler, and for the first worker
RETRIES = 2  # of a call that failed; one whose worker died is run again anyway
Item = TypeVar("Item")
Result = TypeVar("Result")
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
        if isinstance(error, OSError) and _answers(client):
            raise  # a file's or a store's, not the cluster's
        raise ClusterError(
            f"{address}: the scheduler was lost; {what_stays or 'begin again'}"
        ) from None


def _answers(client: Cluster) -> bool:
    """Whether the scheduler is there."""
    try:
        client.sync(client.scheduler.identity, callback_timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError, RuntimeError):
        return False
    return bool(client.status == "running")


def executor(client: Cluster) -> Executor:
    """The cluster as an executor, for `adapt_all`, `diagnose` and `reproduce`."""
    return _SameCodeExecutor(client.get_executor(pure=False, retries=RETRIES))


def threads(client: Cluster) -> int:
    """How many calls the cluster runs at once."""
    return sum(client.nthreads().values())


class ClusterEngine:
    """The workers of a cluster as an `Engine`."""

    def __init__(self, client: Cluster) -> None:
        self._client = client

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """What a function gives for each item, in order."""
        calls = self._calls(function, items)
        while calls:
            yield calls.pop(0).result()  # and the worker may forget it

    def tree(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """The same, merged by the workers as `in_pairs` does: one result comes here."""

        def merged(one: Any, other: Any) -> Any:
            return self._client.submit(same_code(merge), one, other, pure=False, retries=RETRIES)

        found: Result = in_pairs(self._calls(function, items), merged).result()
        return found

    def hold(self, parts: Parts[Any]) -> ClusterHeld:
        """Partitions in the memory of the workers."""
        return ClusterHeld(self._client, parts)

    def _calls(self, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        mapped = self._client.map(same_code(function), items, pure=False, retries=RETRIES)
        return list(mapped)


class ClusterHeld:
    """Partitions in the memory of the workers, loaded where they are needed.

    Every worker has a copy of `Parts`, which loads and keeps what that worker is asked for. The
    same blocks go to the same worker again as long as it is there; if it is lost, others load
    them. A round costs a call for each thread of the cluster, however many partitions there are.
    """

    def __init__(self, client: Cluster, parts: Parts[Any]) -> None:
        self._client, self._count = client, len(parts.blocks)
        self._there = client.submit(same_code(_itself), parts, pure=False, retries=RETRIES)
        self._owner = [""] * self._count  # the worker of each block

    def each(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """What a function of a partition, its number and more gives for each, in order."""
        return list(chain(*self._run("each", function, args)))

    def sum(self, function: Callable[..., Vector], *args: Any) -> Vector:
        """The sum of what it gives, by blocks."""
        return added(self._run("sum", function, args))

    def _run(self, what: str, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """The results of all blocks, in order."""
        dealt, work = self._deal(), same_code(_run_blocks)
        calls = [
            self._client.submit(
                *(work, self._there, blocks, what, function, args),
                workers=[worker],
                allow_other_workers=True,
                pure=False,
                retries=RETRIES,
            )
            for worker, blocks in dealt
        ]
        found: list[Any] = [None] * self._count
        for (_, blocks), results in zip(dealt, self._client.gather(calls), strict=True):
            for block, result in zip(blocks, results, strict=True):
                found[block] = result
        return found

    def _deal(self) -> list[tuple[str, list[int]]]:
        """Which blocks each thread of each worker takes: those it has, as far as that is fair."""
        threads: dict[str, int] = self._client.nthreads()
        while not threads:
            self._client.wait_for_workers(1, timeout=TIMEOUT)
            threads = self._client.nthreads()
        share = -(-self._count // sum(threads.values()))
        mine: dict[str, list[int]] = {worker: [] for worker in threads}
        left = []
        for block, worker in enumerate(self._owner):
            if worker in mine and len(mine[worker]) < share * threads[worker]:
                mine[worker].append(block)
            else:
                left.append(block)
        for worker, blocks in mine.items():
            room = share * threads[worker] - len(blocks)
            for block in left[:room]:
                self._owner[block] = worker
            blocks += left[:room]
            left = left[room:]
        dealt: list[tuple[str, list[int]]] = []
        for worker, blocks in mine.items():
            size = -(-len(blocks) // threads[worker]) or 1
            blocks.sort()
            dealt += [(worker, blocks[i : i + size]) for i in range(0, len(blocks), size)]
        return dealt


def _itself(parts: Parts[Any]) -> Parts[Any]:
    """What is sent to workers: each has a copy of its own, which stays until it is released."""
    return parts


def _run_blocks(
    parts: Parts[Any], blocks: list[int], what: str, function: Callable[..., Any], args: Any
) -> list[Any]:
    """Results of some blocks, by a worker."""
    if parts.room is None:
        parts.room = _room()
    return [getattr(parts, what)(block, function, *args) for block in blocks]


def _room() -> int:
    """Bytes that a worker may keep: a share of what it was given, or of the machine's memory."""
    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:  # not on a worker
        limit = None
    return int(SHARE * limit) if limit else memory()
