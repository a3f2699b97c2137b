"""Batches of rows of one Parquet file, in memory that the size of a batch bounds.

Arrow's dataset scanner is not used for them: it decodes up to a gigabyte ahead of whoever uses
the rows. Here a row group is decoded at once, which is quickest, if it is a few batches long,
and page by page if it is longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyarrow import parquet

from headstart._core.retries import Failures, StorageError, again, reason_of

Item = TypeVar("Item")
BUFFER = 1 << 16  # bytes of a column that are read at once: they stay in the nearest caches


class ParquetError(ValueError):
    """A dataset that cannot be used: which file, what is wrong, what to do."""


class Decoding(NamedTuple):
    """How row groups are decoded.

    Attributes
    ----------
    batch_rows : rows that are decoded together, if not a row group is
    most_batches : a row group up to so many batches long is decoded at once
    threads : whether Arrow decodes columns in several threads
    first : so many rows at the beginning of each are wanted, and no others; or all
    """

    batch_rows: int
    most_batches: int
    threads: bool = True
    first: int | None = None

    def at_once(self, rows: int) -> bool:
        """Whether a row group of so many rows, not too short nor too long, is decoded at once."""
        return self.batch_rows <= 2 * rows and rows <= self.most_batches * self.batch_rows


def read_file(
    path: str,
    numbers: Sequence[int],
    columns: list[str],
    decoding: Decoding,
    store: Any = None,
) -> Iterator[pa.Table]:
    """Row groups as tables: one each where they are decoded at once, others by batches.

    `store` is the file system of an object store that the file is on.
    """
    try:
        if store is not None:
            footer = read_footer(path, store)
            for number in numbers:
                yield from _fetched(Far(store, path, footer), number, columns, decoding)
            return
        batch_rows, _, threads, first = decoding
        with parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file:
            if first is not None:
                yield from (_first_rows(file, number, columns, first) for number in numbers)
                return

            def at_once(number: int) -> bool:
                return decoding.at_once(file.metadata.row_group(number).num_rows)

            for fits, neighbours in groupby(numbers, at_once):
                if not fits:
                    groups = list(neighbours)
                    for batch in file.iter_batches(batch_rows, groups, columns, threads):
                        yield pa.Table.from_batches([batch])
                        del batch
                    continue
                for number in neighbours:
                    yield _decoded(file, number, columns, threads)
    except StorageError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise ParquetError(unreadable(error, path)) from None


def _decoded(file: parquet.ParquetFile, number: int, columns: list[str], threads: bool) -> pa.Table:
    """A row group; without threads one column after another.

    Arrow would begin with all columns, and hold a page and the dictionary of each: three times the
    memory of the table.
    """
    if threads or len(columns) < 2:
        return file.read_row_group(number, columns, use_threads=threads)
    return _beside([file.read_row_group(number, [name], use_threads=False) for name in columns])


def _first_rows(file: parquet.ParquetFile, number: int, columns: list[str], count: int) -> pa.Table:
    """The first rows of a row group, one column after another likewise."""
    parts = (next(file.iter_batches(count, [number], [name], False)) for name in columns)
    return _beside([pa.Table.from_batches([part]) for part in parts])


def _beside(parts: list[pa.Table]) -> pa.Table:
    """Tables of one column each as one table."""
    schema = pa.schema([part.schema.field(0) for part in parts])
    return pa.table([part.column(0) for part in parts], schema=schema)


class Far(NamedTuple):
    """A file on an object store, and its footer, which is fetched once."""

    store: Any
    path: str
    footer: Any

    def open(self) -> parquet.ParquetFile:
        """The file, whose column chunks are fetched together."""
        return parquet.ParquetFile(
            self.path, filesystem=self.store, metadata=self.footer, pre_buffer=True
        )


def _fetched(far: Far, number: int, columns: list[str], decoding: Decoding) -> Iterator[pa.Table]:
    """A row group of a file on an object store: its bytes are fetched at once, few and long.

    Where the store fails, the row group is fetched again, and what was handed on is left out.
    """
    failures, done = Failures(far.path), 0
    while True:
        try:
            with far.open() as file:
                if decoding.at_once(far.footer.row_group(number).num_rows):
                    yield file.read_row_group(number, columns, use_threads=decoding.threads)
                    return
                rows, most = decoding.first or decoding.batch_rows, 1 if decoding.first else None
                parts = file.iter_batches(rows, [number], columns, decoding.threads)
                for k, batch in enumerate(islice(parts, most)):
                    if k == done:
                        done += 1
                        yield pa.Table.from_batches([batch])
                return
        except OSError as error:
            failures.wait(error)


def read_footer(path: str, store: Any = None) -> Any:
    """The footer of a file."""
    if store is None:
        return parquet.read_metadata(path)
    return again(lambda: parquet.read_metadata(path, filesystem=store), path)


def batches(tables: Iterator[pa.Table], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of tables in record batches of at least one and at most `batch_rows` rows.

    None of a table is held on to while the next one is made: a row group takes much memory.
    """
    for table in tables:
        parts = deque(part for part in table.to_batches(batch_rows) if part.num_rows)
        del table
        while parts:
            yield parts.popleft()


def read_ahead(items: Iterator[Item], count: int = 1) -> Iterator[Item]:
    """The same items; a thread makes the next `count` while one is used."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(next, items, None) for _ in range(count))
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item
            del item


def unreadable(error: Exception, path: str | None = None) -> str:
    """What to say of a file that Arrow cannot read."""
    reason = reason_of(error)
    where = "" if path is None or path in reason else f"{path}: "
    return f"{where}cannot be read: {reason}; write this file again, or take it out of the folder"
