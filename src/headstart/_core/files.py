"""Files that are complete or not there, never half written; and what killed processes left.

A file on its way, or a temporary folder, is locked by the process that fills it. A lock ends with
its process, whatever ends that: what can be locked by another is left over, and may go.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on every system: there, what is left over stays
    fcntl = None  # type: ignore[assignment]

TEMPORARY = "headstart-sorting-"  # how temporary folders begin
LOCK = "lock"  # the file in a temporary folder that its process has locked


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it there in one step."""
    with aside_of(path) as aside:
        write(aside)
        aside.replace(path)


@contextmanager
def aside_of(path: Path) -> Iterator[Path]:
    """A file beside `path` to be filled and put there; gone in the end if it still is aside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part{path.suffix}")
    try:
        with _locked(aside):
            yield aside
    finally:
        aside.unlink(missing_ok=True)


def clear_asides(folder: Path, name: str = "*") -> None:
    """Remove what killed processes left beside `name`, or beside all files, of a folder."""
    pattern = name if name == "*" else escape(name)
    for aside in folder.glob(f".{pattern}.{'[0-9a-f]' * 8}.part*"):
        if _left_over(aside):
            aside.unlink(missing_ok=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process, removed in the end; those of killed processes go first."""
    for old in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        if _left_over(old / LOCK):
            shutil.rmtree(old, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=TEMPORARY))
    try:
        with _locked(place / LOCK):
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Create a file and hold its lock."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _left_over(path: Path) -> bool:
    """Whether a file is there and no process holds its lock."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file, if nobody has it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another has it, or the disk knows no locks
        return False
    return True
