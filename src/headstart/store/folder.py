"""Models on disk, without pickle: a folder of plain arrays and a page of JSON that names them.

A version of a model is a folder of arrays with its page. The page of the newest, ``model.json``,
is put in place in one step after all it names, and the versions that are kept no longer go only
then. Writers take turns. Readers do not wait for them: who finds that an array has gone reads the
newer page, and arrays that are open stay open.

A page holds a checksum of itself and one of every block of every array. Arrays are mapped, not
read: a block is checked when it is first looked at, so that one entity of a million costs a few
blocks, and a flipped bit never goes unseen. Checksums are no signature: who made a model may have
written anything into it, so that nothing of it is used before it was checked.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

from headstart._core.checks import check_count, cores
from headstart._core.files import sync, turn, write_aside
from headstart.store.arrays import Array, StoredArray, StoreError, damaged, open_file, write_array

FORMAT, VERSION = "headstart model", 2
PAGE, LOCK = "model.json", ".lock"
SYNCS = 8  # files brought to the disk at once, which takes as long as one
LARGEST_PAGE = 1 << 25  # bytes: that of arrays of 400 GB
PLACE = re.compile(r"arrays-[0-9a-f]{12}")
NAME = re.compile(r"[A-Za-z_]{1,60}")


def write_model(
    folder: Path, about: Mapping[str, object], arrays: Mapping[str, Array], keep: int = 1
) -> None:
    """Put a model into `folder`, which is new, empty or holds an older model.

    The newest `keep` versions, this one included, are there afterwards.
    """
    _check_ours(folder)
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
    place.mkdir(parents=True)
    with ThreadPoolExecutor(cores()) as pool:
        written = pool.map(lambda name: write_array(place / f"{name}.npy", arrays[name]), arrays)
        described = dict(zip(arrays, written, strict=True))
    page = {"format": FORMAT, "version": VERSION, "place": place.name, "older": older}
    page |= {"about": dict(about), "arrays": described}
    text = json.dumps({**page, "checksum": _checksum(page)}, indent=1).encode()
    if len(text) > LARGEST_PAGE:
        raise ValueError(f"{PAGE}: expected at most {LARGEST_PAGE} bytes, found {len(text)}")
    (place / PAGE).write_bytes(text)
    with ThreadPoolExecutor(SYNCS) as pool:
        list(pool.map(sync, [*place.iterdir(), place, place.parent, place.parent.parent]))
    write_aside(place.parent / PAGE, lambda aside: aside.write_bytes(text))


def _check_ours(folder: Path) -> None:
    """Raise if there is something at this place that is not ours."""
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
        page = _read_page(folder / PAGE)
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


class Page(NamedTuple):
    """What a page says, and its text."""

    place: str
    older: list[str]
    about: dict[str, Any]
    arrays: dict[str, Any]
    text: bytes


def read_model(folder: Path, version: int = 0) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """What was written about the model in `folder`, and its arrays.

    The newest version is 0, the one before it 1, and so on.
    """
    check_count("version", version, at_least=0)
    path = folder / PAGE
    while True:
        try:
            page = _read_page(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{folder} is not a model: it has no {PAGE}") from None
        try:
            return _open(folder, page, version)
        except FileNotFoundError as error:
            if _read_page(path).text == page.text:
                raise StoreError(f"{error.filename} is missing: the model is damaged") from None
            # else a newer one was written meanwhile


def _open(folder: Path, page: Page, version: int) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """The arrays of a version, by the newest page."""
    versions = [page.place, *page.older]
    if version >= len(versions):
        raise ValueError(
            f"version: expected 0 for the newest to {len(versions) - 1} for the oldest that "
            f"{folder} keeps, found {version}; save(path, keep=...) keeps more"
        )
    place = folder / versions[version]
    if not stat.S_ISDIR(place.lstat().st_mode):
        raise StoreError(f"{place} is not a plain folder; a model has no others")
    wanted = page if version == 0 else _read_page(place / PAGE)
    if wanted.place != place.name:
        raise StoreError(f"{place / PAGE} is damaged: it is the page of {wanted.place}")
    return wanted.about, {
        name: StoredArray(place / f"{name}.npy", said) for name, said in wanted.arrays.items()
    }


def _checksum(page: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(page, sort_keys=True).encode())


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {text}")


def _read_page(path: Path) -> Page:
    """A page that is right in itself."""
    with open_file(path) as file:
        text = file.read(LARGEST_PAGE + 1)
    if len(text) > LARGEST_PAGE:
        raise StoreError(f"{path} is damaged: it has more than {LARGEST_PAGE} bytes")
    with damaged(path):
        page = json.loads(text.decode(), parse_constant=_refuse_constant)
        if not isinstance(page, dict) or page.get("format") != FORMAT:
            raise StoreError(f"{path} is not of a headstart model, or damaged")
        _check_version(path, page.get("version"))
        checksum = page.pop("checksum", None)
        if checksum != _checksum(page):
            raise StoreError(f"{path} is damaged: its checksum is not that of its content")
        place, older = page.get("place"), page.get("older", [])
        about, arrays = page.get("about"), page.get("arrays")
        if not (isinstance(older, list) and isinstance(about, dict) and isinstance(arrays, dict)):
            raise StoreError(f"{path} is damaged: it does not say what a page says")
        if not all(isinstance(name, str) and PLACE.fullmatch(name) for name in (place, *older)):
            raise StoreError(f"{path} is damaged: it names a place that is not one of a model's")
        if not all(NAME.fullmatch(name) for name in arrays):
            raise StoreError(f"{path} is damaged: it names an array that is not one of a model's")
        return Page(str(place), older, about, arrays, text)


def _check_version(path: Path, found: object) -> None:
    """Raise if a page is not of the version this library knows."""
    if type(found) is not int:
        raise StoreError(f"{path} is damaged: it has no version")
    if found < VERSION:
        raise StoreError(
            f"{path} is of version {found}, which an older headstart wrote; this one "
            f"learns in another way and knows version {VERSION}: fit the model again"
        )
    if found > VERSION:
        raise StoreError(
            f"{path} is of version {found}, this library knows up to {VERSION}: "
            "update headstart, or the file is damaged"
        )
