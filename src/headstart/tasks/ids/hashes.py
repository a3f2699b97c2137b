"""A number for each id that looks random and never changes.

With it a sample of entities is drawn without a generator: those with the smallest numbers. It is
the same for rows in any order, on any number of machines, and for ids in columns of any type.

Integers of 64 bits are mixed by a function that can be undone, so that no two of them share a
number. All else is hashed as text: among n such ids two share a number with a probability of
about ``n^2 / 2^65``, 3e-8 for a million.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.tasks.ids.canonical import Key, known_by


def hash_ids(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each id that looks random, and is the same on every machine and in every run.

    Ids that are equal have the same, whatever the type of their column.
    """
    if ids.dtype.kind in "iub":
        return _mixed(ids.astype(np.int64, copy=False).view(np.uint64))
    keys = list(map(known_by, list(ids) if ids.dtype.kind in "Mm" else ids.tolist()))
    integer = np.array([_is_integer(key) for key in keys], np.bool_)
    hashes = np.empty(len(keys), np.uint64)
    numbers = [key % 2**64 for key, is_it in zip(keys, integer, strict=True) if is_it]  # type: ignore[operator]
    hashes[integer] = _mixed(np.array(numbers, np.uint64))
    texts = [_text(key).encode() for key, is_it in zip(keys, integer, strict=True) if not is_it]
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    hashes[~integer] = np.frombuffer(digests, "<u8")
    return hashes


def _is_integer(key: Key) -> bool:
    """Whether it is an integer that a column of 64 bits can hold, with a sign or without."""
    return isinstance(key, int) and -(2**63) <= key < 2**64


def _text(key: Key) -> str:
    """What Python shows of an id, where that is the same in all versions of all libraries."""
    if isinstance(key, np.datetime64 | np.timedelta64):
        return f"{key.dtype.name} {key.astype(np.int64)}"
    if isinstance(key, float) and key.is_integer():
        return repr(int(key))  # as the integer it is equal to
    if isinstance(key, tuple):
        inside = ", ".join(map(_text, key))
        return f"({inside},)" if len(key) == 1 else f"({inside})"
    return repr(key)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): one to one, modulo 2^64.

    Each xor of x with its own upper bits, and each product with an odd number, can be undone.
    """
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
