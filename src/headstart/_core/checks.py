"""Argument checks. Every message names the argument, what was found and what is accepted."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headstart._core.answers import LARGEST, is_finite

FloatArray = NDArray[np.floating]  # float32 or float64, as the data
Vector = NDArray[np.float64]

ROWS_AT_ONCE = 1 << 16  # block-wise work never makes a temporary the size of the data

SMALLEST = 1e-50  # of numbers in formulas of the theory
NO_NUMBERS = (bool, np.bool_, np.timedelta64)  # which Python and NumPy call integers

A = TypeVar("A")


def first_row(mask: NDArray[np.bool_]) -> int | None:
    """Index of the first True, or None."""
    return int(mask.argmax()) if mask.any() else None


def check_number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
) -> float:
    """`value` as a finite float inside the limits."""
    wanted = "a finite number"
    wanted += f" > {above:g}" if above > -math.inf else ""
    wanted += f" >= {at_least:g}" if at_least > -math.inf else ""
    wanted += f" and < {below:g}" if below < math.inf else ""
    if isinstance(value, NO_NUMBERS) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected {wanted}, found {_described(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and above < number < below and number >= at_least):
        raise ValueError(f"{name}: expected {wanted}, found {number:g}")
    return number


def check_count(name: str, value: object, *, at_least: int = 1, at_most: int | None = None) -> int:
    """`value` as an int inside the limits."""
    wanted = f"an integer >= {at_least}" + ("" if at_most is None else f" and <= {at_most}")
    if isinstance(value, NO_NUMBERS) or not isinstance(value, Integral):
        raise TypeError(f"{name}: expected {wanted}, found {_described(value)}")
    count = int(value)
    if count < at_least or (at_most is not None and count > at_most):
        raise ValueError(f"{name}: expected {wanted}, found {count}")
    return count


def check_reg(name: str, value: object) -> float:
    """A number > 0 that can be divided by."""
    number = check_number(name, value, above=0.0)
    if 1.0 / number == math.inf:
        raise ValueError(f"{name}: expected a number that 1 can be divided by, found {number:g}")
    return number


def check_regs(name: str, values: ArrayLike) -> Vector:
    """Numbers > 0 of any shape that can be divided by, at least one."""
    grid = as_floats(name, np.ravel(_as_array(name, values)), 1).astype(np.float64)
    if grid.size == 0 or not (grid > 0.0).all():
        raise ValueError(f"{name}: expected numbers > 0, at least one, found {_shown(values)}")
    check_reg(name, float(grid.min()))
    return grid.reshape(np.shape(values))


def check_size(name: str, value: object, *, or_zero: bool = False) -> float:
    """A number > 0, or 0, whose powers and quotients are numbers too."""
    number = check_number(name, value, **({"at_least": 0.0} if or_zero else {"above": 0.0}))
    if not (SMALLEST <= number <= 1.0 / SMALLEST or number == 0.0):
        wanted = f"a number from {SMALLEST:g} to {1.0 / SMALLEST:g}"
        raise ValueError(f"{name}: expected {wanted}, found {number:g}")
    return number


def check_flag(name: str, value: object) -> bool:
    """True or False, and nothing that only seems to be one."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, found {_described(value)}")
    return bool(value)


def check_kind(name: str, value: object, kind: type[A], how: str = "") -> A:
    """`value` if it is of this class; `how` says where one comes from."""
    if not isinstance(value, kind):
        wanted = kind.__name__ + (f", {how}" if how else "")
        raise TypeError(f"{name}: expected a {wanted}; found {_described(value)}")
    return value


def check_choice(name: str, value: object, choices: Sequence[str], also: str = "") -> str:
    """`value` if it is one of the names."""
    wanted = f"one of {', '.join(map(repr, choices))}" + (f" {also}" if also else "")
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected {wanted}, found {_described(value)}")
    if value not in choices:
        raise ValueError(f"{name}: expected {wanted}, found {value!r}")
    return value


def check_array(name: str, value: ArrayLike, ndim: int | None) -> NDArray[np.generic]:
    """`value` as an array of real numbers with `ndim` axes, or any number of them if that is None.

    Finiteness is not looked at.
    """
    if np.ma.isMaskedArray(value) and np.ma.getmaskarray(value).any():
        raise ValueError(f"{name}: expected an array without masked entries")
    array = _as_array(name, value)
    if array.dtype.kind == "O":  # say, a list holding numpy scalars and Python numbers
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"{name}: expected an array of numbers, found {_described(value)}"
            ) from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected an array of numbers, found dtype {array.dtype}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected a {ndim}-D array, found shape {array.shape}")
    return array


