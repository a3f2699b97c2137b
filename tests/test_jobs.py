"""Jobs over all tasks of a dataset, in this process: what they write, and being stopped."""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets_on_disk import NAMES, read, table, write

from headstart import MetaClassifier, MetaRegressor, TaskSet, evaluate_bias, learn_bias
from headstart.jobs import adapt_all
from headstart.meta import learn_bias as learn_in_memory
from headstart.parquet import ParquetError, ParquetRows, plan_partitions
from headstart.rounds import Loading, LocalParts, learn_rounds, round_bounds
from headstart.training import fit_rounds


def fitted(frame: pd.DataFrame, **settings: Any) -> MetaRegressor:
    return MetaRegressor(**settings).fit(frame[NAMES], frame["y"], groups=frame["id"])


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"reg": 0.5, "step": 0.1}, {"reg": 0.5, "step": 0.1, "inner": "erm"}]
)
def test_weights_and_predictions_are_those_of_the_model(
    settings: dict[str, Any], scattered: bool, tmp_path: Path
) -> None:
    frame = table(kind="str")
    frame["row"] = np.arange(len(frame))
    model = fitted(frame, **settings)
    shown = frame.sample(frac=1.0, random_state=0) if scattered else frame
    rows = ParquetRows(write(shown, tmp_path / "in", [40, 41, 150], 30), "id", "y", NAMES)
    index = adapt_all(
        model, rows, tmp_path / "out", predictions=True, keep=("row",), partition_rows=50, n_jobs=2
    )
    assert (index.tasks, index.rows) == (60, len(frame))
    assert scattered or len(index.parts) > 2
    told = json.loads((tmp_path / "out" / "index.json").read_text())
    assert told["tasks"] == 60
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "index.json", "predictions", "weights",
    ]  # fmt: skip
    weights = read(tmp_path / "out" / "weights").set_index("id")
    assert len(weights) == 60
    if not scattered:  # else rows of a task are in another order, which matters to one pass
        for key in ("user-0000", "user-0031"):
            found = weights.loc[key]
            np.testing.assert_allclose(found[NAMES].to_numpy(float), model.weights_of(key), 1e-12)
            assert found["intercept"] == pytest.approx(model.intercept_of(key), rel=1e-12)
            assert found["rows"] == np.sum(frame["id"] == key)
        predictions = read(tmp_path / "out" / "predictions").sort_values("row")
        expected = model.predict(frame[NAMES], groups=frame["id"])
        np.testing.assert_allclose(predictions["prediction"], expected, rtol=1e-12)
    for key, some in ((str(k), rows) for k, rows in shown.groupby("id")):
        task = model.adapt(some[NAMES], some["y"])
        np.testing.assert_allclose(
            weights.loc[key][NAMES].to_numpy(float), np.ravel(task.coef_), rtol=1e-9
        )


def test_rows_without_label_are_predicted_and_not_learned_from(tmp_path: Path) -> None:
    frame = table(kind="str")
    model = fitted(frame)
    asked = frame.copy()
    asked.loc[asked.groupby("id").cumcount() >= 2, "y"] = np.nan
    asked.loc[asked["id"] == "user-0003", "y"] = np.nan  # no label at all
    asked.loc[asked.index[-1], "id"] = None  # and nobody's row
    rows = ParquetRows(write(asked, tmp_path / "in", [33]), "id", "y")
    adapt_all(model, rows, tmp_path / "out", predictions=True)
    weights = read(tmp_path / "out" / "weights").set_index("id")
    np.testing.assert_array_equal(weights.loc["user-0003"][NAMES].to_numpy(float), model.bias_)
    known = asked[asked["id"].notna()]
    some = known[(known["id"] == "user-0010") & known["y"].notna()]
    task = model.adapt(some[NAMES], some["y"])
    np.testing.assert_allclose(
        weights.loc["user-0010"][NAMES].to_numpy(float), task.coef_, rtol=1e-12
    )
    last = read(tmp_path / "out" / "predictions")["prediction"].iloc[-1]
    assert last == pytest.approx(model.predict(asked[NAMES].iloc[-1:])[0])


