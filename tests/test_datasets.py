from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headstart import datasets
from headstart.datasets import DataUnavailableError, lenk_tables, load_exam, load_lenk


def at_hand(name: str) -> pytest.MarkDecorator:
    """A mark for tests of a file that is not part of the project."""
    folders = os.environ.get("HEADSTART_DATA", "/nowhere").split(os.pathsep)
    return pytest.mark.skipif(
        not any((Path(folder) / name).is_file() for folder in folders),
        reason=f"HEADSTART_DATA does not name a folder with {name}",
    )


here = at_hand(datasets.LENK)


@here
def test_the_survey() -> None:
    shots, queries = load_lenk()
    assert (len(shots), len(queries), shots.n_features) == (180, 180, 14)
    assert set(shots.sizes) == {8}
    assert set(queries.sizes) == {4}
    assert np.all(shots.X[:, 0] == 1.0)
    assert set(np.unique(shots.X)) == {-1.0, 1.0}
    assert (shots.y.min(), shots.y.max()) == (0.0, 10.0)
    for X, _ in queries:  # everybody was tested on the same four computers
        np.testing.assert_array_equal(X, queries[0][0])
    rated = lenk_tables()["Traindata"].reshape(180, 16, 15)  # of each the first eight are shots
    np.testing.assert_array_equal(shots.X, rated[:, :8, :14].reshape(-1, 14))
    np.testing.assert_array_equal(shots.y, rated[:, :8, 14].ravel())
    assert any(np.any(shots[0][0] != X) for X, _ in shots)  # but rated others in other orders


@here
def test_ratings_become_labels() -> None:
    ratings, labels = load_lenk()[0], load_lenk(threshold=5.0)[0]
    np.testing.assert_array_equal(labels.y, np.where(ratings.y >= 5.0, 1.0, -1.0))


def test_a_folder_without_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=r"lenk_data.mat: HEADSTART_DATA is .*; put"):
        load_lenk()


def test_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    (tmp_path / datasets.LENK).write_bytes(b"something else")
    with pytest.raises(DataUnavailableError, match=r"not the file of the published .*SHA-256"):
        load_lenk()


def test_no_network_and_no_pooch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTART_DATA", raising=False)

    def fail(*_: Any, **__: Any) -> str:
        raise ConnectionError("no route")

    fake = SimpleNamespace(retrieve=fail, os_cache=lambda _: Path())
    monkeypatch.setitem(sys.modules, "pooch", fake)
    with pytest.raises(DataUnavailableError, match=r"could not be downloaded .*; put .* set HEAD"):
        load_lenk()
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataUnavailableError, match=r"pooch, which would download it, is not"):
        load_lenk()


def test_a_download_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pooch brings is read; that it brings the right file is pooch's check and ours."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    asked: dict[str, Any] = {}

    def retrieve(url: str, **options: Any) -> str:
        asked.update(url=url, **options)
        (tmp_path / "brought").write_bytes(b"not it")
        return str(tmp_path / "brought")

    fake = SimpleNamespace(retrieve=retrieve, os_cache=lambda _: tmp_path)
    monkeypatch.setitem(sys.modules, "pooch", fake)
    with pytest.raises(DataUnavailableError, match=r"brought: not the file"):
        load_lenk()
    assert asked["url"].endswith("prolearner/onlineLTL/raw/master/data/lenk_data.mat")
    assert asked["known_hash"] == f"sha256:{datasets.LENK_SHA256}"


@at_hand(datasets.EXAM)
def test_the_schools() -> None:
    schools = load_exam()
    assert (len(schools), len(schools.y), schools.n_features) == (65, 4059, 9)
    assert (schools.sizes.min(), schools.sizes.max()) == (2, 198)
    assert np.all(schools.X[:, 0] == 1.0)
    assert set(np.unique(schools.X[:, 3:])) == {0.0, 1.0}
    for scores in (schools.X[:, 1], schools.y):  # standard scores
        assert abs(scores.mean()) < 0.05
        assert scores.std() == pytest.approx(1.0, abs=0.05)
    for X, _ in schools:  # what is the school's own
        assert len(np.unique(X[:, [2, 4, 5, 8]], axis=0)) == 1


def exam_table(**columns: Any) -> pa.Table:
    """Four pupils of two schools."""
    return pa.table(
        {
            "school": [7, 7, 3, 3], "normexam": [0.1, 0.2, 0.3, 0.4],
            "schavg": [1.0, 1.0, 2.0, 2.0],
            "standLRT": [0.5, 0.6, 0.7, 0.8], "sex": ["F", "M", "M", "F"],
            "vr": ["top 25%", "top 25%", "mid 50%", "mid 50%"],
            "intake": ["bottom 25%", "mid 50%", "top 25%", "mid 50%"],
            "type": ["Sngl", "Sngl", "Mxd", "Mxd"], **columns,
        }
    )  # fmt: skip


def test_columns_of_schools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(exam_table(), tmp_path / datasets.EXAM)
    folders = os.pathsep.join([str(tmp_path / "none"), str(tmp_path)])  # each is looked into
    monkeypatch.setenv("HEADSTART_DATA", folders)
    schools = load_exam()
    assert schools.ids.tolist() == [7, 3]
    np.testing.assert_array_equal(schools[0][0], [
        [1.0, 0.5, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0],
        [1.0, 0.6, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip
    np.testing.assert_array_equal(schools[1][0][0], [1.0, 0.7, 2.0, 0, 0, 0, 1.0, 0, 0])


def test_schools_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=r"exam.parquet: HEADSTART_DATA is .*prepare.py"):
        load_exam()
    monkeypatch.delenv("HEADSTART_DATA")
    with pytest.raises(DataUnavailableError, match=r"exam.parquet: HEADSTART_DATA is not set"):
        load_exam()
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    for damaged in (exam_table().drop_columns("sex"), exam_table(normexam=["a", "b", "c", "d"])):
        pq.write_table(damaged, tmp_path / datasets.EXAM)
        with pytest.raises(DataUnavailableError, match="not the table that examples"):
            load_exam()
    (tmp_path / datasets.EXAM).write_bytes(b"something else")
    with pytest.raises(DataUnavailableError, match="not the table that examples"):
        load_exam()
