"""Files that are complete or not there, never half written, and writers that take turns."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from headstart._core.leftovers import held, is_left_over, temporary_folder
from headstart._core.locks import take_lock
from headstart._core.places import Place, Remote

# An open that neither follows a link nor waits for the other end of a pipe.
CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def write_aside(path: Place, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it there in one step.

    It is on the disk before it has its name, so that no loss of power leaves half of it there.
    For an object store the file is a temporary one.
    """
    if isinstance(path, Remote):
        with temporary_folder() as folder:
            write(folder / path.name)
            path.put_file(folder / path.name)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part{path.suffix}")
    try:
        with held(aside):
            write(aside)
            sync(aside)
            aside.replace(path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def clear_asides(folder: Place, name: str = "*") -> None:
    """Remove what killed processes left beside `name`, or beside all files, of a folder.

    An object store has nothing of that kind.
    """
    if isinstance(folder, Remote):
        return
    pattern = name if name == "*" else escape(name)
    for aside in folder.glob(f".{pattern}.{'[0-9a-f]' * 8}.part*"):
        if is_left_over(aside):
            aside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Return when a file's content, or a folder's list of names, is on the disk."""
    if sys.platform == "win32":
        return  # it writes by itself before it renames, and opens no folders
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # a folder that may be entered and not listed
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait until no other process or thread is in such a block of the same file.

    The system holds the lock, and gives it free when a process dies. The file stays: were it
    deleted, one could wait for the old one while another has the new one.
    """
    number = os.open(path, os.O_RDWR | os.O_CREAT | CAREFUL, 0o666)
    try:
        take_lock(number, wait=True)
        yield
    finally:
        os.close(number)
