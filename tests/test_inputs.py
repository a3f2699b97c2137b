"""What estimators take: columns of ids and side information, faults by name, labels."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from headstart.estimators.inputs import (
    as_signs,
    read_classes,
    read_inputs,
    read_rows,
    split_columns,
)
from headstart.tasks.ids import IdIndex, read_ids

NAMES = ["age", "price"]
X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
Y = np.array([0.5, 1.5, 2.5, 3.5])
IDS = [2**60, 2**60 + 1, None, 2**60]

FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


class Fitted(BaseEstimator):
    """As much of an estimator as inputs need."""

    def __init__(self, X: Any = None) -> None:
        if X is not None:
            read_rows(self, X, Y, reset=True, numeric=True)


def columns(**changes: Any) -> dict[str, Any]:
    return {"age": X[:, 0], "price": X[:, 1], **changes}


@pytest.fixture(params=list(FRAMES))
def frame(request: pytest.FixtureRequest) -> Callable[[dict[str, Any]], Any]:
    return FRAMES[request.param]


def values(table: Any) -> Any:
    return np.asarray(table).tolist()


def test_ids_and_side_information_leave_a_frame(frame: Any) -> None:
    ids: Any = pa.array(IDS) if frame is pa.table else pd.array(IDS, "Int64")
    ids = pl.Series(IDS) if frame is pl.DataFrame else ids
    table = frame({"region": [5, 6, 7, 8], "age": X[:, 0], "user": ids, "price": X[:, 1]})
    for group, side in (("user", ["region"]), (2, [0]), (-2, [-4]), ("user", ["price", 0])):
        rest, found, beside = split_columns(table, None, group, side, required=True)
        assert type(rest) is type(table)
        assert read_ids("groups", found).keys == IDS
        assert beside is not None
        assert beside.dtype == np.float64
        if "price" in side:
            assert values(rest) == X[:, :1].tolist()
            assert beside.tolist() == [[10, 5], [20, 6], [30, 7], [40, 8]]
        else:
            assert values(rest) == X.tolist()
            assert beside.tolist() == [[5], [6], [7], [8]]
    rest, found, beside = split_columns(table, None, "user", required=True)
    assert (np.shape(rest), beside) == ((4, 3), None)
    assert read_ids("groups", found).keys == IDS
    rest, found, beside = split_columns(table, ["u"] * 4, None, ["region"], required=True)
    assert found == ["u"] * 4
    assert np.shape(rest) == (4, 3)


@pytest.mark.parametrize("kind", [np.asarray, np.ma.asarray, lambda a: a.tolist()])
def test_ids_and_side_information_leave_an_array(kind: Callable[[Any], Any]) -> None:
    table = kind(np.column_stack([[5, 6, 7, 8], X[:, 0], [1, 2, 2, 1], X[:, 1]]))
    places: list[tuple[Any, list[int]]] = [(2, [0]), (-2, [-4]), (np.int64(2), [0])]
    for group, side in places:
        rest, found, beside = split_columns(table, None, group, side, required=True)
        assert values(rest) == X.tolist()
        assert read_ids("groups", found).added_to(IdIndex()).tolist() == [0, 1, 1, 0]
        assert beside is not None
        assert beside.tolist() == [[5], [6], [7], [8]]


def test_masks_go_with_their_columns() -> None:
    table = np.ma.MaskedArray(np.column_stack([[1, 2, 2, 1], X]), np.zeros((4, 3), bool))
    table[1, 0] = np.ma.masked
    table[2, 2] = np.ma.masked
    rest, ids, _ = split_columns(table, None, 0, required=True)
    assert read_ids("groups", ids).keys == [1, None, 2, 1]
    with pytest.raises(ValueError, match=r"X: column 1: .* found a masked value in row 2"):
        read_inputs(Fitted(X), rest)


def test_columns_that_are_not_there(frame: Any) -> None:
    table = frame(columns())
    assert split_columns(table, None, "user", ["region"], required=False) == (table, None, None)
    for group, side, message in (
        ("user", None, "group: X has no column 'user'; it has 'age', 'price'"),
        (None, ["region"], "side: X has no column 'region'; it has 'age', 'price'"),
        (5, None, "group: expected a column's number from 0 to 1, found 5"),
        (None, [-3], "side: expected a column's number from 0 to 1, found -3"),
        ("age", ["age"], "side: expected columns that differ, and not group"),
        (None, ["age", 0], "side: expected columns that differ, and not group"),
    ):
        with pytest.raises(ValueError, match=message):
            split_columns(table, None, group, side, required=True)
    with pytest.raises(ValueError, match="side: X has no column 'region'; it has 'age', 'price'"):
        split_columns(table, None, None, ["age", "region"], required=False)
    with pytest.raises(ValueError, match="groups: expected None, because the ids are taken from"):
        split_columns(table, IDS, "age", required=True)
    many = frame({f"c{i}": X[:, 0] for i in range(12)})
    with pytest.raises(ValueError, match=r"it has 'c0', .* 'c9' and 2 more"):
        split_columns(many, None, "user", required=True)


def test_names_need_a_frame() -> None:
    with pytest.raises(TypeError, match="group: column 'user' can be found in a data frame only"):
        split_columns(X, None, "user", required=True)
    with pytest.raises(TypeError, match=r"side: column 'age' can be .* ndarray; give numbers"):
        split_columns(X, None, None, ["age"], required=True)
    twice = pd.DataFrame(X, columns=["user", "user"])
    with pytest.raises(ValueError, match="group: X has 2 columns 'user'; give them other names"):
        split_columns(twice, None, "user", required=True)
    assert split_columns(twice, None, 1, required=True)[1].tolist() == X[:, 1].tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            [1.0, None, 2.0, 3.0],
            "side: column 'region': expected finite numbers, found NaN in row 1",
        ),
        (
            [1.0, 2.0, np.inf, 3.0],
            "side: column 'region': expected finite numbers, found inf in row 2",
        ),
        (["a", "b", "c", "d"], "side: column 'region': expected numbers, found 'a' in row 0; turn"),
    ],
)
def test_side_information_is_checked(frame: Any, wrong: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_columns(frame(columns(region=wrong)), None, None, ["region"], required=True)


def test_sparse_inputs_are_refused_by_scikit_learn() -> None:
    rest, ids, side = split_columns(csr_array(X), None, 0, [1], required=True)
    assert (ids, side) == (None, None)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        read_inputs(Fitted(X), rest)


FAULTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"price": [1.0, 2.0, 3.0, np.nan]}, ValueError, "expected finite numbers, found NaN in row 3"),
    (
        {"price": [1.0, -np.inf, 3.0, 4.0]},
        ValueError,
        "expected finite numbers, found -inf in row 1",
    ),
    (
        {"price": ["1", "2", "Rome", "4"]},
        ValueError,
        "expected numbers, found 'Rome' in row 2; turn",
    ),
    ({"price": [1.0, None, 3.0, 4.0]}, ValueError, "expected finite numbers, found NaN in row 1"),
    (
        {"price": np.array(["2024-01-01"] * 4, "M8[us]")},
        TypeError,
        "expected numbers, found Datetime.*; turn the column into numbers, or leave it out",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), FAULTS)
def test_faults_name_the_column_of_a_frame(
    frame: Any, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    wrong = frame(columns(**change))
    with pytest.raises(error, match=f"^X: column 'price': {message}"):
        read_inputs(Fitted(frame(columns())), wrong)
    for reset in (True, False):
        with pytest.raises(error, match=f"^X: column 'price': {message}"):
            read_rows(Fitted(frame(columns())), wrong, Y, reset=reset, numeric=True)


def test_faults_name_the_column_of_a_frame_whose_names_are_numbers() -> None:
    """Of which those of columns and of rows could be mistaken for one another."""
    wrong = X.copy()
    wrong[3, 1] = np.nan
    frame = pd.DataFrame(wrong, columns=[1, 7])
    with pytest.raises(ValueError, match=r"X: column 7: expected finite numbers.* NaN in row 3"):
        read_rows(Fitted(X), frame, Y, reset=True, numeric=True)
    with pytest.raises(ValueError, match=r"y should be a 1d array"):
        read_rows(Fitted(X), pd.DataFrame(X[:1]), np.nan, reset=True, numeric=True)


def test_faults_name_the_column_of_an_array() -> None:
    for found in (np.nan, np.inf):
        wrong = X.copy()
        wrong[3, 1] = found
        for array in (wrong, wrong.tolist(), wrong.astype(object), wrong.astype(np.float32)):
            with pytest.raises(
                ValueError, match=r"X: column 1: expected finite numbers.* in row 3"
            ):
                read_inputs(Fitted(X), array)
    with pytest.raises(TypeError, match=r"X: expected numbers, found datetime64\[D\]; turn them"):
        read_inputs(Fitted(X), X.astype("M8[D]"))
    wrong = X.astype(object)
    for item in (None, pd.NA):
        wrong[2, 0] = item
        with pytest.raises(ValueError, match=r"X: column 0: expected finite.* found NaN in row 2"):
            read_inputs(Fitted(X), wrong)
    wrong[2, 0] = {"a": 1}
    with pytest.raises(TypeError, match="X: column 0: expected numbers, found dict in row 2; turn"):
        read_inputs(Fitted(X), wrong)


def test_what_is_masked_is_not_read() -> None:
    hidden = np.zeros((4, 2), bool)
    whole = np.ma.MaskedArray(X, hidden)
    np.testing.assert_array_equal(read_inputs(Fitted(X), whole), X)
    hidden[2, 1] = True
    for reset in (True, False):
        with pytest.raises(
            ValueError, match=r"X: column 1: .* found a masked value in row 2; fill"
        ):
            read_rows(Fitted(X), np.ma.MaskedArray(X, hidden), Y, reset=reset, numeric=True)
        y = np.ma.MaskedArray(Y, [False, True, False, False])
        with pytest.raises(ValueError, match="y: a value is missing in row 1; leave the row out"):
            read_rows(Fitted(X), X, y, reset=reset, numeric=True)


def test_other_faults_are_told_as_scikit_learn_does() -> None:
    fitted = Fitted(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- user"):
        read_inputs(fitted, pd.DataFrame(columns(user=["a"] * 4)))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        read_inputs(fitted, pd.DataFrame(X, columns=NAMES[::-1]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        read_inputs(fitted, X)
    with pytest.raises(ValueError, match="X has 1 features, but Fitted is expecting 2 features"):
        read_inputs(Fitted(X), X[:, :1])
    for shape in (X[0], X[:0], [[1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"1D array|0 sample|inhomogeneous|setting an array"):
            read_inputs(Fitted(X), shape)
    with pytest.raises(ValueError, match="Complex data not supported"):
        read_inputs(Fitted(X), X + 1j)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        read_rows(Fitted(X), X, Y[:3], reset=False, numeric=True)


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize(
    "y",
    [
        np.array([1.0, 0.0, np.nan, 1.0]),
        [1.0, 0.0, None, 1.0],
        np.array([1, 0, None, 1], object),
        np.array([1, 0, float("nan"), 1], object),
        np.array([1, 0, pd.NA, 1], object),
        pd.Series([1, 0, None, 1]),
        pd.Series([1, 0, None, 1], dtype="Int64"),
        pd.Series(["a", "b", None, "a"]),
        pd.Series(["a", "b", None, "a"], dtype="category"),
        np.array(["a", "b", None, "a"], object),
        np.array(["a", "b", np.nan, "a"], object),
        pl.Series([1, 0, None, 1]),
        pl.Series(["a", "b", None, "a"]),
        pa.chunked_array([["a", "b", None, "a"]]),
        np.ma.MaskedArray([1, 0, 1, 1], [False, False, True, False]),
        np.array(["2024-01-01", "2024-01-02", "nat", "2024-01-01"], "M8[D]"),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}-{getattr(y, 'dtype', '')}",
)
def test_missing_labels_are_refused(y: Any, numeric: bool) -> None:
    message = (
        r"y: a value is missing in row 2; leave the row out, or fill it in \(Input contains NaN\)"
    )
    for reset in (True, False):
        with pytest.raises(ValueError, match=message):
            read_rows(Fitted(X), X, y, reset=reset, numeric=numeric)
    with pytest.raises(ValueError, match=message):
        read_classes(np.asarray(y) if not isinstance(y, np.ma.MaskedArray) else y)


def test_labels_that_are_no_numbers() -> None:
    ragged: Any = [1.0, [2.0, 2.5], 2.0, 3.0]
    for reset in (True, False):
        with pytest.raises(ValueError, match="y: expected numbers, found 'b' in row 1"):
            read_rows(Fitted(X), X, ["1", "b", "2", "3"], reset=reset, numeric=True)
        with pytest.raises(ValueError, match="y: expected finite numbers, found inf in row 1"):
            read_rows(Fitted(X), X, [1.0, np.inf, 2.0, 3.0], reset=reset, numeric=True)
        with pytest.raises(ValueError, match="y: expected one value for each row, found lists"):
            read_rows(Fitted(X), X, ragged, reset=reset, numeric=True)
    kinds: list[Any] = [[Decimal("0.5"), 1, 2, 3], pd.Series([0.5, 1, 2, 3], dtype="Float64")]
    for y in kinds:
        _, labels = read_rows(Fitted(X), X, y, reset=False, numeric=True)
        assert labels.dtype == np.float64
        assert labels.tolist() == [0.5, 1.0, 2.0, 3.0]


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "float64": np.asarray,
    "float32": lambda a: a.astype(np.float32),
    "integers": lambda a: a.astype(np.int64),
    "columns first": np.asfortranarray,
    "read-only": lambda a: pickle.loads(pickle.dumps(a)),
    "list": lambda a: a.tolist(),
    "pandas": lambda a: pd.DataFrame(a, columns=NAMES),
    "pandas of integers": lambda a: pd.DataFrame(a.astype(int), columns=NAMES),
    "pandas of both": lambda a: pd.DataFrame({"age": a[:, 0].astype(int), "price": a[:, 1]}),
    "pandas nullable": lambda a: pd.DataFrame(a, columns=NAMES).convert_dtypes(),
    "polars": lambda a: pl.DataFrame(a, schema=NAMES),
    "arrow": lambda a: pa.table({name: a[:, j] for j, name in enumerate(NAMES)}),
}


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_table_is_read_the_same(kind: str, rows: int) -> None:
    fitted = Fitted(CONTAINERS[kind](X))
    for y in (Y[:rows], Y[:rows].tolist(), pd.Series(Y[:rows]), pl.Series(Y[:rows])):
        inputs, labels = read_rows(fitted, CONTAINERS[kind](X[:rows]), y, reset=False, numeric=True)
        assert inputs.dtype == (np.float32 if kind == "float32" else np.float64)
        assert inputs.flags.c_contiguous
        assert not inputs.flags.writeable
        assert inputs.tolist() == X[:rows].tolist()
        assert labels.tolist() == Y[:rows].tolist()
    np.testing.assert_array_equal(read_inputs(fitted, CONTAINERS[kind](X[:rows])), X[:rows])


def test_reading_leaves_no_trace() -> None:
    fitted = Fitted(pd.DataFrame(X, columns=NAMES))
    before = pickle.dumps(fitted)
    read_inputs(fitted, pd.DataFrame(X, columns=NAMES))
    read_rows(fitted, pd.DataFrame(X, columns=NAMES), Y, reset=False, numeric=True)
    assert pickle.dumps(fitted) == before


def test_large_numbers_are_finite() -> None:
    """Up to where their squares are not."""
    large = np.full((4, 2), 1e149)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read_inputs(Fitted(X), large), large)
        _, labels = read_rows(Fitted(X), X, large[:, 0], reset=False, numeric=True)
    np.testing.assert_array_equal(labels, large[:, 0])
    with pytest.raises(ValueError, match=r"X: column 0: expected numbers of at most 1e\+150"):
        read_inputs(Fitted(X), 1e10 * large)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([1, 0, 1]), [0, 1]),
        (np.array([True, False, True]), [False, True]),
        (np.array(["b", "a", "b"]), ["a", "b"]),
        (np.array(["b", "a", "b"], object), ["a", "b"]),
        (np.array([2.0, -1.0, 2.0]), [-1.0, 2.0]),
    ],
)
def test_two_classes_are_signs(y: Any, classes: list[Any]) -> None:
    found = read_classes(y)
    assert found.tolist() == classes
    assert as_signs(y, found).tolist() == [1.0, -1.0, 1.0]
    assert read_classes(y[:1], classes).tolist() == classes


def test_classes_that_are_not_two() -> None:
    message = (
        r"^Only binary classification is supported\. The type of the target is multiclass: y has 3 "
        r'classes; .* OneVsRestClassifier\(MetaClassifier\(group="\.\.\."\)\)'
    )
    for y, classes in ((np.array([0, 1, 2]), None), (np.array([0, 1]), ["a", "b", "c"])):
        with pytest.raises(ValueError, match=message):
            read_classes(y, classes)
    with pytest.raises(ValueError, match=r"y: expected two classes, found one class only \(1\); a"):
        read_classes(np.array([1, 1]))
    with pytest.raises(ValueError, match="classes: a value is missing in row 1"):
        read_classes(np.array([1, 1]), np.array([1, None], object))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        read_classes(np.array([0.5, 1.5]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a", "c"]), r"y: expected the classes \['a', 'b'\], found .*'c'.* in row 1"),
        (np.array([1, 2]), r"y: expected the classes \['a', 'b'\], found .*1.* in row 0"),
        (np.array(["a", None], object), "y: a value is missing in row 1"),
    ],
)
def test_labels_of_no_class(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_signs(y, np.array(["a", "b"]))
