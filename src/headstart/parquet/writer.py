"""A Parquet file that is written a row group at a time, and is whole or not there."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyarrow import parquet

from headstart._core.leftovers import held, temporary_folder
from headstart._core.places import Place, Remote

ROW_GROUP = 1 << 16  # rows


class Writer:
    """A file written aside, and put in its place when all rows are in it; without rows, none.

    For an object store it is a temporary file, which is put there in one step.
    """

    def __init__(self, path: Place) -> None:
        self._path, self._stack = path, ExitStack()
        self._file: parquet.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []

    def __enter__(self) -> Self:
        name = f".{self._path.name}.{secrets.token_hex(4)}.part"
        if isinstance(self._path, Remote):
            self._aside = self._stack.enter_context(temporary_folder()) / name
            return self
        self._aside = self._path.with_name(name)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._stack.enter_context(held(self._aside))
        return self

    def write(self, table: pa.Table) -> None:
        """Add rows; small tables are gathered, because a row group has a cost of its own."""
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._file is None:
            schema = self._waiting[0].schema
            self._file = parquet.ParquetWriter(
                *(self._aside, schema),
                compression="lz4",
                use_dictionary=False,
                write_statistics=schema.names[:1],  # of the ids, by which rows are looked up
            )
        self._file.write_table(pa.concat_tables(self._waiting), row_group_size=2 * ROW_GROUP)
        self._waiting = []

    def __exit__(self, fault: object, *_: object) -> None:
        aside: Path = self._aside
        try:
            with self._stack:
                if fault is None:
                    self._flush()
                if self._file is not None:
                    self._file.close()
                if fault is not None or self._file is None:
                    return
                if isinstance(self._path, Remote):
                    self._path.put_file(aside)
                else:
                    aside.replace(self._path)
        finally:
            aside.unlink(missing_ok=True)
