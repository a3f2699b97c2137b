"""Batches of rows of one Parquet file, in memory that the size of a batch bounds.

Arrow's dataset scanner is not used for them: it decodes ahead of whoever uses the rows, up to
a gigabyte. Here a row group is decoded as a whole, which is quickest, if it is a few batches
long, and page by page if it is longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import parquet

Item = TypeVar("Item")
BUFFER = 1 << 16  # bytes of a column that are read at once: they stay in the nearest caches


class ParquetError(ValueError):
    """A dataset that cannot be used: which file, what is wrong, what to do."""


def read_file(
    path: str,
    numbers: Sequence[int],
    columns: list[str],
    batch_rows: int,
    *,
    whole: int,
    threads: bool,
) -> Iterator[Any]:
    """Row groups as tables: whole ones of half a batch to `whole` batches, others by batches."""
    try:
        with parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file:

            def at_once(number: int) -> bool:
                rows = file.metadata.row_group(number).num_rows
                return bool(batch_rows <= 2 * rows and rows <= whole * batch_rows)

            for fits, some in groupby(numbers, at_once):
                if not fits:
                    for batch in file.iter_batches(batch_rows, list(some), columns, threads):
                        yield pa.Table.from_batches([batch])
                        del batch
                    continue
                for number in some:
                    yield file.read_row_group(number, columns, use_threads=threads)
    except (pa.ArrowInvalid, OSError) as error:
        raise ParquetError(unreadable(error, path)) from None


def batches(tables: Iterator[Any], batch_rows: int) -> Iterator[Any]:
    """The rows of tables in record batches of so many rows or fewer, and none."""
    for table in tables:
        parts = table.to_batches(batch_rows)
        del table
        yield from parts


def read_ahead(items: Iterator[Item], count: int = 1) -> Iterator[Item]:
    """The same items, so many of the next being made by a thread while one is used."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(next, items, None) for _ in range(count))
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item
            del item


def unreadable(error: Exception, path: str | None = None) -> str:
    """What to say of a file that Arrow cannot read."""
    told = str(error).splitlines()[0]
    where = "" if path is None or path in told else f"{path}: "
    return f"{where}cannot be read: {told}; write this file again, or take it out of the folder"