def test_classes_are_told_by_name(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    model = MetaClassifier().fit(frame[NAMES], frame["y"], groups=frame["id"])
    rows = ParquetRows(write(frame, tmp_path / "in"), "id", "y")
    adapt_all(model, rows, tmp_path / "out", weights=False, predictions=True)
    found = read(tmp_path / "out" / "predictions")["prediction"]
    assert found.tolist() == model.predict(frame[NAMES], groups=frame["id"]).tolist()
    assert not (tmp_path / "out" / "weights").exists()


class Stopping(Executor):
    """Runs so many partitions and then no more, as a killed process would."""

    def __init__(self, count: int) -> None:
        self.count = count

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.count -= 1
        if self.count < 0:
            future.set_exception(KeyboardInterrupt())
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_job_of_other_code_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table()
    model, rows = fitted(frame), ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    with pytest.raises(KeyboardInterrupt):
        adapt_all(model, rows, tmp_path / "out", partition_rows=50, executor=Stopping(3))
    monkeypatch.setattr("headstart.jobs.source_digest", lambda: "other")
    with pytest.raises(ParquetError, match="holds the unfinished results of another job"):
        adapt_all(model, rows, tmp_path / "out", partition_rows=50)


def test_a_stopped_job_goes_on(tmp_path: Path) -> None:
    frame = table()
    model, rows = fitted(frame), ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        adapt_all(model, rows, out, partition_rows=50, executor=Stopping(3))
    assert not (out / "index.json").exists()
    done = {p: p.stat().st_mtime_ns for p in (out / "weights").iterdir()}
    assert len(done) == 3
    other = fitted(frame, passes=2)
    with pytest.raises(ParquetError, match="holds the unfinished results of another job"):
        adapt_all(other, rows, out, partition_rows=50)
    index = adapt_all(model, rows, out, partition_rows=50)
    assert index.tasks == 60
    assert all(path.stat().st_mtime_ns == time for path, time in done.items())
    adapt_all(model, rows, tmp_path / "whole", partition_rows=50)
    pd.testing.assert_frame_equal(read(out / "weights"), read(tmp_path / "whole" / "weights"))
    with pytest.raises(ParquetError, match="exists and is not empty"):
        adapt_all(model, rows, out)


def test_files_that_change_meanwhile_are_noticed(tmp_path: Path) -> None:
    frame = table()
    rows = ParquetRows(write(frame, tmp_path / "in", [100]), "id", "y")
    model = fitted(frame)
    rows.pieces  # noqa: B018 - the footers as they are now
    write(frame.iloc[:-3], tmp_path / "in", [100])
    with pytest.raises(ParquetError, match=r"rows were to be read|cannot be read"):
        adapt_all(model, rows, tmp_path / "out")
    assert not (tmp_path / "out" / "index.json").exists()


def test_ids_that_are_dates(tmp_path: Path) -> None:
    frame = table()
    frame["id"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["id"], unit="D")
    rows = ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    model = fitted(frame)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        adapt_all(model, rows, out, partition_rows=50, executor=Stopping(2))
    assert adapt_all(model, rows, out, partition_rows=50).tasks == 60
    found = read(out / "weights").set_index("id")
    key = frame["id"].iloc[0]
    np.testing.assert_allclose(
        found.loc[key][NAMES].to_numpy(float), model.weights_of(key.to_pydatetime())
    )


def test_names_that_would_be_taken_twice(tmp_path: Path) -> None:
    frame = table().rename(columns={"a": "rows"})
    model = MetaRegressor().fit(frame[["rows", "b", "c"]], frame["y"], groups=frame["id"])
    rows = ParquetRows(write(frame, tmp_path / "in"), "id", "y")
    with pytest.raises(ParquetError, match="the weights have a column 'rows' of their own"):
        adapt_all(model, rows, tmp_path / "out")


@pytest.mark.parametrize("batch_size", [1, 7, 24, 1000])
def test_rounds_are_minibatches_of_algorithm_2(batch_size: int, tmp_path: Path) -> None:
    frame = table(80)
    rows = ParquetRows(write(frame, tmp_path, [60, 61, 200], 25), "id", "y")
    parts = [Loading(rows).load(p) for p in plan_partitions(rows, 60)]
    count = len(parts)
    assert count > 3
    found = learn_rounds(LocalParts(parts), 3, 0.5, 0.2, batch_size=batch_size)
    batch = max(batch_size, count)
    sizes = [len(part) for part in parts]
    order = []
    batches = []
    for number in range(1000):
        bounds = round_bounds(sizes, batch, number)
        some = [part[t] for part, (a, b) in zip(parts, bounds, strict=True) for t in range(a, b)]
        if not some:
            break
        batches.append(len(some))
        order += some
    assert len(order) == 80
    h = np.zeros(3)
    total = h.copy()
    for first, size in zip(np.cumsum([0, *batches]), batches, strict=False):
        batch_of = TaskSet.from_list(order[first : first + size])
        h = np.asarray(learn_in_memory(batch_of, 0.5, 0.2, initial=h, batch_size=size).last, float)
        total += h
    np.testing.assert_allclose(found.last, h, rtol=1e-12)
    np.testing.assert_allclose(found.total, total, rtol=1e-12)
    with ThreadPoolExecutor(2) as pool:
        again = learn_rounds(LocalParts(parts, pool), 3, 0.5, 0.2, batch_size=batch_size)
    np.testing.assert_array_equal(again.total, found.total)


def test_rounds_go_on_from_the_last_saved(tmp_path: Path) -> None:
    rows = ParquetRows(write(table(200), tmp_path / "in", row_group=30), "id", "y")
    parts = LocalParts([Loading(rows).load(p) for p in plan_partitions(rows, 200)])
    whole = learn_rounds(parts, 3, 0.5, 0.2, batch_size=8)

    def stop(done: int, _: int) -> None:
        if done > 150:
            raise KeyboardInterrupt

    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        learn_rounds(parts, 3, 0.5, 0.2, batch_size=8, folder=kept, callback=stop)
    told: list[int] = []
    again = learn_rounds(
        parts, 3, 0.5, 0.2, batch_size=8, folder=kept, callback=lambda n, _: told.append(n)
    )
    assert told[0] > 100
    np.testing.assert_array_equal(again.total, whole.total)
    with pytest.raises(ParquetError, match="belongs to another job"):
        learn_rounds(parts, 3, 0.6, 0.2, batch_size=8, folder=kept)
    (kept / "rounds.npz").write_bytes(b"half a file")
    with pytest.raises(ParquetError, match="is damaged"):
        learn_rounds(parts, 3, 0.5, 0.2, batch_size=8, folder=kept)


@pytest.mark.parametrize("binary", [False, True])
def test_an_estimator_in_rounds(binary: bool, tmp_path: Path) -> None:
    frame = table(600)
    if binary:
        frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    rows = ParquetRows(write(frame, tmp_path / "in", row_group=200), "id", "y")
    kind: Any = MetaClassifier if binary else MetaRegressor
    model = fit_rounds(kind(), rows, batch_size=16, partition_rows=500)
    if binary:
        assert model.score(frame[NAMES], frame["y"]) > 0.85
    else:
        np.testing.assert_allclose(model.bias_, [3.0, -2.0, 1.0], atol=0.4)
        assert model.intercept_ == pytest.approx(5.0, abs=0.4)
    assert model.ids_ == []
    assert model.reg > 0.0
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
    parts = [Loading(rows, offset=5.0).load(p) for p in plan_partitions(rows, 2000)]
    errors = [
        evaluate_bias(shots, queries, bias, 0.5).mean()
        for bias in (
            np.zeros(3),
            learn_bias(tasks, 0.5, 0.1).bias,
            learn_rounds(LocalParts(parts), 3, 0.5, 0.8, batch_size=16).bias,
        )
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 1.1 * errors[1]


def test_rounds_need_labels_and_ids(tmp_path: Path) -> None:
    frame = table(kind="str")
    frame.loc[3, "y"] = np.nan
    rows = ParquetRows(write(frame, tmp_path), "id", "y")
    with pytest.raises(ParquetError, match="column 'y': a value is missing; rounds need an id"):
        fit_rounds(MetaRegressor(), rows)
    with pytest.raises(ValueError, match="inner: expected 'sgd' for rounds"):
        fit_rounds(MetaRegressor(inner="constant"), rows)
