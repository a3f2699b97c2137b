"""What killed processes left: files on their way to their names, and temporary folders.

Such a file, or a file beside such a folder, is locked by the process that fills it. The system ends
a lock with its process, whatever ends that: what can be locked by another is left over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from headstart._core.locks import take_lock

TEMPORARY = "headstart-temporary-"  # how temporary folders begin
LOCK = ".lock"  # how the file beside it ends that its process has locked
TRIES = 5  # names for one


@contextmanager
def held(aside: Path) -> Iterator[None]:
    """Create a file and hold its lock, so that nobody takes it for left over."""
    descriptor = os.open(aside, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        take_lock(descriptor, wait=False)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process, removed in the end; those of killed processes go first.

    Its lock lies beside it, is there before it and goes after it: killed at any moment, the
    process leaves nothing without a lock.
    """
    here = Path(tempfile.gettempdir())
    for old in here.glob(f"{TEMPORARY}*{LOCK}"):
        _clear(old)
    lock, descriptor = _new_lock(here)
    place = lock.with_suffix("")
    try:
        place.mkdir(0o700)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(descriptor)
        lock.unlink(missing_ok=True)


def _new_lock(here: Path) -> tuple[Path, int]:
    """A locked file under a new name; not locked where the disk knows no locks."""
    for left in reversed(range(TRIES)):
        lock = here / f"{TEMPORARY}{token_hex(8)}{LOCK}"
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if left == 0 or (take_lock(descriptor, wait=False) and lock.exists()):
            break
        os.close(descriptor)  # it was taken for left over before it was locked
        lock.unlink(missing_ok=True)
    return lock, descriptor


def _clear(lock: Path) -> None:
    """Remove a temporary folder, and its lock, if no process holds that."""
    try:
        descriptor = os.open(lock, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return
    try:
        if not take_lock(descriptor, wait=False):
            return
        shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    finally:
        os.close(descriptor)
    lock.unlink(missing_ok=True)


def is_left_over(path: Path) -> bool:
    """Whether a file is there and no process holds its lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return take_lock(descriptor, wait=False)
    finally:
        os.close(descriptor)
