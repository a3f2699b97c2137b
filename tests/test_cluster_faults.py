"""What fails on a real cluster of processes: every job under every fault.

| job | worker killed, scheduler killed, storage error, other code |
|---|---|
| `sample` | the prior of a sample of tasks |
| `all_tasks` | the prior of all tasks, whose sums stay with the workers |
| `rounds` | meta-training in rounds, saved from time to time |
| `adapt` | every task adapted |
| `shuffle` | scattered rows put together |

Each test below is one column, run for each job. What a job gives under a fault, or when it is run
again after one, has the bits of a run by one process without any.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from clusters import STARTING, Outside, dataset, kill_a_busy_worker, kill_a_worker, once
from datasets_on_disk import NAMES
from numpy.typing import NDArray
from object_stores import S3Server, s3_server, upload
from pyarrow import parquet

import headstart.parquet.shuffle
from headstart import MetaRegressor
from headstart._core.jit import PACKAGE
from headstart._core.places import Place
from headstart._core.retries import StorageError
from headstart.distributed import (
    ClusterEngine,
    ClusterError,
    ClusterHeld,
    connect,
    executor,
    watching,
)
from headstart.jobs import adapt_all
from headstart.parquet import ParquetError, ParquetRows, shuffled
from headstart.training import fit, fit_rounds

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Arrays = list[NDArray[Any]]
Tell = Callable[[], object]  # is called whenever a job has come a step further
Job = Callable[[Any, ParquetRows, Place, Tell], Arrays]


def silent() -> None:
    pass


def sample(client: Any, rows: ParquetRows, _: Place, tell: Tell) -> Arrays:
    whole = ClusterEngine.map

    def run(self: ClusterEngine, *args: Any) -> Iterator[Any]:
        for result in whole(self, *args):
            tell()
            yield result

    with patch.object(ClusterEngine, "map", run):
        model = fit(MetaRegressor(), rows, client=client, max_tasks=50, partition_rows=150)
    return _prior(model)


def all_tasks(client: Any, rows: ParquetRows, _: Place, tell: Tell) -> Arrays:
    whole = ClusterHeld.sum

    def pass_over(self: ClusterHeld, *args: Any) -> Any:
        tell()
        return whole(self, *args)

    with patch.object(ClusterHeld, "sum", pass_over):
        model = fit(MetaRegressor(), rows, client=client, max_tasks=None, partition_rows=150)
    return _prior(model)


def _prior(model: MetaRegressor) -> Arrays:
    prior = model.prior_
    return [prior.bias, np.asarray(prior.covariance), np.array(prior.noise)]


def rounds(client: Any, rows: ParquetRows, folder: Place, tell: Tell) -> Arrays:
    model = fit_rounds(
        *(MetaRegressor(reg=0.5, step=0.2), rows),
        client=client,
        batch_size=8,
        folder=folder,
        partition_rows=400,
        callback=lambda *_: tell(),
    )
    return [model.bias_, np.array(model.intercept_)]


def adapt(client: Any, rows: ParquetRows, folder: Place, tell: Tell) -> Arrays:
    with ExitStack() as stack:
        workers = None
        if client is not None:
            workers = executor(client)
            stack.enter_context(watching(client, "what is done stays"))
        index = adapt_all(
            *(known_model(), rows, folder / "out"),
            partition_rows=90,
            executor=workers,
            callback=lambda *_: tell(),
        )
    found = [parquet.read_table(pa.BufferReader(f.read_bytes())) for f in index.files()]
    return [column.to_numpy() for column in pa.concat_tables(found).columns]


@cache
def known_model() -> MetaRegressor:
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(400, 3)), np.repeat(np.arange(100), 4)
    y = 5.0 + X @ [3.0, -2.0, 1.0] + rng.normal(size=100)[ids] + 0.3 * rng.normal(size=400)
    return MetaRegressor().fit(pd.DataFrame(X, columns=NAMES), y, groups=ids)


def shuffle(client: Any, rows: ParquetRows, folder: Place, tell: Tell) -> Arrays:
    def run(function: Any, items: Any) -> Iterator[Any]:
        for result in map(function, items) if engine is None else engine.map(function, items):
            tell()
            yield result

    engine = None if client is None else ClusterEngine(client)
    with ExitStack() as stack:
        stack.enter_context(patch.object(headstart.parquet.shuffle, "PARTITION_ROWS", 200))
        if client is not None:
            stack.enter_context(watching(client, "what is done stays"))
        copy = shuffled(run, rows, folder)
    return [np.concatenate([block.X for block in copy.blocks()])]


JOBS: dict[str, Job] = {job.__name__: job for job in (sample, all_tasks, rounds, adapt, shuffle)}
RESUMES = {"rounds", "adapt", "shuffle"}  # the others write nothing before they are done
HELD = {"all_tasks", "rounds"}  # workers keep their partitions from one pass to the next
each_job = pytest.mark.parametrize("name", JOBS)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ParquetRows]:
    """The dataset of a job: scattered rows for the one that puts them together."""
    folder = tmp_path_factory.mktemp("data")
    found = {scattered: dataset(folder / str(scattered), scattered) for scattered in (False, True)}
    return lambda name: found[name == "shuffle"]


@pytest.fixture(scope="module")
def expected(
    data: Callable[[str], ParquetRows], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Arrays, int]]:
    """What a job gives here, and how many steps it takes."""

    @cache
    def run(name: str) -> tuple[Arrays, int]:
        steps: list[int] = []
        folder = tmp_path_factory.mktemp(name)
        return JOBS[name](None, data(name), folder, lambda: steps.append(1)), len(steps)

    return run


def assert_goes_on(
    name: str, rows: ParquetRows, folder: Place, expected: tuple[Arrays, int], client: Any = None
) -> None:
    """The job, run again, gives what it should, without doing again what was done."""
    steps: list[int] = []
    assert_same(JOBS[name](client, rows, folder, lambda: steps.append(1)), expected[0])
    assert name not in RESUMES or len(steps) < expected[1]


def assert_same(found: Arrays, expected: Arrays) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@each_job
def test_a_killed_worker(name: str, client: Any, data: Any, expected: Any, tmp_path: Path) -> None:
    """Others compute again what it had, nothing is counted twice.

    Where workers hold partitions, one is killed between two passes; else one that is at work.
    """
    workers, killed = connect(client), [False]

    def kill() -> None:
        kill_a_worker(client)
        killed[0] = True

    act, steps = once(kill, 2), [0]

    def tell() -> None:
        steps[0] += 1
        act(steps[0], 0)

    if name in HELD:
        found = JOBS[name](workers, data(name), tmp_path, tell)
    else:
        which = kill_a_busy_worker(client)
        found = JOBS[name](workers, data(name), tmp_path, silent)
        killed[0] = bool(which())
    assert_same(found, expected(name)[0])
    assert killed[0]


@each_job
def test_a_killed_scheduler(name: str, data: Any, expected: Any, tmp_path: Path) -> None:
    """An error says what stays, and the same call goes on from there."""
    one, steps = Outside(tmp_path), [0]
    after = 20 if name == "rounds" else 2  # of which the first sixteen are saved
    kill = once(one.scheduler.kill, after)

    def tell() -> None:
        steps[0] += 1
        kill(steps[0], 0)

    stays = {
        "rounds": f"the last saved round is in {tmp_path}",
        **dict.fromkeys(("adapt", "shuffle"), "what is done stays"),
    }
    try:
        client = connect(one.address)
        said = f"scheduler was lost; {stays.get(name, 'begin again: nothing was changed')}"
        with pytest.raises(ClusterError, match=said):
            JOBS[name](client, data(name), tmp_path, tell)
        client.close(timeout=2)
    finally:
        one.stop()
    assert_goes_on(name, data(name), tmp_path, expected(name))


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as found:
        yield found


@pytest.fixture
def hasty(client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The cluster, whose workers wait no seconds for a store that failed."""

    def hurry() -> None:
        from headstart._core import retries

        retries.WAITS = (0.0, 0.01, 0.02)

    monkeypatch.setattr("headstart._core.retries.WAITS", (0.0, 0.01, 0.02))
    client.run(hurry)
    return connect(client)


