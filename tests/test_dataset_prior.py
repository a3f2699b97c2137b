"""The prior of a dataset on disk: the same for any order, files, partitions and threads."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets_on_disk import NAMES, table, write
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import headstart.meta.prior.dataset
import headstart.meta.prior.sample
import headstart.parquet.shuffle
from headstart import MetaClassifier, MetaRegressor, Prior, TaskSet, get_loss, learn_prior
from headstart.inner.posterior import packed
from headstart.inner.posterior.gather import evidence_of
from headstart.jobs import adapt_all
from headstart.meta.prior.all_tasks import AllSums
from headstart.meta.prior.dataset import Reading, draw_sample
from headstart.meta.prior.from_dataset import dataset_prior
from headstart.meta.prior.gathered import NEAR, Gathered
from headstart.meta.prior.goal import Goal
from headstart.meta.prior.summaries import Summaries
from headstart.parquet import (
    ParquetError,
    ParquetRows,
    grouped_by,
    plan_partitions,
    plan_rows,
    shuffled,
)
from headstart.parquet.draw import Draw
from headstart.parquet.engine import BLOCKS, LocalEngine, Parts, in_blocks, in_pairs
from headstart.parquet.files import read_footer
from headstart.parquet.sample_order import in_order
from headstart.tasks.columns import Columns
from headstart.tasks.ids import hash_ids
from headstart.training import fit


def numbers_of(prior: Prior) -> list[Any]:
    parts = [prior.bias, prior.covariance, np.array(prior.noise)]
    return [*parts, *([] if prior.side_effects is None else [prior.side_effects])]


def assert_equal(one: Prior, other: Prior, tolerance: float = 0.0) -> None:
    for mine, theirs in zip(numbers_of(one), numbers_of(other), strict=True):
        np.testing.assert_allclose(
            mine, theirs, rtol=0, atol=tolerance * np.abs(theirs).max(), strict=True
        )


def mixed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1.0, random_state=1)


LOSSES = [("squared", None), ("squared", 40), ("huber", None), ("huber", 40)]


@pytest.mark.parametrize(("loss", "most"), LOSSES)
@pytest.mark.parametrize("kind", ["int", "str"])
def test_order_files_partitions_and_threads(
    kind: str, loss: str, most: int | None, tmp_path: Path
) -> None:
    frame = table(100, kind=kind)
    tasks = TaskSet.from_arrays(frame[NAMES], frame["y"], frame["id"])
    asked: dict[str, Any] = {
        "loss": loss, "fit_intercept": True, "max_tasks": most, "tol": 1e-3
    }  # fmt: skip
    memory = learn_prior(tasks, **asked)
    found = []
    for k, (rows, cuts, size) in enumerate(
        [(frame, (), 1000), (mixed(frame), [70, 71], 50), (frame[::-1], [5, 300], 7)]
    ):
        data = ParquetRows(write(rows, tmp_path / str(k), cuts, size), "id", "y")
        reading = Reading(data, get_loss(loss), True, partition_rows=60 * k + 1)
        goal = Goal.checked("auto", tol=1e-3, max_tasks=most)
        found.append(dataset_prior(reading, goal, LocalEngine(1 + k)).prior)
    exactly = most is not None or loss != "squared"  # all tasks are summed by partition
    for prior in found:
        assert_equal(prior, found[0], 0.0 if exactly else 1e-12)
        assert_equal(prior, memory, 1e-10)
    data = ParquetRows(tmp_path / "1", "id", "y")
    assert_equal(learn_prior(data, **asked), found[1], 0.0 if exactly else 1e-12)


@pytest.mark.parametrize("side", [(), ("age",)])
def test_long_tasks_of_a_sample_are_summed(
    side: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(60)
    frame["age"] = frame["id"] % 7
    data = ParquetRows(write(mixed(frame), tmp_path, [100, 200], 40), "id", "y", NAMES)
    reading = Reading(data, get_loss("squared"), True, side, partition_rows=90)
    goal = Goal.checked("auto", max_tasks=50)
    rows = dataset_prior(reading, goal)
    monkeypatch.setattr(headstart.meta.prior.dataset, "FEW_BYTES", 0)
    assert isinstance(draw_sample(reading, 50, LocalEngine()).shown, Summaries)
    sums = dataset_prior(reading, goal)
    assert_equal(sums.prior, rows.prior, 1e-11)
    assert sums.n_tasks == rows.n_tasks == 50


@pytest.mark.parametrize("scattered", [False, True])
def test_all_of_many_tasks_begin_with_few(
    scattered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = mixed(table(400)) if scattered else table(400)
    for module in (headstart.meta.prior.sample, headstart.meta.prior.from_dataset):
        monkeypatch.setattr(module, "MANY_TASKS", 120)
    monkeypatch.setattr("headstart.meta.prior.shown.MANY_TASKS", 120)
    data = ParquetRows(write(frame, tmp_path, row_group=100), "id", "y")
    tasks = TaskSet.from_arrays(frame[NAMES], frame["y"], frame["id"])
    asked: dict[str, Any] = {"fit_intercept": True, "max_tasks": None}
    found, memory = learn_prior(data, **asked), learn_prior(tasks, **asked)
    assert_equal(found, memory, 1e-10)
    assert found.n_iter == memory.n_iter


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("count", [1, 30, 150])
def test_the_few_of_all_tasks_are_those_of_a_sample(
    count: int, scattered: bool, tmp_path: Path
) -> None:
    """With what is known of them; rows without an id are tasks of their own."""
    frame = table(200)
    frame["age"] = frame["id"] % 7
    frame.loc[frame["id"] % 11 == 0, "id"] = np.nan
    frame = mixed(frame) if scattered else frame
    data = ParquetRows(write(frame, tmp_path, [51, 200], 40), "id", "y", NAMES)
    reading = Reading(data, get_loss("squared"), True, ("age",), nameless=True)
    engine = LocalEngine()
    with grouped_by(engine.map, data, None, ("age",), alone=True) as together:
        reading = reading._replace(rows=together)
        tasks = AllSums(reading, plan_partitions(together, 90), engine)
        found, sample = tasks.few(count), draw_sample(reading, count, engine)
        assert isinstance(sample.shown, TaskSet)
        assert sample.side is not None
        X, y, offsets, _ = sample.shown.rows()
        side = tasks.units.side.rows(sample.side)[:, :-1]
        expected = evidence_of(X, y, offsets, tasks.units.columns, reading.loss, side)
    assert found.n_tasks == expected.n_tasks == count
    np.testing.assert_allclose(found.side, expected.side, atol=1e-12)
    for one, other in zip(found.gram(), expected.gram(), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [True, False])
def test_sums_of_columns(intercept: bool, dtype: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(0)
    d, sizes = 6, np.array([1, 300, 2, 8, NEAR, 5, NEAR + 1, 3])
    edges = np.append(0, np.cumsum(sizes))
    columns: list[Any] = [rng.normal(size=edges[-1]).astype(dtype) for _ in range(d)]
    columns[2] = rng.integers(-9, 9, edges[-1])  # as Arrow has it
    y = rng.normal(size=edges[-1]).astype(dtype)
    centre, level = (rng.normal(size=d), 2.0) if intercept else (np.zeros(d), 0.0)
    view = Columns(centre, np.ones(d), level, intercept)
    found, done = Gathered(view), 0
    for tasks in (slice(0, 4), slice(4, 8)):  # blocks of tasks, each cut within a task
        lines, first, end = found.open(sizes[tasks]), edges[tasks.start], edges[tasks.stop]
        cut = first + 250
        for begin, last in ((first, cut), (cut, end)):
            offsets = np.clip(edges[tasks.start : tasks.stop + 1], begin, last) - begin
            part = [column[begin:last] for column in columns]
            assert found.add(part, y[begin:last], offsets, lines)
        done = end
    assert done == edges[-1]
    e = found.evidence(np.ones((8, 1)))
    X, labels = view.rows(np.stack(columns, axis=1).astype(dtype)), view.labels(y)
    np.testing.assert_array_equal(e.slot >= 0, sizes >= view.width / 2)
    for t, (first, last) in enumerate(pairwise(edges)):
        Z, r, line = X[first:last], labels[first:last], e.slot[t]
        if line < 0:
            rows = slice(e.offsets[t], e.offsets[t + 1])
            np.testing.assert_array_equal(e.X[rows], Z)
            np.testing.assert_array_equal(e.y[rows], r)
            continue
        np.testing.assert_allclose(e.A[line], packed(Z.T @ Z), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(e.c[line], Z.T @ r, rtol=1e-12, atol=1e-12)
        assert e.q[line] == pytest.approx(r @ r)
        assert e.n[line] == sizes[t]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e160])
@pytest.mark.parametrize("row", [0, 9])  # of a task of one row, and of ten
def test_numbers_that_cannot_be_summed(wrong: float, row: int, tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(21, 5)), columns=[*NAMES, "d", "y"])
    frame["id"] = [0, *([1] * 10), *([2] * 10)]
    data = ParquetRows(write(frame, tmp_path), "id", "y", [*NAMES, "d"])
    learn_prior(data, max_tasks=None)
    frame.loc[row, "c"] = wrong
    data = ParquetRows(write(frame, tmp_path), "id", "y", [*NAMES, "d"])
    with pytest.raises(ParquetError, match=rf"a row of 'id' {int(row > 0)}: column 'c': "):
        learn_prior(data, max_tasks=None)


def test_rows_that_changed_since_they_were_counted(tmp_path: Path) -> None:
    data = ParquetRows(write(table(20), tmp_path), "id", "y")
    (part,) = Draw(data).read(plan_rows(data)[0], 0)
    for count in (len(part.y) - 1, len(part.y) + 1):
        with pytest.raises(ParquetError, match=f"expected {count} rows .* files change meanwhile"):
            in_order([part], count, data, 0)
    assert len(in_order([part, part], 2 * len(part.y), data, 0).y) == 2 * len(part.y)


@pytest.mark.parametrize("all_tasks", [True, False])
def test_the_prior_of_a_dataset_goes_on_from_another(all_tasks: bool, tmp_path: Path) -> None:
    frame, most = table(330), None if all_tasks else 1000
    data = ParquetRows(write(frame, tmp_path / "new"), "id", "y")
    old = ParquetRows(write(frame[frame["id"] < 300], tmp_path / "old"), "id", "y")
    before, fresh = (fit(MetaRegressor(), rows, max_tasks=most).prior_ for rows in (old, data))
    again = fit(MetaRegressor(), data, max_tasks=most, initial=before).prior_
    assert again.n_iter < fresh.n_iter
    assert_equal(again, fresh, 0.01)
    with pytest.raises(ValueError, match=r"initial: .* metric 'diagonal', 3 columns"):
        fit(MetaRegressor(metric="diagonal"), data, initial=before)


def test_the_sample_has_the_smallest_hashes(tmp_path: Path) -> None:
    frame = table(80, kind="str")
    frame.loc[[3, 50, 51], "id"] = None
    data = ParquetRows(write(frame, tmp_path, [51, 200], 30), "id", "y")
    reading = Reading(data, get_loss("squared"), True, nameless=True, partition_rows=40)
    named = frame["id"].dropna().unique()
    nobody = np.array([f"row {k} without an id" for k in range(3)], object)
    every = np.sort(np.concatenate([hash_ids(named), hash_ids(nobody)]))
    for most in (10, 82, 83, 1000):
        sample = draw_sample(reading, most, LocalEngine(2))
        assert isinstance(sample.shown, TaskSet)
        np.testing.assert_array_equal(sample.shown.ids, every[:most])
        assert sample.n_nameless == 3
    assert isinstance(sample.shown, TaskSet)
    counts = dict(zip(hash_ids(named).tolist(), named, strict=True))
    for whose, (X, y) in zip(sample.shown.ids.tolist(), sample.shown, strict=True):
        if whose in counts:
            expected = frame[frame["id"] == counts[whose]]
            assert sorted(y) == sorted(expected["y"])
            assert sorted(X[:, 1]) == sorted(expected["b"])
    with pytest.raises(ParquetError, match="column 'id': expected an id in every row, found null"):
        learn_prior(data)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("most", [None, 1000])
@pytest.mark.parametrize("scattered", [False, True])
def test_rows_without_ids_are_tasks_of_their_own(
    scattered: bool, most: int | None, loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(80, kind="str")
    first = frame.index[~frame["id"].duplicated()]
    frame.loc[first[[5, 30]], "id"] = None  # between tasks
    frame.loc[first[70] :, "id"] = None  # and a row group with nothing else
    n_nameless = int(frame["id"].isna().sum())
    frame = mixed(frame) if scattered else frame
    data = ParquetRows(write(frame, tmp_path, [51, 200], 30), "id", "y")
    told = f"groups: {n_nameless} of {len(frame)} rows have no id; each is a task of its own"
    with pytest.warns(UserWarning, match=told):
        memory = MetaRegressor(loss).fit(frame[NAMES], frame["y"], groups=frame["id"])
    with pytest.warns(UserWarning, match=told):
        found = fit(MetaRegressor(loss), data, max_tasks=most, partition_rows=40)
    assert_equal(found.prior_, memory.prior_, 1e-9)
    assert found.n_tasks_ == memory.n_tasks_ == frame["id"].nunique() + n_nameless
    with pytest.raises(ParquetError, match=f"{tmp_path}: column 'id': expected an id in every row"):
        learn_prior(data, loss, max_tasks=most)
    monkeypatch.setattr(headstart.meta.prior.from_dataset, "MANY_TASKS", 40)  # begin with few
    with pytest.warns(UserWarning, match=told):
        again = fit(MetaRegressor(loss), data, max_tasks=most)
    np.testing.assert_allclose(again.bias_, found.bias_, atol=0.01)


def test_faults_of_a_copy_name_the_dataset(tmp_path: Path) -> None:
    frame = mixed(table(60))
    frame["age"] = frame["id"] % 7.0
    whole = [*NAMES, "age"]

    def refused(message: str, side: tuple[str, ...] = (), classes: tuple[str, ...] = ()) -> None:
        data = ParquetRows(write(frame, tmp_path, [100], 40), "id", "y", NAMES)
        reading = Reading(data, get_loss("squared"), True, side, classes)
        with pytest.raises(ParquetError, match=f"^{tmp_path}{message}"):
            dataset_prior(reading, Goal.checked("auto", max_tasks=None))

    refused(": column 'y': expected the classes", classes=("no", "yes"))
    whose, kept = frame["id"].iloc[9], frame[whole].copy()
    frame.loc[frame.index[9], "age"] = np.nan
    refused(f", a row of 'id' {whose}: side: column 'age': expected finite", side=("age",))
    frame.loc[frame.index[9], "age"] = 99.0
    refused(": side: expected one value of 'age' for each entity", side=("age",))
    frame[whole] = kept
    frame.loc[frame.index[9], "y"] = np.nan
    refused(f", a row of 'id' {whose}: column 'y': a value is missing")


def test_all_rows_that_find_no_room_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ParquetRows(write(table(60), tmp_path), "id", "y")
    size = data.n_rows * 5 * 8
    asked: dict[str, Any] = {"max_tasks": None, "tol": 1.0}
    monkeypatch.setattr(headstart.meta.prior.dataset, "memory", lambda: size)
    learn_prior(data, "huber", **asked)
    monkeypatch.setattr(headstart.meta.prior.dataset, "memory", lambda: size - 1)
    learn_prior(data, "squared", **asked)
    learn_prior(data, "huber", max_tasks=1000, tol=1.0)
    monkeypatch.setattr(ParquetRows, "read", lambda *_: pytest.fail("ids were read"))
    message = (
        f"{tmp_path}: max_tasks: expected a number, found None: with the huber loss all "
        rf"{data.n_rows} rows come into memory, where they take 0.0 GB and .*; give a number, or"
    )
    with pytest.raises(ParquetError, match=message):
        learn_prior(data, "huber", **asked)


@pytest.mark.parametrize("all_tasks", [False, True])
def test_side_information_comes_from_columns(all_tasks: bool, tmp_path: Path) -> None:
    frame = table(150)
    frame["age"] = frame["id"] % 10
    frame["y"] += 2.0 * frame["age"] * frame["a"]
    data = ParquetRows(write(frame, tmp_path / "in", [400], 100), "id", "y")
    memory = MetaRegressor(group="id", side=["age"]).fit(frame.drop(columns="y"), frame["y"])
    most: dict[str, Any] = {"max_tasks": None} if all_tasks else {}
    found = fit(MetaRegressor(side=["age"]), data, **most)
    assert_equal(found.prior_, memory.prior_, 1e-10)
    assert found.feature_names_in_.tolist() == NAMES
    G = found.prior_.side_effects
    assert G is not None
    assert G[0, 0] == pytest.approx(2.0, abs=0.2)
    plain = ParquetRows(tmp_path / "in", "id", "y", NAMES)
    by_name = learn_prior(
        plain, fit_intercept=True, side=["age"], max_tasks=None if all_tasks else 65_536
    )
    assert_equal(by_name, memory.prior_, 1e-10)
    frame.loc[frame.index[-1], "age"] = 77
    other = ParquetRows(write(frame, tmp_path / "other"), "id", "y")
    with pytest.raises(ParquetError, match="expected one value of 'age' for each entity, found"):
        fit(MetaRegressor(side=["age"]), other, **most)


def test_columns_of_side_that_cannot_be(tmp_path: Path) -> None:
    frame = table(20)
    frame["age"], frame["note"] = 1.0, "text"
    frame.loc[3, "age"] = np.nan
    data = ParquetRows(write(frame, tmp_path), "id", "y", NAMES)
    for side, message in (
        (["a"], "side: 'a' is a feature"),
        (["y"], "side: 'y' is the target"),
        (["note"], "side: column 'note': expected numbers, found"),
        (["year"], "side: there is no column 'year'"),
        (["age"], "a row of 'id' .*: side: column 'age': expected finite numbers, found nan"),
    ):
        with pytest.raises(ParquetError, match=message):
            learn_prior(data, side=side)
    with pytest.raises(TypeError, match="side: expected names of columns"):
        learn_prior(data, side=np.zeros((20, 1)))
    with pytest.raises(TypeError, match="side: expected names of columns"):
        MetaRegressor(side=[1]).fit(data)


def test_a_classifier(tmp_path: Path) -> None:
    frame = table(80)
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    memory = MetaClassifier(group="id").fit(frame.drop(columns="y"), frame["y"])
    for k, rows in enumerate((frame, mixed(frame))):
        data = ParquetRows(write(rows, tmp_path / str(k), [90], 50), "id", "y")
        found = fit(MetaClassifier(), data, partition_rows=100)
        assert found.classes_.tolist() == ["no", "yes"]
        assert_equal(found.prior_, memory.prior_, 1e-8)


def test_a_number_for_reg_is_no_prior(tmp_path: Path) -> None:
    data = ParquetRows(write(table(20), tmp_path), "id", "y")
    with pytest.raises(ValueError, match="reg: expected 'auto', to learn a prior, found a number"):
        fit(MetaRegressor(reg=0.5, step=0.1), data)


def test_row_groups_without_a_task_of_the_sample_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ParquetRows(write(table(300), tmp_path, row_group=20), "id", "y")
    calls: list[tuple[Any, ...]] = []
    read = ParquetRows.read

    def watched(self: ParquetRows, *args: Any) -> Iterator[Any]:
        calls.append(args)
        return read(self, *args)

    monkeypatch.setattr(ParquetRows, "read", watched)
    learn_prior(data, max_tasks=3, tol=1.0)
    features = [number for _, numbers, columns, _ in calls if "a" in columns for number in numbers]
    assert 1 <= len(features) <= 6 < len(data.row_groups)


def test_unpickling_lists_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table(30)
    folder = tmp_path / "of=3"
    write(frame, folder)
    rows = ParquetRows(tmp_path, "id", "y")
    assert rows.features == (*NAMES, "of")
    text, partitions = pickle.dumps(rows), plan_rows(rows)
    monkeypatch.setattr("pyarrow.dataset.dataset", lambda *_, **__: pytest.fail("listed"))
    again = pickle.loads(text)
    assert again == rows
    sample = draw_sample_of(again, partitions)
    assert sample.X.shape == (len(frame), 4)
    assert set(sample.X[:, 3]) == {3.0}


def draw_sample_of(rows: ParquetRows, partitions: Any) -> Any:
    from headstart.parquet.draw import Draw

    (drawn,) = Draw(rows).read(partitions[0], 0)
    return drawn


def number(part: int, place: int, more: float) -> Any:
    return np.array([0.1 * part + more, place])


@given(st.integers(1, 1000), st.integers(1, 4))
def test_sums_by_blocks(count: int, threads: int) -> None:
    parts = Parts(int, range(count), int.bit_length)  # type: ignore[arg-type]
    assert len(parts.blocks) <= BLOCKS
    assert [k for block in parts.blocks for k in block] == list(range(count))
    held = LocalEngine(threads).hold(parts)
    total = held.sum(number, 0.3)
    np.testing.assert_array_equal(total, LocalEngine(1).hold(parts).sum(number, 0.3))
    np.testing.assert_allclose(total, [0.05 * count * (count - 1) + 0.3 * count, sum(range(count))])
    assert [int(place) for _, place in held.each(number, 0.3)] == list(range(count))


@given(st.integers(1, 600))
def test_pairs(count: int) -> None:
    items = [str(k) + " " for k in range(count)]
    assert in_pairs(iter(items), str.__add__) == "".join(items)
    depths = in_pairs([0] * count, lambda one, other: 1 + max(one, other))
    assert depths <= count.bit_length()
    assert [k for block in in_blocks(range(count)) for k in block] == list(range(count))


def test_what_finds_no_room_is_loaded_again() -> None:
    loads: list[int] = []

    def load(k: Any) -> int:
        loads.append(k)
        return int(k)

    parts = Parts(load, range(5), lambda _: 10, room=25)  # type: ignore[arg-type]
    for _ in range(3):
        assert [parts[k] for k in range(5)] == list(range(5))
    assert sorted(loads) == [0, 1, *([2] * 3), *([3] * 3), *([4] * 3)]
    few: Any = [1, 2]
    as_number: Any = int
    again = pickle.loads(pickle.dumps(Parts(as_number, few, int.bit_length, 7)))
    assert (again[1], again.room) == (2, 7)


@pytest.mark.parametrize("buckets", [1, 5])
@pytest.mark.parametrize("kind", ["int", "str", "null", "float"])
def test_rows_put_together_by_many(
    kind: str, buckets: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headstart.parquet.shuffle, "TOGETHER", 64)
    monkeypatch.setattr(headstart.parquet.shuffle, "PARTITION_ROWS", 400 // buckets)
    frame = mixed(table(60, kind="str" if kind == "null" else "int"))
    frame["row"] = np.arange(len(frame))
    if kind == "null":
        frame.iloc[[4, 5, 99], 0] = None
    if kind == "float":
        frame["id"] = frame["id"] + 0.5
    data = ParquetRows(write(frame, tmp_path / "in", [70, 71], 40), "id", "y", NAMES)
    copy = shuffled(map, data, tmp_path / "copy", ["row"])
    found = parquet.read_table(str(copy.path)).to_pandas()
    assert sorted(found["row"]) == list(range(len(frame)))
    assert found["__task"].is_monotonic_increasing
    for _, task in found.groupby("__task"):
        assert task["id"].nunique(dropna=False) == 1
        assert task["row"].is_monotonic_increasing
    assert found["__task"].nunique() == frame["id"].nunique() + 3 * (kind == "null")
    files = sorted(Path(str(copy.path)).iterdir())
    assert len(files) == -(-len(frame) // (400 // buckets))
    assert not list(Path(str(copy.path)).parent.glob("dealt*"))
    written = [file.stat().st_mtime_ns for file in files]
    files[0].unlink()
    shuffled(map, data, tmp_path / "copy", ["row"])  # goes on from what is there
    assert [file.stat().st_mtime_ns for file in files][1:] == written[1:]
    assert parquet.read_table(str(copy.path)).to_pandas().equals(found)


def test_footers_are_read_once_for_all_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headstart.parquet.shuffle, "PARTITION_ROWS", 20)
    footers: list[str] = []

    def watched(path: str, store: Any = None) -> Any:
        footers.append(path)
        return read_footer(path, store)

    monkeypatch.setattr("headstart.parquet.footers.read_footer", watched)

    def run(function: Any, items: Any) -> Iterator[Any]:
        """As workers do, to whom nothing that the client has found out is sent."""
        return (pickle.loads(pickle.dumps(function))(item) for item in items)

    data = ParquetRows(write(mixed(table(60)), tmp_path / "in", [70, 150, 220], 40), "id", "y")
    buckets = list(Path(str(shuffled(run, data, tmp_path / "copy").path)).iterdir())
    assert len(buckets) > 10
    assert len(footers) == 2 * 4  # for the plan and for the schema


def test_a_copy_of_older_data_goes(tmp_path: Path) -> None:
    frame, out = mixed(table(30)), tmp_path / "copy"
    first = shuffled(map, ParquetRows(write(frame, tmp_path / "in"), "id", "y"), out)
    (out / "letter.txt").write_text("dear")
    again = shuffled(map, ParquetRows(write(frame, tmp_path / "other"), "id", "y"), out)
    assert not Path(str(first.path)).exists()
    assert Path(str(again.path)).exists()
    assert sorted(path.name for path in out.iterdir() if path.suffix) == ["letter.txt"]


@pytest.mark.parametrize("lost", ["dealt", "bucket"])
def test_a_copy_that_workers_do_not_see(
    lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, here = write(mixed(table(30)), tmp_path / "in", row_group=50), tmp_path / "here"
    here.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here))
    data = ParquetRows(folder, "id", "y")

    def apart(function: Any, items: Any) -> Iterator[Any]:
        """As workers do whose files are on disks of their own."""
        yield from map(function, items)
        for file in here.rglob(f"{lost}*"):
            file.unlink()

    def read(alone: bool) -> None:
        with grouped_by(apart, data, alone=alone) as together:
            plan_partitions(together)

    with pytest.raises(ParquetError, match=f"{folder}: .*; folder: name one that all workers see"):
        read(alone=False)
    with pytest.raises((FileNotFoundError, ParquetError), match=f"{here}.*{lost}|{here}.*rows"):
        read(alone=True)
    with pytest.raises(ParquetError, match="another"), grouped_by(map, data):
        raise ParquetError("another")


def test_ids_that_share_a_hash_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed(table(30))

    def few(ids: Any) -> Any:
        return np.asarray(ids, np.int64).astype(np.uint64) % np.uint64(3)

    monkeypatch.setattr("headstart.parquet.draw.hash_ids", few)
    data = ParquetRows(write(frame, tmp_path / "in", row_group=50), "id", "y")
    found = parquet.read_table(str(shuffled(map, data, tmp_path / "copy").path)).to_pandas()
    assert found.groupby("__task")["id"].nunique().eq(1).all()
    assert found["__task"].nunique() == 30


def test_weights_do_not_depend_on_where_rows_lie(tmp_path: Path) -> None:
    frame = table(50)
    data = [
        ParquetRows(write(rows, tmp_path / f"in-{k}", [90], 40), "id", "y")
        for k, rows in enumerate((frame, mixed(frame)))
    ]
    model = MetaRegressor().fit(data[0])
    found = []
    for k, rows in enumerate(data):
        adapt_all(model, rows, tmp_path / f"out-{k}", partition_rows=100)
        weights = parquet.read_table(tmp_path / f"out-{k}" / "weights").to_pandas()
        found.append(weights.sort_values("id", ignore_index=True))
    np.testing.assert_allclose(found[0].to_numpy(), found[1].to_numpy(), rtol=1e-9)


def test_labels_that_changed_meanwhile_are_refused(tmp_path: Path) -> None:
    data = ParquetRows(write(table(20), tmp_path), "id", "y")
    reading = Reading(data, get_loss("logistic"), True, classes=("no", "yes"))
    with pytest.raises(ParquetError, match=r"expected the classes .*; did the files change"):
        reading.labels(np.array(["no", "perhaps"]), np.float64)
    assert pa.types.is_floating(data.schema.field("y").type)
