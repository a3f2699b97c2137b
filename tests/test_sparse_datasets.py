"""Datasets whose rows are lists: which columns are not 0, and what is there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets_on_disk import read
from pyarrow import parquet
from scipy.sparse import csr_array

from headstart import (
    MetaClassifier,
    MetaRegressor,
    TaskSet,
    learn_bias,
    learn_prior,
    load_model,
)
from headstart.jobs import adapt_all
from headstart.parquet import ParquetError, ParquetRows
from headstart.parquet.engine import LocalEngine
from headstart.parquet.sparse_sample import SparseRows, read_sparse
from headstart.tasks.ids import hash_ids
from headstart.training import fit

D, LISTS = 30, ("at", "value")


def rows_of(T: int = 40, n: int = 6, seed: int = 0) -> tuple[Any, Any, Any]:
    """Sparse inputs, labels and ids."""
    rng = np.random.default_rng(seed)
    X = csr_array(np.where(rng.random((T * n, D)) < 0.2, rng.random((T * n, D)), 0.0))
    ids = np.repeat([f"u{i:03d}" for i in range(T)], n)
    own = rng.normal(2.0, 0.3, (T, D))
    y = np.sum(X.toarray() * np.repeat(own, n, axis=0), axis=1) + 0.1 * rng.normal(size=T * n)
    return X, y, ids


def write(folder: Path, X: Any, y: Any, ids: Any, order: Any = None, **more: Any) -> Path:
    order = np.arange(len(y)) if order is None else order
    lists = [X.indices[a:b] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    values = [X.data[a:b] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    table = pa.table(
        {
            "who": pa.array(ids),
            "at": pa.array(lists, pa.list_(pa.int32())),
            "value": pa.array(values, pa.list_(pa.float64())),
            "y": pa.array(y),
            **more,
        }
    ).take(pa.array(order))
    folder.mkdir(parents=True)
    half = len(y) // 2 + 1
    for k, part in enumerate((table.slice(0, half), table.slice(half))):
        parquet.write_table(part, folder / f"{k}.parquet", row_group_size=50)
    return folder


def dataset(folder: Path, **more: Any) -> ParquetRows:
    return ParquetRows(folder, "who", "y", sparse=LISTS, n_columns=D, **more)


@pytest.mark.parametrize("most", [None, 20, 65_536])
def test_its_prior_is_that_of_the_matrix(most: int | None, tmp_path: Path) -> None:
    X, y, ids = rows_of()
    order = np.random.default_rng(1).permutation(len(y))
    rows = dataset(write(tmp_path / "in", X, y, ids, order))
    tasks = TaskSet.from_arrays(X[order], y[order], ids[order])
    asked: dict[str, Any] = {"fit_intercept": True, "max_tasks": most}
    found, expected = learn_prior(rows, **asked), learn_prior(tasks, **asked)
    np.testing.assert_allclose(found.bias, expected.bias, rtol=1e-9)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-9)
    with pytest.raises(ValueError, match="side: expected None with a dataset of sparse rows"):
        learn_prior(rows, side=["y"])


@pytest.mark.parametrize("scattered", [False, True])
def test_a_dataset_gives_what_the_matrix_gives(scattered: bool, tmp_path: Path) -> None:
    X, y, ids = rows_of()
    order = np.random.default_rng(1).permutation(len(y)) if scattered else None
    rows = pickle.loads(pickle.dumps(dataset(write(tmp_path / "in", X, y, ids, order))))
    assert (rows.n_rows, rows.n_features, rows.dtype) == (len(y), D, np.float64)
    if order is not None:
        X, y, ids = X[order], y[order], ids[order]
    whole = MetaRegressor().fit(X, y, groups=ids)
    model = MetaRegressor().fit(rows)
    np.testing.assert_allclose(model.bias_, whole.bias_, rtol=1e-9)
    assert model.n_features_in_ == D
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.bias_, model.bias_)
    adapt_all(loaded, rows, tmp_path / "out", predictions=True, partition_rows=60)
    weights = read(tmp_path / "out" / "weights").set_index("who")
    assert len(weights) == 40
    mine = X[ids == "u007"]
    columns = np.unique(mine.indices)
    found = weights.loc["u007"]
    assert found["columns"].tolist() == columns.tolist()
    np.testing.assert_allclose(found["weights"], whole.weights_of("u007")[columns], rtol=1e-8)
    assert found["rows"] == 6
    predictions = read(tmp_path / "out" / "predictions")
    expected = pd.Series(whole.predict(X, groups=ids)).groupby(ids).sum()
    np.testing.assert_allclose(
        predictions.groupby("who")["prediction"].sum(), expected, rtol=1e-8, atol=1e-10
    )


def test_rows_without_label_or_id_are_predicted(tmp_path: Path) -> None:
    X, y, ids = rows_of()
    model = MetaRegressor().fit(X, y, groups=ids)
    names = [None if i == len(y) - 1 else name for i, name in enumerate(ids)]
    labels = [None if name == "u003" else label for name, label in zip(ids, y, strict=True)]
    rows = dataset(write(tmp_path / "in", X, labels, names))
    index = adapt_all(model, rows, tmp_path / "out", predictions=True)
    assert (index.tasks, index.rows) == (40, len(y))
    weights = read(tmp_path / "out" / "weights").set_index("who")
    assert weights.loc["u003"]["columns"].size == 0
    found = read(tmp_path / "out" / "predictions")["prediction"].to_numpy()
    start = X @ model.bias_ + model.intercept_
    own = ids == "u003"
    np.testing.assert_allclose(found[own], start[own], rtol=1e-12)
    assert found[-1] == pytest.approx(start[-1])
    with pytest.raises(ParquetError, match="column 'who': expected an id in every row"):
        MetaRegressor().fit(rows)


def smallest(ids: Any, most: int) -> list[str]:
    """The ids with the smallest hashes."""
    return sorted(set(ids), key=lambda name: hash_ids(np.array([name]))[0])[:most]


def test_classes_and_a_sample_of_tasks(tmp_path: Path) -> None:
    X, y, ids = rows_of()
    labels = np.where(y > 2.0, "much", "little")
    rows = dataset(write(tmp_path / "in", X, labels, ids))
    whole = MetaClassifier().fit(X, labels, groups=ids)
    np.testing.assert_allclose(MetaClassifier().fit(rows).bias_, whole.bias_, rtol=1e-6)
    used = np.isin(ids, smallest(ids, 10))
    some = MetaClassifier().fit(X[used], labels[used], groups=ids[used])
    found = fit(MetaClassifier(), rows, max_tasks=10, partition_rows=60)
    np.testing.assert_allclose(found.bias_, some.bias_, rtol=1e-6)


@pytest.mark.parametrize("most", [None, 10])
def test_an_estimator_learns_what_learn_prior_does(most: int | None, tmp_path: Path) -> None:
    rows = dataset(write(tmp_path / "in", *rows_of()))
    model = fit(MetaRegressor(), rows, max_tasks=most)
    expected = learn_prior(rows, fit_intercept=True, max_tasks=most)
    np.testing.assert_array_equal(model.prior_.bias, expected.bias)
    np.testing.assert_array_equal(model.prior_.variances, expected.variances)
    model.save(tmp_path / "model")
    for known in (model, MetaRegressor.load(tmp_path / "model")):
        assert known.run_ is not None
        assert known.n_tasks_ == known.run_.tasks == min(most or 40, 40)
    for wrong, message in (
        ({"max_tasks": 0}, "max_tasks: expected an integer >= 1"),
        ({"initial": expected}, "initial: expected None with a dataset of sparse rows"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(MetaRegressor(), rows, **wrong)
    with pytest.raises(ValueError, match="side: expected None with sparse rows"):
        fit(MetaRegressor(side=["y"]), rows)


class Watched(LocalEngine):
    """Keeps the parts that were read."""

    def map(self, function: Any, items: Any) -> Any:
        self.parts = []
        for some in super().map(function, items):
            self.parts += some if isinstance(some, list) else []
            yield some


@pytest.mark.parametrize("most", [None, 10, 1])
def test_rows_are_read_in_parts_and_none_outside_the_sample(
    most: int | None, tmp_path: Path
) -> None:
    X, y, ids = rows_of()
    order = np.random.default_rng(1).permutation(len(y))
    X, y, ids = X[order], y[order], ids[order]
    done: list[int] = []
    rows = dataset(write(tmp_path / "in", X, y, ids), callback=done.append)
    used = np.isin(ids, smallest(ids, 40 if most is None else most))
    for threads, size, n_blocks in ((1, 1000, 1), (1, 50, 5), (2, 50, 5), (2, 1, 6)):
        engine = Watched(threads)
        found = read_sparse(rows, most, engine, size)
        assert found.ids.to_pylist() == ids[used].tolist()
        np.testing.assert_array_equal(found.y, y[used])
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found.X, name), getattr(X[used], name))
        assert all(isinstance(part, SparseRows) for part in engine.parts)
        assert sum(len(part.y) for part in engine.parts) == np.count_nonzero(used)
        assert (len(done), done[-1]) == (n_blocks, len(y))
        done.clear()


def test_wrong_lists_are_told(tmp_path: Path) -> None:
    X, y, ids = rows_of(4)
    wrong: list[tuple[list[Any], list[Any], str]] = [
        ([0, D], [1.0, 1.0], f"expected columns from 0 to {D - 1}, found {D}"),
        ([-1], [1.0], "expected columns from 0"),
        ([0, 1], [1.0], "expected lists of one length, found 2 and 1"),
        ([0], [np.nan], "expected finite numbers of at most"),
        ([0], [1e200], "expected finite numbers of at most"),
        ([0, None], [1.0, 1.0], "a value in the lists is missing"),
    ]
    for k, (at, value, message) in enumerate(wrong):
        folder = tmp_path / str(k)
        folder.mkdir()
        columns = {"at": pa.array([[1]] * 5 + [at]), "value": pa.array([[1.0]] * 5 + [value])}
        table = pa.table({"who": ["a"] * 3 + ["b"] * 3, "y": [1.0, 2.0] * 3, **columns})
        parquet.write_table(table, folder / "x.parquet")
        with pytest.raises(ParquetError, match=f"columns 'at' and 'value': {message}"):
            MetaRegressor().fit(dataset(folder))
    rows = dataset(write(tmp_path / "in", X, y, ids, number=pa.array(y)))
    for call in (lambda: learn_bias(rows, 1.0, 0.1), lambda: list(rows.task_sets())):
        with pytest.raises(ParquetError, match="its rows are sparse, and dense ones are needed"):
            call()
    with pytest.raises(ValueError, match="reg: expected 'auto' with a dataset of sparse rows"):
        MetaRegressor(reg=1.0, step=0.1).fit(rows)
    with pytest.raises(ParquetError, match="column 'number': expected lists of integers"):
        ParquetRows(tmp_path / "in", "who", "y", sparse=("number", "value"), n_columns=D)
    with pytest.raises(ParquetError, match="there is no column 'none'"):
        ParquetRows(tmp_path / "in", "who", "y", sparse=("at", "none"), n_columns=D)
    with pytest.raises(ValueError, match="sparse: expected the names of two columns"):
        ParquetRows(tmp_path / "in", "who", "y", sparse=LISTS)
    dense = MetaRegressor().fit(X.toarray(), y, groups=ids)
    with pytest.raises(ParquetError, match="its rows are sparse, of 30 columns; the model was fit"):
        adapt_all(dense, rows, tmp_path / "out")
    sparse = MetaRegressor().fit(X, y, groups=ids)
    with pytest.raises(ValueError, match="std: needs a prior learned from dense rows"):
        adapt_all(sparse, rows, tmp_path / "out", predictions=True, std=True)
    assert adapt_all(sparse, TaskSet.from_arrays(X, y, ids), tmp_path / "set").tasks == 4
