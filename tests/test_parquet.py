"""Datasets on disk give what the same table gives in memory, however they are cut."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets_on_disk import NAMES, table, write
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from headstart import MetaClassifier, MetaRegressor, TaskSet, learn_bias
from headstart._core.checks import FloatArray
from headstart._core.interleave import interleave
from headstart._core.leftovers import temporary_folder
from headstart.jobs import adapt_all
from headstart.parquet import (
    ParquetError,
    ParquetRows,
    clustered,
    grouped,
    plan_partitions,
    read_partition,
    shuffled,
)
from headstart.parquet.blocks import Batch, Block, Buffers, make_block, whole_tasks
from headstart.parquet.engine import SHARE, memory
from headstart.parquet.files import Decoding, read_ahead, read_file
from headstart.parquet.order import is_grouped
from headstart.training import fit_rounds


def in_memory(frame: pd.DataFrame, **settings: Any) -> MetaRegressor:
    return MetaRegressor(**settings).fit(frame[NAMES], frame["y"], groups=frame["id"])


PAPER: dict[str, Any] = {"reg": 0.5, "step": 0.1}


def assert_same_bias(one: Any, other: Any) -> None:
    """The same bits by the paper's algorithms; to rounding where a prior is learned from sums."""
    assert one.reg == other.reg
    rounding = 1e-9 if one.reg == "auto" else 0.0
    np.testing.assert_allclose(one.bias_, other.bias_, rounding, rounding)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rounding, rounding)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 200), max_size=4, unique=True),
    st.integers(1, 60),
    st.integers(1, 80),
    st.sampled_from(["int", "str"]),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
)
def test_any_cutting_gives_the_bits_of_the_table(
    seed: int,
    cuts: list[int],
    row_group: int,
    batch_rows: int,
    kind: str,
    dtype: str,
    scattered: bool,
) -> None:
    frame = table(40, seed, kind, dtype)
    if scattered:
        frame = frame.sample(frac=1.0, random_state=seed)
    with TemporaryDirectory() as folder:
        edges = sorted(cut for cut in cuts if cut < len(frame))
        write(frame, Path(folder), edges, row_group)
        rows = ParquetRows(folder, "id", "y", batch_rows=batch_rows)
        assert_same_bias(MetaRegressor().fit(rows), in_memory(frame))
        assert_same_bias(MetaRegressor(**PAPER).fit(rows), in_memory(frame, **PAPER))
        tasks = TaskSet.from_arrays(frame[NAMES], frame["y"], frame["id"])
        for batch in (1, 7):
            found = learn_bias(rows, 0.5, 0.1, batch_size=batch)
            np.testing.assert_array_equal(
                found.bias, learn_bias(tasks, 0.5, 0.1, batch_size=batch).bias
            )


@pytest.mark.parametrize(
    "settings",
    [{**PAPER, "task_size": 3}, {**PAPER, "fit_intercept": False}, {"fit_intercept": False}],
)
def test_other_settings(settings: dict[str, Any], tmp_path: Path) -> None:
    frame = table()
    rows = ParquetRows(write(frame, tmp_path, [50, 51, 120], 17), "id", "y", batch_rows=23)
    assert_same_bias(MetaRegressor(**settings).fit(rows), in_memory(frame, **settings))


def test_partial_fit_is_that_of_the_table(tmp_path: Path) -> None:
    frame = table().sample(frac=1.0, random_state=0)
    rows = ParquetRows(write(frame, tmp_path, [100]), "id", "y", batch_rows=31)
    streamed = MetaRegressor(task_size=3, **PAPER).partial_fit(rows)
    whole = MetaRegressor(task_size=3, **PAPER)
    whole.partial_fit(frame[NAMES].to_numpy(), frame["y"].to_numpy(), frame["id"].to_numpy())
    assert_same_bias(streamed.finish(), whole.finish())
    np.testing.assert_array_equal(streamed.weights_of(7), whole.weights_of(7))


def test_decimals_are_the_nearest_floats(tmp_path: Path) -> None:
    frame = table()
    frame["a"] = frame["a"].round(6)
    exact = [Decimal(f"{value:.6f}") for value in frame["a"]]
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    whole = whole.set_column(1, "a", pa.array(exact, pa.decimal128(18, 6)))
    parquet.write_table(whole, tmp_path / "a.parquet")
    rows = ParquetRows(tmp_path, "id", "y")
    (block,) = rows.blocks()
    np.testing.assert_array_equal(block.X[:, 0], [float(value) for value in exact])
    assert_same_bias(MetaRegressor().fit(rows), in_memory(frame))


