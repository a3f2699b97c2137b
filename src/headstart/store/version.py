"""One version of a model: a folder of arrays, and the page of JSON that names them."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from headstart._core.checks import cores
from headstart._core.places import Place, Remote
from headstart.store.arrays import Array, StoreError, damaged, open_file, write_array

FORMAT, VERSION = "headstart model", 2
PAGE = "model.json"
LARGEST_PAGE = 1 << 25  # bytes: that of arrays of 400 GB
PLACE = re.compile(r"arrays-[0-9a-f]{12}")
NAME = re.compile(r"[A-Za-z_]{1,60}")


class Page(NamedTuple):
    """What a page says, and its text."""

    place: str
    older: list[str]
    about: dict[str, Any]
    arrays: dict[str, Any]
    text: bytes


def write_version(
    place: Path, about: Mapping[str, object], arrays: Mapping[str, Array], older: list[str]
) -> bytes:
    """Write the arrays and the page of a version into a new folder; returns the page."""
    place.mkdir(parents=True)
    with ThreadPoolExecutor(cores()) as pool:
        written = pool.map(lambda name: write_array(place / f"{name}.npy", arrays[name]), arrays)
        described = dict(zip(arrays, written, strict=True))
    page = {"format": FORMAT, "version": VERSION, "place": place.name, "older": older}
    text = page_text(page | {"about": dict(about), "arrays": described})
    (place / PAGE).write_bytes(text)
    return text


def page_text(page: Mapping[str, object]) -> bytes:
    """A page with its checksum."""
    text = json.dumps({**page, "checksum": page_checksum(page)}, indent=1).encode()
    if len(text) > LARGEST_PAGE:
        raise ValueError(f"{PAGE}: expected at most {LARGEST_PAGE} bytes, found {len(text)}")
    return text


def page_checksum(page: Mapping[str, object]) -> int:
    """The checksum of a page that has none yet."""
    return zlib.crc32(json.dumps(page, sort_keys=True).encode())


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {text}")


def _text_at(path: Place) -> bytes:
    """The text of a page, or one byte more than it may have."""
    if isinstance(path, Remote):
        return path.read_bytes(LARGEST_PAGE + 1)
    with open_file(path) as file:
        return file.read(LARGEST_PAGE + 1)


def read_page(path: Place) -> Page:
    """A page that is right in itself."""
    text = _text_at(path)
    if len(text) > LARGEST_PAGE:
        raise StoreError(f"{path} is damaged: it has more than {LARGEST_PAGE} bytes")
    with damaged(path):
        page = json.loads(text.decode(), parse_constant=_refuse_constant)
        if not isinstance(page, dict) or page.get("format") != FORMAT:
            raise StoreError(f"{path} is not of a headstart model, or damaged")
        _check_version(path, page.get("version"))
        checksum = page.pop("checksum", None)
        if checksum != page_checksum(page):
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


def _check_version(path: Place, found: object) -> None:
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
