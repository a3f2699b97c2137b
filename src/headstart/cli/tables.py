"""Tables in files: Parquet, CSV and Arrow, with messages that name the column and the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import feather, parquet

from headstart._core.answers import IF_MISSING
from headstart._core.files import clear_asides, write_aside
from headstart._core.places import AnyPath, Remote, as_place, full, near
from headstart._core.retries import StorageError
from headstart.cli.csv import read_csv, write_csv
from headstart.parquet import (
    INDEX,
    as_labels,
    check_roles,
    first_wrong,
    is_id,
    is_label,
    is_numeric,
    to_float64,
    wanted_for,
    wrong_name,
)
from headstart.tasks.ids import IdIndex, Positions, read_ids

ArrowColumn = Any  # a chunked array, whose stubs do not know what it can be made of


def _read_arrow(path: str) -> pa.Table:
    """A table whose columns are as long as the file says, which reading alone does not look at."""
    table = feather.read_table(path)
    table.validate(full=True)
    return table


READERS: dict[str, Callable[[str], pa.Table]] = {
    ".parquet": parquet.read_table,
    ".pq": parquet.read_table,
    ".csv": read_csv,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
WRITERS: dict[str, Callable[[pa.Table, str], object]] = {
    ".parquet": parquet.write_table,
    ".pq": parquet.write_table,
    ".csv": write_csv,
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


def read_table(data: AnyPath, group: str | None = None) -> pa.Table:
    """The table in a file; the column `group` of a CSV file keeps all digits of its numbers."""
    path = as_place(data)
    if not path.exists():
        raise TableError(f"{path}: there is no such file")
    reader = READERS.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise TableError(f"{path}: expected a file named {_kinds(READERS)}")
    try:
        with near(path.parent, [path.name]) as folder:
            file = str(folder / path.name)
            return read_csv(file, group) if reader is read_csv else reader(file)
    except StorageError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        if isinstance(error, UnicodeDecodeError) or "UTF8" in reason:
            reason = "it is not text in UTF-8; save it so, or as Parquet"
        raise TableError(f"{path}: cannot be read: {reason}") from None


def write_table(table: pa.Table, out: AnyPath) -> None:
    """Put a table into a file, in one step."""
    path = as_place(out)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise TableError(f"{path}: expected a file named {_kinds(WRITERS)}")
    if not isinstance(path, Remote):
        clear_asides(path.parent, path.name)  # of a command that was killed
    try:
        write_aside(path, lambda aside: writer(table, str(aside)))
    except pa.ArrowException as error:
        raise TableError(
            f"{path}: cannot be written: {str(error).splitlines()[0]}; a file *.parquet takes "
            "every type"
        ) from None
    except StorageError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _kinds(known: Iterable[str]) -> str:
    return ", ".join(f"*{suffix}" for suffix in known)


def read_columns(
    table: pa.Table, group: str, target: str, features: list[str] | None = None
) -> LabelledRows:
    """Features as numbers, target and ids: the features are all other columns if none are named."""
    named = features
    if named is None:
        others = [c for c in table.column_names if c not in (group, target)]
        named = [c for c in others if not c.startswith(INDEX)]
    check_roles(group, target, features or (), "--")
    check_names(table, [group, target, *named])
    if not named:
        raise TableError(f"expected a column beside {group!r} and {target!r} to predict from")
    return LabelledRows(numbers_of(table, named), as_target(table, target), ids_of(table, group))


def ids_of(table: pa.Table, group: str) -> ArrowColumn:
    """The column of ids, which can be compared."""
    check_names(table, [group])
    kind = table.schema.field(group).type
    if not is_id(kind):
        raise TableError(f"column {group!r}: expected numbers, texts or times as ids, found {kind}")
    ids: ArrowColumn = table[group]
    return ids.cast(pa.large_string()) if str(kind) == "string_view" else ids  # Arrow takes none


def refuse_itself(data: AnyPath, out: AnyPath | None) -> None:
    """Raise if a result would be written over the data it is made of, or among it."""
    if out is None:
        return
    if full(data) == full(out):
        raise TableError(f"--out: {out} is the data itself; name another file")
    if f"{full(out)}/".startswith(f"{full(data)}/"):
        raise TableError(f"--out: {out} is inside the data; name a place beside it")


def check_names(table: pa.Table, names: list[str]) -> None:
    """Raise unless each column is there, once."""
    counts = Counter(table.column_names)
    for name in names:
        if counts[name] != 1:
            raise TableError(wrong_name(name, table.column_names))


def different_ids(name: str, ids: ArrowColumn) -> tuple[ArrowColumn, Positions]:
    """The different ids in order of first appearance, as they are, and each row's place in them."""
    column = read_ids(f"column {name!r}", ids)
    column.check_complete(f"column {name!r}")
    places = column.added_to(IdIndex())
    newest = np.maximum.accumulate(places)  # grows where an id is there for the first time
    first = np.flatnonzero(np.diff(newest, prepend=-1))
    return ids.take(pa.array(first)), places


