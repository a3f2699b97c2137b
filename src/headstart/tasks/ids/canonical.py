"""The one value by which an id is known, whatever type it came in, and what kind of value it is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Key = Hashable

KINDS: dict[type, str] = {
    **dict.fromkeys((int, float, bool, Decimal, Fraction), "number"),
    str: "text",
    bytes: "bytes",
    date: "date",
    **dict.fromkeys((datetime, np.datetime64), "time"),
    time: "time of day",
    **dict.fromkeys((timedelta, np.timedelta64), "duration"),
}
SAME = frozenset({int, str, bytes, bool, date, time, UUID, type(None)})  # are known by themselves
# A float without a fraction is the integer it equals, as far as columns of integers reach.
LARGEST = 2.0**64
# So is a decimal of up to this many digits: 1E+999999999 as an integer would not fit in memory.
DIGITS = 64


def canonical(key: object) -> Key:
    """The value by which an id is known; None if it is missing.

    Numbers that are equal are one id, whatever their types. Times with a zone are those of UTC.
    Times and durations finer than microseconds are of NumPy, with nanoseconds; a time of day
    that fine is a pair of the time and the nanoseconds left over. None, NaN, NaT and NA are
    missing.

    Examples
    --------
    >>> canonical(np.float32(3.0)), canonical(Decimal("3.50")), canonical(float("nan"))
    (3, 3.5, None)
    """
    kind = type(key)
    if kind is int or kind is str:
        return key
    try:
        return known_by(key)
    except TypeError as error:
        raise TypeError(f"ids: expected hashable ids, found {error}") from None


def known_by(key: Any) -> Key:
    """As `canonical`, with the error that Python gives for what cannot be hashed."""
    if type(key) in SAME:
        return key  # type: ignore[no-any-return]
    if type(key) is float:
        return _float(key)
    for kinds, reader in _READERS:
        if isinstance(key, kinds):
            return reader(key)
    hash(key)
    try:
        missing = bool(key != key)
    except (TypeError, ValueError):  # pandas' NA will not say whether it equals itself
        missing = True
    return None if missing else key


def kind_of(kind: type) -> str:
    """What kind of ids a type of canonical values is."""
    return KINDS.get(kind) or kind.__name__


def kinds_of(types: Iterable[type]) -> frozenset[str]:
    """What kinds of ids these types of canonical values are."""
    return frozenset(kind_of(t) for t in types if t is not type(None))


def _float(key: float) -> Key:
    if key != key:
        return None
    return int(key) if key.is_integer() and -LARGEST < key < LARGEST else float(key)


def _fraction(key: Decimal | Fraction) -> Key:
    if isinstance(key, Decimal):
        if not key.is_finite():
            return None if key.is_nan() else float(key)
        if key and not -DIGITS < key.adjusted() < DIGITS:
            return key
    integer, near = int(key), float(key)
    return integer if integer == key else near if near == key else key


def _scalar(key: np.generic) -> Key:
    value = key.item()
    return known_by(value) if type(value) is not type(key) else None if key != key else key


def _time(key: datetime) -> Key:
    if key != key:
        return None  # NaT
    if key.tzinfo is not None:
        try:
            key = key.astimezone(UTC)
        except OverflowError:  # at the end of the calendar
            return key
    if type(key) is datetime:
        return key
    try:
        plain = datetime(key.year, key.month, key.day, key.hour, key.minute, key.second)
    except ValueError:  # a year that the calendar does not have
        return key
    plain = plain.replace(microsecond=key.microsecond)
    if left := getattr(key, "nanosecond", 0):
        return np.datetime64(plain, "ns") + np.timedelta64(left, "ns")
    return plain if key.tzinfo is None else plain.replace(tzinfo=UTC)


def _duration(key: timedelta) -> Key:
    if type(key) is timedelta:
        return key
    plain = timedelta(key.days, key.seconds, key.microseconds)
    if left := getattr(key, "nanoseconds", 0):
        return np.timedelta64(plain, "ns") + np.timedelta64(left, "ns")
    return plain


_READERS: list[tuple[Any, Callable[[Any], Key]]] = [
    (np.datetime64, lambda key: times(np.array([key]))[0]),
    (np.timedelta64, lambda key: durations(np.array([key]))[0]),
    (float, _float),
    (np.generic, _scalar),
    (int, int.__int__),
    (str, str.__str__),
    ((Decimal, Fraction), _fraction),
    (datetime, _time),
    (timedelta, _duration),
    (tuple, lambda key: tuple(map(known_by, key))),
]


def times(values: NDArray[Any], *, aware: bool = False) -> list[Key]:
    """Dates and times of NumPy as keys; `aware` ones are of UTC."""
    if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D"):
        return _exact(values, values.astype("M8[D]"))
    keys = _exact(values, values.astype("M8[us]"))
    if not aware:
        return keys
    return [k.replace(tzinfo=UTC) if type(k) is datetime else k for k in keys]


def durations(values: NDArray[Any]) -> list[Key]:
    """Durations of NumPy as keys."""
    if np.datetime_data(values.dtype)[0] in ("Y", "M", "generic"):
        return [None if np.isnat(value) else value for value in values]
    return _exact(values, values.astype("m8[us]"))


def _exact(values: NDArray[Any], coarse: NDArray[Any]) -> list[Key]:
    """The coarse values as Python's own types; NumPy's where these cannot hold the exact value."""
    keys: list[Key] = coarse.tolist()
    cut = (coarse.astype(values.dtype) != values) & ~np.isnat(values)
    for i in np.flatnonzero(cut).tolist():
        fine = values[i].astype(f"{values.dtype.kind}8[ns]")
        keys[i] = fine if fine == values[i] else values[i]
    for i in [i for i, key in enumerate(keys) if type(key) is int]:  # outside of the calendar
        keys[i] = coarse[i]
    return keys


def times_of_day(nanoseconds: NDArray[np.int64]) -> list[Key]:
    """Times of day, counted from midnight, as keys."""
    keys: list[Key] = []
    for count in nanoseconds.tolist():
        seconds, fraction = divmod(count, 10**9)
        micro, left = divmod(fraction, 1000)
        clock = time(seconds // 3600, seconds // 60 % 60, seconds % 60, micro)
        keys.append((clock, left) if left else clock)
    return keys
