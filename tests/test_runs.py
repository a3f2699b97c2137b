"""Runs of a job night after night: what changed is adapted, the rest kept, and older runs stay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets_on_disk import NAMES, read, table, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import dataset

from headstart import MetaRegressor
from headstart.jobs import JobIndex, adapt_all, read_index
from headstart.parquet import ParquetError, ParquetRows, plan_partitions

FRAME = table(60, kind="str")
MODEL = MetaRegressor().fit(FRAME[NAMES], FRAME["y"], groups=FRAME["id"])
CUTS = [60, 120, 180, 240]


def run(data: Path, out: Path, model: MetaRegressor = MODEL, **asked: Any) -> JobIndex:
    rows = ParquetRows(data, "id", "y", NAMES)
    return adapt_all(model, rows, out, partition_rows=40, **asked)


def names(files: list[str]) -> list[str]:
    return [Path(file).name for file in files]


def weights_of(index: JobIndex) -> pd.DataFrame:
    files = [str(file) for file in index.files()]
    found: Any = dataset.dataset(files).to_table().to_pandas()
    assert isinstance(found, pd.DataFrame)
    return found


def changed(frame: pd.DataFrame, rows: slice) -> pd.DataFrame:
    other = frame.copy()
    other.loc[other.index[rows], "y"] += 1.0
    return other


def rewrite(frame: pd.DataFrame, folder: Path, k: int) -> None:
    """File k of the dataset anew, with the rows between its cuts."""
    edges = [0, *CUTS, len(frame)]
    part = frame.iloc[edges[k] : edges[k + 1]]
    before = (folder / f"part-{k:03d}.parquet").stat().st_mtime_ns
    (written,) = write(part, folder / "new", row_group=20).iterdir()
    os.utime(written, ns=(0, before + 10**9))
    written.replace(folder / f"part-{k:03d}.parquet")
    written.parent.rmdir()


def test_a_changed_file_is_adapted_and_the_rest_kept(tmp_path: Path) -> None:
    data, out = write(FRAME, tmp_path / "in", CUTS, row_group=20), tmp_path / "out"
    first = run(data, out)
    assert first.run.number == 1
    assert names(first.run.new) == [f"part-{k:03d}.parquet" for k in range(5)]
    assert (first.run.kept, first.run.adapted) == (0, len(first.parts))
    assert first.run.peak_mb > 1.0
    times = {file: file.stat().st_mtime_ns for file in first.files()}  # type: ignore[union-attr]
    other = changed(FRAME, slice(130, 140))
    rewrite(other, data, 2)
    second = run(data, out)
    assert (second.run.number, second.run.new, second.run.gone) == (2, [], [])
    assert names(second.run.changed) == ["part-002.parquet"]
    assert 0 < second.run.adapted < second.run.kept
    assert second.run.adapted + second.run.kept == len(second.parts)
    same = [file for file in second.files() if file in times]
    assert len(same) == second.run.kept
    assert all(file.stat().st_mtime_ns == times[file] for file in same)  # type: ignore[union-attr]
    assert {file.name for file in second.files()} == {p.name for p in (out / "weights").iterdir()}
    straight = run(data, tmp_path / "straight")
    pd.testing.assert_frame_equal(weights_of(second), weights_of(straight))
    pd.testing.assert_frame_equal(read(out / "weights"), weights_of(straight))
    assert read_index(out) == second
    assert run(data, out) == second  # nothing has changed


def test_new_files_anywhere_move_no_others(tmp_path: Path) -> None:
    even = FRAME[FRAME["id"] != "user-0030"]
    cut = int(np.argmax(even["id"] > "user-0030"))
    data, out = write(even, tmp_path / "in", [cut], row_group=20), tmp_path / "out"
    first = run(data, out)
    write(FRAME[FRAME["id"] == "user-0030"], tmp_path / "one")
    (tmp_path / "one" / "part-000.parquet").rename(data / "part-000b.parquet")
    second = run(data, out)
    assert names(second.run.new) == ["part-000b.parquet"]
    assert second.tasks == first.tasks + 1
    assert second.run.adapted <= 2
    (data / "part-000b.parquet").unlink()
    third = run(data, out)
    assert names(third.run.gone) == ["part-000b.parquet"]
    pd.testing.assert_frame_equal(weights_of(third), weights_of(run(data, tmp_path / "straight")))


def test_a_task_of_two_files_is_adapted_if_either_changes(tmp_path: Path) -> None:
    cut = next(i for i in range(100, 200) if FRAME["id"][i] == FRAME["id"][i - 1])
    who, data, out = FRAME["id"][cut], tmp_path / "in", tmp_path / "out"
    write(FRAME, data, [cut], row_group=20)
    before = weights_of(run(data, out)).set_index("id")
    other = changed(FRAME, slice(cut, cut + 1))  # that task's first row in the second file
    write(other.iloc[cut:], tmp_path / "new", row_group=20)
    (tmp_path / "new" / "part-000.parquet").replace(data / "part-001.parquet")
    index = run(data, out)
    after = weights_of(index).set_index("id")
    assert before.loc[who]["a"] != after.loc[who]["a"]
    assert index.run.kept > 0
    pd.testing.assert_frame_equal(
        after, weights_of(run(data, tmp_path / "straight")).set_index("id")
    )


def test_scattered_rows_are_all_adapted_again(tmp_path: Path) -> None:
    frame = FRAME.sample(frac=1.0, random_state=0)
    data, out = write(frame, tmp_path / "in", CUTS, row_group=20), tmp_path / "out"
    run(data, out)
    rewrite(frame.assign(y=frame["y"] + (np.arange(len(frame)) == 70)), data, 1)
    index = run(data, out)
    assert index.run.kept == 0
    pd.testing.assert_frame_equal(weights_of(index), weights_of(run(data, tmp_path / "straight")))


def test_older_runs_are_kept_and_gone_back_to(tmp_path: Path) -> None:
    data, out = write(FRAME, tmp_path / "in", CUTS, row_group=20), tmp_path / "out"
    models = [MODEL]
    for k in range(3):
        other = changed(FRAME, slice(0, 50 * (k + 1)))
        models.append(MetaRegressor().fit(other[NAMES], other["y"], groups=other["id"]))
    frames = [weights_of(run(data, out, model, versions=3)) for model in models]
    for version in range(3):
        found = read_index(out, version)
        assert found.run.number == 4 - version
        pd.testing.assert_frame_equal(weights_of(found), frames[3 - version])
    with pytest.raises(ValueError, match=r"version: expected 0 for the newest run to 2 .* found 3"):
        read_index(out, 3)
    last = run(data, out, models[0])  # versions=1: the others go
    assert {file.name for file in last.files()} == {p.name for p in (out / "weights").iterdir()}
    assert not (out / "runs").exists()
    pd.testing.assert_frame_equal(read(out / "weights"), frames[0])
    with pytest.raises(FileNotFoundError, match=r"holds no finished results"):
        read_index(tmp_path)


def test_files_that_another_run_removed_are_noticed(tmp_path: Path) -> None:
    data, out = write(FRAME, tmp_path / "in", CUTS, row_group=20), tmp_path / "out"

    def remove(done: int, _: int) -> None:
        if done > 100:
            for file in (out / "weights").glob("part-*"):  # not those being written
                file.unlink()

    rows = ParquetRows(data, "id", "y", NAMES)
    with pytest.raises(ParquetError, match="files of this run are gone"):
        adapt_all(MODEL, rows, out, partition_rows=40, n_jobs=1, callback=remove)
    assert run(data, out).tasks == 60  # what is noted and not there is done again
    pd.testing.assert_frame_equal(
        read(out / "weights"), weights_of(run(data, tmp_path / "straight"))
    )


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(st.integers(1, len(FRAME) - 1), unique=True, max_size=6).map(sorted),
    row_group=st.integers(5, 60),
    edits=st.lists(st.integers(0, 6), max_size=3),
    data=st.data(),
)
def test_cuts_of_the_run_before_are_made_again(
    cuts: list[int], row_group: int, edits: list[int], data: Any, tmp_path_factory: Any
) -> None:
    """Partitions of files that are as they were are planned again, whatever became of others."""
    folder = write(FRAME, tmp_path_factory.mktemp("rows"), cuts, row_group)
    before = plan_partitions(ParquetRows(folder, "id", "y", NAMES), 40)
    edges = [0, *cuts, len(FRAME)]
    touched = set()
    for k in {edit % (len(edges) - 1) for edit in edits}:
        part = FRAME.iloc[edges[k] : edges[k + 1]]
        twice = pd.concat([part, part.iloc[-1:]])  # one row more of its last task
        other = data.draw(st.integers(5, 60))
        write(twice, folder / "new", row_group=other)
        (folder / "new" / "part-000.parquet").replace(folder / f"part-{k:03d}.parquet")
        (folder / "new").rmdir()
        touched.add(str(folder / f"part-{k:03d}.parquet"))
    begins = frozenset((p.own[0][0], p.own[0][1][0]) for p in before)
    after = plan_partitions(ParquetRows(folder, "id", "y", NAMES), 40, begins)
    found = {tuple(p[1:]) for p in after}
    for one, following in zip(before, [*before[1:], None], strict=True):
        files = {file for file, _ in (*one.own, *one.after)}
        around = set() if following is None else {file for file, _ in following.own}
        if not (files | around) & touched:
            assert tuple(one[1:]) in found