def group_sizes(name: str, ids: ArrowColumn) -> Positions:
    """How many rows each id has; rows without an id are left out."""
    places = read_ids(f"column {name!r}", ids).added_to(IdIndex())
    return np.bincount(places[places >= 0])


def numbers_of(table: pa.Table, names: list[str]) -> pa.Table:
    """These columns, every entry a finite number."""
    check_names(table, names)
    if len(table) == 0:
        raise TableError("the table has no rows")
    return pa.table({name: _numbers(table[name], name) for name in names})


def _numbers(column: ArrowColumn, name: str) -> ArrowColumn:
    _check_complete(column, name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.to_pylist()
        row = next((i for i, text in enumerate(texts) if not _is_number(text)), 0)
        raise TableError(
            f"column {name!r}: expected numbers, found text, {texts[row]!r} in row {row}; with "
            f"--categorical {name} each value becomes a column, or leave it out with --features"
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
        missing = int(np.argmax(column.is_null().to_numpy()))
        raise TableError(f"column {name!r}: a value is missing in row {missing}; {IF_MISSING}")
    if pa.types.is_floating(column.type):
        row = first_wrong(column.to_numpy())
        if row is not None:
            value = column[row].as_py()
            raise TableError(
                f"column {name!r}: expected {wanted_for(value)}, found {value} in row {row}"
            )


def as_target(table: pa.Table, name: str) -> NDArray[np.generic]:
    """The target: numbers, texts or booleans, every entry there."""
    check_names(table, [name])
    column: ArrowColumn = table[name]
    _check_complete(column, name)
    if not is_label(column.type):
        raise TableError(
            f"column {name!r}: expected numbers, texts or booleans to predict, found {column.type}"
        )
    if len(column) == 0:
        raise TableError("the table has no rows")
    labels = as_labels(column)
    _check_complete(labels, name)
    return np.asarray(labels.to_numpy(zero_copy_only=False))


def are_classes(name: str, labels: NDArray[np.generic], asked: bool | None) -> bool:
    """Whether a target is two classes: as the user says, or if it is texts or booleans.

    Two numbers may be either, so the user must say. The labels need not all be there, as long as
    all different ones are, or three of them.
    """
    values = pc.unique(pa.array(labels)).to_pylist()
    named = labels.dtype.kind in "OUSb"
    some = ", ".join(repr(value) for value in values[:3])
    if not values:
        raise TableError(f"column {name!r}: there is no label")
    if len(values) == 1:
        raise TableError(f"column {name!r}: the target has one value only, {some}")
    if asked is False and named and labels.dtype.kind != "b":
        raise TableError(f"--regress: column {name!r}: expected numbers, found {values[0]!r}")
    classes = named if asked is None else asked
    if classes and len(values) > 2:
        raise TableError(
            f"column {name!r}: expected numbers or two classes, found more than two: {some}"
        )
    if classes and labels.dtype.kind == "f" and any(value % 1.0 for value in values):
        raise TableError(
            f"--classify: column {name!r}: expected whole numbers, texts or booleans as classes, "
            f"found {some}"
        )
    if asked is None and not classes and len(values) == 2:
        raise TableError(
            f"--target: column {name!r} has two values, {some}; add --classify if they are "
            "classes, or --regress if they are amounts"
        )
    return classes
