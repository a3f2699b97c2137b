"""Places to read from and to write to: paths of this machine, and addresses of object stores.

A text with ``://`` in it is an address: ``s3://bucket/folder``, ``gs://``, ``abfs://``,
``memory://`` and whatever else Arrow or fsspec know; ``file://`` is a path. Credentials and
endpoints come from the environment, as those libraries look for them.

An object store has no renames, no locks and no folders. It has objects, which are put there in
one step: who reads meets the old one or the new one. So nothing is written aside there, and what
belongs together is made visible by the object that is put last.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import url2pathname

import pyarrow as pa
from pyarrow import fs

from headstart._core.leftovers import temporary_folder
from headstart._core.retries import StorageError, again, reason_of

FETCHED = 1 << 24  # bytes that are brought here at once
LOST_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^/]")  # what a `Path` makes of an address

Result = TypeVar("Result")


@cache
def _connected(root: str) -> tuple[Any, str]:
    """The file system at the root of an address, and how paths in it begin."""
    try:
        found, base = fs.FileSystem.from_uri(root)
        return found, f"{base.rstrip('/')}/" if base else ""
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as unknown:
        try:
            import fsspec  # type: ignore[import-untyped]

            opened, base = fsspec.core.url_to_fs(root)
        except (ImportError, ValueError) as error:
            reasons = f"Arrow: {unknown}; fsspec: {error}".replace(root, "this address")
            raise ValueError(
                f"{root.split('://')[0]}://: cannot be opened ({reasons}); pip install "
                "'headstart[cloud]', and the package that is named here if one is"
            ) from None
        handler: Any = fs.FSSpecHandler  # whose stubs miss its methods
    return fs.PyFileSystem(handler(opened)), f"{base.rstrip('/')}/"


@dataclass(frozen=True)
class Remote:
    """A place on an object store, with those methods of `Path` that it can have.

    Attributes
    ----------
    root : the address up to the bucket, and what follows a question mark; it may hold a password
    path : names after it, without a slash at the ends
    """

    root: str = field(repr=False)
    path: str

    def __str__(self) -> str:
        scheme, rest = self.root.split("?")[0].split("://", 1)
        user, at, host = rest.rpartition("@")
        shown = host if ":" in user else f"{user}{at}{host}"
        return f"{scheme}://{shown}/{self.path}".rstrip("/")

    def __truediv__(self, name: str) -> Remote:
        return Remote(self.root, f"{self.path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last name."""
        return self.path.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """What follows the last dot of the name, with it."""
        return Path(self.name).suffix

    @property
    def parent(self) -> Remote:
        """The place that this is in."""
        return Remote(self.root, self.path.rpartition("/")[0])

    def with_name(self, name: str) -> Remote:
        """The place beside this of another name."""
        return self.parent / name

    @property
    def filesystem(self) -> Any:
        """The file system, for Arrow."""
        return self._connected[0]

    @property
    def inside(self) -> str:
        """The path in the file system."""
        return f"{self._connected[1]}{self.path}".rstrip("/")

    @property
    def _connected(self) -> tuple[Any, str]:
        try:
            return _connected(self.root)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, ValueError):
                raise
            raise StorageError(
                errno.EIO, f"the store cannot be opened ({reason_of(error)})", str(self)
            ) from None

    def _info(self) -> Any:
        return again(lambda: self.filesystem.get_file_info(self.inside), self)

    def exists(self) -> bool:
        """Whether there is an object, or one whose name goes on after a slash."""
        return bool(self._info().type != fs.FileType.NotFound)

    def is_dir(self) -> bool:
        """Whether there are objects whose names go on after a slash."""
        return bool(self._info().type == fs.FileType.Directory)

    def is_file(self) -> bool:
        """Whether there is an object."""
        return bool(self._info().type == fs.FileType.File)

    def files(self, *, recursive: bool = False) -> dict[Remote, Any]:
        """What is in this folder by place: folders too, if they are not gone through."""
        chosen = fs.FileSelector(self.inside, allow_not_found=True, recursive=recursive)
        start = len(self.inside.strip("/"))
        return {
            self / info.path.strip("/")[start:].strip("/"): info
            for info in again(lambda: self.filesystem.get_file_info(chosen), self)
            if not (recursive and info.type == fs.FileType.Directory)
        }

    def iterdir(self) -> Iterator[Remote]:
        """The places in this folder."""
        return iter(self.files())

    def read_bytes(self, most: int | None = None) -> bytes:
        """The content, or so many bytes of it."""
        with _named(self):
            return again(lambda: self._read(most), self)

    def _read(self, most: int | None) -> bytes:
        with self.filesystem.open_input_file(self.inside) as file:
            return bytes(file.read() if most is None else file.read(most))

    def read_text(self) -> str:
        """The content as text."""
        return self.read_bytes().decode()

    def put(self, content: Any) -> None:
        """Make this the content of the object, in one step.

        It is written by one call: what is closed after half of it would be half an object.
        """

        def put() -> None:
            stream = self.filesystem.open_output_stream(self.inside)
            stream.write(content)
            stream.close()

        again(put, self)

    def put_file(self, file: Path) -> None:
        """Make the content of a file that of the object."""
        if file.stat().st_size == 0:
            self.put(b"")
            return
        with pa.memory_map(str(file)) as content:
            self.put(content.read_buffer())

    def fetch(self, file: Path) -> None:
        """Write the content to a new file of this machine."""

        def fetch() -> None:
            with self.filesystem.open_input_file(self.inside) as source, file.open("wb") as copy:
                while part := source.read(FETCHED):
                    copy.write(part)

        with _named(self):
            again(fetch, self)

    def unlink(self, missing_ok: bool = False) -> None:
        """Take the object away."""
        try:
            with _named(self):
                again(lambda: self.filesystem.delete_file(self.inside), self)
        except FileNotFoundError:
            if not missing_ok:
                raise


