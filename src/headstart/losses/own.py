"""Losses of one's own inside kernels: their parts as C functions, found by address.

Kernels know built-in losses by their codes. The parts of any other loss are compiled once in a
process, and kernels that came from the cache call them through a table of addresses.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from headstart._core.jit import uncached
from headstart.losses.form import ADDRESSES, PARTS, RESULTS

# Tables and functions by loss, never given up: kernels may call into them at any time.
_TABLES: dict[type, tuple[NDArray[np.int64], list[Any]]] = {}


def table_of(loss: type) -> int:
    """The address of the table of addresses of a loss's parts; 0 stands for a part it lacks."""
    if loss not in _TABLES:
        parts = [_compile(loss, name, k) for name, k in ADDRESSES]
        addresses = np.array([0 if part is None else part.address for part in parts], np.int64)
        _TABLES[loss] = addresses, parts
    return int(_TABLES[loss][0].ctypes.data)


def _compile(loss: type, name: str, number: int) -> Any:
    """Result `number` of a part as a C function, or None if the loss does not have the part."""
    part = getattr(loss, name, None)
    if part is None:
        return None
    count = len(PARTS[name]) + 2
    compiled = uncached(part)

    def picked(mean: float, variance: float, a: float, b: float) -> float:
        return float(compiled(mean, variance, a, b)[number])

    try:
        return numba.cfunc(f"float64({', '.join(['float64'] * count)})", error_model="numpy")(
            picked if name in RESULTS else part
        )
    except (NumbaError, TypeError) as error:
        arguments = ", ".join((*PARTS[name], "a", "b"))
        raise TypeError(
            f"loss: the part {name!r} of {loss.__name__} cannot be compiled; it is to be a static "
            f"method {name}({arguments}) of numbers that numba can compile: {error}"
        ) from error
