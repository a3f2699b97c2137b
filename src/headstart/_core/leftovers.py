"""What killed processes left: files on their way to their names, and temporary folders.

Such a file, or a file in such a folder, is locked by the process that fills it. The system ends
a lock with its process, whatever ends that: what can be locked by another is left over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from headstart._core.locks import take_lock

TEMPORARY = "headstart-temporary-"  # how temporary folders begin
LOCK = "lock"  # the file in a temporary folder that its process has locked


@contextmanager
def held(aside: Path) -> Iterator[None]:
    """Create a file and hold its lock, so that nobody takes it for left over."""
    descriptor = os.open(aside, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        take_lock(descriptor, wait=False)
        yield
    finally:
        os.close(descriptor)


def clear_asides(folder: Path, name: str = "*") -> None:
    """Remove what killed processes left beside `name`, or beside all files, of a folder."""
    pattern = name if name == "*" else escape(name)
    for aside in folder.glob(f".{pattern}.{'[0-9a-f]' * 8}.part*"):
        if _is_left_over(aside):
            aside.unlink(missing_ok=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process, removed in the end; those of killed processes go first."""
    for old in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        if _is_left_over(old / LOCK):
            shutil.rmtree(old, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=TEMPORARY))
    try:
        with held(place / LOCK):
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_left_over(path: Path) -> bool:
    """Whether a file is there and no process holds its lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return take_lock(descriptor, wait=False)
    finally:
        os.close(descriptor)
