"""The same jobs on a real cluster of processes, with workers killed in the middle of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from datasets_on_disk import NAMES, read, table, write
from distributed import Client, LocalCluster
from typer.testing import CliRunner

from headstart import MetaClassifier, MetaRegressor, diagnose
from headstart._core.jit import PACKAGE
from headstart.cli import app
from headstart.distributed import (
    ClusterEngine,
    ClusterError,
    ClusterHeld,
    connect,
    executor,
    watching,
)
from headstart.jobs import adapt_all
from headstart.meta.rounds import Loading, RoundSettings, learn_rounds, n_tasks
from headstart.parquet import ParquetError, ParquetRows, plan_partitions
from headstart.parquet.engine import LocalEngine, Parts
from headstart.training import fit, fit_rounds

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

STARTING = 300  # seconds a worker may take to start, on a machine with much else to do


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # So long after a worker was lost (15 s, unless told) the cluster looks whether it is back, and
    # if not gives it up for good: also one that came back and was killed again a moment before.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    with (
        patient,
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as running,
    ):
        yield running


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with Client(cluster, set_as_default=False) as found:  # type: ignore[no-untyped-call]
        found.wait_for_workers(2, timeout=STARTING)
        yield found


def kill_a_worker(client: Any) -> None:
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


def kill_a_busy_worker(client: Any) -> Callable[[], list[str]]:
    """Wait until a worker is at work, then kill it; gives a function that says which it was."""
    pids = client.run(os.getpid)

    def act() -> None:
        for _ in range(STARTING * 200):
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if busy and busy[0] in pids:
                os.kill(pids[busy[0]], signal.SIGKILL)
                killed.append(busy[0])
                return
            time.sleep(0.005)

    killed: list[str] = []
    thread = threading.Thread(target=act)
    thread.start()

    def which() -> list[str]:
        thread.join()
        return killed

    return which


def once(action: Callable[[], object], after: int) -> Callable[[int, int], None]:
    """A callback that acts when so much is done, one time."""
    waiting = [action]

    def tell(done: int, _: int) -> None:
        if done >= after and waiting:
            waiting.pop()()

    return tell


def dataset(folder: Path, scattered: bool = False, n_tasks: int = 300) -> ParquetRows:
    frame = table(n_tasks)
    if scattered:
        frame = frame.sample(frac=1.0, random_state=0)
    return ParquetRows(write(frame, folder, [333, 334, 900], 97), "id", "y", batch_rows=50)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("scattered", [False, True])
def test_adapt(client: Any, tmp_path: Path, scattered: bool, killed: bool) -> None:
    rows = dataset(tmp_path / "in", scattered)
    model = MetaRegressor().fit(rows)
    workers = executor(connect(client))
    killer = kill_a_busy_worker(client) if killed else None
    there = adapt_all(
        *(model, rows, tmp_path / "there"), predictions=True, partition_rows=90, executor=workers
    )
    assert killer is None or killer()
    here = adapt_all(model, rows, tmp_path / "here", predictions=True, partition_rows=90)
    assert there[1:4] == here[1:4]
    for what in ("weights", "predictions"):
        found = read(tmp_path / "there" / what)
        pd.testing.assert_frame_equal(found, read(tmp_path / "here" / what))
    assert len(read(tmp_path / "there" / "weights")) == 300


@pytest.mark.parametrize("killed", [False, True])
def test_rounds(client: Any, tmp_path: Path, killed: bool) -> None:
    rows = dataset(tmp_path)
    loading, partitions = Loading(rows), plan_partitions(rows, 200)
    callback = once(lambda: kill_a_worker(client), 100) if killed else None
    parts, settings = loading.parts(partitions), RoundSettings(0.5, 0.2, batch_size=24)
    held = ClusterEngine(connect(client)).hold(parts)
    there = learn_rounds(held, 3, settings, callback=callback)
    here = learn_rounds(LocalEngine().hold(parts), 3, settings)
    np.testing.assert_array_equal(there.total, here.total)
    assert there.steps == here.steps > 5


def test_an_estimator_in_rounds(client: Any, tmp_path: Path) -> None:
    rows, model = dataset(tmp_path / "in", scattered=True), MetaRegressor(reg=0.5, step=0.2)
    there = fit_rounds(model, rows, client=client, batch_size=16, folder=tmp_path / "f")
    here = fit_rounds(model, rows, batch_size=16)
    np.testing.assert_array_equal(there.bias_, here.bias_)


def assert_same_prior(one: Any, other: Any) -> None:
    for name in ("bias", "covariance", "noise"):
        found, expected = getattr(one.prior_, name), getattr(other.prior_, name)
        np.testing.assert_array_equal(found, expected, name)
    assert one.n_tasks_ == other.n_tasks_


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("most", [50, None])
@pytest.mark.parametrize("scattered", [False, True])
def test_the_prior_is_that_of_one_machine(
    client: Any,
    tmp_path: Path,
    scattered: bool,
    most: int | None,
    killed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the last bit, also if a worker is lost while rows are read or tasks passed over."""
    rows = dataset(tmp_path / "in", scattered)
    calls: list[int] = []
    asked: dict[str, Any] = {"max_tasks": most, "partition_rows": 150}
    here = fit(MetaRegressor(), rows, **asked)
    kill = once(lambda: kill_a_worker(client), 3 if most is None else 200)
    whole = ClusterHeld.sum

    def pass_over(self: ClusterHeld, *args: Any) -> Any:
        calls.append(len(calls))
        if killed and most is None:
            kill(len(calls), 0)
        return whole(self, *args)

    monkeypatch.setattr(ClusterHeld, "sum", pass_over)
    if killed and most is not None:
        rows = replace(rows, callback=lambda done: kill(done, 0))
    there = fit(MetaRegressor(), rows, client=client, folder=tmp_path / "f", **asked)
    assert_same_prior(there, here)
    assert (most is None) == (len(calls) > 5)


