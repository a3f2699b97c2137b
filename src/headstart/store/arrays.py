"""One array in a file: written with checksums, read and checked a block at a time."""

from __future__ import annotations

import math
import zlib
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import cores
from headstart._core.jit import run_blocks

BLOCK = 1 << 16  # bytes that have a checksum together

Array = NDArray[Any]


class StoreError(ValueError):
    """A folder that is not a whole model of a version this library knows."""


def write_array(path: Path, array: Array) -> dict[str, object]:
    """Put an array into a file; returns what `StoredArray` takes beside the path."""
    rows = np.ascontiguousarray(array)
    np.save(path, rows, allow_pickle=False)
    data = rows.reshape(-1).view(np.uint8)
    sums = [_block_sum(data, block) for block in range(-(-data.size // BLOCK))]
    header = path.stat().st_size - rows.nbytes
    return {
        "dtype": rows.dtype.str,
        "shape": rows.shape,
        "header": [header, zlib.crc32(_beginning(path, header))],
        "sums": b64encode(np.array(sums, "<u4").tobytes()).decode(),
    }


def _beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file."""
    with path.open("rb") as file:
        return file.read(size)


def _block_sum(data: NDArray[np.uint8], block: int) -> int:
    """The checksum of one block of an array's bytes."""
    return zlib.crc32(data[block * BLOCK : (block + 1) * BLOCK].data)


class StoredArray:
    """An array on disk of which rows are read, and checked, on demand."""

    def __init__(
        self, path: Path, dtype: str, shape: list[int], header: tuple[int, int], sums: str
    ) -> None:
        self._path = path
        entry, (begin, checksum) = np.dtype(dtype), header
        wanted = begin + entry.itemsize * math.prod(shape)
        try:
            found = path.stat().st_size
            beginning = _beginning(path, begin)
        except FileNotFoundError:
            raise StoreError(f"{path} is missing: the model is damaged") from None
        if found != wanted:
            raise StoreError(f"{path} is damaged: expected {wanted} bytes, found {found}")
        if zlib.crc32(beginning) != checksum:
            raise StoreError(f"{path} is damaged: its header has another checksum")
        self._map: Array = np.empty(shape, entry)
        if self._map.size:  # an empty file cannot be mapped
            self._map = np.memmap(path, entry, "r", begin, tuple(shape)).view(np.ndarray)
        self._bytes = self._map.reshape(-1).view(np.uint8)
        self._sums = np.frombuffer(b64decode(sums), "<u4")
        self._row_bytes = self._map.nbytes // max(len(self._map), 1)
        self._checked = np.zeros(self._sums.size, np.bool_)

    def __len__(self) -> int:
        return len(self._map)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self._map.dtype

    def rows(self, positions: NDArray[np.int64]) -> Array:
        """These rows, in memory."""
        begin = positions * self._row_bytes
        first, last = begin // BLOCK, (begin + self._row_bytes - 1) // BLOCK
        more = int((last - first).max(initial=0))  # blocks of a row after its first
        touched = np.unique(np.minimum(first[:, None] + np.arange(more + 1), last[:, None]))
        self._check(touched, self._bytes)
        return self._map[positions]

    def between(self, first: int, last: int) -> Array:
        """The rows from `first` to before `last`, in memory."""
        begin, end = first * self._row_bytes, last * self._row_bytes
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
        """Compare the checksums of those blocks that were not looked at before."""
        for block in blocks[~self._checked[blocks]].tolist():
            if _block_sum(data, block) != self._sums[block]:
                begin, end = block * BLOCK, min((block + 1) * BLOCK, data.size)
                raise StoreError(
                    f"{self._path} is damaged: bytes {begin} to {end} of its data have "
                    "another checksum"
                )
            self._checked[block] = True
