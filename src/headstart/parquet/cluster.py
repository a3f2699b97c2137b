"""Rows of a task that do not follow each other: put together once, in bounded memory.

DuckDB sorts in a given amount of memory and spills the rest to disk, reads Parquet itself, and
is one small package; Arrow writes the sorted rows, which is faster than DuckDB's own writer. The
copy has the tasks in the order in which they first appear, and each task's rows in their order,
so that learning from it gives the same bits as learning from the whole table in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from headstart._core.files import write_aside
from headstart.parquet.blocks import run_starts
from headstart.parquet.columns import Array, all_integers
from headstart.parquet.files import ParquetError
from headstart.parquet.footers import complete_columns
from headstart.parquet.source import Source

KEY = "__task"  # number of the row in which a task first appears
MEMORY = "300MB"
ROW_GROUP = 1 << 17
Rows = TypeVar("Rows", bound=Source)


def is_grouped(rows: Source) -> bool:
    """Whether keys only ever increase, so that the rows of every task follow each other."""
    groups = rows.row_groups
    if len(groups) > 1 and not all(group.has_statistics for group in groups):
        return False
    known = [group for group in groups if group.low is not None]
    if any(later.low < one.high for one, later in pairwise(known)):
        return False
    last: Array = None  # the largest key so far
    open_task = True  # whether rows of that key may still follow: no null came after it
    for keys in rows.column(rows.task_key):
        if all_integers(keys) and open_task:
            numbers = keys.to_numpy()
            if np.any(numbers[1:] < numbers[:-1]):
                return False
            if last is not None and pc.less(keys[0], last).as_py():
                return False
            last = keys[-1]
            continue
        heads = keys.take(pa.array(run_starts(keys)))
        absent = pc.is_null(heads, nan_is_null=True)
        present = heads.filter(pc.invert(absent))
        if len(present) == 0:
            open_task = last is None
            continue
        if len(present) > 1 and not pc.all(pc.less(present[:-1], present[1:])).as_py():
            return False
        if last is not None:
            follows = present[0].equals(last) and open_task and not absent[0].as_py()
            if not follows and not pc.less(last, present[0]).as_py():
                return False
        last, open_task = present[-1], not absent[-1].as_py()
    return True


def clustered(rows: Rows, folder: Path, *, in_order: bool = True) -> Rows:
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
    counts = [sum(group.rows for group in rows.row_groups if group.file == path) for path in files]
    starts = pa.table({"file": files, "start": pa.array(np.append(0, np.cumsum(counts))[:-1])})
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as spill, duckdb.connect() as engine:
        engine.execute(f"SET memory_limit = '{MEMORY}'")
        engine.execute(f"SET temp_directory = {_text(spill)}")
        engine.execute("SET arrow_lossless_conversion = true")  # or else UUIDs would be texts
        engine.register("files", starts)
        query = _by_first_row(rows, files) if in_order else _by_id(rows, files)
        sorted_rows = pa.RecordBatchReader.from_stream(engine.sql(query))
        keys = [KEY, rows.group] if in_order else [rows.group]
        write_aside(
            folder / "rows.parquet",
            lambda aside: _write(aside, sorted_rows, rows, keys, complete_columns(files)),
        )
    return replace(rows, path=folder / "rows.parquet", key=KEY if in_order else None)


def _write(
    path: Path, batches: pa.RecordBatchReader, rows: Source, keys: list[str], complete: set[str]
) -> None:
    """All batches in one file, with the types that the columns had.

    Complete columns are marked non-nullable: faster to read.
    """
    schema = pa.schema(
        [_typed(f, rows).with_nullable(f.name not in complete) for f in batches.schema]
    )
    with parquet.ParquetWriter(
        path, schema, compression="none", use_dictionary=False, write_statistics=keys
    ) as file:
        for batch in batches:
            file.write_table(pa.Table.from_batches([batch]).cast(schema), ROW_GROUP)


def _typed(field: Any, rows: Source) -> Any:
    """A column that DuckDB gives in the type it has in the dataset, if DuckDB can hold that."""
    if field.name not in rows.schema.names:
        return field
    kind = rows.schema.field(field.name).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_decimal256(kind):
        return field.with_type(kind)
    if field.name == rows.group:
        raise ParquetError(
            f"{rows.path}: column {rows.group!r}: ids of type {kind} cannot be put together; sort "
            "the data by them first"
        )
    return field


def _by_first_row(rows: Source, files: list[str]) -> str:
    group = _name(rows.group)
    floating = pa.types.is_floating(rows.schema.field(rows.group).type)
    # As text: otherwise DuckDB trusts footers, which do not count NaN, and skips the comparison.
    absent = f"{group} IS NULL" + (f" OR {group}::VARCHAR = 'nan'" if floating else "")
    return f"""
        WITH first AS (
            SELECT {group} AS id, min(start + file_row_number) AS place
            FROM {_rows_of(files)} JOIN files ON filename = file
            WHERE NOT ({absent}) GROUP BY 1
        )
        SELECT coalesce(first.place, start + t.file_row_number) AS {KEY}, {_columns(rows)}
        FROM {_rows_of(files)} t JOIN files ON t.filename = file
        LEFT JOIN first ON t.{group} = first.id
        ORDER BY 1, start + t.file_row_number
    """


def _by_id(rows: Source, files: list[str]) -> str:
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


def _columns(rows: Source) -> str:
    return ", ".join(f"t.{_name(name)}" for name in rows.schema.names if name != KEY)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


@contextmanager
def grouped(rows: Rows, folder: Path | None = None, *, in_order: bool = True) -> Iterator[Rows]:
    """The rows themselves if each task's follow each other, or else a clustered copy.

    The copy is made in `folder`, where others can read it and it stays, or in a temporary folder.
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