def on_store(server: S3Server, rows: ParquetRows) -> tuple[ParquetRows, Place]:
    """The dataset on the store, and a place there for what a job writes."""
    place = server.place(uuid4().hex)
    found = replace(rows, path=upload(Path(str(rows.path)), place / "in"))
    found.row_groups  # noqa: B018 - so that what fails later is the job
    return found, place / "f"


@each_job
def test_a_store_that_fails_now_and_then(
    name: str, hasty: Any, server: S3Server, data: Any, expected: Any
) -> None:
    """Every fifth request for each object, the first among them: it is asked again."""
    rows, folder = on_store(server, data(name))
    asked: Counter[str] = Counter()

    def fits(method: str, path: str) -> bool:
        asked[f"{method} {path}"] += 1
        return method in ("GET", "PUT") and asked[f"{method} {path}"] % 5 == 1

    with server.failing(10**9, fits):
        found = JOBS[name](hasty, rows, folder, silent)
    assert_same(found, expected(name)[0])
    read = [path for path in asked if path.startswith("GET") and "/in/part-" in path]
    assert len(read) == 4
    assert (name in RESUMES) == any(path.startswith("PUT") and "/f/" in path for path in asked)


@each_job
def test_a_store_that_breaks(
    name: str, hasty: Any, server: S3Server, data: Any, expected: Any
) -> None:
    """An error names what could not be read or written, and the same call goes on."""
    rows, folder = on_store(server, data(name))
    method, part, well = {
        "rounds": ("PUT", "/f/rounds.npz", 1),
        "adapt": ("PUT", "/f/out/weights/part-", 2),
        "shuffle": ("PUT", "/rows/bucket-", 2),
    }.get(name, ("GET", "/in/part-002.parquet", 0))
    left = [well]

    def fits(asked: str, path: str) -> bool:
        fitting = asked == method and part in path
        left[0] -= fitting
        return fitting and left[0] < 0

    with (
        server.failing(10**9, fits),
        pytest.raises(StorageError, match=rf"{part}.*: the store failed 4 times"),
    ):
        JOBS[name](hasty, rows, folder, silent)
    assert_goes_on(name, rows, folder, expected(name), hasty)


