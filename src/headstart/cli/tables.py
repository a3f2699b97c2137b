"""Tables in files: Parquet, CSV and Arrow, with messages that name the column and the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, feather, parquet

from headstart._core.files import write_aside
from headstart.parquet import INDEX, is_numeric, to_float64
from headstart.tasks.ids import IdIndex, Positions, read_ids

EXACT_FLOATS = 2.0**53  # up to here every integer has a float of its own

ArrowColumn = Any  # a chunked array, whose stubs do not know what it can be made of

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


class LabelledRows(NamedTuple):
    """What a model learns from: features, target and ids."""

    X: pa.Table
    y: NDArray[np.generic]
    ids: ArrowColumn


def read_table(path: Path, group: str | None = None) -> pa.Table:
    """The table in a file; the column `group` of a CSV file keeps all digits of its numbers."""
    if not path.exists():
        raise TableError(f"{path}: there is no such file")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise TableError(f"{path}: expected a file named {_kinds(READERS)}")
    try:
        if reader is csv.read_csv and group is not None:
            return _read_csv(str(path), group)
        return reader(str(path))
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


def _read_csv(path: str, group: str) -> pa.Table:
    """A table whose column `group` has all digits of its numbers, and nothing where it is empty."""
    table = csv.read_csv(path)
    if group not in table.column_names:
        return table
    ids: ArrowColumn = table[group]
    if pa.types.is_string(ids.type):
        ids = pc.if_else(pc.equal(ids, pa.scalar("")), pa.scalar(None, pa.string()), ids)
    elif pa.types.is_floating(ids.type) and (pc.max(pc.abs(ids)).as_py() or 0.0) >= EXACT_FLOATS:
        as_text = csv.ConvertOptions(
            include_columns=[group], column_types={group: pa.string()}, strings_can_be_null=True
        )
        ids = _all_digits(csv.read_csv(path, convert_options=as_text)[group].combine_chunks())
    return table.set_column(table.column_names.index(group), group, ids)


def _all_digits(texts: ArrowColumn) -> ArrowColumn:
    """Numbers that no type but that of decimals can hold; the texts if they are no numbers."""
    different = texts.dictionary_encode()
    try:
        numbers = pa.array([Decimal(text) for text in different.dictionary.to_pylist()])
        return numbers.take(different.indices)
    except (InvalidOperation, pa.ArrowInvalid):  # not a number, or more than 76 digits
        return texts


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
) -> LabelledRows:
    """Features as numbers, target and ids: the features are all other columns if none are named."""
    others = [c for c in table.column_names if c not in (group, target)]
    named = features or [c for c in others if not c.startswith(INDEX)]
    for column in (group, target, *named):
        find_column(table, column)
    if not named:
        raise TableError(f"expected a column beside {group!r} and {target!r} to predict from")
    return LabelledRows(numbers_of(table, named), as_target(table, target), table[group])


def different_ids(name: str, ids: ArrowColumn) -> tuple[ArrowColumn, Positions]:
    """The different ids in order of first appearance, as they are, and each row's place in them."""
    column = read_ids(name, ids)
    column.check_complete(name)
    places = column.added_to(IdIndex())
    newest = np.maximum.accumulate(places)  # grows where an id is there for the first time
    first = np.flatnonzero(np.diff(newest, prepend=-1))
    return ids.take(pa.array(first)), places


def group_sizes(name: str, ids: ArrowColumn) -> Positions:
    """How many rows each id has; rows without an id are left out."""
    places = read_ids(name, ids).added_to(IdIndex())
    return np.bincount(places[places >= 0])


def find_column(table: pa.Table, name: str) -> ArrowColumn:
    """A column, or an error that names those there are."""
    if name not in table.column_names:
        known = ", ".join(map(repr, table.column_names))
        raise TableError(f"there is no column {name!r}; the table has {known}")
    return table[name]


def numbers_of(table: pa.Table, names: list[str]) -> pa.Table:
    """These columns, every entry a finite number."""
    return pa.table({name: _numbers(find_column(table, name), name) for name in names})


def _numbers(column: ArrowColumn, name: str) -> ArrowColumn:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.to_pylist()
        row = next(i for i, text in enumerate(texts) if text is not None and not _is_number(text))
        raise TableError(
            f"column {name!r}: expected numbers, found {texts[row]!r} in row {row}; leave it out "
            "with --features, or turn it into numbers first"
        )
    if not is_numeric(column.type):
        raise TableError(f"column {name!r}: expected numbers, found {column.type}")
    floats = to_float64(column)
    _check_complete(floats, name)
    return floats


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_complete(column: ArrowColumn, name: str) -> None:
    """Raise unless every entry is there and, if a number, finite."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise TableError(f"column {name!r}: a value is missing in row {row}")
    if pa.types.is_floating(column.type):
        infinite = np.flatnonzero(~np.isfinite(column.to_numpy()))
        if infinite.size:
            row = int(infinite[0])
            value = column[row].as_py()
            raise TableError(
                f"column {name!r}: expected finite numbers, found {value} in row {row}"
            )


def as_target(table: pa.Table, name: str) -> NDArray[np.generic]:
    """The target, every entry there and not all the same."""
    column = find_column(table, name)
    _check_complete(column, name)
    labels = column.to_numpy()
    if len(labels) == 0:
        raise TableError("the table has no rows")
    if len(pc.unique(column)) == 1:
        raise TableError(f"column {name!r}: the target has one value only, {column[0].as_py()!r}")
    return np.asarray(labels)


def are_classes(labels: NDArray[np.generic]) -> bool:
    """Whether labels are text or booleans, which no regression takes."""
    return labels.dtype.kind in "OUSb"
