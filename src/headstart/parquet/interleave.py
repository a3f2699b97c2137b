"""Columns into rows: the one copy between Arrow's columns and the kernels' row-major inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart._core.jit import intrinsic, kernel
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
