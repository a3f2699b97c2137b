"""Models on disk: the right model or a clear error, never a wrong one."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Hashable
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart import Huber, MetaClassifier, MetaRegressor, load_model
from headstart._core import files as core_files
from headstart._core.files import turn
from headstart.store import (
    BLOCK,
    StoredArray,
    StoredIds,
    StoreError,
    pack_ids,
    read_model,
    write_model,
)
from headstart.store import folder as store_folder
from headstart.store.arrays import write_array
from headstart.store.version import page_checksum


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


def test_versions_are_kept_and_gone_back_to(tmp_path: Path) -> None:
    models = [fitted(reg=float(n)) for n in range(1, 6)]
    folder = tmp_path / "model"
    for model in models[:4]:
        model.save(folder, keep=3)
    assert [MetaRegressor.load(folder, version).reg for version in range(3)] == [4.0, 3.0, 2.0]
    assert load_model(folder, version=2).reg == 2.0
    assert len(list(folder.glob("arrays-*"))) == 3
    with pytest.raises(ValueError, match=r"version: expected 0 .* to 2 .*model keeps, found 3"):
        MetaRegressor.load(folder, version=3)
    older = MetaRegressor.load(folder, version=1)
    np.testing.assert_array_equal(older.predict(X, range(12)), models[2].predict(X, range(12)))
    older.save(folder, keep=3)
    assert [MetaRegressor.load(folder, version).reg for version in range(3)] == [3.0, 4.0, 3.0]
    models[4].save(folder)
    assert len(list(folder.glob("arrays-*"))) == 1
    assert MetaRegressor.load(folder).reg == 5.0
    for wrong in (0, -1, 1.5, True):
        with pytest.raises((ValueError, TypeError), match="keep: expected an integer >= 1"):
            models[0].save(folder, keep=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="version: expected an integer >= 0"):
        MetaRegressor.load(folder, version=-1)


@pytest.mark.parametrize("settings", [{}, {"reg": 1.0, "step": 0.3}])
def test_a_loaded_model_goes_on_when_its_folder_is_saved_again(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    old, count = fitted(T=9000, **settings), 9000  # so many that weights are mapped, not read
    old.save(tmp_path / "model")
    served = [MetaRegressor.load(tmp_path / "model") for _ in range(2)]
    fitted(T=20, **settings).save(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    np.testing.assert_array_equal(served[0].weights_of(count - 1), old.weights_of(count - 1))
    some = np.arange(0, count, 750)
    np.testing.assert_array_equal(served[0].predict(X, some), old.predict(X, some))
    for model in (served[1], old):
        model.partial_fit(X, X[:, 0], some).finish()
    np.testing.assert_array_equal(served[1].predict(X, some), old.predict(X, some))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
def test_loaded_models_hold_few_files_open(tmp_path: Path) -> None:
    fitted().save(tmp_path / "small")
    fitted(T=9000).save(tmp_path / "large")
    before = open_files()
    small = [MetaRegressor.load(tmp_path / "small") for _ in range(20)]
    assert open_files() == before
    large = MetaRegressor.load(tmp_path / "large")
    assert open_files() <= before + len(list(tmp_path.rglob("large/*/*.npy")))
    del small, large
    assert open_files() == before


def test_a_writer_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted().save(tmp_path)
    begun, seen = threading.Event(), []
    held = True
    original = store_folder._write_version

    def watched(*args: Any) -> None:
        seen.append(held)
        original(*args)

    def save() -> None:
        begun.set()
        fitted(reg=2.0).save(tmp_path)

    monkeypatch.setattr(store_folder, "_write_version", watched)
    thread = threading.Thread(target=save)
    with turn(tmp_path / ".lock"):
        thread.start()
        begun.wait()
        thread.join(0.5)
        assert MetaRegressor.load(tmp_path).reg == "auto"  # who reads does not wait
        held = False
    thread.join()
    assert seen == [False]
    assert MetaRegressor.load(tmp_path).reg == 2.0


def test_a_reader_takes_the_newer_page_if_arrays_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(reg=1.0).save(tmp_path)
    newer, original, opened = [fitted(reg=2.0), fitted(reg=3.0)], StoredArray, 0

    def slow(*args: Any) -> Any:
        nonlocal opened
        opened += 1
        if opened in (2, 7) and newer:
            newer.pop(0).save(tmp_path)
        return original(*args)

    monkeypatch.setattr(store_folder, "StoredArray", slow)
    model = MetaRegressor.load(tmp_path)
    assert model.reg == 3.0
    assert not newer
    model.finish()
    next(tmp_path.rglob("own_rows.npy")).unlink()
    with pytest.raises(StoreError, match=r"own_rows\.npy is missing: the model is damaged"):
        MetaRegressor.load(tmp_path)


@pytest.mark.parametrize("first", [True, False])
def test_what_a_killed_writer_left_is_cleared(first: bool, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    if not first:
        fitted(reg=1.0).save(folder)
    (folder / ".lock").touch()
    (folder / "arrays-0123456789ab").mkdir()
    (folder / "arrays-0123456789ab" / "own_weights.npy").write_bytes(b"half")
    (folder / ".model.json.01234567.part.json").write_bytes(b"{")
    fitted(reg=2.0).save(folder, keep=2)
    assert MetaRegressor.load(folder).reg == 2.0
    names = {path.name for path in folder.iterdir() if not path.name.startswith("arrays-")}
    assert names == {"model.json", ".lock"}
    assert len(list(folder.glob("arrays-*"))) == (1 if first else 2)


def test_what_was_left_is_cleared_before_room_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted().save(tmp_path)
    left = tmp_path / "arrays-0123456789ab"
    left.mkdir()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(store_folder, "write_version", full)
    with pytest.raises(OSError, match="no space left"):
        fitted().save(tmp_path)
    assert not left.exists()


def test_all_is_on_the_disk_before_the_page_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    renamed: list[Path] = []
    monkeypatch.setattr(store_folder, "sync", synced.append)

    def write_aside(page: Path, _: object) -> None:
        renamed.append(page)
        (place,) = tmp_path.glob("arrays-*")
        assert {*place.iterdir(), place, tmp_path} <= {*synced}

    monkeypatch.setattr(store_folder, "write_aside", write_aside)
    fitted().save(tmp_path)
    assert renamed == [tmp_path / "model.json"]


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, bool]] = []
    page = tmp_path / "page"
    monkeypatch.setattr(core_files, "sync", lambda path: synced.append((path, page.exists())))
    core_files.write_aside(page, lambda aside: aside.write_text("all of it"))
    (aside, named), (folder, named_then) = synced
    assert (aside.parent, named) == (tmp_path, False)
    assert (folder, named_then) == (tmp_path, True)
    assert page.read_text() == "all of it"


def forged(folder: Path, new: dict[str, Any] | None = None, **edits: Any) -> None:
    """Change arrays and entries of the page of a model, and make all checksums right."""
    page = json.loads((folder / "model.json").read_text())
    del page["checksum"]
    for name, array in (new or {}).items():
        path = folder / page["place"] / f"{name}.npy"
        path.unlink()
        page["arrays"][name] = write_array(path, np.asarray(array))
    for name, value in edits.items():
        where = page["about"] if name in page["about"] else page
        where[name] = value
    page["checksum"] = page_checksum(page)
    (folder / "model.json").write_text(json.dumps(page))


FORGERIES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a slot beyond all": ({"own_slot": np.full(13, 10**9)}, {}, "own_slot: expected"),
    "a short total": ({"bias_total": np.ones(1)}, {}, r"bias_total: expected .* shape \(3\)"),
    "many open tasks": ({"bias_counts": np.array([12, 36, 0, 10**9, 10**9])}, {}, "open_h: exp"),
    "an entity beyond all": ({"open_entity": np.array([10**9])}, {}, "open_entity: expected"),
    "weights that are none": ({"own_weights": np.full((13, 3), np.nan)}, {}, "own_weights"),
    "positions beyond all": ({"positions": np.arange(13) * 10**6}, {}, "positions|position"),
    "a place elsewhere": ({}, {"place": "../other"}, "names a place that is not one"),
    "an older place elsewhere": ({}, {"older": ["/etc"]}, "names a place that is not one"),
    "an array elsewhere": ({}, {"arrays": {"../../x": {}}}, "names an array that is not one"),
    "many features": ({}, {"n_features": 10**9}, "own_weights: expected 1000000001 floats"),
    "features that are none": ({}, {"n_features": "two"}, "n_features: expected an integer"),
    "names of others": ({}, {"feature_names": ["a"]}, "feature_names: expected 2 different"),
    "classes of none": ({}, {"classes": [0, 1]}, "classes: expected those of a MetaRegressor"),
    "a loss of nobody": ({}, {"parameters": {"loss": "kind"}}, "loss: expected one of"),
    "a parameter of nobody": ({}, {"parameters": {"x": 1}}, "unexpected keyword argument 'x'"),
}


OF_PRIORS: dict[str, tuple[dict[str, Any], str]] = {
    "weights of fewer": ({"own_weights": np.ones((5, 3))}, "do not fit"),
    "weights of more columns": ({"own_weights": np.ones((12, 9))}, "own_weights: expected"),
    "weights that are none": ({"own_weights": np.full((12, 3), np.nan)}, "finite weights"),
    "weights of another type": ({"own_weights": np.ones((12, 3), np.int64)}, "own_weights: exp"),
    "sums of nobody": ({"sums_entity": np.full(12, 10**9)}, "sums_entity: expected"),
    "sums of one twice": ({"sums_entity": np.zeros(12, np.int64)}, "sums_entity: expected"),
    "sums of other columns": ({"sums": np.ones((12, 5))}, "sums: expected"),
    "rows of nobody": (
        {"log_entity": np.array([10**9]), "log_X": np.ones((1, 2)), "log_y": np.ones(1),
         "log_weight": np.ones(1)},
        "log_entity: expected",
    ),
    "rows without labels": ({"log_entity": np.array([0]), "log_X": np.ones((1, 2))}, "log_"),
    "a variance below 0": ({"prior_variances": -np.ones(3)}, "prior_variances: expected"),
    "a covariance of others": ({"prior_covariance": np.eye(2)}, "prior_covariance: expected"),
    "a scale of 0": ({"prior_scale": np.zeros(2)}, "prior_scale: expected"),
    "fewer than no rows": ({"rows": np.array([-1, 36, 12])}, "rows: expected"),
    "side of others": ({"side": np.ones((12, 2))}, "side: expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_PRIORS)
def test_a_prior_from_a_stranger(name: str, tmp_path: Path) -> None:
    arrays, message = OF_PRIORS[name]
    fitted().save(tmp_path / "model")
    forged(tmp_path / "model")
    MetaRegressor.load(tmp_path / "model").finish()  # which is right as it is
    forged(tmp_path / "model", arrays)
    with pytest.raises(StoreError, match=message):
        ask(tmp_path / "model")


@pytest.mark.parametrize("name", FORGERIES)
def test_a_model_from_a_stranger(name: str, tmp_path: Path) -> None:
    arrays, edits, message = FORGERIES[name]
    model = fitted(reg=1.0, step=0.3)
    model.partial_fit(X[:1], X[:1, 0], groups=[100])  # a task is open
    model.save(tmp_path / "model")
    forged(tmp_path / "model")
    MetaRegressor.load(tmp_path / "model").finish()  # which is right as it is
    forged(tmp_path / "model", arrays, **edits)
    with pytest.raises(StoreError, match=message) as refused:
        ask(tmp_path / "model")
    assert str(tmp_path / "model") in str(refused.value)


def ask(folder: Path) -> None:
    model = MetaRegressor.load(folder)
    model.predict(X, range(12))
    model.finish()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{}", '{"format": 1}', "NaN", "", "[1" + "0" * 9999]
)
def test_pages_of_any_shape(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(StoreError, match=r"model\.json is .*damaged"):
        MetaRegressor.load(tmp_path)


def test_no_link_pipe_or_folder_is_followed(tmp_path: Path) -> None:
    fitted().save(tmp_path / "right")
    (place,) = (tmp_path / "right").glob("arrays-*")
    (tmp_path / "link").symlink_to(tmp_path / "right")
    assert MetaRegressor.load(tmp_path / "link").reg == "auto"  # one that the user gave
    aside = tmp_path / "aside"
    link: Any = partial(Path.symlink_to, target=aside)
    for path in (tmp_path / "right" / "model.json", place / "ids.npy", place):
        for make in (link, os.mkfifo, Path.touch if path == place else Path.mkdir):
            path.rename(aside)
            make(path)
            with pytest.raises(StoreError, match=r"plain (files?|folder)"):
                MetaRegressor.load(tmp_path / "right")
            if make is Path.mkdir:
                path.rmdir()
            else:
                path.unlink()
            aside.rename(path)
    assert MetaRegressor.load(tmp_path / "right").reg == "auto"


def test_saving_over_a_forged_folder_stays_inside(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    fitted().save(tmp_path / "model")
    (tmp_path / "model" / "arrays-0123456789ab").symlink_to(other)
    forged(tmp_path / "model", older=["arrays-0123456789ab"])
    fitted(reg=2.0).save(tmp_path / "model", keep=3)
    assert [p.name for p in files(other)] == ["thesis.tex"]
    assert MetaRegressor.load(tmp_path / "model").reg == 2.0


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(TypeError, match=r"random_state: Generator.* cannot be saved"):
        fitted(random_state=generator).save(tmp_path / "model")
    with pytest.raises(TypeError, match=r"ids: frozenset.* cannot be saved"):
        fitted([frozenset({1}), 2], T=2).save(tmp_path / "other")
    assert files(tmp_path) == []


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(file: Any, *_: object, **__: object) -> None:
        file.write(b"half")
        raise OSError("45000 requested and 38384 written")  # as NumPy says it

    monkeypatch.setattr("headstart.store.arrays.np.save", half)
    with pytest.raises(OSError, match="No space left on device") as error:
        fitted().save(tmp_path / "model")
    assert error.value.errno == errno.ENOSPC
    assert str(error.value.filename).startswith(str(tmp_path / "model"))
    assert not (tmp_path / "model" / "model.json").exists()


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
