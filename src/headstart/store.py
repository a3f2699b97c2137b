"""Models on disk, without pickle: a folder of plain arrays and a page of JSON that names them.

The page, ``model.json``, is put there in one step after all arrays it names, and the arrays
of an older model at that place go only then. It holds a checksum of itself and one of every
block of every array. Arrays are mapped, not read: a block is checked when it is first looked
at, so that one entity of a million costs a few blocks, and a flipped bit never goes unseen.
"""

from __future__ import annotations

import json
import math
import shutil
import zlib
from base64 import b64decode, b64encode
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from headstart._checks import cores
from headstart._files import write_aside
from headstart._jit import run_blocks
from headstart.ids import IdIndex
from headstart.plain import from_plain, to_plain

FORMAT, VERSION = "headstart model", 1
PAGE = "model.json"
BLOCK = 1 << 16  # bytes
FEW = 256  # ids that are looked up one by one before the whole index is read

Array = NDArray[Any]


class StoreError(ValueError):
    """A folder that is not a whole model of a version this library knows."""


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
    token = uuid4().hex[:12]
    place = folder / f"arrays-{token}"
    place.mkdir(parents=True)
    try:
        with ThreadPoolExecutor(cores()) as pool:
            written = pool.map(
                lambda name: _write_array(place / f"{name}.npy", arrays[name]), arrays
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


def _write_array(path: Path, array: Array) -> dict[str, object]:
    whole = np.ascontiguousarray(array)
    np.save(path, whole, allow_pickle=False)
    data = whole.reshape(-1).view(np.uint8)
    sums = [_sum(data, block) for block in range(-(-data.size // BLOCK))]
    header = path.stat().st_size - whole.nbytes
    return {
        "dtype": whole.dtype.str,
        "shape": whole.shape,
        "header": [header, zlib.crc32(_beginning(path, header))],
        "sums": b64encode(np.array(sums, "<u4").tobytes()).decode(),
    }


def _beginning(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _sum(data: NDArray[np.uint8], block: int) -> int:
    return zlib.crc32(data[block * BLOCK : (block + 1) * BLOCK].data)


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


class StoredArray:
    """An array on disk of which rows are read, and checked, on demand."""

    def __init__(
        self, path: Path, dtype: str, shape: list[int], header: tuple[int, int], sums: str
    ) -> None:
        self._path = path
        kind, (begin, checksum) = np.dtype(dtype), header
        wanted = begin + kind.itemsize * math.prod(shape)
        try:
            found = path.stat().st_size
            beginning = _beginning(path, begin)
        except FileNotFoundError:
            raise StoreError(f"{path} is missing: the model is damaged") from None
        if found != wanted:
            raise StoreError(f"{path} is damaged: expected {wanted} bytes, found {found}")
        if zlib.crc32(beginning) != checksum:
            raise StoreError(f"{path} is damaged: its header has another checksum")
        self._map: Array = np.empty(shape, kind)
        if self._map.size:
            self._map = np.memmap(path, kind, "r", begin, tuple(shape)).view(np.ndarray)
        self._bytes = self._map.reshape(-1).view(np.uint8)
        self._sums = np.frombuffer(b64decode(sums), "<u4")
        self._stride = self._map.nbytes // max(len(self._map), 1)
        self._checked = np.zeros(self._sums.size, np.bool_)

    def __len__(self) -> int:
        return len(self._map)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self._map.dtype

    def rows(self, positions: NDArray[np.int64]) -> Array:
        """These rows, in memory."""
        begin = positions * self._stride
        first, last = begin // BLOCK, (begin + self._stride - 1) // BLOCK
        most = int((last - first).max(initial=0))
        touched = np.unique(np.minimum(first[:, None] + np.arange(most + 1), last[:, None]))
        self._check(touched, self._bytes)
        return self._map[positions]

    def between(self, first: int, last: int) -> Array:
        """The rows from `first` to before `last`, in memory."""
        begin, end = first * self._stride, last * self._stride
        self._check(np.arange(begin // BLOCK, -(-end // BLOCK)), self._bytes)
        return self._map[first:last].copy()

    def whole(self) -> Array:
        """All rows, in memory: read at once, which is faster than through the map."""
        array: Array = np.load(self._path, allow_pickle=False)  # its header was checked
        data = array.reshape(-1).view(np.uint8)
        self._checked[:] = False
        run_blocks(
            lambda first, last: self._check(np.arange(first, last), data), self._sums.size, cores()
        )
        return array

    def _check(self, blocks: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        for block in blocks[~self._checked[blocks]].tolist():
            if _sum(data, block) != self._sums[block]:
                begin, end = block * BLOCK, min((block + 1) * BLOCK, data.size)
                raise StoreError(
                    f"{self._path} is damaged: bytes {begin} to {end} of its data have "
                    "another checksum"
                )
            self._checked[block] = True


def pack_ids(keys: list[Hashable]) -> dict[str, Array]:
    """Ids by position as arrays: sorted with their positions, or as text if not sortable so."""
    kinds = set(map(type, keys))
    ids: Array | None = None
    if kinds == {int}:
        whole = np.array(keys)
        ids = whole if whole.dtype == np.int64 else None  # larger numbers go as text
    elif kinds == {str}:
        texts = [str(key) for key in keys]
        longest = max(map(len, texts))
        if longest * len(texts) <= 8 * sum(map(len, texts)) and not any(
            text.endswith("\0") for text in texts
        ):  # no padding to one long id, no id that ends like padding
            ids = np.array(texts)
    if ids is None:
        text = json.dumps([to_plain("ids", key) for key in keys]).encode()
        return {"mixed_ids": np.frombuffer(text, np.uint8)}
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    return {"ids": ranked, "positions": order, "fence": ranked[:: _fence_step(ids)]}


def _fence_step(ids: Array) -> int:
    return max(1, BLOCK // ids.dtype.itemsize)


class StoredIds:
    """Positions of ids in a model on disk; the whole index is read only for many ids at once."""

    def __init__(self, arrays: Mapping[str, StoredArray]) -> None:
        self._arrays = arrays
        self._index: IdIndex | None = None
        self._fence = arrays["fence"].whole() if "fence" in arrays else None

    def find(self, keys: list[Hashable]) -> list[int]:
        """Positions; -1 for an unknown or missing id."""
        different = set(keys)
        if self._index is None and self._fence is not None and len(different) <= FEW:
            position = {key: self._find_one(key, self._fence) for key in different}
            return [position[key] for key in keys]
        return self.index().find(keys)

    def index(self) -> IdIndex:
        """All ids, in memory."""
        if self._index is None:
            if self._fence is None:
                text = self._arrays["mixed_ids"].whole().tobytes()
                keys = [from_plain(key) for key in json.loads(text)]
            else:
                ranked, order = self._arrays["ids"].whole(), self._arrays["positions"].whole()
                ids = np.empty_like(ranked)
                ids[order] = ranked
                keys = ids.tolist()
            self._index = IdIndex(keys)
        return self._index

    def _find_one(self, key: Hashable, fence: Array) -> int:
        if isinstance(key, float | np.floating) and float(key).is_integer():
            key = int(key)
        wanted = str if fence.dtype.kind == "U" else int | np.integer
        if not isinstance(key, wanted) or (wanted is not str and not -(2**63) <= key < 2**63):  # type: ignore[operator]
            return -1
        ids, step = self._arrays["ids"], _fence_step(fence)
        block = int(np.searchsorted(fence, key, side="right")) - 1
        if block < 0:
            return -1
        near = ids.between(block * step, min((block + 1) * step, len(ids)))
        rank = int(np.searchsorted(near, key))
        if rank == near.size or near[rank] != key:
            return -1
        return int(self._arrays["positions"].rows(np.array([block * step + rank]))[0])
