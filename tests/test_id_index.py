"""Where ids are, what kinds they are, and the numbers they are drawn by."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.tasks.ids import IdIndex, hash_ids, read_ids, warn_other_kinds

PINNED = [
    237726477914003235,
    13330813555453621012,
    8415240736594023236,
    18126549078161937186,
    12524718654088387788,
    16213371291910180463,
]


def test_hashes_are_those_of_the_id_and_not_of_its_type() -> None:
    same = [np.int16(3), np.uint64(3), 3.0, Decimal("3.0"), 3]
    assert len({hash_ids(np.array([key], object))[0] for key in same}) == 1
    assert hash_ids(np.array([3], np.uint64))[0] == hash_ids(np.array([3.0]))[0]
    large = [2**63, 2**64 - 1]
    np.testing.assert_array_equal(
        hash_ids(np.array(large, np.uint64)), hash_ids(np.array(large, object))
    )
    np.testing.assert_array_equal(
        hash_ids(np.array([2.0**70])), hash_ids(np.array([2**70], object))
    )
    words = np.array(["a", "bc"])
    np.testing.assert_array_equal(hash_ids(words), hash_ids(words.astype(object)))
    assert hash_ids(np.array(["3"]))[0] != hash_ids(np.array([3]))[0]
    times = np.array(["2024-01-01"] * 3, "M8[ns]") + np.array([0, 1, 2], "m8[ns]")
    assert len(set(hash_ids(times))) == 3
    assert hash_ids(times[:1])[0] == hash_ids(times[:1].astype("M8[s]"))[0]


def test_hashes_never_change() -> None:
    """A sample chosen by them must be the same in every release, on every machine."""
    numbers, word = hash_ids(np.array([0, 1, -1])), hash_ids(np.array(["a"]))
    assert numbers.tolist() == [16294208416658607535, 10451216379200822465, 16490336266968443936]
    assert word.tolist() == [16860193610431497119]
    others: list[Any] = [0.5, b"a", (1, "a"), datetime(2024, 1, 2), date(2024, 1, 2), 2**70]
    assert hash_ids(np.fromiter(others, object, len(others))).tolist() == PINNED


def test_hashes_are_spread_evenly() -> None:
    for ids in (np.arange(20_000), np.array([f"user {i}" for i in range(20_000)])):
        share = np.bincount((hash_ids(ids) >> np.uint64(60)).astype(int), minlength=16) / 20_000
        assert np.abs(share - 1.0 / 16.0).max() < 0.01


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "place", "remove", "reserve", "release"]),
            st.lists(st.integers(0, 6), max_size=4),
        )
    )
)
def test_positions_are_never_shared(steps: list[tuple[str, list[int]]]) -> None:
    index = IdIndex()
    known: dict[Hashable, int] = {}
    reserved: list[int] = []
    freed: list[int] = []
    for step, keys in steps:
        before = dict(known)
        if step == "add":
            missing = np.array([key == 6 for key in keys], np.bool_)
            found = index.add(list(keys), missing)
            assert [p == -1 for p in found] == missing.tolist()
            known.update({k: p for k, p in zip(keys, found, strict=True) if p >= 0})
        elif step == "place":
            for key in set(keys) - {6}:
                known[key] = index.place(key)
                assert index.place(key) == known[key]
        elif step == "reserve":
            reserved += index.reserve(len(keys))
        elif step == "release" and reserved:
            freed.append(reserved.pop())
            index.release(freed[-1:])
        elif step == "remove":
            if len(set(keys)) < len(keys) or not set(keys) <= set(known):
                with pytest.raises(KeyError, match="is no known id"):
                    index.remove(list(keys))
            else:
                assert index.remove(list(keys)) == [known[key] for key in keys]
                freed += [known.pop(key) for key in keys]
        new = [known[key] for key in known if key not in before]
        again = [p for p in new if p in freed]
        assert again == freed[::-1][: len(again)]  # the last freed first
        freed = [p for p in freed if p not in {*known.values(), *reserved}]
        taken = [*known.values(), *reserved]
        assert len(set(taken)) == len(taken)
        assert index.room >= max(taken, default=-1) + 1
        assert index.room == len(taken) + len(freed)  # no position is lost
    assert index.keys == list(known)
    assert index.positions.tolist() == list(known.values())
    assert index.positions.dtype == np.int64
    assert len(index) == len(known)
    assert all(key in index for key in known)
    assert index.find([*known, "?"]) == [*known.values(), -1]


def test_an_index_from_ids_and_positions() -> None:
    index = IdIndex(["a", "b"], [4, 1])
    assert (index.keys, index.positions.tolist(), index.room) == (["a", "b"], [4, 1], 5)
    assert sorted(index.add(["c", "d", "e", "f"])) == [0, 2, 3, 5]
    for keys, positions in ((["a", "a"], None), (["a", "b"], [1, 1]), (["a"], [-1])):
        with pytest.raises(ValueError, match="keys: expected ids and positions that are all diff"):
            IdIndex(keys, positions)


def test_ids_are_removed_all_or_none() -> None:
    index = IdIndex(["a", "b"])
    for keys in (["a", "c"], ["a", "a"]):
        with pytest.raises(KeyError, match="is no known id"):
            index.remove(keys)
        assert index.keys == ["a", "b"]
    assert index.remove(["b", "a"]) == [1, 0]
    assert (len(index), index.room, index.place("c")) == (0, 2, 0)


def test_kinds_are_all_that_were_ever_added() -> None:
    index = IdIndex([1])
    index.add([2.5, "a"])
    index.place(b"b")
    assert index.kinds == {"number", "text", "bytes"}
    index.remove(["a"])
    assert index.kinds == {"number", "text", "bytes"}
    copy = pickle.loads(pickle.dumps(index))
    assert pickle.dumps(copy) == pickle.dumps(index)
    assert copy.find([1, b"b"]) == index.find([1, b"b"])


@pytest.mark.parametrize(
    ("known", "asked", "said"),
    [
        (
            [1, 2],
            ["1", "2"],
            "groups: ids are text, those learned from are numbers, so that none of",
        ),
        (["1"], [1, 2.5], "groups: ids are numbers, those learned from are text, so that none of"),
        (
            [1],
            ["a", 1],
            "groups: some ids are text, those learned from are numbers, so that none of",
        ),
        ([date(2024, 1, 1)], [datetime(2024, 1, 1)], "ids are times, those learned from are dates"),
        ([1, "a"], [b"a"], "groups: ids are bytes, those learned from are numbers and text"),
    ],
)
def test_ids_of_another_kind_are_told(known: list[Any], asked: list[Any], said: str) -> None:
    with pytest.warns(UserWarning, match=said) as caught:
        warn_other_kinds("groups", read_ids("groups", asked), IdIndex(known))
    assert caught[0].filename == __file__
    assert str(caught[0].message).endswith("give ids of the same type")


@pytest.mark.parametrize(
    ("known", "asked"),
    [([1], [2, 2.5, True]), ([], ["a"]), ([1], [None, 1]), ([1], []), (["a"], np.array(["b"]))],
)
def test_ids_of_the_same_kind_are_not(known: list[Hashable], asked: Any) -> None:
    warn_other_kinds("groups", read_ids("groups", asked), IdIndex(known))  # warnings are errors


def test_free_positions_are_taken_from_the_lowest() -> None:
    index = IdIndex(["a", "b"], positions=[4, 1])
    assert (index.place("c"), index.reserve(3), index.room) == (0, [2, 3, 5], 6)
    assert index.add(["d", "a", "e"]) == [6, 4, 7]
    index.release([2, 5])
    assert (index.place("f"), index.place("g")) == (5, 2)  # the last freed first


def test_floats_that_integers_of_64_bits_cannot_hold() -> None:
    for factor in (0.5, 1.0, 2.0, 4.0):  # around 2^63, where 64 bits with a sign end
        values = factor * (2.0**63 + 2048.0 * np.arange(-40, 40))
        for ids in (values, -values):
            assert read_ids("groups", ids).keys == [int(v) if abs(v) < 2.0**64 else v for v in ids]
