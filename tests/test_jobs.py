"""Jobs over all tasks of a dataset, in this process: what they write, and being stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets_on_disk import NAMES, Stopping, read, table, write
from pyarrow import parquet
from scipy.sparse import csr_array

from headstart import MetaClassifier, MetaRegressor, TaskSet
from headstart.jobs import adapt_all
from headstart.parquet import ParquetError, ParquetRows, Partition, plan_partitions


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
    content = json.loads((tmp_path / "out" / "index.json").read_text())
    assert len(content.pop("job")) == len(content.pop("content")) == 24
    assert content == {
        "tasks": 60,
        "rows": len(frame),
        "parts": [list(p) for p in index.parts],
        "run": index.run._asdict(),
        "inputs": rows.stamps(),
    }
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
        np.testing.assert_allclose(predictions["prediction"], expected, rtol=1e-12, atol=1e-13)
    for key, own in ((str(k), rows) for k, rows in shown.groupby("id")):
        task = model.adapt(own[NAMES], own["y"])
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
    index = adapt_all(model, rows, tmp_path / "out", predictions=True)
    assert (index.tasks, index.rows) == (asked["id"].nunique(), len(asked))
    weights = read(tmp_path / "out" / "weights").set_index("id")
    np.testing.assert_array_equal(weights.loc["user-0003"][NAMES].to_numpy(float), model.bias_)
    known = asked[asked["id"].notna()]
    labelled = known[known["y"].notna()]
    assert weights["rows"].sum() == len(labelled)
    own = labelled[labelled["id"] == "user-0010"]
    task = model.adapt(own[NAMES], own["y"])
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


def test_a_file_for_each_partition(tmp_path: Path) -> None:
    frame = table(kind="str")
    rows = ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    calls: list[tuple[int, int]] = []
    out = tmp_path / "out"
    index = adapt_all(
        *(fitted(frame), rows, out),
        partition_rows=50,
        n_jobs=2,
        callback=lambda *n: calls.append(n),
    )
    names = [part.file for part in index.parts]
    assert names == [f"part-{part.number:05d}-{part.key}.parquet" for part in index.parts]
    assert index.files() == [out / "weights" / name for name in names]
    assert [part.number for part in index.parts] == list(range(len(plan_partitions(rows, 50))))
    assert sorted(p.name for p in (out / "weights").iterdir()) == names
    for part, name in zip(index.parts, names, strict=True):
        ids = read(out / "weights" / name)["id"].tolist()
        assert (ids[0], ids[-1], len(ids)) == (part.first, part.last, part.tasks)
        assert part.rows == frame["id"].isin(ids).sum()
        footer: Any = parquet.read_metadata(out / "weights" / name)
        found = footer.row_group(0).column(0).statistics
        assert (found.min, found.max) == (ids[0], ids[-1])
    done = np.cumsum([part.rows for part in index.parts]).tolist()
    assert calls == [(n, len(frame)) for n in done]


def test_a_plan_that_cuts_a_task_or_leaves_rows_out_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(12, kind="str")
    cut = next(i for i in range(20, len(frame)) if frame["id"][i] == frame["id"][i - 1])
    rows = ParquetRows(write(frame, tmp_path / "in", row_group=cut), "id", "y")
    places = [((group.file, (group.number,)),) for group in rows.row_groups]
    parts = [Partition(k, place, (), None, None) for k, place in enumerate(places)]
    monkeypatch.setattr("headstart.jobs.adapt.plan_partitions", lambda *_: parts)
    with pytest.raises(ParquetError, match=f"the rows of '{frame['id'][cut]}' were taken apart"):
        adapt_all(fitted(frame), rows, tmp_path / "apart")
    del parts[1:]
    with pytest.raises(ParquetError, match=f"{len(frame)} rows were to be read, {cut} were;"):
        adapt_all(fitted(frame), rows, tmp_path / "lost")
    assert not list(tmp_path.glob("*/index.json"))


def test_a_fault_leaves_no_file_and_no_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headstart.parquet.writer.ROW_GROUP", 1)  # so that rows are on disk then
    frame = table()
    folder = write(frame, tmp_path / "in", row_group=20)
    model = fitted(frame)
    frame.loc[len(frame) - 1, "a"] = np.inf
    rows = ParquetRows(write(frame, folder, row_group=20), "id", "y", batch_rows=20)
    with pytest.raises(ParquetError, match="expected finite numbers, found inf"):
        adapt_all(model, rows, tmp_path / "out", n_jobs=1)
    assert [p.name for p in (tmp_path / "out").rglob("*") if p.is_file()] == ["job.json"]


def test_workers_in_another_folder_find_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(30)
    write(frame, tmp_path / "in")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    rows, model = ParquetRows("in", "id", "y"), fitted(frame)
    new = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, new, os.chdir, (tmp_path / "elsewhere",)) as pool:
        index = adapt_all(model, rows, "out", executor=pool)
    assert index.rows == len(frame)
    assert not any((tmp_path / "elsewhere").iterdir())
    same = adapt_all(model, ParquetRows(tmp_path / "." / "in", "id", "y"), tmp_path / "out")
    assert same.run == index.run  # the same job by another name of its folder


def test_a_stopped_job_resumes(tmp_path: Path) -> None:
    frame = table()
    model, rows = fitted(frame), ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        adapt_all(model, rows, out, partition_rows=50, executor=Stopping(3))
    assert not (out / "index.json").exists()
    done = {p: p.stat().st_mtime_ns for p in (out / "weights").iterdir()}
    assert len(done) == 3
    calls: list[int] = []
    index = adapt_all(model, rows, out, partition_rows=50, callback=lambda n, _: calls.append(n))
    assert index.tasks == 60
    assert calls == np.cumsum([part.rows for part in index.parts])[3:].tolist()
    assert all(path.stat().st_mtime_ns == time for path, time in done.items())
    straight = adapt_all(model, rows, tmp_path / "straight", partition_rows=50)
    assert straight[1:4] == index[1:4]
    pd.testing.assert_frame_equal(read(out / "weights"), read(tmp_path / "straight" / "weights"))
    with pytest.raises(ParquetError, match="holds the finished results of another job: of another"):
        adapt_all(model, rows, out, weights=False, predictions=True)


def test_a_finished_job_is_not_run_again(tmp_path: Path) -> None:
    frame = table()
    model, rows = fitted(frame), ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    out = tmp_path / "out"
    index = adapt_all(model, rows, out, partition_rows=50)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    # a kill after the index was written leaves what only an unfinished job needs
    (out / "job.json").write_text("{}")
    (out / "done").mkdir()
    (out / "done" / "0123456789ab.json").write_text("[]")
    (out / "clustered" / "spill").mkdir(parents=True)
    assert adapt_all(model, rows, out, partition_rows=50) == index
    assert set(out.rglob("*")) == before.keys()
    assert all(p.stat().st_mtime_ns == t for p, t in before.items() if p.is_file())
    gone = index.files()[1]
    Path(str(gone)).unlink()
    again = adapt_all(model, rows, out, partition_rows=50)  # what is gone is made again
    assert (again.run.adapted, again.run.kept) == (1, len(index.parts) - 1)
    assert all(Path(str(file)).exists() for file in again.files())
    (out / "index.json").write_text("{")
    with pytest.raises(ParquetError, match=r"index.json is damaged; remove the folder"):
        adapt_all(model, rows, out, partition_rows=50)


def test_what_a_killed_run_left_is_cleared(tmp_path: Path) -> None:
    frame = table().sample(frac=1.0, random_state=0)
    model, rows = fitted(frame), ParquetRows(write(frame, tmp_path / "in", row_group=20), "id", "y")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        adapt_all(model, rows, out, partition_rows=50, executor=Stopping(0))
    for folder, name in (
        ("weights", ".part-00000.parquet.0123abcd.part.parquet"),
        ("done", ".00000.json.0123abcd.part.json"),
        ("clustered", ".rows.parquet.0123abcd.part.parquet"),
        ("clustered/spill", "duckdb_temp_storage.tmp"),
        (".", ".job.json.0123abcd.part.json"),
    ):
        (out / folder).mkdir(parents=True, exist_ok=True)
        (out / folder / name).write_text("half")
    adapt_all(model, rows, out, partition_rows=50)
    (file,) = (path.name for path in (out / "weights").iterdir())
    assert sorted(path.name for path in out.rglob("*")) == ["index.json", file, "weights"]


def test_columns_to_keep_are_there_and_have_another_name(tmp_path: Path) -> None:
    frame = table()
    model = fitted(frame)
    frame["prediction"] = 1.0
    rows = ParquetRows(write(frame, tmp_path / "in"), "id", "y", NAMES)
    for keep, message in (
        (("note",), "keep: there is no column 'note'; it has 'id', 'a', 'b', 'c', 'y', 'predic"),
        (("prediction",), "the predictions are a column 'prediction' themselves"),
    ):
        with pytest.raises(ParquetError, match=message):
            adapt_all(model, rows, tmp_path / "out", predictions=True, keep=keep)
    assert not (tmp_path / "out").exists()


def test_a_finished_job_on_sparse_rows_is_not_another(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y, ids = rng.normal(size=(60, 4)), rng.normal(size=60), np.repeat(np.arange(12), 5)
    model = MetaRegressor().fit(csr_array(X), y, groups=ids)
    tasks = TaskSet.from_arrays(csr_array(X), y, ids)
    index = adapt_all(model, tasks, tmp_path / "out")
    assert adapt_all(model, tasks, tmp_path / "out") == index
    other = TaskSet.from_arrays(csr_array(X), -y, ids)
    with pytest.raises(ParquetError, match="holds the finished results of another job"):
        adapt_all(model, other, tmp_path / "out")


def test_only_the_same_job_resumes(tmp_path: Path) -> None:
    frame = table()
    folder = write(frame, tmp_path / "in", row_group=20)
    rows, out = ParquetRows(folder, "id", "y"), tmp_path / "out"
    how: dict[str, Any] = {"partition_rows": 50, "predictions": True}
    model = fitted(frame)
    with pytest.raises(KeyboardInterrupt):
        adapt_all(model, rows, out, executor=Stopping(3), **how)
    with_two = fitted(frame[["id", "a", "b", "y"]].assign(c=0.0))
    others: list[tuple[ParquetRows, dict[str, Any]]] = [
        (ParquetRows(write(frame, tmp_path / "other"), "id", "y"), {}),
        (rows, {"weights": False}),
        (rows, {"keep": ("a",)}),
        (rows, {"std": True}),
        (rows, {"interval": 0.9}),
        (rows, {"covariance": True}),
    ]
    for data, asked in others:
        with pytest.raises(ParquetError, match="holds the unfinished results of another job"):
            adapt_all(with_two, data, out, **{**how, **asked})
    assert adapt_all(model, rows, out, **how).tasks == 60
    for data, asked in others:
        with pytest.raises(ParquetError, match="holds the finished results of another job"):
            adapt_all(model, data, out, **{**how, **asked})


def test_what_is_done_counts_for_the_same_model_code_and_data_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table()
    folder = write(frame, tmp_path / "in", row_group=20)
    rows = ParquetRows(folder, "id", "y")
    model = fitted(frame, reg=1.0, step=0.1)
    other_labels = fitted(frame.assign(y=frame["y"] + 1.0), reg=1.0, step=0.1)
    other_settings = fitted(frame, reg=1.0, step=0.1)
    stream: Any = other_settings.stream()
    stream.settings = replace(stream.settings, predictor="last")
    for k, other in enumerate([model, other_labels, other_settings, "code", "data"]):
        out = tmp_path / str(k)
        with pytest.raises(KeyboardInterrupt):
            adapt_all(model, rows, out, partition_rows=50, executor=Stopping(3))
        if other == "data":
            file = folder / "part-000.parquet"
            os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
        with monkeypatch.context() as patch:
            if other == "code":
                patch.setattr("headstart.jobs.adapt.source_digest", lambda: "other")
            using = other if isinstance(other, MetaRegressor) else model
            index = adapt_all(using, rows, out, partition_rows=50)
        assert index.run.kept == (3 if other is model else 0)
        straight = adapt_all(using, rows, tmp_path / f"straight-{k}", partition_rows=50)
        assert straight.tasks == index.tasks == 60
        pd.testing.assert_frame_equal(
            read(out / "weights"), read(tmp_path / f"straight-{k}" / "weights")
        )


def test_files_that_change_meanwhile_are_noticed(tmp_path: Path) -> None:
    frame = table()
    rows = ParquetRows(write(frame, tmp_path / "in", [100]), "id", "y")
    model = fitted(frame)
    rows.row_groups  # noqa: B018 - the footers as they are now
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


def test_how_sure_predictions_are(tmp_path: Path) -> None:
    frame = table(kind="str")
    model = fitted(frame)
    asked = frame.copy()
    asked.loc[asked["id"] == "user-0003", "y"] = np.nan  # no label at all
    asked.loc[asked.index[-1], "id"] = None  # and nobody's row
    rows = ParquetRows(write(asked, tmp_path / "in", [33]), "id", "y")
    out = tmp_path / "out"
    adapt_all(model, rows, out, predictions=True, std=True, interval=0.8, covariance=True)
    found = read(out / "predictions")
    assert list(found.columns) == ["id", "prediction", "std", "low", "high"]
    np.testing.assert_allclose(found["high"] - found["low"], 2 * 1.2815515655 * found["std"])
    weights = read(out / "weights").set_index("id")
    k = len(NAMES) + 1
    for key in ("user-0003", "user-0010", None):
        own = asked["id"].isna() if key is None else asked["id"] == key
        labelled = own & asked["y"].notna() & asked["id"].notna()
        shown = asked[labelled]
        prior = model.prior_
        known = prior.posterior(shown[NAMES], shown["y"]) if len(shown) else prior.posterior()
        mine = found[own.to_numpy()]
        np.testing.assert_allclose(mine["prediction"], known.predict(asked[own][NAMES]), rtol=1e-9)
        np.testing.assert_allclose(mine["std"] ** 2, known.variance(asked[own][NAMES]), rtol=1e-9)
        if key is not None:
            triangle = np.asarray(weights.loc[key]["covariance"])
            assert len(triangle) == k * (k + 1) // 2
            np.testing.assert_allclose(
                triangle, known.covariance[np.tril_indices(k)], rtol=1e-8, atol=1e-12
            )


def test_probabilities_of_classes(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 5.0, "yes", "no")
    model = MetaClassifier().fit(frame[NAMES], frame["y"], groups=frame["id"])
    rows = ParquetRows(write(frame, tmp_path / "in"), "id", "y")
    adapt_all(model, rows, tmp_path / "out", weights=False, predictions=True, std=True)
    found = read(tmp_path / "out" / "predictions")
    expected = model.predict_proba(frame[NAMES], groups=frame["id"])
    np.testing.assert_allclose(found["probability of no"], expected[:, 0], rtol=1e-6)
    np.testing.assert_allclose(found["probability of yes"], expected[:, 1], rtol=1e-6)
    other = MetaClassifier(loss="hinge").fit(frame[NAMES], frame["y"], groups=frame["id"])
    with pytest.raises(ValueError, match="std: of classes the logistic loss alone"):
        adapt_all(other, rows, tmp_path / "other", predictions=True, std=True)


def test_only_a_prior_says_how_sure_it_is(tmp_path: Path) -> None:
    frame = table(12)
    model = fitted(frame, reg=1.0, step=0.1)
    rows = ParquetRows(write(frame, tmp_path / "in"), "id", "y")
    for asked in ({"covariance": True}, {"predictions": True, "std": True}):
        with pytest.raises(ValueError, match=r"(covariance|std): needs a prior"):
            adapt_all(model, rows, tmp_path / "out", **asked)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="interval: expected"):
        adapt_all(fitted(frame), rows, tmp_path / "out", predictions=True, interval=1.5)
    assert not (tmp_path / "out").exists()


def test_entities_start_from_their_description(tmp_path: Path) -> None:
    frame = table(kind="str")
    rng = np.random.default_rng(0)
    described = pd.Series(rng.normal(size=60), index=sorted(set(frame["id"])))
    frame["age"] = described[frame["id"]].to_numpy()
    frame["y"] += 2.0 * frame["age"]
    model = MetaRegressor(side=["age"]).fit(frame[[*NAMES, "age"]], frame["y"], groups=frame["id"])
    asked = frame.copy()
    asked.loc[asked["id"] == "user-0003", "y"] = np.nan
    rows = ParquetRows(write(asked, tmp_path / "in", [33], row_group=20), "id", "y")
    adapt_all(model, rows, tmp_path / "out", predictions=True, std=True, partition_rows=50)
    weights = read(tmp_path / "out" / "weights").set_index("id")
    shown = asked[asked["id"] == "user-0010"]
    task = model.adapt(shown[[*NAMES, "age"]], shown["y"])
    np.testing.assert_allclose(weights.loc["user-0010"][NAMES].to_numpy(float), task.coef_, 1e-9)
    start = model.prior_.start([described["user-0003"]])
    np.testing.assert_allclose(weights.loc["user-0003"][NAMES].to_numpy(float), start[:-1], 1e-9)
    wrong = asked.assign(age=asked["age"] + (np.arange(len(asked)) == 3))
    for values, message in (
        (wrong, "column 'age': expected one value for each entity"),
        (asked.assign(age=np.nan), "column 'age': expected a number in every row"),
        (asked.assign(age="old"), "column 'age': expected numbers that describe entities"),
        (asked.drop(columns="age"), "side: there is no column 'age'"),
    ):
        folder = write(values, tmp_path / message[:20].replace("'", ""))
        with pytest.raises(ParquetError, match=message):
            adapt_all(model, ParquetRows(folder, "id", "y", NAMES), tmp_path / "wrong")
        for file in folder.iterdir():
            file.unlink()


def test_features_are_those_of_the_model_by_name(tmp_path: Path) -> None:
    frame = table(kind="str")
    frame["more"] = 1.0
    model = fitted(frame)
    folder = write(frame, tmp_path / "in")
    for k, features in enumerate([None, ["c", "a", "b"]]):
        adapt_all(model, ParquetRows(folder, "id", "y", features), tmp_path / str(k))
        found = read(tmp_path / str(k) / "weights").set_index("id")
        assert list(found.columns) == [*NAMES, "intercept", "rows"]
        np.testing.assert_allclose(
            found.loc["user-0010"][NAMES].to_numpy(float), model.weights_of("user-0010"), 1e-12
        )
    with pytest.raises(ParquetError, match="there is no feature 'b', which the model was fitted"):
        adapt_all(model, ParquetRows(folder, "id", "y", ["a", "c"]), tmp_path / "other")
