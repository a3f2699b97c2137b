"""Columns into rows: the one copy between Arrow's columns and the kernels' row-major inputs.

A kernel that takes a few rows at a time has them gathered where it needs them (`Pieces`): they are
there only in a near cache. Others have all rows made at once (`interleave`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numba.core import cgutils, types
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart._core.jit import intrinsic, kernel, lent
from headstart._core.lanes import LANES, turn

TILE = 128  # rows, which stay in the nearest caches while all columns are copied into them


@intrinsic
def pointer(_: Any, address: Any) -> Any:
    """A number as the address it is."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@kernel
def _interleave(addresses: NDArray[np.int64], out: FloatArray) -> float:
    """Columns into rows, eight by eight: so many are turned at once. And the sum of squares."""
    n, d = out.shape
    total, eights = 0.0, d - d % LANES
    for first in range(0, n, TILE):
        last = min(first + TILE, n)
        whole = last - (last - first) % LANES
        for j in range(0, eights, LANES):
            for i in range(first, whole, LANES):
                turn(out, addresses, j, i, LANES, out, i * d + j)
        for j in range(d):
            a = carray(pointer(addresses[j]), n, out.dtype)
            for i in range(whole if j < eights else first, last):
                out[i, j] = a[i]
            for i in range(first, last):
                total += a[i] * a[i]
    return total


def addresses_of(columns: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Where columns lie, for kernels; they must stay there meanwhile."""
    return np.array([column.ctypes.data for column in columns], np.int64)


class Pieces(NamedTuple):
    """Where rows lie in columns, one piece of neighbouring rows after the other.

    Attributes
    ----------
    places : by piece, where each column begins, and the last again until there are eights
    cuts : the number of the first row of each piece, and how many there are
    """

    places: NDArray[np.int64]
    cuts: NDArray[np.int64]

    @classmethod
    def of(cls, pieces: list[list[NDArray[Any]]]) -> Self:
        """Contiguous columns of one type; they must stay there meanwhile."""
        more = -len(pieces[0]) % LANES
        places = [addresses_of(columns + columns[-1:] * more) for columns in pieces]
        cuts = np.cumsum([0, *(len(columns[0]) for columns in pieces)], dtype=np.int64)
        return cls(np.concatenate(places), cuts)


@lent
def gather(pieces: Pieces, first: int, last: int, near: FloatArray) -> float:
    """Copy rows into the first of `near`, which has seven to spare; about the sum of squares."""
    places, cuts = pieces
    width = near.shape[1]
    for p in range(len(cuts) - 1):
        begin, end = max(first, cuts[p]), min(last, cuts[p + 1])
        for j in range(0, width if begin < end else 0, LANES):
            for i in range(begin, end, LANES):
                count, place = min(LANES, end - i), (i - first) * width + j
                turn(near, places, p * width + j, i - cuts[p], count, near, place)
    total, flat = 0.0, near[: last - first].reshape(-1)
    for i in range(len(flat)):
        total += flat[i] * flat[i]
    return total


def interleave(columns: list[NDArray[Any]], out: FloatArray) -> bool:
    """Copy the columns into `out`; True if all numbers are finite, and squares add up to one.

    Contiguous columns in the type of `out` are read where they lie, all in one pass: one after
    another, each column would go through all of `out`.
    """
    direct = all(c.dtype == out.dtype and c.flags.c_contiguous for c in columns)
    if direct and out.flags.c_contiguous:
        total = _interleave(addresses_of(columns), out)
    else:
        for j, column in enumerate(columns):
            out[:, j] = column
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.einsum("ij,ij->", out, out, dtype=np.float64))
    return bool(np.isfinite(total))
