"""Named arrays that come back from a disk: nothing is taken from them that was not checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Arrays = Mapping[str, NDArray[Any]]  # of any kind: numbers by name

MANY = 1 << 53  # more rows or tasks than there ever are; sums of two such counts are exact


def checked(
    arrays: Arrays,
    name: str,
    shape: tuple[int | None, ...],
    kind: DTypeLike,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> NDArray[Any]:
    """The array of this name, if kernels can trust it.

    Parameters
    ----------
    arrays, name
    shape : lengths; None where any is right
    kind : the type of the entries; floats must be finite
    at_least, above, below : limits of the entries
    """
    array = named(arrays, name)
    fits = len(shape) == array.ndim and all(
        want is None or want == found for want, found in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != np.dtype(kind):
        lengths = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(
            f"{name}: expected {np.dtype(kind)} of shape ({lengths}), "
            f"found {array.dtype} of shape {array.shape}"
        )
    if array.size:
        low, high = array.min(), array.max()  # NaN, if there is one
        wrong = array.dtype.kind == "f" and not (np.isfinite(low) and np.isfinite(high))
        wrong |= at_least is not None and not low >= at_least
        wrong |= above is not None and not low > above
        wrong |= below is not None and not high < below
        if wrong:
            limits = {"at least": at_least, "above": above, "below": below}
            wanted = [f" {word} {limit:g}" for word, limit in limits.items() if limit is not None]
            raise ValueError(
                f"{name}: expected finite numbers{' and'.join(wanted)}, "
                f"found some from {low:g} to {high:g}"
            )
    return array


def named(arrays: Arrays, name: str) -> NDArray[Any]:
    """The array of this name."""
    if name not in arrays:
        raise ValueError(f"{name}: expected an array of this name, found none")
    return arrays[name]


def float_kind(arrays: Arrays, name: str) -> np.dtype[Any]:
    """The type of an array that may be of float32 or float64."""
    found = named(arrays, name).dtype
    if found != np.float32 and found != np.float64:
        raise ValueError(f"{name}: expected float32 or float64, found {found}")
    return found


def check_different(name: str, numbers: NDArray[np.int64], count: int) -> None:
    """Raise if a number, all being at least 0 and below `count`, is there twice."""
    there = np.zeros(count, np.bool_)
    there[numbers] = True
    if np.count_nonzero(there) != numbers.size:
        raise ValueError(f"{name}: expected numbers that are all different")
