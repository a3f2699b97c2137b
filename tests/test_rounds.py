"""Meta-training in rounds: which tasks a round takes, what it learns, and being stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets_on_disk import NAMES, read, table, write
from numpy.typing import NDArray
from reference import algorithm_1

from headstart import MetaClassifier, MetaRegressor, TaskSet, evaluate_bias, learn_bias
from headstart.jobs import adapt_all
from headstart.meta.rounds import (
    SAVE_EVERY,
    Loading,
    Round,
    RoundSettings,
    learn_rounds,
)
from headstart.parquet import ParquetError, ParquetRows, plan_partitions
from headstart.parquet.engine import LocalEngine
from headstart.training import fit_rounds

Array = NDArray[np.float64]


def naive_rounds(
    parts: Sequence[TaskSet], reg: float, step: float, batch: int
) -> tuple[list[int], Array]:
    """Numbers of tasks done, and the iterates, by queues from which places are dealt in turn."""
    queues = [list(part) for part in parts]
    places = [len(range(k, batch, len(parts))) for k in range(len(parts))]
    path, done = [np.zeros(parts[0].n_features)], [0]
    while any(queues):
        each = zip(queues, places, strict=True)
        taken = [queue.pop(0) for queue, n in each for _ in queue[:n]]
        last = [algorithm_1(X, y, path[-1], reg, "absolute", 0.0).last for X, y in taken]
        path.append(path[-1] - step * reg * (path[-1] - np.mean(last, axis=0)))
        done.append(done[-1] + len(taken))
    return done[1:], np.array(path)


def held(rows: ParquetRows, partition_rows: int, threads: int = 1, **how: Any) -> Any:
    parts = Loading(rows, **how).parts(plan_partitions(rows, partition_rows))
    return LocalEngine(threads).hold(parts)


def test_which_tasks_a_round_takes() -> None:
    sizes, each = np.array([5, 2, 9]), np.arange(3)
    found = [Round(number, 7, 3).bounds(each, sizes) for number in range(6)]  # 3, 2 and 2 of each
    assert [list(zip(first, last, strict=True)) for first, last in found] == [
        [(0, 3), (0, 2), (0, 2)],
        [(3, 5), (2, 2), (2, 4)],
        [(5, 5), (2, 2), (4, 6)],
        [(5, 5), (2, 2), (6, 8)],
        [(5, 5), (2, 2), (8, 9)],
        [(5, 5), (2, 2), (9, 9)],
    ]


@pytest.mark.parametrize("batch_size", [1, 7, 24, 1000])
def test_rounds_are_minibatches_of_algorithm_2(batch_size: int, tmp_path: Path) -> None:
    frame = table(80)
    rows = ParquetRows(write(frame, tmp_path, [60, 61, 200], 25), "id", "y")
    parts = [Loading(rows).load(p) for p in plan_partitions(rows, 60)]
    assert len(parts) > 3
    done, path = naive_rounds(parts, 0.5, 0.2, max(batch_size, len(parts)))
    settings = RoundSettings(0.5, 0.2, batch_size=batch_size)
    calls: list[tuple[int, int]] = []
    found = learn_rounds(held(rows, 60), 3, settings, callback=lambda *n: calls.append(n))
    np.testing.assert_allclose(found.last, path[-1], rtol=1e-9)
    np.testing.assert_allclose(found.total, path.sum(axis=0), rtol=1e-9)
    assert found.steps == len(path) - 1
    assert calls == [(n, 80) for n in done]
    again = learn_rounds(held(rows, 60, threads=2), 3, settings)
    np.testing.assert_array_equal(again.total, found.total)


def test_rounds_resume_from_the_last_saved(tmp_path: Path) -> None:
    rows = ParquetRows(write(table(200), tmp_path / "in", row_group=30), "id", "y")
    parts = held(rows, 200)
    settings, folder = RoundSettings(0.5, 0.2, batch_size=8), tmp_path / "saved"
    calls: list[int] = []
    straight = learn_rounds(parts, 3, settings, callback=lambda n, _: calls.append(n))
    assert len(calls) > SAVE_EVERY + 3

    def stop(done: int, _: int) -> None:
        if done == calls[SAVE_EVERY + 2]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_rounds(parts, 3, settings, folder=folder, job="a", callback=stop)
    for other in ({"reg": 0.6}, {"step": 0.3}, {"loss": "huber"}, {"batch_size": 9}):
        with pytest.raises(ParquetError, match="belongs to another job"):
            learn_rounds(parts, 3, settings._replace(**other), folder=folder, job="a")
    with pytest.raises(ParquetError, match="belongs to another job"):
        learn_rounds(parts, 3, settings, folder=folder, job="b")
    rest: list[int] = []
    again = learn_rounds(
        *(parts, 3, settings), folder=folder, job="a", callback=lambda n, _: rest.append(n)
    )
    assert rest == calls[SAVE_EVERY:]
    np.testing.assert_array_equal(again.last, straight.last)
    np.testing.assert_array_equal(again.total, straight.total)
    (folder / "rounds.npz").write_bytes(b"half a file")
    with pytest.raises(ParquetError, match="is damaged"):
        learn_rounds(parts, 3, settings, folder=folder, job="a")


def test_partitions_of_several_blocks(tmp_path: Path) -> None:
    """What is read next must not overwrite what was read before."""
    frame = table(80)
    rows = ParquetRows(write(frame, tmp_path), "id", "y", batch_rows=50)
    (partition,) = plan_partitions(rows, len(frame))
    for constant in (0.0, 2.0):
        tasks = Loading(rows, constant=constant).load(partition)
        np.testing.assert_array_equal(tasks.X[:, :3], frame[NAMES].to_numpy())
        assert np.all(tasks.X[:, 3:] == constant)


def test_labels_and_inputs_as_they_are_loaded(tmp_path: Path) -> None:
    frame = table(20)
    rows = ParquetRows(write(frame, tmp_path / "numbers"), "id", "y")
    (partition,) = plan_partitions(rows)
    tasks = Loading(rows, constant=3.0, offset=2.0).load(partition)
    np.testing.assert_array_equal(tasks.X, np.column_stack([frame[NAMES], np.full(len(frame), 3)]))
    np.testing.assert_array_equal(tasks.y, frame["y"] - 2.0)
    assert tasks.ids.tolist() == frame["id"].unique().tolist()
    assert tasks.sizes.tolist() == frame["id"].value_counts(sort=False).tolist()
    high = frame["y"] > 5.0
    frame["y"] = np.where(high, "yes", "no")
    rows = ParquetRows(write(frame, tmp_path / "texts"), "id", "y")
    tasks = Loading(rows, classes=("no", "yes")).load(partition_of(rows))
    np.testing.assert_array_equal(tasks.y, np.where(high, 1.0, -1.0))
    assert tasks.n_features == 3


def partition_of(rows: ParquetRows) -> Any:
    (partition,) = plan_partitions(rows)
    return partition


@pytest.mark.parametrize("intercept", [True, False])
def test_the_bias_of_rounds_is_in_the_units_of_the_data(intercept: bool, tmp_path: Path) -> None:
    """Inputs of size 10: the column of the intercept is not 1."""
    frame = table(100)
    frame[NAMES] *= 10.0
    frame["y"] += 3.0 * frame["id"] / 100.0  # so that the intercept is not the median of labels
    rows = ParquetRows(write(frame, tmp_path), "id", "y")
    given = MetaRegressor(reg=5.0, step=0.05, fit_intercept=intercept)
    model = fit_rounds(given, rows, batch_size=8)
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    scale, offset = float(np.sqrt(np.mean(X**2))), float(np.median(y))
    if intercept:
        X, y = np.column_stack([X, np.full(len(X), scale)]), y - offset
    tasks = TaskSet.from_arrays(X, y, frame["id"])
    path = naive_rounds([tasks], 5.0, 0.05, 8)[1]
    iterates = path[:, :3]
    level = scale * path[:, 3] + offset if intercept else np.zeros(len(path))
    np.testing.assert_allclose(model.bias_, iterates.mean(axis=0), rtol=1e-9)
    assert model.intercept_ == pytest.approx(level.mean(), rel=1e-9)
    stream: Any = model.stream()
    newest = stream.arrays()["bias_last"]
    np.testing.assert_allclose(newest, [*iterates[-1], level[-1]], rtol=1e-9)
    assert stream.scale == pytest.approx(scale if intercept else 0.0)
    assert (model.n_tasks_, stream.n_rows) == (len(path) - 1, len(frame))
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(given, "n_features_in_")


@pytest.mark.parametrize("binary", [False, True])
def test_an_estimator_in_rounds(binary: bool, tmp_path: Path) -> None:
    frame = table(600)
    if binary:
        frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    rows = ParquetRows(write(frame, tmp_path / "in", row_group=200), "id", "y")
    kind: Any = MetaClassifier if binary else MetaRegressor
    asked = kind(reg=1.0, step=1.0)
    model = fit_rounds(asked, rows, batch_size=16, partition_rows=500)
    little = fit_rounds(asked, rows, batch_size=16, partition_rows=500, memory=0)
    with pytest.raises(ValueError, match="memory: expected an integer >= 0, found -5"):
        fit_rounds(asked, rows, memory=-5)
    np.testing.assert_array_equal(little.bias_, model.bias_)  # partitions are read again
    if binary:
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(frame[NAMES], frame["y"]) > 0.85
    else:
        np.testing.assert_allclose(model.bias_, [3.0, -2.0, 1.0], atol=0.4)
        assert model.intercept_ == pytest.approx(5.0, abs=0.4)
    assert model.ids_ == []
    model.save(tmp_path / "model")
    again = kind.load(tmp_path / "model")
    np.testing.assert_array_equal(again.bias_, model.bias_)
    adapt_all(again, rows, tmp_path / "out")
    assert len(read(tmp_path / "out" / "weights")) == 600


def test_rounds_learn_as_well_as_one_task_after_another(tmp_path: Path) -> None:
    frame = table(2000)
    rows = ParquetRows(write(frame, tmp_path, row_group=500), "id", "y", NAMES)
    frame["y"] -= 5.0
    tasks = TaskSet.from_arrays(frame[NAMES], frame["y"], frame["id"])
    able = tasks.subset(tasks.sizes > 4)
    shots, queries = able.split_rows(3)
    parts = held(rows, 2000, offset=5.0)
    errors = [
        evaluate_bias(shots, queries, bias, 0.5).mean()
        for bias in (
            np.zeros(3),
            learn_bias(tasks, 0.5, 0.1).bias,
            learn_rounds(parts, 3, RoundSettings(0.5, 0.8, batch_size=16)).bias,
        )
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 1.1 * errors[1]


def test_rounds_need_labels_and_ids(tmp_path: Path) -> None:
    frame = table(kind="str")
    frame.loc[3, "y"] = np.nan
    rows = ParquetRows(write(frame, tmp_path), "id", "y")
    with pytest.raises(ParquetError, match="column 'y': a value is missing; rounds need an id"):
        fit_rounds(MetaRegressor(reg=1.0, step=0.1), rows)
    with pytest.raises(ValueError, match="reg, step: expected numbers for rounds, found 'auto'"):
        fit_rounds(MetaRegressor(), rows)
    with pytest.raises(ValueError, match="inner: expected 'sgd' for rounds"):
        fit_rounds(MetaRegressor(inner="constant"), rows)
