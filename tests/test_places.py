"""Places on object stores: a real S3 server, memory and files, with faults."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets_on_disk import NAMES, Stopping, table, write
from object_stores import BUCKET, S3Server, google_store, remote, s3_server, upload
from pyarrow import parquet
from typer.testing import CliRunner

from headstart import MetaClassifier, MetaRegressor, load_model
from headstart._core import places
from headstart._core.files import write_aside
from headstart._core.places import (
    Remote,
    as_place,
    children,
    remove_folder,
)
from headstart._core.retries import StorageError, reason_of
from headstart.cli import app
from headstart.jobs import JobIndex, adapt_all, read_index
from headstart.meta.rounds import SAVE_EVERY
from headstart.parquet import ParquetError, ParquetRows
from headstart.store import StoreError
from headstart.store import remote as remote_store
from headstart.store.version import write_version
from headstart.training import fit_rounds

STORES = ["s3", "memory"]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as found:
        yield found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart._core.retries.WAITS", (0.0, 0.01, 0.02))


@pytest.fixture(params=STORES)
def place(request: Any) -> Remote:
    request.getfixturevalue("server")
    root = {"s3": f"s3://{BUCKET}", "memory": "memory://tests"}[request.param]
    return remote(f"{root}/{uuid4().hex}")


def fitted(frame: pd.DataFrame, **settings: Any) -> MetaRegressor:
    return MetaRegressor(**settings).fit(frame[NAMES], frame["y"], groups=frame["id"])


def test_addresses_and_paths() -> None:
    assert as_place("a/b") == Path("a/b")
    assert as_place("file:///a/b%20c") == Path("/a/b c")
    assert as_place("file:///a#b?c") == Path("/a#b?c")
    with pytest.raises(ValueError, match=r"^file://tmp/x: expected file:/// and a path"):
        as_place("file://tmp/x")
    found = remote("s3://bucket/a/b.parquet?scheme=http")
    assert (found.name, found.suffix, str(found)) == (
        "b.parquet", ".parquet", "s3://bucket/a/b.parquet",
    )  # fmt: skip
    assert found.parent / "b.parquet" == found
    assert found.with_name("c").path == "a/c"
    assert str(remote("s3://key:secret@bucket/a")) == "s3://bucket/a"
    assert "secret" not in repr(remote("s3://key:secret@bucket/a"))
    assert str(remote("abfs://container@account/a")) == "abfs://container@account/a"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(ValueError, match=r"s3:/bucket/x: expected an address with two slashes"):
        as_place(Path("s3://bucket/x"))
    with pytest.raises(ValueError, match=r"nowhere://: cannot be opened .*headstart\[cloud\]"):
        as_place("nowhere://bucket/x").exists()


def test_a_place_is_written_listed_and_removed(place: Remote, tmp_path: Path) -> None:
    assert not place.exists()
    assert list(place.iterdir()) == []
    (place / "a" / "x.bin").put(b"1" * 100)
    (place / "y.bin").put(b"")
    write_aside(place / "z.txt", lambda aside: aside.write_text("whole"))
    assert {p.name for p in place.iterdir()} == {"a", "y.bin", "z.txt"}
    assert {p.path for p in place.files(recursive=True)} == {
        f"{place.path}/{name}" for name in ("a/x.bin", "y.bin", "z.txt")
    }
    assert place.is_dir()
    assert (place / "y.bin").is_file()
    assert (place / "a" / "x.bin").read_bytes(7) == b"1" * 7
    assert (place / "z.txt").read_text() == "whole"
    (place / "z.txt").fetch(tmp_path / "z")
    assert (tmp_path / "z").read_text() == "whole"
    (place / "z.txt").unlink()
    (place / "z.txt").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError, match=r"z\.txt"):
        (place / "z.txt").read_bytes()
    remove_folder(place / "a")
    remove_folder(place / "a")
    assert {p.name for p in place.iterdir()} == {"y.bin"}


def test_a_store_that_cannot_remove_folders_removes_objects(
    place: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/x", "a/b/y", "c"):
        (place / name).put(b"1")

    class Unable:
        def __getattr__(self, name: str) -> Any:
            return getattr(connected, name)

        def delete_dir(self, path: str) -> None:
            raise OSError(f"{path}: 500")

    connected, base = places._connected(place.root)
    monkeypatch.setattr(places, "_connected", lambda _: (Unable(), base))
    remove_folder(place / "a")
    assert [p.name for p in place.files(recursive=True)] == ["c"]


@pytest.mark.parametrize("error", [OSError("no credentials"), pa.ArrowException("no credentials")])
def test_a_store_that_cannot_be_opened_is_named(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> Any:
        raise error

    monkeypatch.setattr(places, "_connected", fail)
    with pytest.raises(StorageError, match=r"^s3://b/c: .*cannot be opened \(no credentials\)"):
        as_place("s3://b/c").exists()


def test_what_fails_while_it_is_written_leaves_nothing(place: Remote) -> None:
    def fail(aside: Path) -> None:
        aside.write_text("half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_aside(place / "x", fail)
    assert not (place / "x").exists()


def test_a_dataset_is_that_of_the_folder(place: Remote, tmp_path: Path) -> None:
    frame = table(kind="str")
    folder = write(frame, tmp_path / "in", [40, 41, 150], row_group=30)
    upload(folder, place)
    for batch_rows in (7, 64, 1 << 16):  # row groups by batches, and at once
        here = ParquetRows(folder, "id", "y", batch_rows=batch_rows)
        there = pickle.loads(
            pickle.dumps(ParquetRows(str(place), "id", "y", batch_rows=batch_rows))
        )
        assert (there.n_rows, there.features) == (here.n_rows, here.features)
        one, other = (np.concatenate([b.X for b in r.blocks()]) for r in (here, there))
        np.testing.assert_array_equal(one, other)
    model, far = MetaRegressor().fit(here), MetaRegressor().fit(there)
    np.testing.assert_array_equal(model.bias_, far.bias_)
    bias: Any = {"reg": 1.0, "step": 0.1}  # which needs tasks to lie together
    scattered = frame.sample(frac=1.0, random_state=0)
    upload(write(scattered, tmp_path / "scattered"), place / "scattered")
    near = MetaRegressor(**bias).fit(ParquetRows(tmp_path / "scattered", "id", "y"))
    far = MetaRegressor(**bias).fit(ParquetRows(str(place / "scattered"), "id", "y"))
    np.testing.assert_array_equal(near.bias_, far.bias_)
    with pytest.raises(ParquetError, match=r"://.*/none: there is no such file or folder"):
        ParquetRows(str(place / "none"), "id", "y")


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    frame = table(12)
    folder = write(frame, tmp_path / "my data")
    rows = ParquetRows((tmp_path / "my data").as_uri(), "id", "y")
    assert rows.path == folder
    fitted(frame).save((tmp_path / "model").as_uri())
    assert (tmp_path / "model" / "model.json").exists()


def test_classes_of_a_dataset_on_a_store(place: Remote, tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    upload(write(frame, tmp_path / "in"), place)
    model = MetaClassifier().fit(ParquetRows(str(place), "id", "y"))
    assert model.classes_.tolist() == ["no", "yes"]


def test_a_damaged_file_is_named(place: Remote, tmp_path: Path) -> None:
    folder = write(table(), tmp_path / "in", [100])
    (folder / "part-001.parquet").write_bytes(b"PAR1 no more than this PAR1")
    upload(folder, place)
    with pytest.raises((ParquetError, StorageError), match=r"part-001\.parquet"):
        MetaRegressor().fit(ParquetRows(str(place), "id", "y"))


@pytest.mark.parametrize("settings", [{}, {"reg": 0.5, "step": 0.1}])
def test_a_loaded_model_is_the_saved_one(settings: Any, place: Remote) -> None:
    frame = table(3000)
    model = fitted(frame, **settings)
    model.save(str(place))
    for loaded in (MetaRegressor.load(str(place)), load_model(str(place))):
        np.testing.assert_array_equal(
            loaded.predict(frame[NAMES], frame["id"]), model.predict(frame[NAMES], frame["id"])
        )
    loaded.partial_fit(frame[NAMES], frame["y"], groups=frame["id"])
    assert loaded.stream().n_rows == 2 * len(frame)


def test_versions_on_a_store(place: Remote) -> None:
    frame = table(12)
    models = [fitted(frame, reg=float(n), step=0.1) for n in range(1, 5)]
    for model in models[:3]:
        model.save(str(place), keep=2)
    assert [load_model(str(place), version).reg for version in range(2)] == [3.0, 2.0]
    with pytest.raises(ValueError, match="version: expected 0 for the newest to 1"):
        load_model(str(place), version=2)
    assert len({p.parent for p in place.files(recursive=True)} - {place}) == 2
    models[3].save(str(place))
    assert len({p.parent for p in place.files(recursive=True)} - {place}) == 1
    assert load_model(str(place)).reg == 4.0


def test_writers_at_once_leave_the_model_of_one(
    place: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(12)
    one, other = fitted(frame, reg=1.0, step=0.1), fitted(frame, reg=2.0, step=0.1)
    original, once = write_version, [True]

    def overtaken(*args: Any) -> bytes:
        if once.pop() if once else False:
            other.save(str(place))
        return original(*args)

    monkeypatch.setattr(remote_store, "write_version", overtaken)
    one.save(str(place))
    assert load_model(str(place)).reg == 1.0
    versions = {p.parent.name for p in place.files(recursive=True)} - {place.name}
    assert len(versions) == 2  # that of the other stays a day
    if place.root.startswith("s3"):  # fsspec has no times of memory
        monkeypatch.setattr(remote_store, "OLD", -1.0)
        one.save(str(place))
        assert len({p.parent.name for p in place.files(recursive=True)} - {place.name}) == 1


def test_a_reader_takes_the_newer_page_if_arrays_are_gone(
    place: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(12)
    fitted(frame, reg=1.0, step=0.1).save(str(place))
    newer = [fitted(frame, reg=2.0, step=0.1)]
    original = Remote.fetch

    def slow(self: Remote, file: Path) -> None:
        if newer:
            newer.pop().save(str(place))
        original(self, file)

    monkeypatch.setattr(Remote, "fetch", slow)
    assert load_model(str(place)).reg == 2.0


def test_a_damaged_or_foreign_model_is_refused(place: Remote) -> None:
    frame = table(12)
    model = fitted(frame)
    (place / "thesis.tex").put(b"mine")
    with pytest.raises(FileExistsError, match=r"holds 'thesis\.tex' and no model"):
        model.save(str(place))
    with pytest.raises(FileNotFoundError, match=r"is not a model: it has no model\.json"):
        load_model(str(place))
    place = place / "model"
    model.save(str(place))
    array = next(p for p in place.files(recursive=True) if p.name == "own_weights.npy")
    content = array.read_bytes()
    for wrong, message in (
        (content + b"0", r"own_weights\.npy is damaged: expected \d+ bytes, found"),
        (content[:-1] + bytes([content[-1] ^ 1]), r"://.*own_weights\.npy is damaged: bytes"),
    ):
        array.put(wrong)
        with pytest.raises(StoreError, match=message):
            load_model(str(place))
    array.unlink()
    with pytest.raises(StoreError, match=r"own_weights\.npy is missing: the model is damaged"):
        load_model(str(place))
    (place / "model.json").put(b"{}")
    with pytest.raises(StoreError, match="is not of a headstart model, or damaged"):
        load_model(str(place))


def test_a_store_that_fails_is_asked_again(server: S3Server, tmp_path: Path) -> None:
    place = remote(f"s3://{BUCKET}/{uuid4().hex}")
    frame = table()
    upload(write(frame, tmp_path / "in", [100], row_group=30), place / "in")
    expected = MetaRegressor().fit(ParquetRows(tmp_path / "in", "id", "y"))
    for count in (1, 2):
        with server.failing(count):
            found = MetaRegressor().fit(ParquetRows(str(place / "in"), "id", "y", batch_rows=20))
            assert server.faults == 0
        np.testing.assert_array_equal(found.bias_, expected.bias_)
        with server.failing(count, lambda method, _: method == "PUT"):
            found.save(str(place / "model"))
            assert server.faults == 0
        with server.failing(count, lambda _, path: path.endswith(".npy")):
            assert load_model(str(place / "model")).n_tasks_ == 60
            assert server.faults == 0


def test_a_store_that_is_broken_is_an_error_and_nothing_half(
    server: S3Server, tmp_path: Path
) -> None:
    place = remote(f"s3://{BUCKET}/{uuid4().hex}")
    frame = table()
    upload(write(frame, tmp_path / "in", [100], row_group=30), place / "in")
    rows = ParquetRows(str(place / "in"), "id", "y")
    with server.failing(), pytest.raises(StorageError, match="the store failed 4 times"):
        MetaRegressor().fit(rows)
    model = MetaRegressor().fit(rows)
    model.save(str(place / "model"))
    other = fitted(frame, reg=1.0, step=0.1)
    for fits in (
        lambda method, path: method == "PUT" and path.endswith(".npy"),
        lambda method, path: method == "PUT" and path.endswith("/model/model.json"),
    ):
        with server.failing(10**9, fits), pytest.raises(StorageError, match="the store failed"):
            other.save(str(place / "model"))
        assert load_model(str(place / "model")).reg == "auto"
    with server.failing(), pytest.raises(StorageError, match=r"s3://.*/model.* the store failed"):
        load_model(str(place / "model"))
    other.save(str(place / "model"))
    assert load_model(str(place / "model")).reg == 1.0


@pytest.mark.parametrize("scattered", [False, True])
def test_a_job_on_a_store_stops_resumes_and_runs_again(
    scattered: bool, place: Remote, tmp_path: Path
) -> None:
    frame = table(kind="str")
    model = fitted(frame)
    shown = frame.sample(frac=1.0, random_state=0) if scattered else frame
    folder = write(shown, tmp_path / "in", [100, 200], row_group=20)
    upload(folder, place / "in")
    rows = ParquetRows(str(place / "in"), "id", "y")
    asked: Any = {"predictions": True, "std": True, "partition_rows": 50, "versions": 2}
    out = place / "out"
    if not scattered:
        with pytest.raises(KeyboardInterrupt):
            adapt_all(model, rows, str(out), executor=Stopping(3), **asked)
        assert not (out / "index.json").exists()
    index = adapt_all(model, rows, str(out), **asked)
    assert scattered or index.run.kept > 0
    assert adapt_all(model, rows, str(out), **asked) == index
    here = adapt_all(model, ParquetRows(folder, "id", "y"), tmp_path / "out", **asked)
    for what in ("weights", "predictions"):
        pd.testing.assert_frame_equal(results(index, what), results(here, what))
    assert {p.name for p in children(out)} == {"index.json", "weights", "predictions"}
    assert {p.name for p in children(out / "weights")} == {p.file for p in index.parts}
    (place / "in" / "part-002.parquet").put_file(
        write(frame.iloc[200:-3], tmp_path / "new", row_group=20) / "part-000.parquet"
    )
    if scattered:
        return
    second = adapt_all(model, ParquetRows(str(place / "in"), "id", "y"), str(out), **asked)
    assert second.run.kept > 0
    assert [name.rpartition("/")[2] for name in second.run.changed] == ["part-002.parquet"]
    assert second.rows == len(frame) - 3
    pd.testing.assert_frame_equal(results(read_index(str(out), 1), "weights"), results(index))
    with pytest.raises(ParquetError, match="holds the finished results of another job"):
        adapt_all(model, rows, str(out))


def results(index: JobIndex, what: str = "weights") -> pd.DataFrame:
    tables = [parquet.read_table(pa.BufferReader(file.read_bytes())) for file in index.files(what)]
    found: Any = pa.concat_tables(tables).to_pandas()
    assert isinstance(found, pd.DataFrame)
    return found


def test_scattered_rows_are_put_together_where_workers_see_them(
    place: Remote, tmp_path: Path
) -> None:
    """By whoever works: each call goes over by pickle, reads the store and writes to it."""
    frame = table(kind="str").sample(frac=1.0, random_state=0)
    upload(write(frame, tmp_path / "in", [100]), place / "in")
    rows, seen = ParquetRows(str(place / "in"), "id", "y"), []

    class Watching(ThreadPoolExecutor):
        def map(self, fn: Any, *iterables: Any, **options: Any) -> Any:
            seen.append((type(fn.__self__).__name__, str(fn.__self__.rows.path)))
            return super().map(pickle.loads(pickle.dumps(fn)), *iterables, **options)

    with Watching(2) as pool:
        index = adapt_all(fitted(frame), rows, str(place / "out"), executor=pool)
    assert [name for name, _ in seen] == ["_Deal", "_Gather", "AdaptJob"]  # footers tell the rest
    assert {path for _, path in seen[:2]} == {str(place / "in")}
    assert seen[2][1].startswith(str(place / "out" / "clustered"))
    assert index.tasks == 60
    here = adapt_all(fitted(frame), ParquetRows(tmp_path / "in", "id", "y"), tmp_path / "out")
    pd.testing.assert_frame_equal(results(index), results(here))
    assert {p.name for p in children(place / "out")} == {"index.json", "weights"}


def test_a_store_that_breaks_in_a_job_is_an_error_and_a_rerun_goes_on(
    server: S3Server, tmp_path: Path
) -> None:
    place = remote(f"s3://{BUCKET}/{uuid4().hex}")
    frame = table()
    model = fitted(frame)
    upload(write(frame, tmp_path / "in", [100, 200], row_group=20), place / "in")
    rows, out = ParquetRows(str(place / "in"), "id", "y"), place / "out"
    rows.row_groups  # noqa: B018 - so that what fails below is the job

    def after(count: int) -> Any:
        left = [count]

        def fits(method: str, path: str) -> bool:
            left[0] -= method == "PUT" and "/weights/" in path
            return left[0] < 0

        return fits

    for count in (0, 2, 2):  # so many partitions are written, from where it stopped
        before = len(children(out / "done"))
        with server.failing(10**9, after(count)), pytest.raises(StorageError) as error:
            adapt_all(model, rows, str(out), partition_rows=50, n_jobs=1)
        assert str(error.value).startswith(f"{out}/weights/part-")
        assert "the store failed 4 times" in str(error.value)
        assert not (out / "index.json").exists()
        assert len(children(out / "done")) == before + count
    done = len(children(out / "done"))
    with (
        server.failing(10**9, lambda method, path: method == "GET" and "/in/" in path),
        pytest.raises(StorageError, match=r"/in/part-\d+\.parquet: the store failed 4 times"),
    ):
        adapt_all(model, rows, str(out), partition_rows=50, n_jobs=1)
    with server.failing(2, lambda method, _: method == "PUT"):
        index = adapt_all(model, rows, str(out), partition_rows=50, n_jobs=1)
    assert index.run.kept == done
    here = adapt_all(model, ParquetRows(tmp_path / "in", "id", "y"), tmp_path / "out")
    pd.testing.assert_frame_equal(results(index), results(here))


def test_rounds_on_a_store_stop_and_go_on(place: Remote, tmp_path: Path) -> None:
    frame = table(200).sample(frac=1.0, random_state=0)
    upload(write(frame, tmp_path / "in"), place / "in")
    rows, model = ParquetRows(str(place / "in"), "id", "y"), MetaRegressor(reg=0.5, step=0.2)
    asked: Any = {"batch_size": 8, "folder": str(place / "f")}
    calls: list[int] = []
    here = ParquetRows(tmp_path / "in", "id", "y")
    whole = fit_rounds(model, here, batch_size=8, callback=lambda n, _: calls.append(n))

    def stop(done: int, _: int) -> None:
        if done == calls[SAVE_EVERY + 2]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_rounds(model, rows, callback=stop, **asked)
    assert {p.name for p in children(place / "f")} == {"rounds.npz"}  # no copy: one works alone
    rest: list[int] = []
    again = fit_rounds(model, rows, callback=lambda n, _: rest.append(n), **asked)
    assert rest == calls[SAVE_EVERY:]
    np.testing.assert_array_equal(again.bias_, whole.bias_)
    with pytest.raises(ParquetError, match=r"://.*/f/rounds\.npz: belongs to another job"):
        fit_rounds(model, rows, **{**asked, "batch_size": 9})
    (place / "f" / "rounds.npz").put(b"half a file")
    with pytest.raises(ParquetError, match=r"://.*/f/rounds\.npz: is damaged"):
        fit_rounds(model, rows, **asked)


def test_rounds_on_a_store_that_breaks(server: S3Server, tmp_path: Path) -> None:
    place = remote(f"s3://{BUCKET}/{uuid4().hex}")
    rows = ParquetRows(write(table(200), tmp_path / "in"), "id", "y")
    model = MetaRegressor(reg=0.5, step=0.2)
    asked: Any = {"batch_size": 8, "folder": str(place / "f")}
    whole = fit_rounds(model, rows, batch_size=8)

    def failing(method: str, well: int) -> Any:
        left = [well]

        def fits(asked: str, path: str) -> bool:
            fitting = asked == method and path.endswith("/rounds.npz")
            left[0] -= fitting
            return fitting and left[0] < 0

        return server.failing(10**9, fits)

    def broken() -> Any:
        return pytest.raises(StorageError, match=r"/f/rounds\.npz: the store failed 4 times")

    rest: list[int] = []
    with failing("PUT", 1), broken():
        fit_rounds(model, rows, **asked)
    with failing("GET", 0), broken():  # which is no damage: nothing is to be removed
        fit_rounds(model, rows, **asked)
    with server.failing(2, lambda method, path: method == "PUT" and "/f/" in path):
        again = fit_rounds(model, rows, callback=lambda n, _: rest.append(n), **asked)
    assert 0 < rest[0] - 8 <= 8 * SAVE_EVERY < 200 - 8
    np.testing.assert_array_equal(again.bias_, whole.bias_)


def test_google_cloud_storage(tmp_path: Path) -> None:
    """A model, a job and rounds, over the protocol of another store than S3."""
    pytest.importorskip("gcp_storage_emulator")
    frame = table()
    folder = write(frame, tmp_path / "in", [100], row_group=50)
    with google_store() as place:
        rows, here = (
            ParquetRows(upload(folder, place / "in"), "id", "y"),
            ParquetRows(folder, "id", "y"),
        )
        model = MetaRegressor().fit(rows)
        for _ in range(2):  # the second time arrays are removed
            model.save(place / "model")
        expected = MetaRegressor().fit(here)
        np.testing.assert_array_equal(load_model(place / "model").bias_, expected.bias_)
        index = adapt_all(model, rows, place / "out", partition_rows=100)
        assert adapt_all(model, rows, place / "out", partition_rows=100) == index
        names = {p.path.split("/")[2] for p in (place / "out").files(recursive=True)}
        assert names == {"index.json", "weights"}
        pd.testing.assert_frame_equal(
            results(index), results(adapt_all(expected, here, tmp_path / "out"))
        )
        paper = MetaRegressor(reg=0.5, step=0.2)
        found = fit_rounds(paper, rows, batch_size=4, folder=place / "rounds")
        np.testing.assert_array_equal(found.bias_, fit_rounds(paper, here, batch_size=4).bias_)
        assert {p.name for p in children(place / "rounds")} == {"rounds.npz"}
        with pytest.raises(FileNotFoundError, match="gs://anonymous@tests/place/none"):
            (place / "none").read_bytes()


def test_what_follows_a_question_mark_is_in_no_message() -> None:
    """Arrow's Azure says the whole address of a request, with its signature."""
    said = OSError("GET 'http://h/c/x?se=2030&sig=secret%3D' failed.\nmore")
    assert reason_of(said) == "GET 'http://h/c/x' failed."
    assert reason_of(OSError("what? a = b")) == "what? a = b"


