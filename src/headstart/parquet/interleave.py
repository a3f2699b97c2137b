"""Columns into rows: the one copy between Arrow's columns and the kernels' row-major inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from headstart._checks import FloatArray
from headstart._jit import kernel

TILE = 128  # rows, which stay in the nearest caches while the columns are gone through


@intrinsic
def _pointer(_: Any, address: Any) -> Any:
    """A number as the address it is."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@kernel
def _interleave(addresses: NDArray[np.int64], out: FloatArray) -> float:
    """Columns into rows, four at a time because four numbers are written at once; and their sum."""
    n, d = out.shape
    total, fours = 0.0, d - d % 4
    for first in range(0, n, TILE):
        last = min(first + TILE, n)
        for j in range(0, fours, 4):
            a = carray(_pointer(addresses[j]), n, out.dtype)
            b = carray(_pointer(addresses[j + 1]), n, out.dtype)
            c = carray(_pointer(addresses[j + 2]), n, out.dtype)
            e = carray(_pointer(addresses[j + 3]), n, out.dtype)
            for i in range(first, last):
                out[i, j], out[i, j + 1], out[i, j + 2], out[i, j + 3] = a[i], b[i], c[i], e[i]
                total += (a[i] + b[i]) + (c[i] + e[i])
        for j in range(fours, d):
            a = carray(_pointer(addresses[j]), n, out.dtype)
            for i in range(first, last):
                out[i, j] = a[i]
                total += a[i]
    return total


def interleave(columns: list[NDArray[Any]], out: FloatArray) -> bool:
    """Make the columns those of `out`, and say if all numbers are finite, as far as their sum is.

    Columns that are as `out` wants them are read where they lie, all at once: one after another
    each would go through the whole of `out`.
    """
    plain = all(c.dtype == out.dtype and c.flags.c_contiguous for c in columns)
    if plain and out.flags.c_contiguous:
        total = _interleave(np.array([c.ctypes.data for c in columns]), out)
    else:
        for j, column in enumerate(columns):
            out[:, j] = column
        total = float(out.sum(dtype=np.float64))
    return bool(np.isfinite(total))