def test_classes_are_found_in_all_files(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    frame = frame.sort_values(["id"], kind="stable")
    rows = ParquetRows(write(frame, tmp_path, [10]), "id", "y", batch_rows=5)
    model = MetaClassifier().fit(rows)
    expected = MetaClassifier().fit(frame[NAMES], frame["y"], groups=frame["id"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert_same_bias(model, expected)


def test_rows_without_ids_are_tasks_of_their_own(tmp_path: Path) -> None:
    frame = table(kind="str")
    frame.loc[frame.index % 17 == 0, "id"] = None
    rows = ParquetRows(write(frame, tmp_path, [90], 40), "id", "y", batch_rows=29)
    for how in ({}, PAPER):
        with pytest.warns(UserWarning, match="rows have no id; each is a task of its own"):
            expected = in_memory(frame, **how)
        with warnings.catch_warnings(action="ignore"):
            assert_same_bias(MetaRegressor(**how).fit(rows), expected)
    with pytest.raises(ParquetError, match=r"column 'id': expected an id in every row"):
        learn_bias(rows, 0.5, 0.1)


def test_hive_partitions_and_a_single_file(tmp_path: Path) -> None:
    frame = table()
    half = frame["id"] < 30
    write(frame[half], tmp_path / "hive" / "year=2023")
    write(frame[~half], tmp_path / "hive" / "year=2024")
    rows = ParquetRows(tmp_path / "hive", "id", "y", NAMES)
    assert_same_bias(MetaRegressor().fit(rows), in_memory(frame))
    assert ParquetRows(tmp_path / "hive", "id", "y").features == (*NAMES, "year")
    by_year = ParquetRows(tmp_path / "hive", "year", "y", NAMES)
    years = np.where(half, 2023, 2024)
    expected = MetaRegressor().fit(frame[NAMES], frame["y"], groups=years)
    assert_same_bias(MetaRegressor().fit(by_year), expected)
    one = ParquetRows(write(frame, tmp_path / "one") / "part-000.parquet", "id", "y")
    assert_same_bias(MetaRegressor().fit(one), in_memory(frame))


@pytest.mark.parametrize("row_group", [7, 40, 1000])
def test_a_folder_says_columns_of_short_and_long_row_groups(row_group: int, tmp_path: Path) -> None:
    frame = table()
    years = np.where(frame["id"] < 30, 2023, 2024)
    for year in (2023, 2024):
        write(frame[years == year], tmp_path / f"year={year}", row_group=row_group)
    rows = ParquetRows(tmp_path, "year", "y", NAMES, batch_rows=10)
    expected = MetaRegressor().fit(frame[NAMES], frame["y"], groups=years)
    assert_same_bias(MetaRegressor().fit(rows), expected)
    (first, _), *_ = read_partition(rows, plan_partitions(rows, 1)[1])
    assert first.ids.to_pylist() == [2024]


def test_only_short_row_groups_are_decoded_at_once(tmp_path: Path) -> None:
    frame = table()
    path = str(write(frame, tmp_path, row_group=40) / "part-000.parquet")

    def sizes(batch_rows: int) -> list[int]:
        groups = range(len(frame) // 40)
        tables = read_file(path, groups, ["y"], Decoding(batch_rows, most_batches=4, threads=False))
        return [len(found) for found in tables]

    assert set(sizes(10)) == {40}
    assert max(sizes(9)) == 9
    assert max(sizes(100)) == 100  # of several row groups, which are too short for one each


def test_columns_of_any_name_are_decoded_one_by_one(tmp_path: Path) -> None:
    """As Arrow decodes them together; "a" is also the beginning of another name."""
    names = ["a", "a.b", "A", "not there in all", "lists"]
    values: list[Any] = [range(9), np.arange(9.0), list("abcdefghi"), [None, 1] * 4 + [2]]
    columns = [*map(pa.array, values), pa.array([[k, k] for k in range(9)])]
    fields = [
        pa.field(name, column.type, nullable=column.null_count > 0)
        for name, column in zip(names, columns, strict=True)
    ]
    path = str(tmp_path / "odd.parquet")
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), path, row_group_size=5)
    wanted = names[::-1]
    together, alone = (
        list(read_file(path, [0, 1], wanted, Decoding(5, 4, threads))) for threads in (True, False)
    )
    assert [len(found) for found in alone] == [5, 4]
    for one, other in zip(together, alone, strict=True):
        assert other.column_names == wanted
        for name in wanted:
            assert other.schema.field(name).equals(one.schema.field(name))
            assert other.column(name).equals(one.column(name))


@pytest.mark.parametrize("count", [1, 7, 3000, 5000])
def test_first_rows_are_those_of_the_row_group(count: int, tmp_path: Path) -> None:
    """Of all types, over several pages, and where the values of a dictionary are too many."""
    texts = pa.array([f"text {k % 4000}" for k in range(9000)])
    found: dict[str, Any] = {"a": range(9000), "texts": texts, "codes": texts.dictionary_encode()}
    found["lists"] = [[k, k] for k in range(9000)]
    path, wanted = str(tmp_path / "pages.parquet"), list(found)
    short: dict[str, Any] = {"data_page_size": 1 << 12, "dictionary_pagesize_limit": 1 << 12}
    parquet.write_table(pa.table(found), path, row_group_size=5000, **short)
    first = list(read_file(path, [0, 1], wanted, Decoding(100, 4, threads=False, first=count)))
    groups = read_file(path, [0, 1], wanted, Decoding(5000, 4, threads=False))
    assert [len(part) for part in first] == [count, min(count, 4000)]
    for part, group in zip(first, groups, strict=True):
        assert part.equals(group.slice(0, count))


def test_no_more_is_made_than_asked_for() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for k in range(20):
            made.append(k)
            yield k

    for k, _ in enumerate(read_ahead(items(), 3)):
        time.sleep(0.01)
        assert len(made) <= k + 1 + 3
    assert len(made) == 20


def test_tasks_lie_together_or_not(tmp_path: Path) -> None:
    frame = table()

    def lies(rows: pd.DataFrame, name: str, **how: Any) -> bool:
        return is_grouped(ParquetRows(write(rows, tmp_path / name, **how), "id", "y"))

    assert lies(frame, "sorted", cuts=[13, 77], row_group=9)
    assert not lies(frame.iloc[::-1], "reversed")
    assert not lies(pd.concat([frame, frame.iloc[:1]]), "again")
    assert not lies(pd.concat([frame.iloc[40:], frame.iloc[:40]]), "files", cuts=[len(frame) - 40])
    text = table(kind="str")
    assert lies(text, "text", cuts=[13, 77], row_group=9)
    size = int(np.sum(text["id"] == text["id"][0]))
    between = text.copy()
    between.loc[size, "id"] = None  # the first row of the second task
    assert lies(between, "between")
    assert size > 2
    for row_group in (1000, 1, 2):  # a null within a task: inside a part, alone, and at its end
        inside = text.copy()
        inside.loc[1, "id"] = None
        assert not lies(inside, f"inside-{row_group}", row_group=row_group)


def test_clustering_keeps_order_and_columns(tmp_path: Path) -> None:
    frame = table().sample(frac=1.0, random_state=1)
    frame["note"] = [f"it's {k}" for k in range(len(frame))]
    rows = ParquetRows(write(frame, tmp_path / "it's", [50], 20), "id", "y", NAMES)
    copy = clustered(rows, tmp_path / "copy", keep=["note"])
    found = parquet.read_table(str(copy.path)).to_pandas()
    order = pd.factorize(frame["id"])[0].argsort(kind="stable")
    assert found["note"].tolist() == frame["note"].iloc[order].tolist()
    copy = shuffled(map, rows, tmp_path / "hashes", ["note"])
    by_hash = parquet.read_table(str(copy.path)).to_pandas()
    assert by_hash["__task"].is_monotonic_increasing
    assert by_hash.groupby("id")["__task"].nunique().eq(1).all()
    assert by_hash["__task"].nunique() == frame["id"].nunique()
    for whose, expected in frame.groupby("id"):  # with rows in their order
        assert by_hash.loc[by_hash["id"] == whose, "note"].tolist() == expected["note"].tolist()
    with grouped(rows) as whole:
        kept = Path(str(whole.path))
        assert kept.exists()
    assert not kept.exists()


def test_clustering_keeps_what_is_missing(tmp_path: Path) -> None:
    frame = table(kind="str").sample(frac=1.0, random_state=1).reset_index(drop=True)
    frame.loc[3, "id"] = None
    frame.loc[len(frame) - 1, "y"] = np.nan
    rows = ParquetRows(write(frame, tmp_path / "in", [50], 20), "id", "y")
    for in_order in (True, False):
        place = tmp_path / str(in_order)
        copy = clustered(rows, place) if in_order else shuffled(map, rows, place)
        found = parquet.read_table(str(copy.path))
        assert [f.name for f in found.schema if not f.nullable] == NAMES
        assert (found["id"].null_count, found["y"].null_count) == (1, 1)
        np.testing.assert_array_equal(np.sort(found["a"].to_numpy()), np.sort(frame["a"]))


def test_clustering_keeps_types_or_says_that_it_cannot(tmp_path: Path) -> None:
    count, kinds = 6, [pa.uuid(), pa.duration("ns"), pa.time64("ns"), pa.timestamp("ms", "UTC")]
    numbers = pa.array([3, 1, 2, 3, 2, 1])
    X = pa.array(np.arange(count))
    for number, kind in enumerate([*kinds, pa.bool_(), pa.float16(), pa.decimal256(60)]):
        wide = pa.array([Decimal(n.as_py()) for n in numbers], pa.decimal256(60))
        ids: Any = wide if kind == wide.type else _of_type(numbers, kind)
        folder = tmp_path / str(number)
        folder.mkdir()
        whole = pa.table({"id": ids, "flag": ids, "x": X, "y": X})
        parquet.write_table(whole, folder / "a.parquet")
        rows = ParquetRows(folder, "id", "y", ["x"])
        if kind == wide.type:
            with pytest.raises(
                ParquetError, match=r"ids of type decimal256.* sort the data by .id. first"
            ):
                clustered(rows, folder / "copy")
            continue
        found = parquet.read_table(str(clustered(rows, folder / "copy", keep=["flag"]).path))
        assert found.schema.field("id").type == rows.schema.field("id").type
        expected = whole.take(pa.array([0, 3, 1, 5, 2, 4]))
        if kind != pa.bool_():
            assert found.select(["id", "flag", "x", "y"]).to_pydict() == expected.to_pydict()


def _of_type(numbers: Any, kind: Any) -> Any:
    if kind == pa.uuid():
        return pa.array([UUID(int=n.as_py()).bytes for n in numbers], kind)
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return numbers.cast(kind)
    return numbers.view(kind)


@pytest.mark.parametrize("seed", range(4))
def test_float_ids_with_nan_anywhere_give_the_bits_of_the_table(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    frame = table(12, seed)
    ids = -frame["id"].to_numpy(float)  # -0.0 is there
    ids[rng.random(len(ids)) < 0.3] = np.nan
    order = rng.permutation(len(ids)) if seed % 2 else np.arange(len(ids))
    frame, ids = frame.iloc[order], ids[order]
    columns = {"id": pa.array(ids), **{c: pa.array(frame[c].to_numpy()) for c in [*NAMES, "y"]}}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=7)
    rows = ParquetRows(tmp_path, "id", "y", batch_rows=5)
    whole = MetaRegressor(**PAPER)
    with warnings.catch_warnings(action="ignore"):
        whole.fit(frame[NAMES].to_numpy(), frame["y"].to_numpy(), groups=ids)
    assert_same_bias(MetaRegressor(**PAPER).fit(rows), whole)
    with warnings.catch_warnings(action="ignore"):
        learned = MetaRegressor().fit(rows)
        whole = MetaRegressor().fit(frame[NAMES].to_numpy(), frame["y"].to_numpy(), groups=ids)
    np.testing.assert_allclose(learned.bias_, whole.bias_, rtol=1e-6)


@pytest.mark.parametrize("settings", [PAPER, {}])
def test_ids_of_half_precision(settings: dict[str, Any], tmp_path: Path) -> None:
    frame = table(12)
    ids = frame["id"].to_numpy().astype(np.float16)
    columns = {"id": pa.array(ids), **{c: pa.array(frame[c].to_numpy()) for c in [*NAMES, "y"]}}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    whole = MetaRegressor(**settings).fit(frame[NAMES], frame["y"], groups=pa.array(ids))
    found = MetaRegressor(**settings).fit(ParquetRows(tmp_path, "id", "y"))
    np.testing.assert_allclose(found.bias_, whole.bias_, rtol=1e-9)


def test_batches_have_a_length_that_arrow_can_count(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"batch_rows: expected .* <= 2147483647, found"):
        ParquetRows(tmp_path, "id", "y", batch_rows=2**63)


HOSTILE = [
    *(
        "__task",
        "__task_",
        "start",
        "file",
        "filename",
        "file_row_number",
        "",
        "a",
        "A",
        "c0",
        "C0",
    ),
    *("place", "first", "data", "ids", "x.y", 'q"', "it's", "[b]"),
]


@pytest.mark.parametrize("seed", range(3))
def test_names_mean_nothing_to_scattered_rows(seed: int, tmp_path: Path) -> None:
    frame = table().sample(frac=1.0, random_state=seed)
    rng = np.random.default_rng(seed)
    group, target = (str(name) for name in rng.choice(HOSTILE, 2, replace=False))
    features = [name for name in HOSTILE if name not in (group, target)]
    X = rng.normal(size=(len(frame), len(features)))
    y = X.sum(axis=1) + frame["y"].to_numpy()
    columns = [pa.array(frame["id"].to_numpy()), *map(pa.array, X.T), pa.array(y)]
    parquet.write_table(pa.table(columns, names=[group, *features, target]), tmp_path / "a.parquet")
    rows = ParquetRows(tmp_path, group, target, batch_rows=31)
    assert not is_grouped(rows)
    whole = MetaRegressor(**PAPER).fit(X, y, groups=frame["id"].to_numpy())
    assert_same_bias(MetaRegressor(**PAPER).fit(rows), whole)
    index = adapt_all(whole.set_params(group=None), rows, tmp_path / "out", predictions=True)
    assert index.tasks == 60
    found = parquet.read_table(tmp_path / "out" / "weights")
    assert found.column_names == [group, *features, "intercept", "rows"]


def test_a_record_with_a_field_of_the_name_of_the_ids(tmp_path: Path) -> None:
    """Row groups are looked up by the footers of the ids, not of another column inside one."""
    frame = table()
    inside = pa.array([{"id": -value} for value in frame["id"]])
    whole = pa.Table.from_pandas(frame, preserve_index=False).add_column(0, "record", inside)
    parquet.write_table(whole, tmp_path / "a.parquet", row_group_size=50)
    rows = ParquetRows(tmp_path, "id", "y", NAMES)
    assert rows.row_groups[0].low == 0
    assert is_grouped(rows)


@pytest.mark.parametrize("in_order", [True, False])
def test_bad_values_of_scattered_rows_name_the_data_and_the_id(
    in_order: bool, tmp_path: Path
) -> None:
    large = "expected numbers of at most 1e.150, found 1e.200"
    for column, value, what in (
        ("b", None, "a value is missing"),
        ("c", np.inf, "expected finite numbers, found inf"),
        ("c", 1e200, large),
        ("y", 1e200, large),
        ("y", np.inf, "expected finite numbers, found inf"),
        ("y", None, "a value is missing"),
    ):
        frame = table()
        frame.loc[7, column] = value
        whose = int(frame["id"].to_numpy()[7])
        folder = write(frame.sample(frac=1.0, random_state=1), tmp_path / "in", [50])
        rows = ParquetRows(folder, "id", "y")
        message = f"{folder}, a row of 'id' {whose}: column '{column}': {what}"
        if in_order:
            with pytest.raises(ParquetError, match=message):
                learn_bias(rows, 0.5, 0.1)
        elif column != "y" or value is not None:  # a row without a label may be predicted
            copy = shuffled(map, rows, tmp_path / "copy")
            blocks = (block for p in plan_partitions(copy) for block in read_partition(copy, p))
            with pytest.raises(ParquetError, match=message):
                list(blocks)


def test_each_column_is_one_thing_and_of_a_type_that_fits(tmp_path: Path) -> None:
    frame = table()
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    whole = whole.append_column("when", pa.array(frame["id"].to_numpy()).cast(pa.timestamp("us")))
    whole = whole.append_column("several", pa.array([[int(k)] for k in frame["id"]]))
    parquet.write_table(whole, tmp_path / "a.parquet")
    for group, target, features, message in (
        ("id", "id", ["a"], "target: 'id' is the group too"),
        ("id", "y", ["a", "y"], "features: 'y' is the target; leave it out"),
        ("id", "y", ["a", "id"], "features: 'id' is the group; leave it out"),
        ("id", "y", ["a", "a"], "features: 'a' is named twice"),
        ("id", "when", ["a"], "'when': expected numbers, texts or booleans to predict, found time"),
        ("several", "y", ["a"], "'several': expected numbers, texts or times as ids, found list"),
    ):
        with pytest.raises(ValueError, match=message):
            ParquetRows(tmp_path, group, target, features)
    twice = tmp_path / "twice.parquet"
    parquet.write_table(whole.append_column("b", whole["b"]), twice)
    with pytest.raises(ParquetError, match=r"twice.parquet: cannot be read: .* duplicate field na"):
        ParquetRows(twice, "id", "y")


def test_texts_are_no_target_of_a_regression(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    rows = ParquetRows(write(frame, tmp_path), "id", "y")
    for learn in (
        MetaRegressor().fit,
        MetaRegressor(**PAPER).fit,
        MetaRegressor().partial_fit,
        lambda rows: learn_bias(rows, 0.5, 0.1),
        lambda rows: fit_rounds(MetaRegressor(**PAPER), rows),
    ):
        with pytest.raises(ParquetError, match="column 'y': expected numbers to predict, found"):
            learn(rows)


def test_temporary_folders_of_killed_processes_go_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, strange = tmp_path / "headstart-temporary-killed", tmp_path / "headstart-temporary-mine"
    (killed / "spill").mkdir(parents=True)
    killed.with_suffix(".lock").touch()
    (tmp_path / "headstart-temporary-early.lock").touch()  # killed before there was a folder
    strange.mkdir()  # without a lock: it is not one of ours
    with temporary_folder() as running, temporary_folder() as other:
        locks = [place.with_suffix(".lock") for place in (running, other)]
        assert sorted(tmp_path.iterdir()) == sorted([running, other, strange, *locks])
    assert list(tmp_path.iterdir()) == [strange]


@pytest.mark.parametrize("event", ["open", "os.mkdir", "os.rmdir"])
def test_a_temporary_folder_is_known_whenever_its_process_is_killed(
    event: str, tmp_path: Path
) -> None:
    """Killed just after each step of making and removing it."""
    code = """
import os, signal, sys
from headstart._core.leftovers import temporary_folder
reached = []
def kill_after(kind, arguments):
    if reached and kind != "os.kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == sys.argv[1] and "headstart-temporary" in str(arguments[0]):
        reached.append(kind)
sys.addaudithook(kill_after)
with temporary_folder() as place:
    (place / "rows").mkdir()
    (place / "rows" / "a").write_text("")
"""
    command = [sys.executable, "-c", code, event]
    ended = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    command = [sys.executable, "-c", code, "never"]
    subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_clustering_needs_its_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table().sample(frac=1.0, random_state=1)
    rows = ParquetRows(write(frame, tmp_path), "id", "y")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ParquetError, match=r"do not follow each other; sort .* install duckdb"):
        MetaRegressor(**PAPER).fit(rows)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 300), max_size=5, unique=True),
    st.integers(1, 40),
    st.integers(1, 80),
    st.sampled_from(["int", "str", "giant", "null"]),
)
def test_partitions_have_every_task_once_and_whole(
    seed: int, cuts: list[int], row_group: int, partition_rows: int, kind: str
) -> None:
    frame = table(50, seed, "str" if kind == "null" else "int" if kind == "giant" else kind)
    if kind == "giant":
        frame["id"] = frame["id"].where(~frame.index.isin(range(40, 200)), frame["id"][40])
        frame = frame.sort_values("id", kind="stable")
    if kind == "null":
        frame["id"] = frame["id"].where(~frame.index.isin(range(100, 130)), None)
    with TemporaryDirectory() as folder:
        write(frame, Path(folder), sorted(c for c in cuts if c < len(frame)), row_group)
        with grouped(ParquetRows(folder, "id", "y", batch_rows=13)) as rows:
            taken: list[Any] = []
            labels: list[float] = []
            for partition in plan_partitions(rows, partition_rows):
                for block, _ in read_partition(rows, partition):
                    taken += [i for i in block.ids.to_pylist() if i is not None]
                    labels += block.y.tolist()
    known = frame["id"].dropna()
    assert sorted(taken) == sorted(known.unique().tolist())
    assert len(taken) == len(set(taken))
    assert sorted(labels) == sorted(frame["y"].tolist())


