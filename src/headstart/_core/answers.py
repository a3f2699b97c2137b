"""Answers are numbers, or there is an error that says why: the one place that looks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e150  # of inputs and labels: squares and products must be numbers too
IF_MISSING = "leave the row out, or fill it in"  # what to do about a value that is not there

A = TypeVar("A")


class RangeError(ValueError):
    """Numbers of which each can be taken, and which cannot be learned from together."""


def quietly() -> np.errstate:
    """Without NumPy's warnings of overflow: `check_answer` reports what overflows."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def is_finite(array: NDArray[np.floating]) -> bool:
    """Whether all numbers are finite; of float64, whether their norm is at most `LARGEST`.

    One pass without a temporary. Squares of float32 are always numbers in float64.
    """
    with quietly():
        if array.dtype == np.float64:
            flat = array.reshape(-1)
            return bool(np.dot(flat, flat) <= LARGEST**2)
        return math.isfinite(array.sum(dtype=np.float64))


def check_answer(answer: A, arguments: str) -> A:
    """`answer` if all its numbers are finite: an array, a number, or a tuple of such.

    `arguments` are those that numbers can grow beyond all by.
    """
    for part in _parts(answer):
        if not math.isfinite(part) if isinstance(part, float) else not np.isfinite(part).all():
            raise ValueError(
                f"{arguments}: the answer is beyond all numbers; use values nearer to 1, such as "
                "other units of X and y, or a larger reg"
            )
    return answer


def _parts(answer: Any) -> Iterator[Any]:
    if isinstance(answer, tuple):
        for part in answer:
            yield from _parts(part)
    elif isinstance(answer, float | np.ndarray):
        yield answer
