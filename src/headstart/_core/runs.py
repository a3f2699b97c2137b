"""What a run of a job is known by: when it began, what it took, and a digest of what decides it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from hashlib import blake2b
from time import perf_counter

if sys.platform != "win32":
    import resource

DIGEST = 12  # bytes of a digest


def digest_of(*parts: object) -> str:
    """A digest of texts, or of what has one, and of bytes."""
    found = blake2b(digest_size=DIGEST)
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        found.update(len(content).to_bytes(8, "little") + content)
    return found.hexdigest()


class Clock:
    """When a run began, and how long it has taken."""

    def __init__(self) -> None:
        self._started, self._begun = datetime.now(UTC), perf_counter()

    @property
    def started(self) -> str:
        """When it began, UTC."""
        return self._started.isoformat(timespec="seconds")

    @property
    def seconds(self) -> float:
        """Since then."""
        return round(perf_counter() - self._begun, 3)


def peak_memory() -> float:
    """The most memory that this process had so far, in megabytes; 0 where that is not known."""
    if sys.platform == "win32":
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / 2**20 if sys.platform == "darwin" else most / 2**10, 1)
