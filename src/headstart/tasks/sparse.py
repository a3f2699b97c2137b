"""Sparse inputs from users: SciPy's matrices, checked and in one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse, vstack

from headstart._core.answers import LARGEST, is_finite
from headstart._core.checks import (
    FloatArray,
    as_labels,
    check_rows,
    check_task,
    float_type,
    read_only,
)
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
    with np.errstate(over="ignore"):  # a long double may be too large for a float64
        found = csr_array(value, dtype=float_type(value))
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    if not is_finite(found.data):
        finite = np.isfinite(found.data)
        wanted = "finite numbers" if not finite.all() else f"numbers of at most {LARGEST:g}"
        wrong = np.flatnonzero(~(finite & (np.abs(found.data) <= LARGEST)))
        if wrong.size:
            row = int(np.searchsorted(found.indptr, wrong[0], side="right")) - 1
            raise ValueError(
                f"{name}: expected {wanted}, found {found.data[wrong[0]]} in row {row}, "
                f"column {found.indices[wrong[0]]}"
            )
    return found


def check_pair(X: ArrayLike | Csr, y: ArrayLike, where: str) -> tuple[FloatArray | Csr, FloatArray]:
    """One task's inputs and labels, of one float type, of equal length, not empty."""
    if not is_sparse(X):
        return check_task(cast(ArrayLike, X), y, where)
    inputs = as_sparse(f"{where}X", X)
    labels = as_labels(f"{where}y", y, inputs.dtype)
    check_rows(inputs, labels, where)
    return inputs, labels


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