def test_a_task_far_longer_than_its_partition(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [0] * 5 + [1] * 20_000 + [2] * 5})
    frame["x"] = frame["y"] = np.arange(len(frame), dtype=float)
    rows = ParquetRows(write(frame, tmp_path, row_group=12_000), "id", "y", batch_rows=1000)
    parts = plan_partitions(rows, 5000)
    taken = [block.y for p in parts for block, _ in read_partition(rows, p)]
    assert len(parts) == 2
    np.testing.assert_array_equal(np.concatenate(taken), frame["y"])


def test_rows_without_an_id_beside_the_end_of_a_task(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["a", "a", "a", "a", None, "b", "b"]})
    frame["x"] = frame["y"] = np.arange(len(frame), dtype=float)
    rows = ParquetRows(write(frame, tmp_path, row_group=3), "id", "y")
    taken = [
        [block.y.tolist() for block, _ in read_partition(rows, p)] for p in plan_partitions(rows, 1)
    ]
    assert taken == [[[0.0, 1.0, 2.0, 3.0]], [[4.0], [5.0, 6.0]]]


def test_partitions_of_scattered_rows_are_refused(tmp_path: Path) -> None:
    frame = table().sample(frac=1.0, random_state=0)
    rows = ParquetRows(write(frame, tmp_path, [100]), "id", "y")
    with pytest.raises(ParquetError, match=r"part-001.parquet: row group 0 begins with .* cut"):
        plan_partitions(rows)


