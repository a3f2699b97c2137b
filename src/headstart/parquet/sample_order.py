"""The order of a sample's rows, which their values decide and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.assign import assign
from headstart._core.checks import FloatArray
from headstart._core.jit import kernel
from headstart.parquet.files import ParquetError
from headstart.parquet.source import Source

Hashes = NDArray[np.uint64]
Matrix = NDArray[np.float64]


class Drawn(NamedTuple):
    """Rows of a sample: the hash of each one's entity, inputs, labels as they are, and side."""

    hashes: Hashes
    X: FloatArray
    y: NDArray[np.generic]
    side: Matrix


def in_order(parts: Iterable[Drawn], count: int, like: Source, n_side: int) -> Drawn:
    """All parts, of `count` rows, as one: entities by hash, rows of each in an order they decide.

    Inputs, which are large, are there once: each part goes where there is room for all, and then
    rows change places.
    """
    X, last = np.empty((count, like.n_features), like.dtype), 0
    small: list[tuple[Any, ...]] = [(np.empty(0, np.uint64), np.empty(0), np.empty((0, n_side)))]
    for hashes, inputs, y, side in parts:
        first, last = last, last + len(y)
        if last <= count:
            X[first:last] = inputs
        del inputs  # or else they would stay while the next are read
        small.append((hashes, y, side))
    if last != count:
        raise ParquetError(
            f"{like.known_as}: expected {count} rows of the sample, as its ids had them, found "
            f"{last}; did the files change meanwhile?"
        )
    hashes, y, side = (np.concatenate(few) for few in zip(*small[last > 0 :], strict=True))
    numbers = np.unique(y, return_inverse=True)[1] if y.dtype.kind in "OUS" else y
    mixed = np.empty(len(y), np.uint64)
    _mix(X, np.asarray(numbers, np.float64), mixed)
    heads = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(y)])
    different, entity = np.unique(hashes[heads], return_inverse=True)
    bits = np.uint64(len(different).bit_length())
    sizes = np.diff(heads, append=len(y))
    rank = np.repeat(entity.astype(np.uint64) << (np.uint64(64) - bits), sizes)
    order = np.argsort(rank | (mixed >> bits))
    _reorder(X, order)
    return Drawn(hashes[order], X, y[order], side[order])


@kernel
def _mix(X: FloatArray, y: NDArray[np.float64], out: Hashes) -> None:
    """A number for each row that looks random and depends on nothing but its values."""
    for i in range(len(y)):
        total = np.uint64(0x9E3779B97F4A7C15)
        for j in range(X.shape[1] + 1):
            value = np.float64(y[i]) if j == X.shape[1] else np.float64(X[i, j])
            bits = np.float64(value + 0.0).view(np.uint64)
            total = (total ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
            total = total ^ (total >> np.uint64(29))
        out[i] = total


@kernel
def _reorder(X: FloatArray, order: NDArray[np.int64]) -> None:
    """Row i becomes what row ``order[i]`` is, in place: rows that follow each other make a ring."""
    held, done = np.empty(X.shape[1], X.dtype), np.zeros(len(order), np.bool_)
    for first in range(len(order)):
        if done[first]:
            continue
        assign(held, X[first])
        here = first
        while order[here] != first:
            assign(X[here], X[order[here]])
            done[here] = True
            here = order[here]
        assign(X[here], held)
        done[here] = True
