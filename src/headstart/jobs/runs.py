"""Runs of one job on a dataset that changes: which partitions are as they were.

A task may lie in several files, so what is kept is not a file but a partition: if the files it is
read from, the row groups in them, and the keys it begins and ends with are the same, and the
model, the code and what is asked for too, then its results are. All this is in its key. The cuts
of the run before are made again, so that one file that grows moves none of the others.

Of scattered rows a copy is made, which depends on all files: if one of them changes, all tasks are
adapted again.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from hashlib import blake2b
from time import perf_counter
from typing import NamedTuple

from headstart.jobs.notes import JobIndex, Run
from headstart.parquet import ParquetRows, Partition

if sys.platform != "win32":
    import resource

DIGEST = 12  # bytes of a digest; half of them in the names of files


def digest_of(*parts: object) -> str:
    """A digest of texts, or of what has one, and of bytes."""
    found = blake2b(digest_size=DIGEST)
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        found.update(len(content).to_bytes(8, "little") + content)
    return found.hexdigest()


class Inputs(NamedTuple):
    """The files of a dataset as a job finds them.

    Attributes
    ----------
    rows : the dataset
    stamps : a text for each file, which changes when the file does
    """

    rows: ParquetRows
    stamps: dict[str, str]

    @classmethod
    def of(cls, rows: ParquetRows) -> Inputs:
        """The files as they are now."""
        return cls(rows, rows.stamps())

    def keys(self, base: str, read: ParquetRows, partitions: list[Partition]) -> list[str]:
        """The key of each partition of `read`, which is the dataset or a copy of it."""
        if read.path == self.rows.path:
            stamps = self.stamps
        else:
            whole = digest_of(self.stamps)
            stamps = dict.fromkeys(read.files, whole)

        def key(partition: Partition) -> str:
            places = [
                [(self._name(read, file), stamps[file], numbers) for file, numbers in places]
                for places in (partition.own, partition.after)
            ]
            return digest_of(base, places, partition.low, partition.high)[:DIGEST]

        return [key(partition) for partition in partitions]

    def _name(self, read: ParquetRows, file: str) -> str:
        return file if read.path == self.rows.path else "copy"


class Clock:
    """When a run began, and what it took."""

    def __init__(self) -> None:
        self._started, self._begun = datetime.now(UTC), perf_counter()

    def report(
        self, now: dict[str, str], before: JobIndex | None, *, kept: int, adapted: int
    ) -> Run:
        """What the run did, of files with these stamps, as against the one before."""
        then = {} if before is None else before.inputs
        return Run(
            number=1 if before is None else before.run.number + 1,
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(perf_counter() - self._begun, 3),
            peak_mb=round(peak_memory(), 1),
            adapted=adapted,
            kept=kept,
            new=[file for file in now if file not in then],
            changed=[file for file in now if file in then and then[file] != now[file]],
            gone=[file for file in then if file not in now],
        )


def peak_memory() -> float:
    """The most memory that this process had so far, in megabytes; 0 where that is not known."""
    if sys.platform == "win32":
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10
