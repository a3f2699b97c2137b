"""Models on object stores, where nobody can be made to wait and nothing be renamed.

Every save has a version of its own name. Its arrays are put there first, then the page that names
them, ``model.json``, in one step: who reads meets the old model or the new one. Of several who
save at once the last is the newest, and versions of the others may not be among those to go back
to. What a page named and is kept no longer goes then; what no page names, because its writer was
killed or overtaken, goes when it is a day old.

Who loads fetches all arrays of a version, and maps the copies. The same checks are made of them.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from headstart._core.leftovers import temporary_folder
from headstart._core.places import Remote, remove_folder
from headstart.store.arrays import Array, Described, StoreError, damaged
from headstart.store.version import PAGE, PLACE, read_page, write_version

AT_ONCE = 8  # files that are put there at once
OLD = 24 * 3600  # seconds after which nobody writes a version any more


def write_model(
    folder: Remote, about: Mapping[str, object], arrays: Mapping[str, Array], keep: int
) -> None:
    """Put a model there, beside the versions that are kept."""
    before = _versions(folder)
    with temporary_folder() as copy:
        place = copy / f"arrays-{uuid4().hex[:12]}"
        older = [name for name in before[: keep - 1] if (folder / name / PAGE).exists()]
        text = write_version(place, about, arrays, older)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            there = folder / place.name
            list(pool.map(lambda file: (there / file.name).put_file(file), place.iterdir()))
    (folder / PAGE).put(text)
    for name in before:
        if name not in older:
            remove_folder(folder / name)
    _clear(folder, [place.name, *older])


def _versions(folder: Remote) -> list[str]:
    """The versions that the page names, newest first; none if it is damaged."""
    try:
        page = read_page(folder / PAGE)
    except (FileNotFoundError, StoreError):
        return []
    return [page.place, *page.older]


def _clear(folder: Remote, versions: list[str]) -> None:
    """Take away versions that no page names and nobody writes any more."""
    newest: dict[str, float] = {}
    for place, info in folder.files(recursive=True).items():
        name = place.parent.name
        if PLACE.fullmatch(name) and name not in versions and info.mtime_ns is not None:
            newest[name] = max(newest.get(name, 0.0), info.mtime_ns * 1e-9)
    for name, written in newest.items():
        if time.time() - written > OLD:
            remove_folder(folder / name)


def check_sizes(place: Remote, arrays: Mapping[str, Any]) -> None:
    """Raise if an array is not there, or not as long as the page says: nothing else is fetched."""
    sizes = {found.name: info.size for found, info in place.files().items()}
    for name, said in arrays.items():
        path = place / f"{name}.npy"
        if path.name not in sizes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        with damaged(path):
            described = Described.read(said)
        wanted = described.begin + described.nbytes
        if sizes[path.name] != wanted:
            raise StoreError(
                f"{path} is damaged: expected {wanted} bytes, found {sizes[path.name]}"
            )
