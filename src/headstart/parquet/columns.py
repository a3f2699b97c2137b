"""Columns as Arrow has them: which are numbers, which entries are missing, the values as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headstart._core.answers import IF_MISSING, LARGEST
from headstart.tasks.ids import Ids, read_ids

Array = Any  # an array or scalar of Arrow, whose stubs want its element type to be known
MISSING = f"a value is missing; {IF_MISSING}"
SHOWN = 20  # names of columns in a message
INDEX = "__index_level_"  # what pandas calls an index that it writes as a column


def is_null(column: Array) -> NDArray[np.bool_]:
    """Where a column has no value, or NaN."""
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.zeros(len(column), np.bool_)
    if column.null_count == 0:
        return np.asarray(np.isnan(column.to_numpy()))
    found: Array = pc.is_null(column, nan_is_null=True)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def plain(column: Array) -> Array:
    """A column as one array of its values."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def stored(column: Array) -> Array:
    """What Arrow stores of values it cannot compare, such as UUIDs; others as they are."""
    if pa.types.is_float16(column.type):  # nor these
        return column.cast(pa.float32())
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def as_ids(column: Array) -> Ids:
    """Ids as an array that loses nothing: as NumPy has them, or their canonical values."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return read_ids("ids", column).ids


def all_integers(keys: Array) -> bool:
    """Whether all keys are integers and none is missing: NumPy can take them as they are."""
    return bool(keys.null_count == 0 and pa.types.is_integer(keys.type))


def is_numeric(kind: Any) -> bool:
    """Whether a column of this type can be a feature."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def is_label(kind: Any) -> bool:
    """Whether a column of this type can be predicted: numbers, texts or booleans."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_numeric(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_id(kind: Any) -> bool:
    """Whether values of this type can be ids: lists and records cannot."""
    return not pa.types.is_nested(kind)


def first_wrong(numbers: NDArray[Any], largest: float = LARGEST) -> int | None:
    """The first number that is missing, infinite or too large."""
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(numbers) <= largest))
    return int(wrong[0]) if wrong.size else None


def wanted_for(number: object) -> str:
    """What is expected in place of a wrong number."""
    return (
        f"numbers of at most {LARGEST:g}" if np.isfinite(float(str(number))) else "finite numbers"
    )


def as_labels(column: Array) -> Array:
    """Labels as one array; decimals as the nearest floats."""
    column = plain(column)
    return to_float64(column) if pa.types.is_decimal(column.type) else column


def check_roles(group: str, target: str, features: Sequence[str], dashes: str = "") -> None:
    """Raise unless each column is one thing only: whose row it is, what is predicted, or from."""
    if group == target:
        raise ValueError(f"{dashes}target: {target!r} is the group too; name another column")
    for name, count in Counter(features).items():
        other = {group: "the group", target: "the target"}.get(name)
        if other is not None or count > 1:
            raise ValueError(
                f"{dashes}features: {name!r} is {'named twice' if other is None else other}; "
                f"{'name it once' if other is None else 'leave it out'}"
            )


def wrong_name(name: str, known: Sequence[str]) -> str:
    """What to say of a column that is not there, or is there several times."""
    if name in known:
        return f"column {name!r}: there are {known.count(name)} of this name; rename all but one"
    shown = ", ".join(map(repr, known[:SHOWN]))
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"there is no column {name!r}; it has {shown}{more}"


def to_float64(column: Array) -> Array:
    """Numbers of any kind as float64, each rounded to the nearest.

    Arrow's own cast is off by the last bit in a third of all decimals; by way of text it is not.
    """
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.string())
    return pc.cast(column, pa.float64(), safe=False)  # integers beyond 2^53 are rounded too