@each_job
def test_a_file_that_is_gone(
    name: str, client: Any, data: Any, expected: Any, tmp_path: Path
) -> None:
    """It is named, and when it is back the same call works."""
    rows = data(name)
    rows.row_groups  # noqa: B018 - before it goes
    file = Path(str(rows.path)) / "part-002.parquet"
    file.rename(tmp_path / "away")
    try:
        with pytest.raises(ParquetError, match=r"cannot be read: .*part-002\.parquet"):
            JOBS[name](connect(client), rows, tmp_path, silent)
    finally:
        (tmp_path / "away").rename(file)
    assert_same(JOBS[name](client, rows, tmp_path, silent), expected(name)[0])


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client whose only worker came later, with other code."""
    folder = tmp_path_factory.mktemp("stranger")
    code = folder / "code" / "headstart"
    shutil.copytree(PACKAGE, code, ignore=shutil.ignore_patterns("__pycache__"))
    with (code / "estimators" / "start.py").open("a") as file:
        file.write("\nOTHER = True\n")
    one = Outside(folder)
    client = connect(one.address)
    other = one.start_worker(PYTHONPATH=str(code.parent))
    try:
        client.wait_for_workers(2, timeout=STARTING)
        one.worker.kill()  # so that the other one has to do it
        while len(client.nthreads()) > 1:
            time.sleep(0.05)
        yield client
    finally:
        other.kill()
        other.wait()
        one.stop()
        client.close(timeout=2)


@each_job
def test_a_worker_with_other_code(name: str, stranger: Any, data: Any, tmp_path: Path) -> None:
    """It refuses, though it was not there when the client came; nothing is written."""
    (address,) = stranger.nthreads()
    with (
        patch("headstart.training._connected", _unchecked),
        pytest.raises(ClusterError, match=f"{address}: has other code of headstart"),
    ):
        JOBS[name](stranger, data(name), tmp_path, silent)


def _unchecked(client: Any, *_: Any) -> ClusterEngine:
    """As the jobs have it that were connected before the worker came."""
    return ClusterEngine(client)
