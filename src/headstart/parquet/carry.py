"""Columns on their way through DuckDB, under names and in types that it cannot misread.

DuckDB takes `a` and `A` for one name, has names of its own, and rounds nanoseconds. So columns
go there as numbered ones, in types that it holds exactly and orders as Arrow does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headstart.parquet.columns import Array, plain

CARRIED: list[Callable[[Any], bool]] = [  # as they are
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_decimal128,
]


def safe_name(number: int) -> str:
    """What a column is called in DuckDB."""
    return f"c{number}"


def plain_type(kind: Any) -> Any:
    """The type of the values of a column."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def carried_type(kind: Any) -> Any:
    """The type in which values go through DuckDB; None if there is none."""
    if isinstance(kind, pa.BaseExtensionType):
        return carried_type(kind.storage_type)
    kind = plain_type(kind)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_null(kind):
        return pa.bool_()
    if pa.types.is_decimal256(kind):
        return pa.string()  # their order is another one
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return pa.int64() if kind.bit_width == 64 else pa.int32()
    if any(matches(kind) for matches in CARRIED):
        return kind
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        inside = [kind.field(k).type for k in range(kind.num_fields)]
        return kind if all(carried_type(leaf) == leaf for leaf in inside) else None
    return None


def to_carried(column: Array) -> Array:
    """A column in the type in which it goes through DuckDB."""
    column = plain(column)
    if isinstance(column, pa.ExtensionArray):
        return to_carried(column.storage)
    kind = carried_type(column.type)
    if pa.types.is_temporal(column.type):
        return column.view(kind)
    return column if column.type == kind else column.cast(kind)


def from_carried(column: Array, kind: Any) -> Array:
    """A column that came through DuckDB in the type that it had."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, from_carried(column, kind.storage_type))
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    between = column.cast(carried_type(kind))
    if pa.types.is_temporal(kind):
        return between.view(kind)
    return between if between.type == kind else between.cast(kind)
