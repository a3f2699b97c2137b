"""Values of a few types as JSON, and back, with their types kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np

_READERS: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "tuple": lambda items: tuple(map(from_plain, items)),
}


def to_plain(name: str, value: object) -> object:
    """A string, number, bool or None as it is; a few other types as ``{type: text}``."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(name, item) for item in value]}
    raise TypeError(
        f"{name}: {value!r} of type {type(value).__name__} cannot be saved; numbers, strings, "
        "bytes, dates and tuples of them can"
    )


def from_plain(value: Any) -> Any:
    """What `to_plain` was given."""
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _READERS[kind](text)
    return value