def test_rows_beside_those_of_another_partition_are_not_copied(tmp_path: Path) -> None:
    frame = table(3000)
    size = len(frame) // 2
    folder = write(frame, tmp_path, row_group=size)
    rows = ParquetRows(folder, "id", "y", batch_rows=size // 3)
    (cut,) = (p for p in plan_partitions(rows, 1000) if p.low is not None)
    before = pa.total_allocated_bytes()
    parts = read_partition(rows, cut, columns=True)
    block, beside = next(parts)
    assert beside.nbytes > 100_000
    assert pa.total_allocated_bytes() - before < 3.5 * beside.nbytes
    assert block.ids[0].as_py() > cut.low


@pytest.mark.parametrize("columns", [True, False])
def test_no_row_group_stays_while_the_next_is_read(
    columns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ParquetRows(write(table(3000), tmp_path, row_group=6000), "id", "y", batch_rows=4000)
    held = []

    def watched(*asked: Any) -> Iterator[pa.Table]:
        for found in read_file(*asked):
            held.append(pa.total_allocated_bytes())
            yield found
            del found
            held.append(pa.total_allocated_bytes())

    monkeypatch.setattr("headstart.parquet.source.read_file", watched)
    for block, beside in read_partition(rows, plan_partitions(rows)[0], columns=columns):
        assert beside.column_names == (["id", "y", *NAMES] if columns else ["id", "y"])
        assert block.X.shape[1] == (0 if columns else 3)
        del block, beside
    assert held[1] - held[0] < -6000 * 8 * 3  # of five columns; ids and labels may stay
    assert len(held) == 2 * len(rows.row_groups)


def test_columns_become_rows() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        columns = [rng.normal(size=131).astype(dtype) for _ in range(5)]
        out = np.empty((131, 5), dtype)
        assert interleave(columns, out)
        np.testing.assert_array_equal(out, np.stack(columns, axis=1))
        for wrong in (np.nan, np.inf, -np.inf, *([1e160] if dtype is np.float64 else [])):
            columns[3][77] = wrong
            assert not interleave(columns, out)
            assert not interleave([c[::-1] for c in columns], out)
    mixed = [np.arange(4), np.array([True, False, True, False])]
    out = np.empty((4, 2))
    assert interleave(mixed, out)
    np.testing.assert_array_equal(out, np.stack(mixed, axis=1).astype(float))


def broken(folder: Path, fault: str) -> Path:
    """A dataset of two files, the second at fault."""
    frame = table()
    other = frame.copy()
    if fault == "missing":
        other = other.drop(columns="b")
    elif fault == "type":
        other["id"] = other["id"].astype(str)
    elif fault == "text":
        frame["b"] = other["b"] = "old"
    elif fault == "null":
        other.loc[5, "b"] = None
    elif fault == "infinite":
        other.loc[6, "c"] = np.inf
    elif fault == "label":
        other.loc[7, "y"] = None
    write(frame, folder)
    second = pa.Table.from_pandas(other, preserve_index=False)
    parquet.write_table(second, folder / "part-001.parquet")
    if fault == "truncated":
        whole = (folder / "part-001.parquet").read_bytes()
        (folder / "part-001.parquet").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("missing", r"part-001.parquet: there is no column 'b', which other files have; write"),
        ("type", r"part-001.parquet: column 'id' is (large_)?string, in other files int64"),
        ("text", r"column 'b': expected numbers, found (large_)?string; leave it out"),
        ("null", r"part-001.parquet, row 5: column 'b': a value is missing"),
        ("infinite", r"part-001.parquet, row 6: column 'c': expected finite numbers, found inf"),
        ("label", r"part-001.parquet, row 7: column 'y': a value is missing"),
        ("truncated", r"part-001.parquet.*; write this file again, or take it out of the folder"),
    ],
)
def test_faults_name_the_file(fault: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParquetError, match=message):
        for _ in ParquetRows(broken(tmp_path, fault), "id", "y").blocks():
            pass


