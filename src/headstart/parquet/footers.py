"""What the footers of Parquet files tell: their columns, and the keys of their row groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import parquet

from headstart.parquet.files import ParquetError, unreadable


class Piece(NamedTuple):
    """A row group: where it is, how many rows it has, and the least and largest key in it.

    There are none if all keys are null, or if the footer does not tell.
    """

    file: str
    number: int
    rows: int
    low: Any
    high: Any
    told: bool


def check_columns(fragment: Any, columns: list[str], schema: Any) -> None:
    """Raise if a file lacks one of the columns, or has it in another type."""
    path = fragment.path
    try:
        have = fragment.physical_schema
    except (pa.ArrowInvalid, OSError) as error:
        raise ParquetError(unreadable(error, path)) from None
    given = ds.get_partition_keys(fragment.partition_expression)
    for name in columns:
        if name in given:
            continue
        if name not in have.names:
            raise ParquetError(
                f"{path}: there is no column {name!r}, which other files have; write this file "
                "again, or take it out of the folder"
            )
        wanted, kind = schema.field(name).type, have.field(name).type
        if kind != wanted:
            raise ParquetError(
                f"{path}: column {name!r} is {kind}, in other files {wanted}; write this file "
                "again with the same type"
            )


def row_groups(fragment: Any, key: str) -> Iterator[Piece]:
    """The row groups of a file in order, with the least and largest of their keys."""
    given = ds.get_partition_keys(fragment.partition_expression)
    footer = parquet.read_metadata(fragment.path)
    position = footer.schema.names.index(key) if key in footer.schema.names else None
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        low, high, told = given.get(key), given.get(key), key in given
        if position is not None:
            low, high, told = _ends(group.column(position).statistics, group.num_rows)
        yield Piece(fragment.path, number, group.num_rows, low, high, told)


def complete_columns(paths: list[str]) -> set[str]:
    """The columns of which the footers of all files tell that no value is missing."""
    complete: set[str] = set()
    holed: set[str] = set()
    for path in paths:
        footer = parquet.read_metadata(path)
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for column in map(group.column, range(group.num_columns)):
                told: Any = column.statistics
                whole = told is not None and told.has_null_count and told.null_count == 0
                (complete if whole else holed).add(column.path_in_schema)
    return complete - holed


def _ends(statistics: Any, rows: int) -> tuple[Any, Any, bool]:
    """The least and largest key of a row group, and whether its footer tells that much."""
    if statistics is None:
        return None, None, rows == 0
    if statistics.has_min_max:
        return statistics.min, statistics.max, True
    return None, None, bool(statistics.has_null_count and statistics.null_count == rows)
