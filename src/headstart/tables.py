"""Tables in files: Parquet, CSV and Arrow, with messages that name the column and the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, feather, parquet

from headstart._files import write_aside
from headstart.parquet import INDEX, as_floats, is_numeric

Column = Any  # a chunked array, whose stubs do not know what it can be made of

READERS: dict[str, Callable[[str], pa.Table]] = {
    ".parquet": parquet.read_table,
    ".pq": parquet.read_table,
    ".csv": csv.read_csv,
    ".arrow": feather.read_table,
    ".feather": feather.read_table,
}
WRITERS: dict[str, Callable[[pa.Table, str], object]] = {
    ".parquet": parquet.write_table,
    ".pq": parquet.write_table,
    ".csv": csv.write_csv,
    ".arrow": feather.write_feather,
    ".feather": feather.write_feather,
}


class TableError(ValueError):
    """A file or a column that cannot be used, and why."""


class Columns(NamedTuple):
    """The parts of a table that a model takes."""

    X: pa.Table
    y: NDArray[np.generic]
    ids: NDArray[np.generic]


def read_table(path: Path) -> pa.Table:
    """The table in a file."""
    if not path.exists():
        raise TableError(f"{path}: there is no such file")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise TableError(f"{path}: expected a file named {_kinds(READERS)}")
    try:
        return reader(str(path))
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


def write_table(table: pa.Table, path: Path) -> None:
    """Put a table into a file, in one step."""
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise TableError(f"{path}: expected a file named {_kinds(WRITERS)}")
    write_aside(path, lambda aside: writer(table, str(aside)))


def _kinds(known: Iterable[str]) -> str:
    return ", ".join(f"*{suffix}" for suffix in known)


def read_columns(
    table: pa.Table, group: str, target: str, features: list[str] | None = None
) -> Columns:
    """Features as numbers, target and ids: the features are all other columns if none are named."""
    others = [c for c in table.column_names if c not in (group, target)]
    named = features or [c for c in others if not c.startswith(INDEX)]
    for column in (group, target, *named):
        find_column(table, column)
    if not named:
        raise TableError(f"expected a column beside {group!r} and {target!r} to predict from")
    return Columns(numbers_of(table, named), as_target(table, target), table[group].to_numpy())


def find_column(table: pa.Table, name: str) -> Column:
    """A column, or an error that names those there are."""
    if name not in table.column_names:
        known = ", ".join(map(repr, table.column_names))
        raise TableError(f"there is no column {name!r}; the table has {known}")
    return table[name]


def numbers_of(table: pa.Table, names: list[str]) -> pa.Table:
    """These columns, every entry a finite number."""
    return pa.table({name: _numbers(find_column(table, name), name) for name in names})


def _numbers(column: Column, name: str) -> Column:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.to_pylist()
        row = next(i for i, text in enumerate(texts) if text is not None and not _is_number(text))
        raise TableError(
            f"column {name!r}: expected numbers, found {texts[row]!r} in row {row}; leave it out "
            "with --features, or turn it into numbers first"
        )
    if not is_numeric(column.type):
        raise TableError(f"column {name!r}: expected numbers, found {column.type}")
    floats = as_floats(column)
    _check_whole(floats, name)
    return floats


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_whole(column: Column, name: str) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise TableError(f"column {name!r}: a value is missing in row {row}")
    if pa.types.is_floating(column.type):
        wrong = np.flatnonzero(~np.isfinite(column.to_numpy()))
        if wrong.size:
            found = column[int(wrong[0])].as_py()
            raise TableError(
                f"column {name!r}: expected finite numbers, found {found} in row {wrong[0]}"
            )


def as_target(table: pa.Table, name: str) -> NDArray[np.generic]:
    """The target, every entry there and not all the same."""
    column = find_column(table, name)
    _check_whole(column, name)
    labels = column.to_numpy()
    if len(labels) == 0:
        raise TableError("the table has no rows")
    if len(pc.unique(column)) == 1:
        raise TableError(f"column {name!r}: the target has one value only, {column[0].as_py()!r}")
    return np.asarray(labels)