Place = Path | Remote
AnyPath = str | Path | Remote  # what names a place


def as_place(path: AnyPath) -> Place:
    """The place that a path or an address names."""
    if isinstance(path, Remote):
        return path
    text = os.fspath(path)
    if "://" not in text:
        if LOST_SLASH.match(text) and not Path(text).exists():
            raise ValueError(f"{text}: expected an address with two slashes, as text and no Path")
        return Path(text)
    if text.startswith("file://"):
        host, _, path = text.removeprefix("file://").partition("/")
        if host not in ("", "localhost"):
            raise ValueError(f"{text}: expected file:/// and a path from the root, found a host")
        return Path(url2pathname(f"/{path}"))
    scheme, rest = text.split("://", 1)
    rest, mark, query = rest.partition("?")
    host, _, path = rest.partition("/")
    return Remote(f"{scheme}://{host}{mark}{query}", path.strip("/"))


def local(name: str, path: AnyPath) -> Path:
    """The folder of this machine that a path names, where no other will do."""
    found = as_place(path)
    if isinstance(found, Remote):
        raise ValueError(f"{name}: expected a folder of this machine, found the address {found}")
    return found


def full(place: AnyPath) -> Place:
    """The place by its whole path, which is the same for processes in other folders."""
    found = as_place(place)
    return Path(os.path.abspath(found)) if isinstance(found, Path) else found  # noqa: PTH100


@contextmanager
def _named(place: Place) -> Iterator[None]:
    """Who asks for what is not there is told which place that is."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place)) from None


def opened(place: Place, read: Callable[[Any], Result]) -> Result:
    """What a function makes of a file that is open for Arrow; once more where a store fails."""

    def attempt() -> Result:
        if isinstance(place, Remote):
            with place.filesystem.open_input_file(place.inside) as file:
                return read(file)
        with pa.memory_map(str(place)) as file:
            return read(file)

    with _named(place):
        return again(attempt, place) if isinstance(place, Remote) else attempt()


def children(folder: Place) -> list[Place]:
    """What is in a folder; nothing if it is not there."""
    if isinstance(folder, Remote):
        return list(folder.iterdir())
    return list(folder.iterdir()) if folder.exists() else []


def remove_folder(place: Place) -> None:
    """Take away a folder and all in it, as far as that can be done."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    if not place.exists():  # of what is not there stores say different things
        return
    try:
        place.filesystem.delete_dir(place.inside)
    except OSError:  # not every store can do that at once
        for file in place.files(recursive=True):
            file.unlink(missing_ok=True)


@contextmanager
def near(folder: Place, names: list[str]) -> Iterator[Path]:
    """A folder of this machine with these files of a folder: itself, or a temporary copy."""
    if isinstance(folder, Path):
        yield folder
        return
    with temporary_folder() as copy:
        for name in names:
            (folder / name).fetch(copy / name)
        yield copy


def found_files(filesystem: Any, paths: list[str], place: object) -> dict[str, str]:
    """Texts by file of a place that change when the file does: length, and time of writing.

    Of most stores fsspec tells Arrow no times, and has a text of its own.
    """
    handler = getattr(filesystem, "handler", None)
    if isinstance(handler, fs.FSSpecHandler):
        opened: Any = handler.fs
        return {path: again(partial(opened.ukey, path), path) for path in paths}
    infos = again(lambda: filesystem.get_file_info(paths), place)
    return {info.path: f"{info.size} {info.mtime_ns}" for info in infos}
