"""Values of a few types as JSON, and back, with their types kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

_WRITERS: list[tuple[type, str, Callable[[Any], object]]] = [
    (bytes, "bytes", bytes.hex),
    (datetime, "datetime", datetime.isoformat),  # which is a date too, so it comes first
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (np.datetime64, "datetime64", lambda value: _counted(value)),
    (np.timedelta64, "timedelta64", lambda value: _counted(value)),
    (Decimal, "decimal", str),
    (Fraction, "fraction", str),
    (UUID, "uuid", str),
]
_READERS: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "datetime64": lambda parts: np.datetime64(*parts),
    "timedelta64": lambda parts: np.timedelta64(*parts),
    "decimal": Decimal,
    "fraction": lambda text: Fraction(*map(int, text.split("/"))),  # not "1e999999999"
    "uuid": UUID,
    "tuple": lambda items: tuple(map(from_plain, items)),
}


def to_plain(name: str, value: object) -> object:
    """A string, number, bool or None as it is; a few other types as ``{type: text}``."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, tuple):
        return {"tuple": [to_plain(name, item) for item in value]}
    for kind, word, write in _WRITERS:
        if isinstance(value, kind):
            return {word: write(value)}
    raise TypeError(
        f"{name}: {value!r} of type {type(value).__name__} cannot be saved; numbers, strings, "
        "bytes, dates, times, durations, UUIDs and tuples of them can"
    )


def from_plain(value: Any) -> Any:
    """What `to_plain` was given; ValueError, or what Python raises, for what it never gives."""
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        if kind not in _READERS:
            raise ValueError(f"expected a value of {', '.join(_READERS)}, found {kind!r:.60}")
        return _READERS[kind](text)
    if isinstance(value, list):
        raise ValueError("expected one value, found a list")
    return value


def _counted(value: np.datetime64 | np.timedelta64) -> list[object]:
    """How many of its units it is, and the unit."""
    unit, step = np.datetime_data(value.dtype)
    return [int(value.astype(np.int64)) * step, unit]
