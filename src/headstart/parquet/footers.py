"""What is in the footers of Parquet files: their columns, and the keys of their row groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from headstart._core.retries import StorageError, again
from headstart.parquet.files import ParquetError, read_footer, unreadable


class RowGroup(NamedTuple):
    """A row group: where it is, how many rows it has, and the least and largest key in it.

    `low` and `high` are None if all keys are null, or if the footer has no statistics of them.
    """

    file: str
    number: int
    rows: int
    low: Any
    high: Any
    has_statistics: bool


def check_columns(fragment: Any, columns: list[str], schema: Any, store: Any = None) -> None:
    """Raise if a file lacks one of the columns, or has it in another type."""
    path = fragment.path
    try:
        if store is None:
            have = fragment.physical_schema
        else:
            have = again(lambda: fragment.physical_schema, path)
    except StorageError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise ParquetError(unreadable(error, path)) from None
    of_folder = ds.get_partition_keys(fragment.partition_expression)
    kinds, expected = ({f.name: f.type for f in fields} for fields in (have, schema))
    for name in columns:
        if name in of_folder:
            continue
        if name not in kinds:
            raise ParquetError(
                f"{path}: there is no column {name!r}, which other files have; write this file "
                "again, or take it out of the folder"
            )
        wanted, kind = expected[name], kinds[name]
        if kind != wanted:
            raise ParquetError(
                f"{path}: column {name!r} is {kind}, in other files {wanted}; write this file "
                "again with the same type"
            )


def read_row_groups(fragment: Any, key: str, store: Any = None) -> list[RowGroup]:
    """The row groups of a file in order, with the least and largest of their keys."""
    of_folder = ds.get_partition_keys(fragment.partition_expression)
    footer = read_footer(fragment.path, store)
    schema = footer.schema
    paths = [schema.column(k).path for k in range(len(schema))]
    position = paths.index(key) if key in paths else None
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        ends = of_folder.get(key), of_folder.get(key), key in of_folder
        if position is not None:
            ends = _ends(group.column(position).statistics, group.num_rows)
        found.append(RowGroup(fragment.path, number, group.num_rows, *ends))
    return found


def complete_columns(paths: list[str], store: Any = None) -> set[str]:
    """The columns in which no value is missing, by the footers of all files."""
    complete: set[str] = set()
    doubtful: set[str] = set()
    for path in paths:
        footer = read_footer(path, store)
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for column in map(group.column, range(group.num_columns)):
                found: Any = column.statistics
                no_nulls = found is not None and found.has_null_count and found.null_count == 0
                (complete if no_nulls else doubtful).add(column.path_in_schema)
    return complete - doubtful


def _ends(statistics: Any, rows: int) -> tuple[Any, Any, bool]:
    """The least and largest key of a row group, and whether the footer has statistics of it."""
    if statistics is None:
        return None, None, rows == 0
    if statistics.has_min_max:
        try:
            return statistics.min, statistics.max, True
        except (pa.ArrowInvalid, ValueError, OverflowError):  # nanoseconds, years after 9999
            return None, None, False
    return None, None, bool(statistics.has_null_count and statistics.null_count == rows)


def place_in(groups: list[RowGroup], row: int) -> str:
    """The file of a row of a dataset, counted over these row groups, and which row it is there."""
    for group in groups:
        if row < group.rows:
            same = (g for g in groups if g.file == group.file and g.number < group.number)
            return f"{group.file}, row {sum(g.rows for g in same) + row}"
        row -= group.rows
    raise IndexError(f"row: there are fewer than {row}")
