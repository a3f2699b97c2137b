"""Rows of a task that do not follow each other: put together once, by an engine that spills.

DuckDB sorts in a given amount of memory and spills the rest to disk, reads Parquet itself, and
is one small package; Arrow writes what it gives, which is quicker. The copy has the tasks in
the order in which they first appear and the rows of a task in theirs, so that learning from it
gives the bits of learning from the whole table in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from headstart._files import write_aside
from headstart.parquet.blocks import run_starts
from headstart.parquet.columns import is_whole
from headstart.parquet.files import ParquetError
from headstart.parquet.footers import complete_columns
from headstart.parquet.rows import ParquetRows

KEY = "__task"  # number of the row in which a task first appears
MEMORY = "300MB"
ROW_GROUP = 1 << 17


def is_grouped(rows: ParquetRows) -> bool:
    """Whether keys only ever increase, so that the rows of every task follow each other."""
    if len(rows.pieces) > 1 and not all(piece.told for piece in rows.pieces):
        return False
    pieces = [piece for piece in rows.pieces if piece.low is not None]
    if any(later.low < one.high for one, later in pairwise(pieces)):
        return False
    last: Any = None
    for keys in rows.column(rows.key or rows.group):
        if is_whole(keys) and (last is None or last[1]):
            numbers = keys.to_numpy()
            if np.any(numbers[1:] < numbers[:-1]) or (last is not None and numbers[0] < last[0]):
                return False
            last = numbers[-1], True
            continue
        heads = keys.take(pa.array(run_starts(keys)))
        absent = pc.is_null(heads, nan_is_null=True)
        known = heads.filter(pc.invert(absent))
        if len(known) == 0:
            last = None if last is None else (last[0], False)
            continue
        if len(known) > 1 and not pc.all(pc.less(known[:-1], known[1:])).as_py():
            return False
        if last is not None:
            follows = known[0].as_py() == last[0] and last[1] and not absent[0].as_py()
            if not follows and not last[0] < known[0].as_py():
                return False
        last = known[-1].as_py(), not absent[-1].as_py()
    return True


def clustered(rows: ParquetRows, folder: Path, *, in_order: bool = True) -> ParquetRows:
    """A copy of the rows in `folder` with each task's together; bounded memory, spilled to disk.

    Tasks are `in_order` of their first rows, which learning one after another needs to give
    the bits of the table in memory; or by their ids, which is quicker.
    """
    try:
        import duckdb
    except ImportError:
        raise ParquetError(
            f"{rows.path}: the rows of a {rows.group!r} do not follow each other; sort the data "
            f"by {rows.group!r}, or install duckdb (pip install 'headstart[duckdb]') to have it "
            "done"
        ) from None
    files = list(rows.fragments)
    counts = [sum(p.rows for p in rows.pieces if p.file == path) for path in files]
    starts = pa.table({"file": files, "start": pa.array(np.append(0, np.cumsum(counts))[:-1])})
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as spill, duckdb.connect() as engine:
        engine.execute(f"SET memory_limit = '{MEMORY}'")
        engine.execute(f"SET temp_directory = {_text(spill)}")
        engine.register("files", starts)
        query = _by_first_row(rows, files) if in_order else _by_id(rows, files)
        sorted_rows = pa.RecordBatchReader.from_stream(engine.sql(query))
        keys = [KEY, rows.group] if in_order else [rows.group]
        write_aside(
            folder / "rows.parquet",
            lambda aside: _write(aside, sorted_rows, keys, complete_columns(files)),
        )
    return replace(rows, path=folder / "rows.parquet", key=KEY if in_order else None)


def _write(path: Path, batches: Any, keys: list[str], complete: set[str]) -> None:
    """All batches in one file. Columns that are complete are said to be: they are read quicker."""
    schema = pa.schema([f.with_nullable(f.name not in complete) for f in batches.schema])
    with parquet.ParquetWriter(
        path, schema, compression="none", use_dictionary=False, write_statistics=keys
    ) as file:
        for batch in batches:
            file.write_table(pa.Table.from_batches([batch]).cast(schema), ROW_GROUP)


def _by_first_row(rows: ParquetRows, files: list[str]) -> str:
    group = _name(rows.group)
    return f"""
        WITH first AS (
            SELECT {group} AS id, min(start + file_row_number) AS place
            FROM {_rows_of(files)} JOIN files ON filename = file
            WHERE {group} IS NOT NULL GROUP BY 1
        )
        SELECT coalesce(first.place, start + t.file_row_number) AS {KEY}, {_columns(rows)}
        FROM {_rows_of(files)} t JOIN files ON t.filename = file
        LEFT JOIN first ON t.{group} = first.id
        ORDER BY 1, start + t.file_row_number
    """


def _by_id(rows: ParquetRows, files: list[str]) -> str:
    return f"""
        SELECT {_columns(rows)} FROM {_rows_of(files)} t JOIN files ON t.filename = file
        ORDER BY t.{_name(rows.group)} NULLS LAST, start + t.file_row_number
    """


def _rows_of(files: list[str]) -> str:
    listed = ", ".join(map(_text, files))
    return (
        f"read_parquet([{listed}], filename = true, file_row_number = true, "
        "hive_partitioning = true)"
    )


def _columns(rows: ParquetRows) -> str:
    return ", ".join(f"t.{_name(name)}" for name in rows.schema.names if name != KEY)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


@contextmanager
def grouped(
    rows: ParquetRows, folder: Path | None = None, *, in_order: bool = True
) -> Iterator[ParquetRows]:
    """The rows themselves if each task's follow each other, or else a clustered copy.

    It is made in `folder`, where others can read it, or for the time being beside other
    temporary files.
    """
    if is_grouped(rows):
        yield rows
    elif folder is not None:
        yield clustered(rows, folder, in_order=in_order)
    else:
        place = Path(tempfile.mkdtemp(prefix="headstart-"))
        try:
            yield clustered(rows, place, in_order=in_order)
        finally:
            shutil.rmtree(place, ignore_errors=True)
