"""Object stores that fail: they are asked again a few times, and then it is an error."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable
from typing import TypeVar

WAITS = (0.1, 0.5, 2.0)  # seconds before a store that failed is asked again
FINAL = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)  # no use
QUERY = re.compile(r"\?[\w.%&+~-]*=[^\s'\"]*")  # of an address, which may hold a password

Result = TypeVar("Result")


class StorageError(OSError):
    """A store that failed again and again: what was asked of it, and what it said."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class Failures:
    """What a store failed at: it is asked again after a while, and in the end that is an error."""

    def __init__(self, place: object) -> None:
        self.place, self.count = place, 0

    def wait(self, error: OSError) -> None:
        """Return when it is time to try again; raise if that is of no use, or was of none."""
        if isinstance(error, FINAL):
            raise error
        if self.count == len(WAITS):
            raise StorageError(
                errno.EIO,
                f"the store failed {self.count + 1} times ({reason_of(error)}); what is finished "
                "stays there, and the same call goes on when the store answers again",
                str(self.place),
            ) from None
        time.sleep(WAITS[self.count])
        self.count += 1


def reason_of(error: Exception) -> str:
    """What a store or a file said, on a line, without what follows the question mark of a URL."""
    return QUERY.sub("", (str(error).splitlines() or [type(error).__name__])[0])


def again(call: Callable[[], Result], place: object) -> Result:
    """The result of a call to a store, tried a few times if the store fails."""
    failures = Failures(place)
    while True:
        try:
            return call()
        except OSError as error:
            failures.wait(error)
