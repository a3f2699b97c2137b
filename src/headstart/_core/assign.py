"""Assigning to all of an array, in compiled code.

``out[:] = values`` is the same. But it has a message for arrays of different lengths, and compiling
what words that message takes longer than most kernels, in each that has such a line.
"""

from __future__ import annotations

from headstart._core.checks import FloatArray
from headstart._core.jit import part


@part
def assign(out: FloatArray, values: FloatArray) -> None:
    """``out[:] = values``, of vectors of one length."""
    for i in range(len(out)):
        out[i] = values[i]
