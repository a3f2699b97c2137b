"""Models on disk, without pickle: a folder of plain arrays and a page of JSON that names them.

A version of a model is a folder of arrays with its page. The page of the newest, ``model.json``,
is put in place in one step after all it names, and the versions that are kept no longer go only
then. Writers take turns. Readers do not wait for them: who finds that an array has gone reads the
newer page, and arrays that are open stay open.

An object store has no locks and no renames: `headstart.store.remote` does it without.

A page holds a checksum of itself and one of every block of every array. Arrays are mapped, not
read: a block is checked when it is first looked at, so that one entity of a million costs a few
blocks, and a flipped bit never goes unseen. Checksums are no signature: who made a model may have
written anything into it, so that nothing of it is used before it was checked.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

from headstart._core.checks import check_count
from headstart._core.files import sync, turn, write_aside
from headstart._core.places import Place, Remote, near
from headstart.store import remote
from headstart.store.arrays import Array, StoredArray, StoreError
from headstart.store.version import PAGE, Page, read_page, write_version

LOCK = ".lock"
SYNCS = 8  # files brought to the disk at once, which takes as long as one


def write_model(
    folder: Place, about: Mapping[str, object], arrays: Mapping[str, Array], keep: int = 1
) -> None:
    """Put a model into `folder`, which is new, empty or holds an older model.

    The newest `keep` versions, this one included, are there afterwards.
    """
    check_ours(folder)
    if isinstance(folder, Remote):
        remote.write_model(folder, about, arrays, keep)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with turn(folder / LOCK):
        before = _versions(folder)
        _clear(folder, before)
        place = folder / f"arrays-{uuid4().hex[:12]}"
        older = [name for name in before if (folder / name / PAGE).is_file()][: keep - 1]
        try:
            _write_version(place, about, arrays, older)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        _clear(folder, [place.name, *older])


def _write_version(
    place: Path, about: Mapping[str, object], arrays: Mapping[str, Array], older: list[str]
) -> None:
    text = write_version(place, about, arrays, older)
    with ThreadPoolExecutor(SYNCS) as pool:
        list(pool.map(sync, [*place.iterdir(), place, place.parent, place.parent.parent]))
    write_aside(place.parent / PAGE, lambda aside: aside.write_bytes(text))


def check_ours(folder: Place) -> None:
    """Raise if there is something at this place that is no model."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; a model needs a folder")
    if folder.exists() and not (folder / PAGE).exists():
        strangers = [p.name for p in folder.iterdir() if p.name != LOCK and not _is_part(p.name)]
        if strangers:
            raise FileExistsError(
                f"{folder} holds {strangers[0]!r} and no model; give a new or empty folder"
            )


def _is_part(name: str) -> bool:
    """Whether it is of a model that is being written, or of one whose writer was killed."""
    return name.startswith("arrays-") or (name.startswith(f".{PAGE}.") and ".part" in name)


def _versions(folder: Path) -> list[str]:
    """The folders of the versions there are, newest first; all of them if the page is damaged."""
    try:
        page = read_page(folder / PAGE)
    except FileNotFoundError:
        return []
    except StoreError:
        return [path.name for path in folder.glob("arrays-*")]
    return [name for name in (page.place, *page.older) if _is_folder(folder / name)]


def _is_folder(path: Path) -> bool:
    """Whether it is a folder itself, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _clear(folder: Path, versions: Sequence[str]) -> None:
    """Delete what writers left that were killed, and all versions but these."""
    for path in list(folder.iterdir()):
        if not _is_part(path.name) or path.name in versions:
            continue
        if _is_folder(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def read_model(folder: Place, version: int = 0) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """What was written about the model in `folder`, and its arrays.

    The newest version is 0, the one before it 1, and so on.
    """
    check_count("version", version, at_least=0)
    path = folder / PAGE
    while True:
        try:
            page = read_page(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{folder} is not a model: it has no {PAGE}") from None
        try:
            return _open(folder, page, version)
        except FileNotFoundError as error:
            if read_page(path).text == page.text:
                raise StoreError(f"{error.filename} is missing: the model is damaged") from None
            # else a newer one was written meanwhile


def read_versions(folder: Place) -> list[dict[str, Any]]:
    """What was written about each version that a folder keeps, the newest first; else nothing."""
    try:
        newest = read_page(folder / PAGE)
        older = [read_page(folder / name / PAGE) for name in newest.older]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [page.about for page in (newest, *older)]


def _open(folder: Place, page: Page, version: int) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """The arrays of a version, by the newest page."""
    versions = [page.place, *page.older]
    if version >= len(versions):
        raise ValueError(
            f"version: expected 0 for the newest to {len(versions) - 1} for the oldest that "
            f"{folder} keeps, found {version}; save(path, keep=...) or --versions keeps more"
        )
    place = folder / versions[version]
    if isinstance(place, Path) and not stat.S_ISDIR(place.lstat().st_mode):
        raise StoreError(f"{place} is not a plain folder; a model has no others")
    wanted = page if version == 0 else read_page(place / PAGE)
    if wanted.place != place.name:
        raise StoreError(f"{place / PAGE} is damaged: it is the page of {wanted.place}")
    files = {name: f"{name}.npy" for name in wanted.arrays}
    if isinstance(place, Remote):
        remote.check_sizes(place, wanted.arrays)
    with near(place, list(files.values())) as copy:
        return wanted.about, {
            name: StoredArray(copy / file, wanted.arrays[name], place / file)
            for name, file in files.items()
        }