def test_other_faults(tmp_path: Path) -> None:
    with pytest.raises(ParquetError, match="no such file or folder"):
        ParquetRows(tmp_path / "no", "id", "y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ParquetError, match="there is no Parquet file in this folder"):
        ParquetRows(tmp_path / "empty", "id", "y")
    folder = write(table(), tmp_path / "data")
    with pytest.raises(ParquetError, match="there is no column 'usr'; it has 'id', 'a'"):
        ParquetRows(folder, "usr", "y")
    rows = ParquetRows(folder, "id", "y")
    with pytest.raises(ValueError, match="y: expected None with a dataset"):
        MetaRegressor().fit(rows, [1.0])
    with pytest.raises(ValueError, match="random_state: expected None with a dataset"):
        MetaRegressor(random_state=0).fit(rows)
    with pytest.raises(ValueError, match="no inner='erm'"):
        MetaRegressor(reg=1.0, step=1.0, inner="erm").fit(rows)
    with pytest.raises(ValueError, match="group: expected 'id'"):
        MetaRegressor(group="user").fit(rows)
    with pytest.raises(ValueError, match="keep_path"):
        learn_bias(rows, 1.0, 1.0, keep_path=True)
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_empty_files_and_no_rows(tmp_path: Path) -> None:
    frame = table()
    write(frame, tmp_path / "some", [0, 100, 100, len(frame)])  # of five files three are empty
    rows = ParquetRows(tmp_path / "some", "id", "y")
    assert_same_bias(MetaRegressor().fit(rows), in_memory(frame))
    taken = [len(b.y) for p in plan_partitions(rows, 50) for b, _ in read_partition(rows, p)]
    assert sum(taken) == len(frame)
    nothing = ParquetRows(write(frame.iloc[:0], tmp_path / "none"), "id", "y")
    with pytest.raises(ParquetError, match="there are no rows in it"):
        MetaRegressor().fit(nothing)


def test_rows_are_counted_once(tmp_path: Path) -> None:
    frame = table()
    rows = ParquetRows(write(frame, tmp_path, row_group=20), "id", "y")
    assert rows.n_rows == len(frame)
    vars(rows)["row_groups"] = []
    assert rows.n_rows == len(frame)
    again = pickle.loads(pickle.dumps(rows))
    write(frame[:50], tmp_path)
    assert again.n_rows == 50  # what is sent is the dataset, not what was found in it


def test_a_container_has_less_memory_than_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, missing = tmp_path / "memory.max", tmp_path / "memory.limit_in_bytes"
    monkeypatch.setattr("headstart.parquet.engine.LIMITS", (missing,))
    machine = memory()
    monkeypatch.setattr("headstart.parquet.engine.LIMITS", (missing, file))
    for text, expected in (
        ("max\n", machine),
        ("1000000\n", int(SHARE * 1_000_000)),
        (f"{2**63 - 4096}\n", machine),  # no limit, as the first version says it
    ):
        file.write_text(text)
        assert memory() == expected
    monkeypatch.delattr("os.sysconf")  # as on Windows
    file.unlink()
    assert memory() == 1 << 32


def test_progress_is_reported(tmp_path: Path) -> None:
    frame = table()
    calls: list[int] = []
    folder = write(frame, tmp_path)
    rows = ParquetRows(folder, "id", "y", batch_rows=50, callback=calls.append)
    MetaRegressor().fit(rows)
    assert calls == [len(frame)]  # one partition


def test_faults_name_the_row_of_the_file_in_any_row_group(tmp_path: Path) -> None:
    frame = table()
    frame.loc[150, "b"] = None
    frame.loc[151, "y"] = None
    folder = write(frame, tmp_path, [100], row_group=20)
    for features, message in ((NAMES, "row 50: column 'b'"), (["a", "c"], "row 51: column 'y'")):
        rows = ParquetRows(folder, "id", "y", features, batch_rows=15)
        with pytest.raises(ParquetError, match=f"part-001.parquet, {message}: a value is missing"):
            list(rows.blocks())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.lists(st.integers(1, 25), min_size=1, max_size=30),
    st.integers(1, 3),
    st.sampled_from([0, 1, 3]),
)
def test_tasks_cut_by_batches_are_whole_again(
    sizes: list[int], lengths: list[int], multiple: int, in_turn: int
) -> None:
    """Also the blocks before stay as they were, as many as there are arrays in turn."""
    ids = np.repeat(np.arange(len(sizes)), sizes)
    n = len(ids)
    absent = np.arange(n) % 3 == 1
    labels = pa.array(10.0 * np.arange(n), mask=absent)
    columns = [pa.array(ids), pa.array(np.arange(n) + 0.5), labels]
    whole = pa.record_batch(columns, ["id", "x", "y"])
    edges = np.unique([0, *np.cumsum(lengths).clip(max=n), n])
    batches = [Batch(whole.slice(a, b - a)) for a, b in pairwise(edges)]

    def make(batch: Batch, X: FloatArray) -> Block:
        x, y, keys = (batch.columns.column(name) for name in ("x", "y", "id"))
        X[:, 0] = x.to_numpy()
        return make_block(X, y, keys, keys)

    found: list[Block] = []
    buffers, ends = Buffers(1, np.float64, in_turn), []
    for block, beside in whole_tasks(batches, make, buffers, multiple=multiple, beside=("y", "id")):
        found.append(block)
        ends.append(sum(len(b.y) for b in found))
        for k, before in enumerate(found[-in_turn:], start=max(len(found) - (in_turn or n), 0)):
            first = ends[k] - len(before.y)
            np.testing.assert_array_equal(before.X[:, 0], np.arange(first, ends[k]) + 0.5)
            np.testing.assert_array_equal(before.unlabelled, absent[first : ends[k]])
            known = np.flatnonzero(~before.unlabelled)
            np.testing.assert_array_equal(before.y[known], 10.0 * (first + known))
        assert beside.column("y").is_null().to_pylist() == block.unlabelled.tolist()
        assert beside.column("id").to_pylist() == block.row_ids.to_pylist()
    assert [i for block in found for i in block.ids.to_pylist()] == list(range(len(sizes)))
    assert [int(size) for block in found for size in block.sizes] == sizes
    assert all(len(block.starts) % multiple == 0 for block in found[:-1])


