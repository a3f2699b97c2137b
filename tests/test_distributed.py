"""The same jobs on a real cluster of processes; `test_cluster_faults.py` has what fails there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from clusters import dataset, kill_a_busy_worker
from datasets_on_disk import NAMES, read, table, write
from test_sparse_datasets import dataset as sparse_dataset
from test_sparse_datasets import rows_of
from test_sparse_datasets import write as write_lists
from typer.testing import CliRunner

from headstart import MetaClassifier, MetaRegressor, diagnose
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
from headstart.meta.rounds import Loading, RoundSettings, learn_rounds
from headstart.parquet import ParquetRows, plan_partitions
from headstart.parquet.engine import LocalEngine, Parts
from headstart.training import fit, fit_rounds

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("scattered", [False, True])
def test_adapt(client: Any, tmp_path: Path, scattered: bool) -> None:
    rows = dataset(tmp_path / "in", scattered)
    model = MetaRegressor().fit(rows)
    workers = executor(connect(client))
    there = adapt_all(
        *(model, rows, tmp_path / "there"), predictions=True, partition_rows=90, executor=workers
    )
    here = adapt_all(model, rows, tmp_path / "here", predictions=True, partition_rows=90)
    assert there[1:4] == here[1:4]
    for what in ("weights", "predictions"):
        found = read(tmp_path / "there" / what)
        pd.testing.assert_frame_equal(found, read(tmp_path / "here" / what))
    assert len(read(tmp_path / "there" / "weights")) == 300


def test_rounds(client: Any, tmp_path: Path) -> None:
    rows = dataset(tmp_path)
    loading, partitions = Loading(rows), plan_partitions(rows, 200)
    parts, settings = loading.parts(partitions), RoundSettings(0.5, 0.2, batch_size=24)
    held = ClusterEngine(connect(client)).hold(parts)
    there = learn_rounds(held, 3, settings)
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


@pytest.mark.parametrize("most", [50, None])
@pytest.mark.parametrize("scattered", [False, True])
def test_the_prior_is_that_of_one_machine(
    client: Any, tmp_path: Path, scattered: bool, most: int | None
) -> None:
    """To the last bit."""
    rows = dataset(tmp_path / "in", scattered)
    asked: dict[str, Any] = {"max_tasks": most, "partition_rows": 150}
    here = fit(MetaRegressor(), rows, **asked)
    there = fit(MetaRegressor(), rows, client=client, folder=tmp_path / "f", **asked)
    assert_same_prior(there, here)
    asked["initial"] = here.prior_
    again = fit(MetaRegressor(), rows, client=client, folder=tmp_path / "g", **asked)
    assert_same_prior(again, fit(MetaRegressor(), rows, **asked))
    assert again.prior_.n_iter < there.prior_.n_iter


def test_the_prior_of_a_classifier(client: Any, tmp_path: Path) -> None:
    frame = table(100)
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    rows = ParquetRows(write(frame, tmp_path, [90], 50), "id", "y")
    there = fit(MetaClassifier(), rows, client=client, partition_rows=100)
    assert_same_prior(there, fit(MetaClassifier(), rows))


@pytest.mark.parametrize("most", [20, None])
def test_sparse_rows_are_read_by_workers_alone(
    client: Any, tmp_path: Path, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, ids = rows_of()
    order = np.random.default_rng(1).permutation(len(y))
    rows = sparse_dataset(write_lists(tmp_path / "in", X, np.where(y > 2.0, 1, 0), ids, order))
    asked: dict[str, Any] = {"max_tasks": most, "partition_rows": 60}
    here = fit(MetaClassifier(), rows, **asked)

    def refuse(*_: object) -> None:
        pytest.fail("the client read rows")

    for name in ("headstart.parquet.source.read_file", "headstart.parquet.source.Source.column"):
        monkeypatch.setattr(name, refuse)
    there = fit(MetaClassifier(), rows, client=client, **asked)
    np.testing.assert_array_equal(there.prior_.bias, here.prior_.bias)
    np.testing.assert_array_equal(there.prior_.variances, here.prior_.variances)


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


def test_watching_leaves_the_faults_of_files_alone(client: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), watching(client):
        (tmp_path / "no").read_text()
    with pytest.raises(OSError, match=r"^the disk is full"), watching(client):
        raise OSError("the disk is full")  # as Arrow on a worker says it, of no file


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_client_of_an_address_goes_when_the_work_is_done(
    client: Any, cluster: Any, tmp_path: Path
) -> None:
    def clients(dask_scheduler: Any) -> int:
        return len(dask_scheduler.clients)

    rows = dataset(tmp_path / "in")
    before = client.run_on_scheduler(clients)
    fit(MetaRegressor(), rows, client=cluster.scheduler_address)
    assert client.run_on_scheduler(clients) == before


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
