"""Ids of every type, in every kind of column: the same id on every road."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from headstart import TaskSet
from headstart._core.plain import from_plain, to_plain
from headstart.cli.tables import different_ids, read_columns, read_table
from headstart.parquet import ParquetRows, clustered
from headstart.store import StoredIds, pack_ids, read_model, write_model
from headstart.tasks.ids import Column, IdIndex, canonical, encode, hash_ids, read_ids

NO_IDS = [float("nan"), 1.0, float("nan"), float("nan"), 1.0]


@pytest.mark.parametrize("column", [pa.array(NO_IDS), pl.Series(NO_IDS), np.array(NO_IDS)])
def test_rows_without_an_id_are_runs_of_their_own(column: Any) -> None:
    found = read_ids("ids", column)
    assert found.starts.tolist() == [0, 1, 2, 3, 4]
    assert found.missing.tolist() == [True, False, True, True, False]


NANO = np.datetime64("2024-01-01T00:00:00.000000001")
# Of each type the canonical keys of three ids, and what Arrow calls the type.
TYPES: dict[str, tuple[list[Any], Any]] = {
    "int": ([3, 1, 2], pa.int64()),
    "int beyond 53 bits": ([2**53, 2**53 + 1, -(2**53) - 1], pa.int64()),
    "int of 8 bits": ([3, 1, 2], pa.int8()),
    "int without sign": ([2**63, 2**63 + 1, 2**64 - 1], pa.uint64()),
    "int of 30 digits": ([10**29, 10**29 + 1, 10**29 + 2], pa.decimal128(30)),
    "bool": ([False, True, False], pa.bool_()),
    "float": ([0.5, 1.5, 1e300], pa.float64()),
    "whole float": ([3, 1, 2], pa.float64()),
    "float of 32 bits": ([0.5, 2, 0.25], pa.float32()),
    "decimal": ([Decimal("0.10"), Decimal("0.11"), 5], pa.decimal128(20, 2)),
    "text": (["b", "a", "ü\0"], pa.string()),
    "long text": (["b", "b" * 500, "b" * 501], pa.large_string()),
    "bytes": ([b"b", b"a", b"a\0"], pa.binary()),
    "date": ([date(2024, 1, 2), date(2024, 1, 1), date(1, 1, 1)], pa.date32()),
    "time": (
        [datetime(2024, 1, 2, 3), datetime(2024, 1, 2), datetime(1, 1, 1)],
        pa.timestamp("us"),
    ),
    "nanosecond": (
        [NANO, datetime(2024, 1, 1), NANO + np.timedelta64(1, "ns")],
        pa.timestamp("ns"),
    ),
    "time in a zone": (
        [datetime(2024, 1, 2, 3, tzinfo=UTC), datetime(2024, 7, 1, tzinfo=UTC), NANO],
        pa.timestamp("ns", "Europe/Rome"),
    ),
    "time of day": ([time(1, 2, 3, 4), time(23, 59), time(0)], pa.time64("us")),
    "nanosecond of day": ([(time(1), 5), time(1), (time(1), 6)], pa.time64("ns")),
    "duration": ([timedelta(1), timedelta(0, 1), timedelta(0, 0, 1)], pa.duration("us")),
    "nanoseconds long": (
        [np.timedelta64(1, "ns"), timedelta(1), np.timedelta64(2, "ns")],
        pa.duration("ns"),
    ),
    "UUID": ([UUID(int=3), UUID(int=1), UUID(int=2)], pa.uuid()),
}
ORDER = [0, 1, 0, 2, 1]  # each id's rows are apart


def arrow_of(keys: list[Any], kind: Any) -> Any:
    """A column of Arrow with these ids, None being null, made without going by `read_ids`."""
    counted: list[Any] = [None if key is None else _count(key, kind) for key in keys]
    if any(map(pa.types.is_temporal, [kind])):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(counted, width).view(kind)
    return pa.array(counted, kind)


def _count(key: Any, kind: Any) -> Any:
    if pa.types.is_decimal(kind):
        return Decimal(key)
    if pa.types.is_time(kind):
        clock, left = key if isinstance(key, tuple) else (key, 0)
        seconds = clock.hour * 3600 + clock.minute * 60 + clock.second
        nano = (seconds * 10**6 + clock.microsecond) * 1000 + left
        return nano if kind.unit == "ns" else nano // 1000
    if bool(pa.types.is_temporal(kind)):
        if isinstance(key, datetime):
            key = key.replace(tzinfo=None)
        unit = "D" if str(kind).startswith("date") else kind.unit
        letter = "m" if pa.types.is_duration(kind) else "M"
        return int(np.asarray(key, f"{letter}8[{unit}]").astype(np.int64))
    return key.bytes if isinstance(key, UUID) else key


def numpy_of(keys: list[Any], kind: Any) -> Any:
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return np.array(keys, "M8[ns]" if kind.unit == "ns" else "M8[us]")
    if pa.types.is_duration(kind):
        return np.array(keys, "m8[ns]" if kind.unit == "ns" else "m8[us]")
    if pa.types.is_date(kind):
        return np.array(keys, "M8[D]")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return np.array(keys, kind.to_pandas_dtype())
    if pa.types.is_large_string(kind):
        return np.array(keys)
    return pytest.skip("NumPy has no such type")


def polars_of(keys: list[Any], kind: Any) -> Any:
    if kind == pa.uuid():
        return pl.Series(keys, dtype=pl.Object)
    return pl.from_arrow(arrow_of(keys, kind))


def objects(keys: list[Any], _: Any) -> Any:
    return np.fromiter(keys, object, len(keys))


def chunked(keys: list[Any], kind: Any) -> Any:
    return pa.chunked_array([arrow_of(keys[:2], kind), arrow_of(keys[2:], kind)])


def dictionary(keys: list[Any], kind: Any) -> Any:
    if kind == pa.uuid():
        pytest.skip("Arrow has no dictionary of them")
    return arrow_of(keys, kind).dictionary_encode()


ROADS: dict[str, Callable[[list[Any], Any], Any]] = {
    "list": lambda keys, _: keys,
    "tuple": lambda keys, _: tuple(keys),
    "objects": objects,
    "numpy": numpy_of,
    "masked": lambda keys, kind: np.ma.MaskedArray(numpy_of(keys, kind), [False] * len(keys)),
    "pandas": lambda keys, _: pd.Series(keys),
    "pandas objects": lambda keys, _: pd.Series(keys, dtype=object),
    "pandas categories": lambda keys, kind: pd.Series(objects(keys, kind), dtype="category"),
    "pandas of Arrow": lambda keys, kind: pd.Series(
        pd.array(arrow_of(keys, kind), pd.ArrowDtype(kind))
    ),
    "polars": polars_of,
    "arrow": arrow_of,
    "chunks": chunked,
    "dictionary": dictionary,
}


def said(keys: Any) -> list[str]:
    """Keys with their types: 1 and True are equal, and not the same."""
    return [f"{type(key).__name__} {key!r}" for key in keys]


def same(one: Any, other: Any) -> bool:
    """Whether keys are equal: NumPy takes the number of nanoseconds for their duration."""
    if isinstance(one, np.generic) or isinstance(other, np.generic):
        return said([one]) == said([other])
    return bool(one == other)


def by_row(column: Column) -> list[Any]:
    """The key of each row."""
    return list(np.repeat(objects(column.keys, None), np.diff(column.starts, append=column.size)))


def each_once(keys: list[Any]) -> list[Any]:
    return list(dict.fromkeys(keys))


@pytest.mark.parametrize("rows", [5, 3000])
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", TYPES)
def test_an_id_is_the_same_on_every_road(kind: str, road: str, rows: int) -> None:
    keys, arrow = TYPES[kind]
    items = [keys[ORDER[i % 5]] for i in range(rows)]
    column = ROADS[road](items, arrow)
    read, index = read_ids("groups", column), IdIndex()
    positions = read.added_to(index)
    different = each_once(items)
    assert said(index.keys) == said(different)
    assert positions.tolist() == [different.index(item) for item in items]
    assert read.found_in(index).tolist() == positions.tolist()
    assert said(by_row(read)) == said(items)
    ids, codes = encode("groups", column)
    assert codes.tolist() == positions.tolist()
    assert hash_ids(ids).tolist() == hash_ids(objects(different, None)).tolist()
    assert read.kinds == index.kinds == read_ids("groups", different).kinds


MISSING: dict[str, Callable[[list[Any], Any], Any]] = {
    "list": lambda keys, _: keys,
    "list with NaN": lambda keys, _: [float("nan") if key is None else key for key in keys],
    "objects": objects,
    "objects with NA": lambda keys, _: objects([pd.NA if key is None else key for key in keys], _),
    "objects with NaT": lambda keys, _: objects(
        [pd.NaT if key is None else key for key in keys], _
    ),
    "masked": lambda keys, kind: np.ma.MaskedArray(
        numpy_of([keys[0] if key is None else key for key in keys], kind), [k is None for k in keys]
    ),
    "pandas objects": lambda keys, _: pd.Series(keys, dtype=object),
    "pandas of Arrow": ROADS["pandas of Arrow"],
    "polars": polars_of,
    "arrow": arrow_of,
    "dictionary": dictionary,
}


@pytest.mark.parametrize("rows", [4, 3000])
@pytest.mark.parametrize("road", MISSING)
@pytest.mark.parametrize("kind", TYPES)
def test_missing_ids_are_told_from_all_others(kind: str, road: str, rows: int) -> None:
    keys, arrow = TYPES[kind]
    items = [(keys[0], None, keys[1], keys[0])[i % 4] for i in range(rows)]
    read, index = read_ids("groups", MISSING[road](items, arrow)), IdIndex()
    expected = [-1 if item is None else each_once(keys).index(item) for item in items]
    assert read.added_to(index).tolist() == expected
    assert read.by_row(IdIndex(keys[:2]).add(read.keys, read.missing)).tolist() == expected
    assert said(index.keys) == said(keys[:2])
    assert read.missing.sum() == rows // 4  # a run each
    with pytest.raises(ValueError, match=r"groups: expected an id in every row, found .* in row 1"):
        encode("groups", MISSING[road](items, arrow))


@pytest.mark.parametrize("order", [[0, 1, 1, 2, 2], ORDER], ids=["sorted", "scattered"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_file_has_the_tasks_of_the_column(kind: str, order: list[int], tmp_path: Path) -> None:
    keys, arrow = TYPES[kind]
    if len(set(keys)) == 3 and order != ORDER:
        keys = sorted(keys, key=lambda key: _count(key, arrow))
    column, X = arrow_of([keys[i] for i in order], arrow), np.arange(5.0)
    expected = TaskSet.from_arrays(X[:, None], X, [keys[i] for i in order])
    parquet.write_table(
        pa.table({"id": column, "x": pa.array(X), "y": pa.array(X)}),
        tmp_path / "a.parquet",
        row_group_size=3,
    )
    sets = list(ParquetRows(tmp_path, "id", "y", batch_rows=2).task_sets())
    ids = [canonical(i) for tasks in sets for i in list(tasks.ids)]
    assert said(ids) == said(map(canonical, expected.ids))
    assert [y.tolist() for tasks in sets for _, y in tasks] == [y.tolist() for _, y in expected]
    blocks = list(ParquetRows(tmp_path, "id", "y", batch_rows=2).blocks())
    found = [key for block in blocks for key in by_row(read_ids("id", block.row_ids))]
    assert said(found) == said(keys[i] for i in order)


@pytest.mark.parametrize("absent", [None, float("nan")])
def test_rows_without_an_id_stay_where_they_are_on_disk(absent: Any, tmp_path: Path) -> None:
    ids = pa.array([2.5, absent, 1.5, 2.5, absent, 1.5], pa.float64())
    X = np.arange(6.0)
    parquet.write_table(
        pa.table({"id": ids, "x": pa.array(X), "y": pa.array(X)}), tmp_path / "a.parquet"
    )
    copy = clustered(ParquetRows(tmp_path, "id", "y"), tmp_path / "copy")
    blocks = list(copy.blocks())
    assert [y for block in blocks for y in block.y] == [0.0, 3.0, 1.0, 2.0, 5.0, 4.0]
    assert [m for block in blocks for m in block.missing] == [False, True, False, True]


@pytest.mark.parametrize(
    ("texts", "keys"),
    [
        (["12345678901234567890", "12345678901234567891", "7"], None),
        (["12345678901234567890", "", "0.5"], [12345678901234567890, None, 0.5]),
        (["1", "2", "3"], [1, 2, 3]),
        (["1.5", "2", ""], [1.5, 2, None]),
        (["u1", "", "u2"], ["u1", None, "u2"]),
        (["2024-01-02", "2024-01-01", ""], [date(2024, 1, 2), date(2024, 1, 1), None]),
        ([*["1"] * 600_000, "12345678901234567891"], None),  # far behind where types are guessed
    ],
)
def test_ids_in_csv_files(texts: list[str], keys: list[Any] | None, tmp_path: Path) -> None:
    lines = [f"{text},{row},{row}" for row, text in enumerate(texts)]
    (tmp_path / "a.csv").write_text("\n".join(["id,x,y", *lines, ""]))
    columns = read_columns(read_table(tmp_path / "a.csv", "id"), "id", "y")
    index = IdIndex()
    places = read_ids("id", columns.ids).added_to(index)
    expected = list(map(int, texts)) if keys is None else keys
    assert said(index.keys) == said(each_once([key for key in expected if key is not None]))
    assert [index.keys[p] if p >= 0 else None for p in places] == expected
    if None not in expected:
        different, codes = different_ids("id", columns.ids)
        assert said(read_ids("id", different).keys) == said(index.keys)
        assert codes.tolist() == places.tolist()


@given(st.lists(st.tuples(st.sampled_from([1, 2, "a", None]), st.booleans())), st.integers(1, 500))
def test_some_rows_of_a_column(rows: list[tuple[Any, bool]], times: int) -> None:
    items, used = [key for key, _ in rows] * times, np.array([u for _, u in rows] * times, bool)
    part = read_ids("groups", items).at(used)
    expected = [item for item, kept in zip(items, used, strict=True) if kept]
    assert by_row(part) == expected
    whole = read_ids("groups", expected)
    assert part.added_to(IdIndex()).tolist() == whole.added_to(IdIndex()).tolist()
    assert (part.kinds, part.size, part.ids.tolist()) == (whole.kinds, whole.size, expected)


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (np.int32(1), 1),
        (1.0, 1),
        (-0.0, 0),
        (np.float32(0.5), 0.5),
        (Decimal("1.00"), 1),
        (Decimal("0.50"), 0.5),
        (Decimal("0.1"), Decimal("0.1")),
        (Decimal("1e400"), Decimal("1e400")),
        (Fraction(1, 2), 0.5),
        (Fraction(1, 3), Fraction(1, 3)),
        (Colour.RED, 1),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (np.bool_(True), True),
        (pd.Timestamp("2024-01-01"), datetime(2024, 1, 1)),
        (pd.Timestamp("2024-01-01 01:00", tz="Europe/Rome"), datetime(2024, 1, 1, tzinfo=UTC)),
        (
            datetime(2024, 1, 1, 5, tzinfo=timezone(timedelta(hours=5))),
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
        (pd.Timestamp(1704067200000000001), NANO),
        (np.datetime64("2024-01-01"), date(2024, 1, 1)),
        (np.datetime64("2024-01-01T00"), datetime(2024, 1, 1)),
        (np.datetime64("20240-01-01", "s"), np.datetime64("20240-01-01", "us")),
        (pd.Timedelta(1500), np.timedelta64(1500, "ns")),
        (pd.Timedelta(1, "h"), timedelta(hours=1)),
        ((np.int8(1), ("a", 2.0)), (1, ("a", 2))),
        *(
            (nothing, None)
            for nothing in (None, float("nan"), np.nan, pd.NA, pd.NaT, Decimal("nan"))
        ),
        (np.datetime64("nat", "ns"), None),
    ],
    ids=repr,
)
def test_the_value_an_id_is_known_by(key: Any, expected: Any) -> None:
    assert said([canonical(key)]) == said([expected])
    assert said(read_ids("ids", [key, "other"]).keys) == said([expected, "other"])


def test_what_cannot_be_an_id() -> None:
    unhashable: list[Any] = [[[1], [2]], [{}], pa.array([[1], [2]]), [np.arange(2)]]
    for column in unhashable:
        with pytest.raises(TypeError, match="groups: expected hashable ids, found unhashable type"):
            read_ids("groups", column)
    with pytest.raises(TypeError, match="ids: expected hashable ids, found unhashable type"):
        canonical([1])
    with pytest.raises(
        ValueError, match=r"groups: expected a 1-D array of ids, found shape \(2, 2\)"
    ):
        read_ids("groups", np.eye(2))
    no_columns: list[Any] = ["abc", {"a": 1}, {1, 2}, 5]
    for column in no_columns:
        with pytest.raises(TypeError, match="groups: expected a column of ids, found"):
            read_ids("groups", column)


keys_of_any_type = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes().map(lambda t: t.replace(fold=0)),
    st.datetimes(timezones=st.timezones()),
    st.times().map(lambda t: t.replace(fold=0)),
    st.timedeltas(),
    st.uuids(),
    st.booleans(),
    st.tuples(st.integers(), st.text(max_size=2)),
    st.integers(-(2**62), 2**62).map(lambda n: np.datetime64(n, "ns")),
    st.integers(-(2**62), 2**62).map(lambda n: np.timedelta64(n, "ns")),
)


def when(item: Any) -> Any:
    """An hour that a clock shows twice is equal to no hour of another zone: its instant is."""
    if isinstance(item, datetime) and item.tzinfo is not None:
        shown_twice = item.replace(fold=1 - item.fold).utcoffset() != item.utcoffset()
        return item.astimezone(UTC) if shown_twice else item
    return item


@given(st.lists(keys_of_any_type))
@example([datetime(2010, 8, 7, 23, tzinfo=ZoneInfo("Africa/Casablanca"))])
def test_ids_are_one_if_they_are_equal(items: list[Any]) -> None:
    read = read_ids("groups", items)
    once = [canonical(item) for item in items]
    assert said(read.keys) == said(once)
    assert said(map(canonical, once)) == said(once)
    for item, key in zip(items, once, strict=True):
        if not isinstance(item, np.generic | tuple):
            assert when(item) == key
            assert hash(when(item)) == hash(key)
    positions, hashes = read.added_to(IdIndex()), hash_ids(objects(items, None))
    for i, one in enumerate(once):
        for j, other in enumerate(once):
            assert (positions[i] == positions[j]) == same(one, other)
            assert (hashes[i] == hashes[j]) == same(one, other)


@given(st.lists(keys_of_any_type, min_size=1))
def test_every_type_of_id_is_saved(items: list[Any]) -> None:
    keys = IdIndex([]).keys + list(dict.fromkeys(map(canonical, items)))
    text = json.dumps([to_plain("ids", key) for key in keys])
    assert said(map(from_plain, json.loads(text))) == said(keys)


@pytest.mark.parametrize("kind", TYPES)
def test_ids_of_every_type_in_a_model(kind: str, tmp_path: Path) -> None:
    keys = each_once(TYPES[kind][0])
    write_model(tmp_path, {}, pack_ids(keys))
    stored = StoredIds(read_model(tmp_path)[1])
    assert stored.kinds == IdIndex(keys).kinds
    assert stored.find([keys[1], "nobody", keys[0]]) == [1, -1, 0]
    assert keys[0] in stored
    assert "nobody" not in stored
    assert len(stored) == len(keys)
    assert said(stored.keys) == said(keys)


def test_unknown_types_are_not_saved() -> None:
    with pytest.raises(
        TypeError, match=r"ids: .* of type Opaque cannot be saved; numbers, strings"
    ):
        to_plain("ids", type("Opaque", (), {})())


def test_a_set_of_tasks_keeps_the_type_of_the_ids() -> None:
    X = np.ones((3, 1))
    for ids in (np.array([3, 1, 3], np.int16), np.array(["b", "a", "b"]), np.array([0.5, 2, 0.5])):
        found = TaskSet.from_arrays(X, X[:, 0], ids).ids
        assert found.dtype == ids.dtype
        assert found.tolist() == ids[:2].tolist()
