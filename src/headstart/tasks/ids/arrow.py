"""Columns of Arrow as codes and the canonical keys they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headstart.tasks.ids.canonical import SAME, Key, durations, known_by, times, times_of_day

Codes = NDArray[np.int64]
Array = Any  # of Arrow, whose stubs do not know what it can be made of


def in_order(values: NDArray[Any]) -> tuple[Codes | None, NDArray[Any]]:
    """Codes, and the different values by first appearance; no codes if all are different.

    Values are compared by their bytes, which takes neither a sort nor a Python object.
    """
    if values.dtype.kind in "iu" and bool(np.all(values[1:] > values[:-1])):
        return None, values  # ids in increasing order, as is usual on disk
    size = values.dtype.itemsize
    if size in (1, 2, 4, 8):
        plain: Array = pa.array(values.view(f"i{size}"))
    else:
        buffer = pa.py_buffer(np.ascontiguousarray(values).data)
        plain = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(values), [None, buffer])
    found = plain.dictionary_encode()
    codes = found.indices.to_numpy().astype(np.int64)
    # Codes are given in the order of appearance: a new largest one is a value's first row.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    return codes, values[first]


def decoded(array: Array) -> tuple[Codes, list[Key]]:
    """By row the code of its value, -1 where it is missing; and keys by first appearance.

    A key may be None, or be there twice: two values of Arrow's can be one id.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind: Any = array.type
    if pa.types.is_float16(kind):  # which Arrow does not compare
        return decoded(array.cast(pa.float32()))
    if pa.types.is_run_end_encoded(kind):
        return decoded(pc.call_function("run_end_decode", [array]))
    if pa.types.is_nested(kind):
        return np.arange(len(array)), list(map(known_by, array.to_pylist()))
    if isinstance(array, pa.ExtensionArray):
        codes, different = _encoded(array.storage)
        return codes, keys_of(pa.ExtensionArray.from_storage(kind, different))
    if pa.types.is_dictionary(kind):
        codes, used = _encoded(array.indices)
        return codes, keys_of(array.dictionary.take(used))
    codes, different = _encoded(array)
    return codes, keys_of(different)


def _encoded(array: Array) -> tuple[Codes, Array]:
    if pa.types.is_null(array.type):
        return np.full(len(array), -1), array[:0]
    found = array.dictionary_encode()
    codes = found.indices
    if codes.null_count:
        codes = codes.fill_null(-1)
    return codes.to_numpy().astype(np.int64), found.dictionary


def keys_of(values: Array) -> list[Key]:
    """The canonical key of each value, None where there is none."""
    kind: Any = values.type
    if values.null_count:
        found = iter(keys_of(values.drop_null()))
        return [next(found) if there else None for there in values.is_valid().to_pylist()]
    if pa.types.is_timestamp(kind):
        return times(_counts(values, np.int64).view(f"M8[{kind.unit}]"), aware=kind.tz is not None)
    if pa.types.is_date32(kind):
        return times(_counts(values, np.int32).astype("M8[D]"))
    if pa.types.is_date64(kind):
        return times(_counts(values, np.int64).view("M8[ms]").astype("M8[D]"))
    if pa.types.is_duration(kind):
        return durations(_counts(values, np.int64).view(f"m8[{kind.unit}]"))
    if pa.types.is_time(kind):
        width = np.int32 if pa.types.is_time32(kind) else np.int64
        since_midnight = _counts(values, width).astype(f"m8[{kind.unit}]").astype("m8[ns]")
        return times_of_day(since_midnight.view(np.int64))
    items = values.to_pylist()
    return items if set(map(type, items)) <= SAME else list(map(known_by, items))


def _counts(values: Array, width: Any) -> NDArray[Any]:
    """The integers Arrow stores for dates and times; its own conversions cut or refuse some."""
    return np.asarray(values.view(pa.from_numpy_dtype(width)).to_numpy())
