"""Columns as Arrow has them: which are numbers, which entries are missing, the values as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Array = Any  # of Arrow, whose stubs do not know what it can be made of
INDEX = "__index_level_"  # what pandas calls an index it was not asked to write


def is_null(column: Array) -> NDArray[np.bool_]:
    """Where a column has neither a value nor a number."""
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


def is_whole(keys: Array) -> bool:
    """Whether all keys are integers, which NumPy can take as they are."""
    return bool(keys.null_count == 0 and pa.types.is_integer(keys.type))


def is_numeric(kind: Any) -> bool:
    """Whether a column of this type can be a feature."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def as_floats(column: Array) -> Array:
    """Numbers of any kind as float64, each the nearest one there is.

    Arrow is off by the last bit in a third of all decimals, unless they are texts in between.
    """
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.string())
    return pc.cast(column, pa.float64())
