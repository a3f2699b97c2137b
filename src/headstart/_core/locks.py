"""Locks of files, which the system ends with the process that holds them, whatever ends that."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def take_lock(descriptor: int, *, wait: bool) -> bool:
    """Take the lock of an open file, if nobody has it or after waiting; whether it was taken.

    Closing the file gives it back. Without waiting, a disk that knows no locks is like one
    where another has them all; with it, that is an error.
    """
    while True:
        try:
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if wait and sys.platform == "win32":  # it gives up after ten seconds
                continue
            if wait:
                raise
            return False
        return True