def _as_array(name: str, value: ArrayLike) -> NDArray[np.generic]:
    """`value` as NumPy has it, if it can be one array."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name}: expected an array of numbers, found rows of different lengths"
        ) from None
    except Exception as error:  # whatever a type of another library says to it
        raise TypeError(
            f"{name}: expected an array of numbers, found {type(value).__name__} ({error})"
        ) from None


def as_numbers(name: str, value: ArrayLike) -> NDArray[np.floating]:
    """Finite numbers of any shape, a copy only where they are not floats already."""
    found = _as_array(name, value)
    return as_floats(name, found.reshape(-1), 1).reshape(found.shape)


def together(**values: ArrayLike) -> list[Vector]:
    """Finite numbers of shapes that go together, as float64 of one shape."""
    found = [as_numbers(name, value) for name, value in values.items()]
    try:
        shape = np.broadcast_shapes(*(array.shape for array in found))
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in found)
        raise ValueError(
            f"{', '.join(values)}: expected shapes that go together, found {shapes}"
        ) from None
    return [np.broadcast_to(array, shape).astype(np.float64) for array in found]


def float_type(array: NDArray[np.generic]) -> DTypeLike:
    """float32 stays float32; every other number becomes float64."""
    return np.float32 if array.dtype == np.float32 else np.float64


def as_floats(
    name: str, value: ArrayLike, ndim: int, *, rows: NDArray[np.intp] | None = None
) -> FloatArray:
    """`value` as a finite C-ordered float array, copied only if it is not one already.

    With `rows`, the array of those rows, still with one copy at most.
    """
    array = check_array(name, value, ndim)
    with np.errstate(over="ignore"):  # a long double may be too large for a float64
        if rows is None:
            floats: FloatArray = np.ascontiguousarray(array, float_type(array))
        else:
            floats = np.empty((rows.size, *array.shape[1:]), float_type(array))
            for first in range(0, rows.size, ROWS_AT_ONCE):
                block = slice(first, first + ROWS_AT_ONCE)
                floats[block] = array[rows[block]]
    check_finite(name, floats, rows)
    return read_only(floats)


def read_only(array: FloatArray) -> FloatArray:
    """A view that cannot be written: kernels are compiled for such, so for one kind only."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_finite(name: str, array: FloatArray, rows: NDArray[np.intp] | None = None) -> None:
    """Raise at the first NaN or infinity, or number too large to square, naming its place.

    `rows` says where rows came from.
    """
    if is_finite(array):
        return
    for wanted in ("finite numbers", f"numbers of at most {LARGEST:g}"):
        for first in range(0, len(array), ROWS_AT_ONCE):
            part = array[first : first + ROWS_AT_ONCE]
            right = np.isfinite(part) if wanted == "finite numbers" else np.abs(part) <= LARGEST
            if not right.all():
                row, *column = np.argwhere(~right)[0].tolist()
                found = part[(row, *column)]
                origin = first + row if rows is None else rows[first + row]
                place = f"row {origin}" + (f", column {column[0]}" if column else "")
                raise ValueError(f"{name}: expected {wanted}, found {found} in {place}")


def check_task(X: ArrayLike, y: ArrayLike, where: str = "") -> tuple[FloatArray, FloatArray]:
    """One task's inputs and labels, of one float type, of equal length, not empty."""
    inputs = as_floats(f"{where}X", X, 2)
    labels = as_labels(f"{where}y", y, inputs.dtype)
    check_rows(inputs, labels, where)
    return inputs, labels


def as_labels(
    name: str,
    value: ArrayLike,
    dtype: np.dtype[np.floating],
    rows: NDArray[np.intp] | None = None,
) -> FloatArray:
    """Finite labels in the float type of the inputs they belong to."""
    floats = as_floats(name, value, 1, rows=rows)
    if floats.dtype == dtype:
        return floats
    with np.errstate(over="ignore"):
        labels = floats.astype(dtype)
    check_finite(name, labels, rows)  # float64 labels may be too large for float32 inputs
    return read_only(labels)


class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


def check_rows(X: _Shaped, y: _Shaped, where: str = "") -> None:
    """X and y have the same, non-zero number of rows, and X has a column."""
    n_rows, n_labels = X.shape[0], y.shape[0]
    if n_rows == 0:
        raise ValueError(f"{where}X: expected at least one row, found shape {X.shape}")
    if X.shape[1] == 0:
        raise ValueError(f"{where}X: expected at least one column, found shape {X.shape}")
    if n_rows != n_labels:
        raise ValueError(f"{where}y: expected one label per row of X ({n_rows}), found {n_labels}")


def check_bias(name: str, bias: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """A vector of length `n_features`, as float64."""
    if hasattr(bias, "bias"):
        raise TypeError(f"{name}: expected a vector, found {type(bias).__name__}; use its .bias")
    vector = as_floats(name, bias, 1).astype(np.float64)
    if vector.size != n_features:
        raise ValueError(f"{name}: expected length {n_features}, found {vector.size}")
    return vector


def check_generator(random_state: object) -> np.random.Generator:
    """A seed, None or a `numpy.random.Generator`, as the latter."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, Integral):
        return np.random.default_rng(check_count("random_state", random_state, at_least=0))
    raise TypeError(
        "random_state: expected None, an integer >= 0 or a numpy.random.Generator, "
        f"found {_described(random_state)}"
    )


def cores() -> int:
    """Number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def check_jobs(n_jobs: object) -> int:
    """Number of threads: None is 1, negative counts back from the number of cores (-1: all)."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs: expected None or an integer other than 0, found {n_jobs!r}")
    count = int(n_jobs)
    return min(count, 1024) if count > 0 else max(1, cores() + 1 + count)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's that called into the package."""
    package, level = str(Path(__file__).parent.parent), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _described(value: object) -> str:
    return f"{type(value).__name__} {_shown(value)}"


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
