"""Runs of one job on a dataset that changes: which partitions are as they were.

A task may lie in several files, so what is kept is not a file but a partition: if the files it is
read from, the row groups in them, and the keys it begins and ends with are the same, and the
model, the code and what is asked for too, then its results are. All this is in its key. The cuts
of the run before are made again, so that one file that grows moves none of the others.

Of scattered rows a copy is made, which depends on all files: if one of them changes, all tasks are
adapted again.
"""

from __future__ import annotations

from typing import NamedTuple

from headstart._core.runs import DIGEST, Clock, digest_of, peak_memory
from headstart.jobs.notes import JobIndex, Run
from headstart.parquet import ParquetRows, Partition


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
        stamps = self.stamps
        if read.path != self.rows.path:
            stamps = dict.fromkeys(read.files, digest_of(stamps))

        def key(partition: Partition) -> str:
            places = [
                [(self._name(read, file), stamps[file], numbers) for file, numbers in places]
                for places in (partition.own, partition.after)
            ]
            whole = digest_of(base, places, partition.low, partition.high)
            return whole[:DIGEST]  # half of it, because it is in names of files

        return [key(partition) for partition in partitions]

    def _name(self, read: ParquetRows, file: str) -> str:
        return file if read.path == self.rows.path else "copy"


def report(
    clock: Clock, now: dict[str, str], before: JobIndex | None, *, kept: int, adapted: int
) -> Run:
    """What a run did, of files with these stamps, as against the one before."""
    then = {} if before is None else before.inputs
    return Run(
        number=1 if before is None else before.run.number + 1,
        started=clock.started,
        seconds=clock.seconds,
        peak_mb=peak_memory(),
        adapted=adapted,
        kept=kept,
        new=[file for file in now if file not in then],
        changed=[file for file in now if file in then and then[file] != now[file]],
        gone=[file for file in then if file not in now],
    )
