"""Sparse inputs from users: SciPy's matrices, checked and in one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from headstart._core.checks import FloatArray, float_type, read_only
from headstart.tasks.rows import Sparse

Csr = csr_array  # with float values, columns in order and no column twice


def is_sparse(value: object) -> bool:
    """Whether it is one of SciPy's sparse matrices."""
    return bool(issparse(value))


def as_sparse(name: str, value: Any) -> Csr:
    """SciPy's sparse matrix in the form kernels need, copied only if it is not in it already."""
    if value.ndim != 2:
        raise ValueError(f"{name}: expected a 2-D matrix, found shape {value.shape}")
    if value.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected a matrix of numbers, found dtype {value.dtype}")
    found = csr_array(value, dtype=float_type(value))
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    wrong = np.flatnonzero(~np.isfinite(found.data))
    if wrong.size:
        row = int(np.searchsorted(found.indptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"{name}: expected finite numbers, found {found.data[wrong[0]]} in row {row}, "
            f"column {found.indices[wrong[0]]}"
        )
    return found


def kernel_view(X: Csr) -> Sparse:
    """What kernels see of a matrix."""
    columns = X.indices.astype(np.int32, copy=False).view(np.uint32)
    starts = X.indptr.astype(np.int64, copy=False).view(np.uint64)
    return Sparse(read_only(X.data), columns, starts)


def stack(blocks: Sequence[FloatArray | Csr]) -> FloatArray | Csr:
    """Blocks of rows as one; sparse if any of them is."""
    dense = [block for block in blocks if isinstance(block, np.ndarray)]
    if len(dense) == len(blocks):
        return np.concatenate(dense)
    return csr_array(vstack([csr_array(block) for block in blocks], format="csr"))
