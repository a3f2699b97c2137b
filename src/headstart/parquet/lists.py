"""Sparse rows in a dataset: two columns of lists, which entries of a row are not 0, and these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from headstart._core.answers import LARGEST
from headstart.parquet.columns import Array, is_numeric, plain, to_float64
from headstart.tasks.sparse import Csr


def is_list(kind: Any, of_integers: bool) -> bool:
    """Whether a column holds lists of numbers, or of integers."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    inside = kind.value_type
    return bool(pa.types.is_integer(inside) if of_integers else is_numeric(inside))


def from_lists(indices: Array, values: Array, width: int, dtype: Any) -> Csr:
    """Rows of so many columns, whose entries are given by their columns and values.

    Raise ValueError, with the first row that is wrong and what is wrong there.
    """
    where, what = plain(indices), plain(values)
    for column in (where, what):
        if column.null_count:
            raise ValueError(_at(int(np.argmax(_numpy(column.is_null()))), "a list is missing"))
    lengths, others = (_numpy(pc.list_value_length(column)) for column in (where, what))
    if not np.array_equal(lengths, others):
        row = int(np.argmax(lengths != others))
        raise ValueError(
            _at(row, f"expected lists of one length, found {lengths[row]} and {others[row]}")
        )
    starts = np.append(0, np.cumsum(lengths, dtype=np.int64))
    inside, numbers = where.flatten(), to_float64(what.flatten())
    if inside.null_count or numbers.null_count:
        raise ValueError(_at(0, "a value in the lists is missing"))
    columns, data = _numpy(inside), _numpy(numbers)
    wrong = (columns < 0) | (columns >= width)
    bad = wrong | ~(np.abs(data) <= LARGEST)
    if bad.any():
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(starts, entry, side="right")) - 1
        found = (
            f"expected columns from 0 to {width - 1}, found {columns[entry]}"
            if wrong[entry]
            else f"expected finite numbers of at most {LARGEST:g}, found {data[entry]}"
        )
        raise ValueError(_at(row, found))
    rows = csr_array((data.astype(dtype), columns.astype(np.int64), starts), (len(lengths), width))
    rows.sum_duplicates()
    return rows


def _numpy(column: Array) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _at(row: int, what: str) -> str:
    """A fault with the number of its row before it, for whoever knows where the rows are."""
    return f"{row}:{what}"