def test_the_prior_of_a_classifier(client: Any, tmp_path: Path) -> None:
    frame = table(100)
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    rows = ParquetRows(write(frame, tmp_path, [90], 50), "id", "y")
    there = fit(MetaClassifier(), rows, client=client, partition_rows=100)
    assert_same_prior(there, fit(MetaClassifier(), rows))


@pytest.mark.parametrize("most", [50, None])
def test_a_file_that_cannot_be_read_is_named(client: Any, tmp_path: Path, most: int | None) -> None:
    rows = dataset(tmp_path / "in")
    path = tmp_path / "in" / "part-002.parquet"
    whole = path.read_bytes()
    rows.row_groups  # noqa: B018 - before it is damaged
    path.write_bytes(whole[:4] + b"\xff" * 600 + whole[604:])
    asked: dict[str, Any] = {"max_tasks": most, "partition_rows": 150, "client": client}
    with pytest.raises(ParquetError, match=r"in(/part-002.parquet)?: cannot be read"):
        fit(MetaRegressor(), rows, **asked)
    path.write_bytes(whole)
    again = fit(MetaRegressor(), rows, **asked)
    assert_same_prior(again, fit(MetaRegressor(), rows, max_tasks=most, partition_rows=150))


def test_work_is_dealt_fairly_and_stays_where_it_is() -> None:
    class Client:
        threads: dict[str, int] = {"a": 1, "b": 3}  # noqa: RUF012

        def nthreads(self) -> dict[str, int]:
            return self.threads

        def submit(self, *_: Any, **__: Any) -> None:
            return None

    client: Any = Client()
    held = ClusterHeld(client, Parts(int, range(40), int))  # type: ignore[arg-type]

    def dealt() -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        blocks = []
        for worker, some in held._deal():
            found.setdefault(worker, set()).update(some)
            blocks += some
        assert sorted(blocks) == list(range(40))
        return found

    first = dealt()
    assert {worker: len(blocks) for worker, blocks in first.items()} == {"a": 10, "b": 30}
    assert dealt() == first
    client.threads = {"a": 1, "c": 3}
    second = dealt()
    assert second["a"] == first["a"]
    client.threads = {"a": 1, "c": 3, "d": 4}
    third = dealt()
    assert third["d"] <= second["a"] | second["c"]
    assert max(map(len, third.values())) <= 20
    assert third["c"] <= second["c"]


def test_diagnosis(client: Any) -> None:
    frame = table(40)
    given = (frame[NAMES], frame["y"], frame["id"])
    there = diagnose(*given, shots=4, executor=executor(client))
    assert str(there) == str(diagnose(*given, shots=4))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "headstart is not installed there; install"),
        ("0.0.9", "has headstart 0.0.9, here it"),
    ],
)
def test_other_workers_are_refused(client: Any, found: str | None, message: str) -> None:
    def change() -> None:  # in here it is sent as it is, not by name
        import importlib.metadata as there

        def version(distribution_name: str) -> str:
            if found is None:
                raise there.PackageNotFoundError(distribution_name)
            return found

        there.version = version

    worker = next(iter(client.run(os.getpid)))
    client.run(change, workers=[worker])
    with pytest.raises(ClusterError, match=f"{worker}: {message}"):
        connect(client)
    os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
    while worker in client.nthreads():  # its nanny starts another one
        time.sleep(0.1)


