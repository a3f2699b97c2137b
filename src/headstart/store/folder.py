"""Models on disk, without pickle: a folder of plain arrays and a page of JSON that names them.

The page, ``model.json``, is put there in one step after all arrays it names, and the arrays
of an older model at that place go only then. It holds a checksum of itself and one of every
block of every array. Arrays are mapped, not read: a block is checked when it is first looked
at, so that one entity of a million costs a few blocks, and a flipped bit never goes unseen.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

from headstart._core.checks import cores
from headstart._core.files import write_aside
from headstart.store.arrays import Array, StoredArray, StoreError, write_array

FORMAT, VERSION = "headstart model", 2
PAGE = "model.json"


def write_model(folder: Path, about: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
    """Put a model into `folder`, which is new, empty or holds an older model."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; a model needs a folder")
    if folder.exists() and not (folder / PAGE).exists():
        strangers = [p.name for p in folder.iterdir() if not p.name.startswith("arrays-")]
        if strangers:
            raise FileExistsError(
                f"{folder} holds {strangers[0]!r} and no model; give a new or empty folder"
            )
    place = folder / f"arrays-{uuid4().hex[:12]}"
    place.mkdir(parents=True)
    try:
        with ThreadPoolExecutor(cores()) as pool:
            written = pool.map(
                lambda name: write_array(place / f"{name}.npy", arrays[name]), arrays
            )
            described = dict(zip(arrays, written, strict=True))
        page = {"format": FORMAT, "version": VERSION, "place": place.name, "about": dict(about)}
        page["arrays"] = described
        text = json.dumps({**page, "checksum": _checksum(page)}, indent=1)
        write_aside(folder / PAGE, lambda aside: aside.write_text(text, encoding="utf-8"))
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    for old in folder.glob("arrays-*"):
        if old != place:
            shutil.rmtree(old, ignore_errors=True)


def _checksum(page: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(page, sort_keys=True).encode())


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """What was written about the model in `folder`, and its arrays."""
    path = folder / PAGE
    try:
        page = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{folder} is not a model: it has no {PAGE}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StoreError(f"{path} is damaged: {error}") from None
    if not isinstance(page, dict) or page.get("format") != FORMAT:
        raise StoreError(f"{path} is not of a headstart model, or damaged")
    if isinstance(page.get("version"), int) and page["version"] < VERSION:
        raise StoreError(
            f"{path} is of version {page['version']}, which an older headstart wrote; this one "
            f"learns in another way and knows version {VERSION}: fit the model again"
        )
    if isinstance(page.get("version"), int) and page["version"] > VERSION:
        raise StoreError(
            f"{path} is of version {page['version']}, this library knows up to {VERSION}: "
            "update headstart, or the file is damaged"
        )
    checksum = page.pop("checksum", None)
    if checksum != _checksum(page):
        raise StoreError(f"{path} is damaged: its checksum is not that of its content")
    place = folder / page["place"]
    arrays = {name: StoredArray(place / f"{name}.npy", **a) for name, a in page["arrays"].items()}
    return page["about"], arrays