def test_rows_without_a_key_are_never_one_task() -> None:
    X, y = np.zeros((2, 1)), pa.array([1.0, 2.0])
    for missing, kind in ((None, pa.string()), (None, pa.int64()), (np.nan, pa.float64())):
        keys = pa.array([missing, missing], kind)
        block = make_block(X, y, keys, keys)
        assert len(block.starts) == 2
        assert not block.continues(block.keys[-1])
    assert not block.continues(None)
    keys = pa.array(["a", "b"])
    block = make_block(X, y, keys, keys)
    assert block.continues(keys[0])
    assert not block.continues(keys[1])


def test_blocks_that_are_overwritten_are_right_while_they_are_used(tmp_path: Path) -> None:
    """Two blocks are made ahead, so that three arrays take turns."""
    frame = table(200)
    rows = ParquetRows(write(frame, tmp_path, row_group=16), "id", "y", batch_rows=16)
    places: list[int] = []
    done = 0
    for block in rows.blocks(reuse=True):
        time.sleep(0.002)  # enough for the next ones to be made
        expected = frame[NAMES].to_numpy()[done : done + len(block.y)]
        np.testing.assert_array_equal(block.X, expected)
        places.append(block.X.ctypes.data)
        done += len(block.y)
    assert done == len(frame)
    assert len(set(places)) == 3
    fresh = list(rows.blocks())
    assert len({block.X.ctypes.data for block in fresh}) == len(fresh)


