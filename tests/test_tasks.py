from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart import TaskSet

ids = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.lists(st.sampled_from(["a", "b", "long name", ""]), min_size=1, max_size=30),
    st.lists(st.sampled_from([1, "1", (1, 2), 2.5, b"x"]), min_size=1, max_size=30),
)


def by_hand(groups: list[Any]) -> dict[Any, list[int]]:
    rows: dict[Any, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    return rows


@given(ids)
def test_from_arrays_groups_like_a_dictionary(groups: list[Any]) -> None:
    X = np.arange(2.0 * len(groups)).reshape(-1, 2)
    y = np.arange(len(groups)) / 7.0
    ts = TaskSet.from_arrays(X, y, groups)
    expected = by_hand(groups)
    assert list(ts.ids) == list(expected)
    assert len(ts) == len(expected)
    for (X_t, y_t), rows in zip(ts, expected.values(), strict=True):
        np.testing.assert_array_equal(X_t, X[rows])
        np.testing.assert_array_equal(y_t, y[rows])


def test_mixed_ids_keep_their_kind() -> None:
    ts = TaskSet.from_arrays(np.eye(4), np.zeros(4), [1, "1", (1, 2), 1])
    assert list(ts.ids) == [1, "1", (1, 2)]
    assert [type(i) for i in ts.ids] == [int, str, tuple]


def test_numpy_ids_keep_their_dtype() -> None:
    dates = np.array(["2024-01-02", "2024-01-01", "2024-01-02"], "datetime64[D]")
    ts = TaskSet.from_arrays(np.eye(3), np.zeros(3), dates)
    assert ts.ids.dtype == dates.dtype
    np.testing.assert_array_equal(ts.ids, dates[:2])


def test_adjacent_rows_are_not_copied() -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    ts = TaskSet.from_arrays(X, y, [5, 5, 1, 1, 1, 9])
    assert np.shares_memory(ts.X, X)
    assert np.shares_memory(ts.y, y)
    assert np.shares_memory(ts.subset([1, 2]).X, X)
    assert np.shares_memory(ts[0][0], X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_types_are_kept(dtype: type[np.floating]) -> None:
    X, y = np.ones((3, 2), dtype), np.ones(3, dtype)
    assert TaskSet.from_arrays(X, y, [0, 1, 0]).X.dtype == dtype
    assert TaskSet.from_list([(X, y)]).X.dtype == dtype
    assert TaskSet.from_list([(X, y)]).y.dtype == dtype
    assert TaskSet.from_arrays(X, [1, 2, 3], [0, 1, 0]).y.dtype == dtype


def test_integers_and_fortran_order_become_c_ordered_floats() -> None:
    X = np.asfortranarray(np.arange(6).reshape(3, 2))
    for groups in ([0, 0, 1], [0, 1, 0]):
        ts = TaskSet.from_arrays(X, [1, 2, 3], groups)
        assert ts.X.flags.c_contiguous
        assert ts.X.dtype == np.float64


def test_from_list_with_ids() -> None:
    ts = TaskSet.from_list([([[1.0]], [1.0]), ([[2.0], [3.0]], [2.0, 3.0])], ids=["x", "y"])
    assert list(ts.ids) == ["x", "y"]
    assert ts.sizes.tolist() == [1, 2]
    assert list(TaskSet.from_list([([[1.0]], [1.0])]).ids) == [0]


@given(st.lists(st.integers(2, 5), min_size=1, max_size=8), st.data())
def test_subset_and_split_rows(sizes: list[int], data: st.DataObject) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    ts = TaskSet.from_arrays(np.arange(float(len(groups)))[:, None], np.arange(len(groups)), groups)
    chosen = data.draw(st.lists(st.integers(-len(sizes), len(sizes) - 1), min_size=1, max_size=9))
    some = ts.subset(chosen)
    assert some.ids.tolist() == [ts.ids[i] for i in chosen]
    for (X, y), i in zip(some, chosen, strict=True):
        np.testing.assert_array_equal(X, ts[i][0])
        np.testing.assert_array_equal(y, ts[i][1])
    n = data.draw(st.integers(1, min(sizes) - 1))
    shots, queries = ts.split_rows(n)
    for t in range(len(ts)):
        np.testing.assert_array_equal(shots[t][0], ts[t][0][:n])
        np.testing.assert_array_equal(queries[t][1], ts[t][1][n:])
    np.testing.assert_array_equal(shots.ids, ts.ids)


def test_a_mask_chooses_tasks() -> None:
    ts = TaskSet.from_arrays(np.eye(4), [1, 2, 3, 4], [0, 1, 1, 1])
    assert ts.subset(ts.sizes > 1).ids.tolist() == [1]


def test_indexing_ends() -> None:
    ts = TaskSet.from_arrays(np.eye(3), [1, 2, 3], [0, 1, 1])
    assert ts[-1][1].tolist() == [2, 3]
    with pytest.raises(IndexError, match="task 2 of a set of 2"):
        ts[2]
    several: Any = slice(0, 2)
    with pytest.raises(TypeError, match="position is an integer, found slice"):
        ts[several]
    with pytest.raises(IndexError, match="task 7 of a set of 2"):
        ts.subset([0, 7])


def test_resampling_stays_within_tasks_and_covers_them() -> None:
    sizes = [1, 4, 3]
    ts = TaskSet.from_arrays(np.eye(8), np.arange(8), np.repeat([0, 1, 2], sizes))
    drawn = np.array([ts.rows("resample", seed).drawn for seed in range(200)])
    for t in range(3):
        columns = drawn[:, ts.offsets[t] : ts.offsets[t + 1]]
        own = set(range(ts.offsets[t], ts.offsets[t + 1]))
        assert all(set(column.tolist()) == own for column in columns.T)
    assert ts.rows("stream").drawn.size == 0


nan = float("nan")


@pytest.mark.parametrize(
    ("X", "y", "groups", "error", "message"),
    [
        ([1.0, 2.0], [1, 2], [0, 0], ValueError, r"X: expected a 2-D array, found shape \(2,\)"),
        ([[1.0], [2.0, 3.0]], [1, 2], [0, 0], ValueError, "X: .* rows of different lengths"),
        ([[1.0], [2.0]], [[1], [2]], [0, 0], ValueError, r"y: expected a 1-D .* \(2, 1\)"),
        ([[1.0], [2.0]], [1], [0, 0], ValueError, r"y: expected one label per row of X \(2\)"),
        ([[1.0], [2.0]], [1, 2], [0], ValueError, "groups: expected one id per row .* found 1"),
        ([[1.0], [nan]], [1, 2], [0, 0], ValueError, "X: .* found nan in row 1, column 0"),
        ([[1.0], [2.0]], [1, np.inf], [0, 0], ValueError, "y: .* found inf in row 1"),
        ([["a"], ["b"]], [1, 2], [0, 0], TypeError, "X: expected an array of numbers, found dtype"),
        ([[None], [{}]], [1, 2], [0, 0], TypeError, "X: .* found list "),
        (np.ones((2, 1), complex), [1, 2], [0, 0], TypeError, "X: .* found dtype complex128"),
        (np.empty((0, 1)), [], [], ValueError, "X: expected at least one row"),
        (np.empty((2, 0)), [1, 2], [0, 0], ValueError, "X: expected at least one column"),
        ([[1.0], [2.0]], [1, 2], [0, None], ValueError, "groups: .* found None in row 1"),
        ([[1.0], [2.0]], [1, 2], [nan, 0.0], ValueError, "groups: .* found nan in row 0"),
        ([[1.0], [2.0]], [1, 2], [[], []], TypeError, "groups: expected hashable ids.*list"),
        ([[1.0], [2.0]], [1, 2], np.eye(2), ValueError, r"groups: .* found shape \(2, 2\)"),
        (np.ma.masked_equal([[1.0], [2.0]], 2.0), [1, 2], [0, 0], ValueError, "X: .* masked"),
        ([[1.0], [2.0]], [1, 2], {0: 1, 1: 1}, TypeError, "groups: .* column of ids, found dict"),
        ([[1.0], [2.0]], [1, 2], {0, 1}, TypeError, "groups: .* column of ids, found set"),
        ([[10**400], [1]], [1, 2], [0, 0], TypeError, "X: expected an array of numbers"),
        ([[1.0], [2.0]], [1, 2], "ab", TypeError, "groups: expected a column of ids, found str"),
    ],
)
def test_from_arrays_errors(X: Any, y: Any, groups: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        TaskSet.from_arrays(X, y, groups)


def test_scattered_rows_are_named_as_the_user_has_them() -> None:
    X, y = np.ones((6, 2)), np.ones(6)
    X[4, 1] = y[5] = nan
    with pytest.raises(ValueError, match=r"X: .* found nan in row 4, column 1"):
        TaskSet.from_arrays(X, np.ones(6), list("bacbac"))
    with pytest.raises(ValueError, match=r"y: .* found nan in row 5"):
        TaskSet.from_arrays(np.ones((6, 2)), y, list("bacbac"))


def test_labels_too_large_for_the_inputs_type() -> None:
    with pytest.raises(ValueError, match="y: expected finite numbers, found inf in row 1"):
        TaskSet.from_arrays(np.ones((2, 1), np.float32), [1.0, 1e100], [0, 0])
    with pytest.raises(ValueError, match=r"y: expected numbers of at most 1e\+150, found 1e\+300"):
        TaskSet.from_arrays(np.ones((2, 1)), [1.0, 1e300], [0, 0])


@pytest.mark.parametrize("offsets", [[0, 100], [0, 1, 3], [1, 3], [0, 3, 3]])
def test_offsets_that_do_not_fit_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets: expected increasing int64 numbers"):
        TaskSet(np.eye(3), np.ones(3), np.array(offsets), np.zeros(1, np.int64))


def test_the_arrays_are_read_only_views() -> None:
    X = np.eye(2)
    ts = TaskSet.from_arrays(X, [1, 2], [0, 1])
    with pytest.raises(ValueError, match="read-only"):
        ts.X[0, 0] = 2.0
    X[0, 0] = 3.0  # the user's own array stays writable, and shared
    assert ts.X[0, 0] == 3.0


def test_pandas_like_missing_ids_are_refused() -> None:
    class Unsaid:  # compares like pandas.NA: neither equal nor unequal
        def __ne__(self, other: object) -> Any:
            return self

        def __bool__(self) -> bool:
            raise TypeError("ambiguous")

        __hash__ = object.__hash__

    with pytest.raises(ValueError, match="groups: expected an id in every row"):
        TaskSet.from_arrays(np.eye(2), [1, 2], [0, Unsaid()])


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        ([], ValueError, "tasks: expected at least one task"),
        ([([[1.0]], [1.0]), 3], TypeError, r"tasks\[1\]: expected a pair \(X, y\), found int"),
        ([([[1.0]], [1.0]), ([[1.0, 2.0]], [1.0])], ValueError, r"tasks\[1\] X: expected 1 col"),
        ([(np.empty((0, 1)), [])], ValueError, r"tasks\[0\] X: expected at least one row"),
        ([([[1.0]], [nan])], ValueError, r"tasks\[0\] y: .* found nan"),
    ],
)
def test_from_list_errors(tasks: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        TaskSet.from_list(tasks)


def test_other_errors() -> None:
    ts = TaskSet.from_arrays(np.eye(3), [1, 2, 3], ["a", "b", "b"])
    with pytest.raises(ValueError, match=r"n_train: 1 rows leave no query in task .*'a'.* has 1"):
        ts.split_rows(1)
    with pytest.raises(ValueError, match="n_train: expected an integer >= 1, found 0"):
        ts.split_rows(0)
    with pytest.raises(ValueError, match="indices: expected positions or a mask of 2 tasks"):
        ts.subset([])
    with pytest.raises(ValueError, match="ids: expected 2 different ids, found 1 among 2"):
        TaskSet.from_list([([[1.0]], [1.0])] * 2, ids=["a", "a"])
    with pytest.raises(ValueError, match="ids: expected an id in every row, found None in row 1"):
        TaskSet.from_list([([[1.0]], [1.0])] * 2, ids=["a", None])
    with pytest.raises(ValueError, match="order: expected one of 'stream', 'resample'"):
        ts.rows("random")
