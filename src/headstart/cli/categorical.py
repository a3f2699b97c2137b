"""Columns of text as numbers: a column of zeros and ones for each value.

The column ``colour`` with the values red and blue becomes ``colour=blue`` and ``colour=red``. The
names say all that is needed to do the same to another table, so that a model keeps nothing else.
None of the values is left out: a prior needs no value to compare the others with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headstart._core.answers import IF_MISSING
from headstart._core.checks import warn_user
from headstart.cli.tables import TableError, check_names
from headstart.parquet import wrong_name

MOST = 200  # values of a column

Column = Any  # a chunked array, whose stubs do not know what it can be made of


def split_categories(table: pa.Table, columns: list[str], option: str) -> pa.Table:
    """The table with these columns in zeros and ones, each in its place."""
    check_names(table, columns)
    for name in columns:
        texts = _texts(table[name], name)
        values = sorted(pc.unique(texts).to_pylist())
        if len(values) > MOST:
            raise TableError(
                f"{option}: column {name!r} has {len(values)} values, at most {MOST} are taken; "
                "ids of entities are for --group"
            )
        taken = [f"{name}={value}" for value in values if f"{name}={value}" in table.column_names]
        if taken:
            raise TableError(f"{option}: there is a column {taken[0]!r} already")
        table = _with_values(table, name, texts, values)
    return table


def match_categories(table: pa.Table, features: list[str]) -> pa.Table:
    """The table with the columns of zeros and ones that a model was fitted to."""
    there = set(table.column_names)
    lacking = [name for name in features if name not in there and "=" in name]
    columns: dict[str, list[str]] = {}
    for name in lacking:
        sources = [c for c in table.column_names if name.startswith(f"{c}=")]
        if not sources:
            source = name.partition("=")[0]
            raise TableError(f"{wrong_name(source, table.column_names)}; the model needs {name!r}")
        source = max(sources, key=len)  # a name may have this sign too
        columns.setdefault(source, []).append(name[len(source) + 1 :])
    for name, values in columns.items():
        texts = _texts(table[name], name)
        others = [value for value in pc.unique(texts).to_pylist() if value not in values]
        if others:
            warn_user(
                f"column {name!r}: {others[0]!r} is not among the values the model has learned "
                "from; such rows are predicted as if the column said nothing",
                UserWarning,
            )
        table = _with_values(table, name, texts, values)
    return table


def _texts(column: Column, name: str) -> Column:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise TableError(f"column {name!r}: a value is missing in row {row}; {IF_MISSING}")
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise TableError(f"column {name!r}: expected texts or whole numbers, found {column.type}")
    return column.cast(pa.string())


def _with_values(table: pa.Table, name: str, texts: Column, values: list[str]) -> pa.Table:
    place = table.column_names.index(name)
    table = table.remove_column(place)
    for k, value in enumerate(values):
        is_it: Column = pc.equal(texts, pa.scalar(value)).cast(pa.float64())
        table = table.add_column(place + k, f"{name}={value}", is_it)
    return table
