"""Ids of every kind a column can hold."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from headstart.ids import IdIndex, encode, hash_ids, read_ids

COLUMNS = {
    "integers": [3, 1, 3, 2],
    "strings": ["b", "a", "b", "c"],
    "mixed": [1, "a", 1, ("x", 2)],
    "dates": [date(2024, 1, 2), date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)],
    "floats": [0.5, 1.5, 0.5, 2.5],
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS)
def test_positions_follow_first_appearance(values: list[Any]) -> None:
    ids, codes = encode("groups", values)
    assert ids.tolist() == [values[0], values[1], values[3]]
    assert codes.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    "column",
    [
        [1, None, 2],
        np.array([1.0, np.nan, 2.0]),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series(["1", None, "2"]),
        pd.Series(np.array(["2024-01-01", "NaT", "2024-01-02"], "datetime64[ns]")),
        pd.Categorical(["a", None, "b"]),
        pl.Series([1, None, 2]),
        pl.Series(["a", None, "b"]),
        pa.chunked_array([[1, None, 2]]),
        pa.chunked_array([["a", None, "b"]]),
    ],
    ids=lambda c: f"{type(c).__module__.split('.')[0]}-{getattr(c, 'dtype', '')}",
)
def test_nulls_are_missing_and_have_no_position(column: Any) -> None:
    index, read = IdIndex(), read_ids("groups", column)
    assert read.missing.tolist() == [False, True, False]
    assert index.add(read.keys, read.missing) == [0, -1, 1]
    assert len(index) == 2
    assert index.find(read.keys) == [0, -1, 1]
    with pytest.raises(ValueError, match=r"groups: expected an id in every row, found .* in row 1"):
        encode("groups", column)


def test_numbers_of_any_type_are_one_id() -> None:
    index = IdIndex([3, 4])
    for same in (np.array([3], np.int8), np.array([3.0]), [3], np.array([3], object)):
        assert index.find(read_ids("groups", same).keys) == [0]
    nanoseconds = np.array(["2024-01-01"], "datetime64[ns]")
    keys = read_ids("groups", nanoseconds).keys
    assert keys == read_ids("groups", nanoseconds.astype("datetime64[D]").astype("M8[us]")).keys


def test_adding_keeps_positions() -> None:
    index = IdIndex(["a"])
    nothing = np.zeros(3, np.bool_)
    assert index.add(["b", "a", "b"], nothing) == [1, 0, 1]
    assert index.keys == ["a", "b"]
    assert index.find(["c", "b"]) == [-1, 1]


def test_unhashable_ids() -> None:
    with pytest.raises(TypeError, match="groups: expected hashable ids"):
        read_ids("groups", [[1], [2]])


def test_hashes_are_those_of_the_id_and_not_of_its_type() -> None:
    small, wide, floats = (np.array([3, 7, 200], kind) for kind in (np.int16, np.uint64, float))
    np.testing.assert_array_equal(hash_ids(small), hash_ids(wide))
    np.testing.assert_array_equal(hash_ids(small), hash_ids(floats))
    np.testing.assert_array_equal(hash_ids(small), hash_ids(small.astype(object)))
    words = np.array(["a", "bc"])
    np.testing.assert_array_equal(hash_ids(words), hash_ids(words.astype(object)))
    assert hash_ids(np.array(["3"]))[0] != hash_ids(np.array([3]))[0]


def test_hashes_never_change() -> None:
    """A sample chosen by them must be the same in every release, on every machine."""
    numbers, word = hash_ids(np.array([0, 1, -1])), hash_ids(np.array(["a"]))
    assert numbers.tolist() == [16294208416658607535, 10451216379200822465, 16490336266968443936]
    assert word.tolist() == [16860193610431497119]


def test_hashes_are_spread_evenly() -> None:
    for ids in (np.arange(20_000), np.array([f"user {i}" for i in range(20_000)])):
        share = np.bincount((hash_ids(ids) >> np.uint64(60)).astype(int), minlength=16) / 20_000
        assert np.abs(share - 1.0 / 16.0).max() < 0.01


def test_integers_beyond_64_bits_stay_apart() -> None:
    ids, codes = encode("groups", [2**63, 2**63 + 1, 1, -1])
    assert ids.tolist() == [2**63, 2**63 + 1, 1, -1]
    assert codes.tolist() == [0, 1, 2, 3]