def test_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        def __init__(self, *_: object, **__: object) -> None:
            pytest.fail("a client was begun")

    monkeypatch.setattr("headstart.distributed.Client", Never)
    with pytest.raises(ClusterError, match="nonsense: no scheduler answers there"):
        connect("nonsense")


def test_nobody_there() -> None:
    with pytest.raises(ClusterError, match="no scheduler answers there"):
        connect("tcp://127.0.0.1:9")


class Outside:
    """A scheduler and a worker in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        note = folder / "scheduler.json"
        note.unlink(missing_ok=True)
        module = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.scheduler = subprocess.Popen(
            [*module, "--port", "0", "--no-dashboard", "--scheduler-file", str(note)], **quiet
        )
        for _ in range(STARTING * 10):
            if note.exists() and note.stat().st_size:
                break
            time.sleep(0.1)
        self.worker = self.start_worker()
        self.address = str(json.loads(note.read_text())["address"])
        with Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(1, timeout=STARTING)

    def start_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard"]
        note = str(self.folder / "scheduler.json")
        return subprocess.Popen(
            [*command, "--nthreads", "1", "--scheduler-file", note, "--death-timeout", "30"],
            cwd=self.folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        for process in (self.worker, self.scheduler):
            process.kill()
            process.wait()


def test_a_lost_scheduler_is_said_and_the_last_round_kept(tmp_path: Path) -> None:
    rows = dataset(tmp_path / "in", n_tasks=600)
    kept = tmp_path / "kept"
    settings: dict[str, Any] = {"batch_size": 8, "folder": kept, "partition_rows": 400}
    model = MetaRegressor(reg=0.5, step=0.2)
    one = Outside(tmp_path)
    try:
        with pytest.raises(ClusterError, match=f"scheduler was lost; the last saved .* {kept}"):
            fit_rounds(
                model, rows, client=one.address, callback=once(one.scheduler.kill, 300), **settings
            )
    finally:
        one.stop()
    calls: list[int] = []
    again = fit_rounds(model, rows, callback=lambda done, _: calls.append(done), **settings)
    assert calls[0] > 100
    whole = fit_rounds(model, rows, batch_size=8, partition_rows=400)
    np.testing.assert_array_equal(again.bias_, whole.bias_)


@pytest.mark.parametrize("most", [50, None])
def test_a_lost_scheduler_is_said_while_a_prior_is_learned(
    most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, one = dataset(tmp_path / "in"), Outside(tmp_path)
    kill = once(one.scheduler.kill, 3)
    whole = ClusterHeld.sum

    def pass_over(self: ClusterHeld, *args: Any) -> Any:
        calls.append(1)
        kill(len(calls), 0)
        return whole(self, *args)

    calls: list[int] = []
    monkeypatch.setattr(ClusterHeld, "sum", pass_over)
    rows = replace(rows, callback=lambda done: kill(done, 0))
    try:
        with pytest.raises(ClusterError, match="scheduler was lost; begin again"):
            fit(MetaRegressor(), rows, client=one.address, max_tasks=most, partition_rows=150)
    finally:
        one.stop()


def test_a_lost_scheduler_leaves_finished_partitions(tmp_path: Path) -> None:
    rows = dataset(tmp_path / "in", n_tasks=2000)
    model, out = MetaRegressor().fit(rows), tmp_path / "out"
    one = Outside(tmp_path)
    try:
        client = connect(one.address)
        lost = pytest.raises(ClusterError, match="scheduler was lost; what is done stays")
        with lost, watching(client, "what is done stays"):
            adapt_all(
                *(model, rows, out),
                partition_rows=200,
                executor=executor(client),
                callback=once(one.scheduler.kill, 300),
            )
        client.close(timeout=2)
    finally:
        one.stop()
    assert not (out / "index.json").exists()
    done = len(list((out / "done").iterdir()))
    calls: list[int] = []
    adapt_all(model, rows, out, partition_rows=200, callback=lambda done, _: calls.append(done))
    assert done >= 1
    assert len(calls) == len(plan_partitions(rows, 200)) - done  # the others are not run again
    adapt_all(model, rows, tmp_path / "whole", partition_rows=200)
    pd.testing.assert_frame_equal(read(out / "weights"), read(tmp_path / "whole" / "weights"))


def test_a_worker_with_other_code_that_comes_later_is_refused(tmp_path: Path) -> None:
    rows = dataset(tmp_path / "in")
    model = MetaRegressor().fit(rows)
    code = tmp_path / "code" / "headstart"
    shutil.copytree(PACKAGE, code, ignore=shutil.ignore_patterns("__pycache__"))
    changed = (code / "estimators" / "start.py").read_text()
    planted = changed.replace(
        "Knowledge(weights, V, prior)", "Knowledge(7.0 + 0.0 * weights, V, prior)"
    )
    assert planted != changed
    (code / "estimators" / "start.py").write_text(planted)
    one = Outside(tmp_path)
    client = connect(one.address)
    other = one.start_worker(PYTHONPATH=str(code.parent))
    try:
        client.wait_for_workers(2, timeout=STARTING)
        one.worker.kill()  # so that the other one has to do it
        while len(client.nthreads()) > 1:
            time.sleep(0.05)
        (address,) = client.nthreads()
        refused = pytest.raises(
            ClusterError, match=f"{address}: has other code of headstart than the client"
        )
        with refused:
            adapt_all(model, rows, tmp_path / "out", executor=executor(client))
        with refused:
            ClusterEngine(client).hold(Loading(rows).parts(plan_partitions(rows))).each(n_tasks)
        with pytest.raises(ClusterError, match=f"{address}: has other code of headstart"):
            fit(MetaRegressor(), rows, client=client)
    finally:
        other.kill()
        other.wait()
        one.stop()
        client.close(timeout=2)


def test_watching_leaves_the_faults_of_files_alone(client: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), watching(client):
        (tmp_path / "no").read_text()


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.usefixtures("client")
def test_the_command_line(cluster: Any, tmp_path: Path) -> None:
    at = ["--scheduler", cluster.scheduler_address]
    dataset(tmp_path / "in")
    asked = [tmp_path / "in", "--group", "id", "--target", "y"]
    code, _, said = run("fit", *asked, "--out", tmp_path / "model", *at)
    assert code == 0, said
    found, here = MetaRegressor.load(tmp_path / "model"), MetaRegressor()
    assert_same_prior(found, here.fit(ParquetRows(tmp_path / "in", "id", "y")))
    model = ["--target", "y", *at, "--out"]
    code, told, said = run("adapt", tmp_path / "model", tmp_path / "in", *model, tmp_path / "w")
    assert code == 0, said
    assert "weights of 300 tasks" in told
    assert len(read(tmp_path / "w" / "weights")) == 300
    code, told, said = run("predict", tmp_path / "model", tmp_path / "in", *model, tmp_path / "p")
    assert code == 0, said
    assert len(read(tmp_path / "p" / "predictions")) == len(table(300))
    one = write(table(40), tmp_path / "one") / "part-000.parquet"
    code, told, said = run("diagnose", one, "--group", "id", "--target", "y", "--shots", 4, *at)
    assert code == 0, said
    assert "verdict:" in told
    small = ["synthetic-regression", "--seeds", 2, "--tasks", 5, "--methods", "itl-sgd,ltl-sgd-sgd"]
    code, _, said = run("reproduce", *small, "--out", tmp_path / "there", *at)
    assert code == 0, said
    assert run("reproduce", *small, "--out", tmp_path / "here")[0] == 0
    curves = "synthetic-regression/curves.csv"
    assert (tmp_path / "there" / curves).read_text() == (tmp_path / "here" / curves).read_text()
    code, _, said = run("fit", *asked, "--out", tmp_path / "m", "--scheduler", "tcp://127.0.0.1:9")
    assert code == 2
    assert "no scheduler answers there" in said


def test_reproduce_survives_a_killed_worker(client: Any, tmp_path: Path, cluster: Any) -> None:
    small = ["synthetic-regression", "--seeds", 3, "--tasks", 60, "--methods", "ltl-sgd-sgd"]
    killer = kill_a_busy_worker(client)
    code, _, said = run(
        "reproduce", *small, "--out", tmp_path / "a", "--scheduler", cluster.scheduler_address
    )
    assert code == 0, said
    assert killer()
    assert run("reproduce", *small, "--out", tmp_path / "b")[0] == 0
    curves = "synthetic-regression/curves.csv"
    assert (tmp_path / "a" / curves).read_text() == (tmp_path / "b" / curves).read_text()
