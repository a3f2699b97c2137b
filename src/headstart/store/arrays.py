"""One array in a file: written with checksums, read and checked a block at a time."""

from __future__ import annotations

import errno
import math
import mmap
import os
import re
import stat
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import cores
from headstart._core.files import CAREFUL
from headstart._core.jit import run_blocks
from headstart._core.places import Place

BLOCK = 1 << 16  # bytes that have a checksum together; a file this small is read when it is opened
ALIGNED = 64  # bytes: the header of a .npy file has a multiple of them
LONGEST_HEADER = 1 << 12
KINDS = re.compile(r"[<>](f[48]|i[48]|U[1-9][0-9]{0,6})|\|u1")  # numbers and text: no objects

Array = NDArray[Any]


class StoreError(ValueError):
    """A folder that is not a whole model of a version this library knows."""


@contextmanager
def damaged(path: Place) -> Iterator[None]:
    """What goes wrong with what was read from `path` is said of it."""
    try:
        yield
    except StoreError:
        raise
    except KeyError as error:
        raise StoreError(f"{path} is damaged: it has no {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged: {error}") from error
    except RecursionError as error:
        raise StoreError(f"{path} is damaged: it is nested too deeply") from error


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A file to read; what is a link, pipe, device or folder is refused, and nothing waited for."""
    try:
        number = os.open(path, os.O_RDONLY | CAREFUL)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise
        raise StoreError(f"{path} is a link or a pipe; a model has plain files only") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise StoreError(f"{path} is not a plain file; a model has plain files only")
    with os.fdopen(number, "rb") as file:
        yield file


def write_array(path: Path, array: Array) -> dict[str, object]:
    """Put an array into a new file; returns what `StoredArray` takes beside the path."""
    rows = np.ascontiguousarray(array)
    with path.open("xb") as file:
        try:
            np.save(file, rows, allow_pickle=False)
        except OSError as error:
            if error.errno is not None:
                raise
            # NumPy says how many bytes found room, and neither why nor where.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
        header = file.tell() - rows.nbytes
    with path.open("rb") as file:
        beginning = file.read(header)
    data = rows.reshape(-1).view(np.uint8)
    sums = [_block_sum(data, block) for block in range(-(-data.size // BLOCK))]
    return {
        "dtype": rows.dtype.str,
        "shape": rows.shape,
        "header": [header, zlib.crc32(beginning)],
        "sums": b64encode(np.array(sums, "<u4").tobytes()).decode(),
    }


def _block_sum(data: NDArray[np.uint8], block: int) -> int:
    """The checksum of one block of an array's bytes."""
    return zlib.crc32(data[block * BLOCK : (block + 1) * BLOCK].data)


class Described(NamedTuple):
    """What the page says of an array: type, shape, the header's length and checksum, and sums."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    checksum: int
    sums: NDArray[np.uint32]

    @classmethod
    def read(cls, said: Any) -> Described:
        """What JSON of any shape says, if it is right in itself."""
        kind, shape, (begin, checksum), sums = (
            said[name] for name in ("dtype", "shape", "header", "sums")
        )
        if not KINDS.fullmatch(kind):
            raise ValueError(f"dtype: expected numbers or text, found {kind!r:.60}")
        counts = [*shape, begin]
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in counts) or len(shape) > 3:
            raise ValueError(f"shape: expected counts, found {counts!r:.60}")
        if begin % ALIGNED or begin > LONGEST_HEADER:
            raise ValueError(f"header: expected a length of one, found {begin}")
        found = cls(
            np.dtype(kind),
            tuple(shape),
            begin,
            checksum,
            np.frombuffer(b64decode(sums, validate=True), "<u4"),
        )
        if found.sums.size != -(-found.nbytes // BLOCK):
            raise ValueError("sums: expected one for each block")
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.kind.itemsize * math.prod(self.shape)


class StoredArray:
    """An array on disk of which rows are read, and checked, on demand.

    It stays open: that its file is deleted or replaced does not change it. Small ones are read at
    once and need nothing open; before Python 3.13 each of the others holds a descriptor.
    """

    def __init__(self, file: Path, said: object, path: Place | None = None) -> None:
        self.path = path or file  # of which `file` may be a copy
        with damaged(self.path):
            kind, shape, begin, checksum, self._sums = described = Described.read(said)
        size = described.nbytes
        self._checked = np.zeros(self._sums.size, np.bool_)
        with open_file(file) as opened:
            found = os.fstat(opened.fileno()).st_size
            if found != begin + size:
                raise StoreError(
                    f"{self.path} is damaged: expected {begin + size} bytes, found {found}"
                )
            if zlib.crc32(opened.read(begin)) != checksum:
                raise StoreError(f"{self.path} is damaged: its header has another checksum")
            content = opened.read(size) if size <= BLOCK else _mapped(opened)
        self._bytes = np.frombuffer(content, np.uint8)[-size:] if size else np.empty(0, np.uint8)
        self._map: Array = self._bytes.view(kind).reshape(shape)
        self._row_bytes = size // max(len(self), 1)
        if size <= BLOCK:
            self._check(np.arange(self._sums.size), self._bytes)

    def __len__(self) -> int:
        return len(self._map) if self._map.ndim else 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self._map.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths."""
        return self._map.shape

    def rows(self, positions: NDArray[np.int64]) -> Array:
        """These rows, in memory."""
        if positions.size and not (positions.min() >= 0 and positions.max() < len(self)):
            raise StoreError(f"{self.path}: a row is asked for that it does not have; damaged")
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
        """All rows, in memory: copied and checked a block after another."""
        array = np.empty_like(self._map)
        data = array.reshape(-1).view(np.uint8)
        self._checked[:] = False

        def copy(first: int, last: int) -> None:
            for block in range(first, last):
                there = slice(block * BLOCK, (block + 1) * BLOCK)
                data[there] = self._bytes[there]
                self._check(np.array([block]), data)

        run_blocks(copy, self._sums.size, cores())
        return array

    def _check(self, blocks: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        """Compare the checksums of those blocks that were not looked at before."""
        for block in blocks[~self._checked[blocks]].tolist():
            if _block_sum(data, block) != self._sums[block]:
                begin, end = block * BLOCK, min((block + 1) * BLOCK, data.size)
                raise StoreError(
                    f"{self.path} is damaged: bytes {begin} to {end} of its data have "
                    "another checksum"
                )
            self._checked[block] = True


def _mapped(file: BinaryIO) -> mmap.mmap:
    """A file in memory as far as it is looked at, which stays there when the file is closed."""
    if sys.version_info >= (3, 13):
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, trackfd=False)
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
