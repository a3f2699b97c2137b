"""The rule of Algorithm 1, which all its kernels share: subgradients, and how they count.

After k of n rows the iterate is ``h - c S``, S being the sum of ``u_i x_i``. What differs between
kernels is where S is kept and which rows are taken together; `scale_after` gives c for all.
"""

from __future__ import annotations

from headstart._core.jit import kernel


@kernel
def rows_counted(k: int, n: int, constant: bool) -> int:
    """By what S is divided after k rows: k in Algorithm 1, n where all steps have one length.

    Who does not know n, because rows still arrive, takes 1: the length of a step is 1 / lam then.
    """
    return n if constant else max(k, 1)


@kernel
def scale_after(k: int, n: int, constant: bool, lam: float) -> float:
    """The scale c of S in the iterate after k of n rows; 0 after none, where S is 0."""
    return 1.0 / (rows_counted(k, n, constant) * lam) if k > 0 else 0.0