def test_addresses_without_a_bucket_in_the_host() -> None:
    place = remote("abfs://account@localhost:1/container/x?enable_tls=false&sig=secret")
    assert place.inside == "container/x"
    assert remote("memory://tests/x").inside == "/tests/x"
    assert remote(f"s3://{BUCKET}?region=us-east-1").inside == BUCKET


def command(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_commands_take_addresses(place: Remote, tmp_path: Path) -> None:
    frame = table(kind="str")
    upload(write(frame, tmp_path / "in", [100], row_group=50), place / "in")
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "one.parquet")
    (place / "one.parquet").put_file(tmp_path / "one.parquet")
    asked = ["--group", "id", "--target", "y"]
    for data, model in (("in", "m"), ("one.parquet", "n")):
        told = ["fit", place / data, *asked, "--out", place / model]
        assert command(*told)[0] == 0
        code, said = command(*told)
        assert code == 2
        assert f"{place / model} exists; give another folder" in said
        assert command(*told, "--force")[0] == 0
        code, said = command("info", place / model)
        assert code == 0
        assert "shared effect" in said
    out = place / "out"
    told = ["predict", place / "m", place / "in", "--target", "y", "--out", out]
    code, said = command(*told, "--interval", 0.8, "--keep", "a")
    assert code == 0
    assert f"{len(frame)} predictions of 60 tasks: {out}" in said
    assert list(results(read_index(out), "predictions").columns) == [
        "id", "a", "prediction", "low", "high",
    ]  # fmt: skip
    code, said = command("info", out)
    assert code == 0
    assert "run 1, 20" in said
    assert f"60 tasks of {len(frame)} rows" in said
    assert "2 files new" in said
    told = ["predict", place / "n", place / "one.parquet", "--out", place / "p.csv"]
    assert command(*told)[0] == 0
    (place / "p.csv").fetch(tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(frame)
    assert (
        command("adapt", place / "m", place / "in", "--target", "y", "--out", place / "w")[0] == 0
    )
    code, said = command("predict", place / "m", place / "none.csv", "--out", place / "p.csv")
    assert code == 2
    assert "none.csv: there is no such file" in said


def test_a_command_says_that_a_store_is_broken(server: S3Server) -> None:
    place = remote(f"s3://{BUCKET}/{uuid4().hex}")
    with server.failing():
        code, said = command("info", place / "model")
    assert code == 2
    assert f"{place}/model/index.json: the store failed 4 times" in said
    assert "Traceback" not in said