def test_footers_without_statistics(tmp_path: Path) -> None:
    """One row group needs none; several cannot be planned, and are clustered first."""
    frame = pa.Table.from_pandas(table(), preserve_index=False)
    parquet.write_table(frame, tmp_path / "one.parquet", write_statistics=False)
    one = ParquetRows(tmp_path / "one.parquet", "id", "y")
    assert is_grouped(one)
    assert len(plan_partitions(one, 10)) == 1
    parquet.write_table(frame, tmp_path / "n.parquet", write_statistics=False, row_group_size=50)
    several = ParquetRows(tmp_path / "n.parquet", "id", "y")
    assert not is_grouped(several)
    with pytest.raises(ParquetError, match="its footer has no statistics of 'id'"):
        plan_partitions(several)
    with grouped(several) as rows:
        assert rows is not several
        assert sum(
            len(b.y) for p in plan_partitions(rows) for b, _ in read_partition(rows, p)
        ) == len(frame)


def test_partitions_have_about_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    frame = table(300)
    rows = ParquetRows(write(frame, tmp_path, row_group=10), "id", "y")
    parts = plan_partitions(rows, 100)
    sizes = [sum(len(b.y) for b, _ in read_partition(rows, p)) for p in parts]
    assert sum(sizes) == len(frame)
    assert all(80 <= size <= 130 for size in sizes[:-1])


def test_an_index_of_pandas_is_no_feature_and_mixed_floats_are_float64(tmp_path: Path) -> None:
    frame = table()
    frame["a"] = frame["a"].astype("float32")
    tmp_path.mkdir(exist_ok=True)
    named = pa.Table.from_pandas(frame.set_index(frame.index[::-1]), preserve_index=True)
    assert "__index_level_0__" in named.column_names
    parquet.write_table(named, tmp_path / "a.parquet")
    rows = ParquetRows(tmp_path, "id", "y")
    assert rows.features == tuple(NAMES)
    assert rows.dtype is np.float64
    assert ParquetRows(tmp_path, "id", "y", ["a"]).dtype is np.float32
