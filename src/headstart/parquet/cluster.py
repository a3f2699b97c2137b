"""Rows of a task that do not follow each other: put together once, in bounded memory.

DuckDB sorts in a given amount of memory, spills the rest to disk, and is one small package. Arrow
reads the rows for it, so that no name or type has another meaning there, and writes the sorted
ones. The copy has the tasks in the order in which they first appear, and each task's rows in
their order, so that learning from it gives the same bits as learning from the whole table in
memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from headstart._core.files import clear_asides, write_aside
from headstart._core.leftovers import temporary_folder
from headstart.parquet.carry import carried_type, from_carried, plain_type, safe_name, to_carried
from headstart.parquet.columns import Array
from headstart.parquet.files import ParquetError
from headstart.parquet.footers import complete_columns
from headstart.parquet.order import is_grouped
from headstart.parquet.source import Source

KEY = "__task"  # number of the row in which a task first appears; longer if that name is taken
MEMORY = "300MB"
ROW_GROUP = 1 << 17

FIRST_ROWS = """
    CREATE TEMP TABLE first AS SELECT c0, min(place) AS place FROM ids WHERE {present} GROUP BY c0
"""
BY_FIRST_ROW = """
    SELECT coalesce(first.place, data.place), {columns}
    FROM data LEFT JOIN first ON data.c0 = first.c0 ORDER BY 1, data.place
"""

Rows = TypeVar("Rows", bound=Source)


def clustered(rows: Rows, folder: Path, *, keep: Sequence[str] = ()) -> Rows:
    """A copy of the rows in `folder` with each task's together; bounded memory, spilled to disk.

    Tasks are in the order of their first rows, which learning one after another needs to give
    the bits of the table in memory. The copy has the columns that are read, and those to `keep`.
    What a stopped copy left in the folder is removed.
    """
    try:
        import duckdb
    except ImportError:
        raise ParquetError(
            f"{rows.known_as}: the rows of a {rows.group!r} do not follow each other; sort the "
            f"data by {rows.group!r}, or install duckdb (pip install 'headstart[duckdb]') to have "
            "it done"
        ) from None
    names = list(dict.fromkeys([*rows.columns, *keep]))  # that of the ids comes first
    _check_types(rows, names)
    key = task_key(names)
    copy, spill = folder / "rows.parquet", folder / "spill"
    shutil.rmtree(spill, ignore_errors=True)
    clear_asides(folder, copy.name)
    spill.mkdir(parents=True)
    try:
        with duckdb.connect() as engine:
            engine.execute(f"SET memory_limit = '{MEMORY}'")
            engine.execute("SET temp_directory = '{}'".format(str(spill).replace("'", "''")))
            # of a stream it does not know the length, and would put it all into a hash table
            engine.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
            engine.register("ids", _numbered(rows, names[:1]))
            engine.execute(FIRST_ROWS.format(present=_present(rows)))
            engine.register("data", _numbered(rows, names))
            chosen = ", ".join(f"data.{safe_name(k)}" for k in range(len(names)))
            query = BY_FIRST_ROW.format(columns=chosen)
            sorted_rows = pa.RecordBatchReader.from_stream(engine.sql(query))
            schema = schema_of(rows, [key, *names])
            write_aside(copy, lambda aside: _write(aside, sorted_rows, schema, schema.names[:2]))
    except duckdb.Error as error:
        raise ParquetError(
            f"{rows.known_as}: the rows of a {rows.group!r} could not be put together in {folder} "
            f"({str(error).splitlines()[0]}); make room there, or sort the data by {rows.group!r}"
        ) from None
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    return replace(rows, path=copy, key=key, origin=rows.known_as)


def task_key(names: Sequence[str]) -> str:
    """A name for the column that grows from task to task, which no other column has."""
    key = KEY
    while key in names:
        key += "_"
    return key


def _check_types(rows: Source, names: list[str]) -> None:
    """Raise if a column cannot go through DuckDB."""
    for name in names:
        kind = rows.schema.field(name).type
        ids = name == rows.group and pa.types.is_decimal256(kind)  # texts, in another order
        if ids or carried_type(kind) is None:
            what = "ids" if name == rows.group else "values"
            raise ParquetError(
                f"{rows.known_as}: column {name!r}: {what} of type {kind} cannot be put together; "
                f"sort the data by {rows.group!r} first"
            )


def _present(rows: Source) -> str:
    """Whether a row has an id, in SQL."""
    floating = pa.types.is_floating(plain_type(rows.schema.field(rows.group).type))
    return "c0 IS NOT NULL" + (" AND NOT isnan(c0)" if floating else "")


def _numbered(rows: Source, names: list[str]) -> pa.RecordBatchReader:
    """All rows with safe names and types, and the number of each as `place`."""
    kinds = [carried_type(rows.schema.field(name).type) for name in names]
    fields = [pa.field(safe_name(k), kind) for k, kind in enumerate(kinds)]
    schema = pa.schema([pa.field("place", pa.int64()), *fields])

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for columns, _ in rows.batches(names):
            places: Array = pa.array(np.arange(first, first + columns.num_rows))
            arrays = [places, *(to_carried(columns.column(name)) for name in names)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            first += columns.num_rows

    return pa.RecordBatchReader.from_batches(schema, batches())


def schema_of(rows: Source, names: list[str]) -> pa.Schema:
    """The columns of the copy. Complete ones are marked non-nullable: faster to read."""
    complete = complete_columns(list(rows.fragments), rows.store)
    known = {f.name: plain_type(f.type) for f in rows.schema}
    return pa.schema(
        [pa.field(n, known.get(n, pa.int64()), nullable=n not in complete) for n in names]
    )


def _write(
    path: Path, batches: pa.RecordBatchReader, schema: pa.Schema, ordered: list[str]
) -> None:
    """All batches in one file, with the names and types that the columns had."""
    with parquet.ParquetWriter(
        path, schema, compression="none", use_dictionary=False, write_statistics=ordered
    ) as file:
        for batch in batches:
            columns = [
                from_carried(column, field.type)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            file.write_table(pa.Table.from_arrays(columns, schema=schema), ROW_GROUP)


@contextmanager
def grouped(rows: Rows) -> Iterator[Rows]:
    """The rows themselves if each task's follow each other, or else a temporary clustered copy."""
    if is_grouped(rows):
        yield rows
        return
    with temporary_folder() as place:
        yield clustered(rows, place)
