"""Models on disk: the right model or a clear error, never a wrong one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Hashable
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart import Huber, MetaClassifier, MetaRegressor
from headstart.store import BLOCK, StoredIds, StoreError, pack_ids, read_model, write_model


def fitted(ids: Any = None, T: int = 12, **settings: Any) -> MetaRegressor:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * T, 2))
    groups = np.repeat(np.arange(T), 3) if ids is None else [i for i in ids for _ in range(3)]
    return MetaRegressor(**settings).fit(X, X @ [4.0, -2.0] + rng.normal(size=3 * T), groups)


X = np.random.default_rng(1).normal(size=(12, 2))


@pytest.mark.parametrize(
    "ids",
    [
        range(12),
        [f"user {i}" for i in range(12)],
        ["a", 1, 2.5, b"b", ("t", 1), date(2024, 1, 1), datetime(2024, 1, 1, 12), "", -1, 2**70],
        ["ends\0", "x"],
        ["x" * 5000, *map(str, range(50))],
        [2**63, 1],
        [0.5, 1.5],
        [-(2**63), 2**63 - 1, 0],
    ],
    ids=["integers", "strings", "mixed", "zeros", "long", "large", "floats", "extremes"],
)
def test_loaded_is_saved(ids: Any, tmp_path: Path) -> None:
    model = fitted(ids, T=len(ids), loss=Huber(0.5), group=None)
    model.save(tmp_path / "model")
    loaded = MetaRegressor.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.bias_, model.bias_)
    for i in ids:
        np.testing.assert_array_equal(loaded.weights_of(i), model.weights_of(i))
    asked = [*ids, None, type(ids[0])()]
    rows = np.resize(X, (len(asked), 2))
    np.testing.assert_array_equal(loaded.predict(rows, asked), model.predict(rows, asked))
    assert loaded.ids_ == model.ids_
    with pytest.raises(KeyError, match="'nobody' is no known id"):
        loaded.weights_of("nobody")
    more = [ids[0], ids[-1], None]
    for other in (loaded, model):
        with pytest.warns(UserWarning, match="groups: 1 of 3 rows have no id"):
            other.partial_fit(X[:3], X[:3, 0], groups=more)
    np.testing.assert_array_equal(loaded.predict(rows, asked), model.predict(rows, asked))


keys = st.one_of(
    st.integers(-(2**64), 2**64), st.text(max_size=6), st.floats(allow_nan=False), st.binary()
)


@given(
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1),
        st.lists(st.text(max_size=6), unique=True, min_size=1),
        st.lists(keys, unique=True, min_size=1),
    ),
    st.lists(keys),
)
def test_every_id_is_found_again(ids: list[Hashable], others: list[Hashable]) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"headstart-ids-{os.getpid()}"
    write_model(folder, {}, pack_ids(ids))
    _, arrays = read_model(folder)
    known = dict(zip(ids, range(len(ids)), strict=True))
    asked = ids + others
    expected = [known.get(key, -1) for key in asked]
    assert StoredIds(arrays).find(asked) == expected
    stored = StoredIds(arrays)
    assert stored.index().keys == ids
    assert stored.find(asked) == expected
    shutil.rmtree(folder)


def test_ids_beyond_one_block(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).permutation(5 * BLOCK // 8) * 3
    write_model(tmp_path, {}, pack_ids(ids.tolist()))
    stored = StoredIds(read_model(tmp_path)[1])
    for position in (0, 17, 40_000, ids.size - 1):
        assert stored.find([int(ids[position])]) == [position]
        assert stored.find([int(ids[position]) + 1]) == [-1]
        assert stored.find([float(ids[position]), np.int32(ids[position])]) == [position] * 2
    step = BLOCK // 8  # ids in a block: those beside the borders of blocks, and the last of all
    for rank in (0, step - 1, step, 2 * step - 1, 2 * step, 5 * step - 1):
        assert stored.find([3 * rank]) == [int(np.flatnonzero(ids == 3 * rank)[0])]
    assert stored.find([-3, 15 * step]) == [-1, -1]
    assert not has_index(stored)  # nothing of this has read all ids


def test_classifier_keeps_its_classes_and_names(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "price"])
    labels = np.where(X[:, 0] > 0, "yes", "no")
    model = MetaClassifier().fit(frame, labels, groups=np.arange(len(X)) // 4)
    model.save(tmp_path / "model")
    loaded = MetaClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()
    assert list(loaded.bias_by_feature()) == ["age", "price"]
    with pytest.raises(StoreError, match=r"holds a MetaClassifier; load it with MetaClassifier\."):
        MetaRegressor.load(tmp_path / "model")


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def needed(folder: Path) -> list[Path]:
    """The files without which the newest model in a folder is not whole."""
    return [folder / "model.json", *sorted(folder.rglob("*.npy"))]


def outcome(folder: Path) -> Any:
    """All a model can say, or the error it is refused with."""
    try:
        model = MetaRegressor.load(folder)
        seen = model.predict(X, groups=list(range(12))).tobytes()
        stream = model.stream()
    except (StoreError, FileNotFoundError) as error:
        return str(error)
    arrays = {name: array.tobytes() for name, array in stream.arrays().items()}
    return seen, stream.ids.keys, model.get_params(), arrays


@pytest.mark.parametrize("settings", [{}, {"reg": 1.0, "step": 0.3}])
def test_flipped_and_cut_bytes(settings: dict[str, Any], tmp_path: Path) -> None:
    model = fitted(**settings)
    model.partial_fit(X, X[:, 0], groups=[100, 101, 102] * 4)  # some tasks are open
    model.save(tmp_path / "model")
    right = outcome(tmp_path / "model")
    assert isinstance(right, tuple)
    rng = np.random.default_rng(0)
    refused = 0
    for path in needed(tmp_path / "model"):
        whole = path.read_bytes()
        for _ in range(40):
            broken = bytearray(whole)
            broken[rng.integers(len(whole))] ^= 1 << rng.integers(8)
            path.write_bytes(broken)
            found = outcome(tmp_path / "model")
            assert found == right or isinstance(found, str), path
            refused += isinstance(found, str)
        for length in {0, 1, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:length])
            found = outcome(tmp_path / "model")
            assert isinstance(found, str), path
            assert "damaged" in found or "not of a headstart model" in found
        path.write_bytes(whole + b"0")
        found = outcome(tmp_path / "model")
        assert found == right or isinstance(found, str), path
        path.unlink()
        assert isinstance(outcome(tmp_path / "model"), str)
        path.write_bytes(whole)
    assert refused > 300
    assert outcome(tmp_path / "model") == right


def test_a_damaged_block_is_seen_by_those_who_read_it_and_no_other(tmp_path: Path) -> None:
    """Rows of three quarters of a block: the first of four is in block 0, the second in 0 and 1."""
    width = 3 * BLOCK // 4 // 8
    rows = np.arange(8.0 * width).reshape(8, width)
    write_model(tmp_path, {}, {"rows": rows})
    (path,) = tmp_path.rglob("*.npy")
    right = path.read_bytes()
    header = len(right) - rows.nbytes
    touched = [{0}, {0, 1}, {1, 2}, {2}, {3}, {3, 4}, {4, 5}, {5}]
    for block in range(6):
        for place in (block * BLOCK, (block + 1) * BLOCK - 1):
            broken = bytearray(right)
            broken[header + place] ^= 1
            path.write_bytes(broken)
            for row, blocks in enumerate(touched):
                arrays = [read_model(tmp_path)[1]["rows"] for _ in range(2)]
                for read in (
                    partial(arrays[0].rows, np.array([row])),
                    partial(arrays[1].between, row, row + 1),
                ):
                    if block in blocks:
                        with pytest.raises(StoreError, match=f"bytes {block * BLOCK} to "):
                            read()
                    else:
                        np.testing.assert_array_equal(read(), rows[row : row + 1])
            array = read_model(tmp_path)[1]["rows"]
            others = np.array([row for row in range(8) if block not in touched[row]])
            np.testing.assert_array_equal(array.rows(others[::-1]), rows[others[::-1]])
            with pytest.raises(StoreError, match="have another checksum"):
                array.rows(np.arange(8))  # that others were right says nothing of this one
            with pytest.raises(StoreError, match="have another checksum"):
                read_model(tmp_path)[1]["rows"].whole()
    path.write_bytes(right)
    array = read_model(tmp_path)[1]["rows"]
    np.testing.assert_array_equal(array.whole(), rows)
    np.testing.assert_array_equal(array.between(2, 7), rows[2:7])
    assert len(array) == 8
    assert array.dtype == np.float64


def has_index(stored: StoredIds) -> bool:
    """Whether all ids were read."""
    return stored._index is not None


def test_many_ids_at_once_read_the_index(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).permutation(1000) * 2
    write_model(tmp_path, {}, pack_ids(ids.tolist()))
    stored = StoredIds(read_model(tmp_path)[1])
    assert stored.find(ids[:256].tolist() * 3) == list(range(256)) * 3
    assert not has_index(stored)  # 256 different ones are looked up one by one
    assert stored.find(ids[:257].tolist()) == list(range(257))
    assert has_index(stored)
    assert stored.find([int(ids[999]), 1]) == [999, -1]
    assert 1 not in StoredIds(read_model(tmp_path)[1])


def test_foreign_and_newer_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"is not a model: it has no model\.json"):
        MetaRegressor.load(tmp_path)
    page = tmp_path / "model.json"
    page.write_text('{"format": "another"}')
    with pytest.raises(StoreError, match="is not of a headstart model"):
        MetaRegressor.load(tmp_path)
    shutil.rmtree(tmp_path)
    fitted().save(tmp_path)
    content = json.loads(page.read_text())
    page.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(StoreError, match="version 99, this library knows up to 2"):
        MetaRegressor.load(tmp_path)
    page.write_text(json.dumps({**content, "version": 3}))
    with pytest.raises(StoreError, match="version 3, this library knows up to 2"):
        MetaRegressor.load(tmp_path)
    page.write_text(json.dumps({**content, "version": 1}))
    with pytest.raises(StoreError, match=r"version 1, which an older headstart .* fit .* again"):
        MetaRegressor.load(tmp_path)


def test_nothing_of_others_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds 'thesis\.tex' and no model"):
        fitted().save(tmp_path)
    with pytest.raises(FileExistsError, match="is a file"):
        fitted().save(tmp_path / "thesis.tex")
    assert [p.name for p in files(tmp_path)] == ["thesis.tex"]


def test_an_older_model_stays_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fitted(reg=0.1), fitted(reg=0.5)
    old.save(tmp_path / "model")
    before = outcome(tmp_path / "model")
    mapped = MetaRegressor.load(tmp_path / "model")
    count = 0
    original = np.save

    def fail_at_third(*args: Any, **options: Any) -> None:
        nonlocal count
        count += 1
        if count > 3:
            raise OSError("No space left on device")
        original(*args, **options)

    monkeypatch.setattr(np, "save", fail_at_third)
    with pytest.raises(OSError, match="No space left"):
        new.save(tmp_path / "model")
    monkeypatch.undo()
    assert outcome(tmp_path / "model") == before
    assert len(list((tmp_path / "model").glob("arrays-*"))) == 1  # nothing of the new one stays
    new.save(tmp_path / "model")
    assert outcome(tmp_path / "model") != before
    assert len(list((tmp_path / "model").glob("arrays-*"))) == 1
    np.testing.assert_array_equal(mapped.weights_of(3), old.weights_of(3))  # still open


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(TypeError, match=r"random_state: Generator.* cannot be saved"):
        fitted(random_state=generator).save(tmp_path / "model")
    with pytest.raises(TypeError, match=r"ids: frozenset.* cannot be saved"):
        fitted([frozenset({1}), 2], T=2).save(tmp_path / "other")
    assert files(tmp_path) == []


GO_ON = """
import sys
import numpy as np
from headstart import MetaRegressor
X = np.load(sys.argv[2])
MetaRegressor.load(sys.argv[1]).partial_fit(X, X[:, 0], groups=[0, 1, 50] * 4).save(sys.argv[1])
"""


@pytest.mark.parametrize("settings", [{}, {"reg": 1.0, "task_size": 2}])
def test_another_process_goes_on(settings: dict[str, Any], tmp_path: Path) -> None:
    model = fitted(**settings)
    model.partial_fit(X[:5], X[:5, 1], groups=[50, 51, 50, 52, 53])
    model.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    arguments = [str(tmp_path / "model"), str(tmp_path / "X.npy")]
    subprocess.run([sys.executable, "-c", GO_ON, *arguments], check=True)
    model.partial_fit(X, X[:, 0], groups=[0, 1, 50] * 4)
    model.save(tmp_path / "here")
    assert outcome(tmp_path / "model") == outcome(tmp_path / "here")
