"""A column of ids of any library as runs of equal neighbours, each with its canonical key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from headstart._core.checks import first_row
from headstart.tasks.ids.arrow import decoded, in_order
from headstart.tasks.ids.canonical import SAME, Key, durations, kinds_of, known_by, times
from headstart.tasks.ids.index import IdIndex, Known

Ids = NDArray[np.generic]
Positions = NDArray[np.int64]

SHORT = 1 << 5  # up to so many ids of an array go through a Python list
MANY = 1 << 10  # beyond, the different ids are found first, and only they become Python objects
TEXTS, NUMBERS = frozenset({str, float, type(None)}), frozenset({int, float, type(None)})


@dataclass(frozen=True, eq=False)
class Column:
    """A column of ids in runs of equal neighbours; a row without an id is a run of its own.

    Attributes
    ----------
    size : number of rows
    starts : where each run begins
    codes : by run: which of the values it has; -1 if it is missing
    values : canonical keys by first appearance, each once if the column is long
    kinds : what they are, such as {"number"} or {"text"}
    source : the rows as they came, if that was an array or list
    """

    size: int
    starts: Positions
    codes: Positions
    values: list[Key]
    kinds: frozenset[str]
    source: Ids | list[Any] | None = None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """By run: whether it has no id."""
        return self.codes < 0

    @property
    def keys(self) -> list[Key]:
        """By run: its key, None if it is missing."""
        if len(self.values) == self.codes.size:
            return self.values
        keys = np.fromiter([*self.values, None], object, len(self.values) + 1)
        return list(keys[self.codes])

    @property
    def ids(self) -> Ids:
        """By row: the ids as an array."""
        if self.source is not None:
            return id_array("ids", self.source)
        keys = self.keys
        return np.repeat(np.fromiter(keys, object, len(keys)), self._sizes())

    def _sizes(self) -> Positions:
        return np.diff(self.starts, append=self.size)

    def by_row(self, by_run: ArrayLike) -> Positions:
        """A position for each run as one for each row."""
        positions = np.asarray(by_run, np.int64)
        return positions if self.starts.size == self.size else np.repeat(positions, self._sizes())

    def at(self, rows: NDArray[np.bool_]) -> Column:
        """The column of the rows where the mask is True."""
        run = np.repeat(np.arange(self.starts.size), self._sizes())[rows]
        starts = np.flatnonzero(np.diff(run, prepend=-1))
        codes = self.codes[run[starts]]
        used = list(dict.fromkeys(codes[codes >= 0].tolist()))
        place = np.full(len(self.values) + 1, -1)
        place[used] = np.arange(len(used))
        values = [self.values[code] for code in used]
        source = None if self.source is None else self.ids[rows]
        kinds = kinds_of(set(map(type, values)))
        return Column(run.size, starts, place[codes], values, kinds, source)

    def added_to(self, index: IdIndex) -> Positions:
        """By row: the position of its id, new ids being added; -1 where it is missing."""
        return self._placed(index.add(self.values, None, self.kinds))

    def found_in(self, index: Known) -> Positions:
        """By row: the position of its id, -1 where it is unknown or missing."""
        return self._placed(index.find(self.values))

    def _placed(self, positions: list[int]) -> Positions:
        return self.by_row(np.array([*positions, -1], np.int64)[self.codes])

    def check_length(self, name: str, rows: int) -> None:
        """Raise unless there is an id for each row of X."""
        if self.size != rows:
            raise ValueError(f"{name}: expected one id per row of X ({rows}), found {self.size}")

    def check_complete(self, name: str) -> None:
        """Raise if a row has no id."""
        if (run := first_row(self.missing)) is not None:
            row = int(self.starts[run])
            found = None if self.source is None else self.source[row]
            raise ValueError(
                f"{name}: expected an id in every row, found {found} in row {row}; give the row "
                "an id, or leave it out"
            )


def read_ids(name: str, groups: Any) -> Column:
    """A column of ids: a list, or an array or series of NumPy, pandas, polars, Arrow and others.

    None, NaN, NaT, NA and what is masked are missing ids. Everything else is known by its
    `canonical` value, so that no type of column makes two ids one, or one two.
    """
    try:
        if type(groups) is list and len(groups) <= MANY:
            return _from_items(groups, groups)
        if isinstance(groups, np.ma.MaskedArray):
            return _from_array(_flat(name, np.asarray(groups)), np.ma.getmaskarray(groups))
        if not isinstance(groups, np.ndarray | list):
            if (items := _few(groups)) is not None:
                return _from_items(items)
            if (arrow := _as_arrow(groups)) is not None:
                return _from_arrow(arrow)
        return _from_array(id_array(name, groups))
    except TypeError as error:
        if "unhashable" in str(error):
            raise TypeError(f"{name}: expected hashable ids, found {error}") from None
        raise


def encode(name: str, groups: Any) -> tuple[Ids, Positions]:
    """The different ids in order of first appearance, and each row's position among them."""
    column = read_ids(name, groups)
    column.check_complete(name)
    index = IdIndex()
    codes = column.added_to(index)
    if column.source is None:
        return id_array(name, index.keys), codes
    by_run = codes[column.starts]
    newest = np.maximum.accumulate(by_run)
    first = column.starts[np.r_[True, newest[1:] > newest[:-1]][: by_run.size]]
    return column.ids[first], codes


def id_array(name: str, ids: ArrayLike | Iterable[Hashable]) -> Ids:
    """A 1-D array holding the ids as they are: [1, "a"] is not made two strings."""
    if hasattr(ids, "__array__"):
        return _flat(name, np.asarray(ids))
    if isinstance(ids, str | Mapping | Set) or not isinstance(ids, Iterable):
        raise TypeError(f"{name}: expected a column of ids, found {type(ids).__name__}")
    items = list(ids)
    kinds = set(map(type, items))
    if kinds == {str}:
        letters, longest = sum(map(len, items)), max(map(len, items))  # type: ignore[arg-type]
        if longest * len(items) <= 8 * letters + 64 and "\0" not in "".join(items):  # type: ignore[arg-type]
            return np.array(items)  # but not if one long id would pad all, or an id has a 0 letter
    elif len(kinds) == 1 and kinds <= {int, float, bool}:
        column = np.array(items)
        if kinds != {int} or column.dtype.kind in "iu":  # not integers beyond 64 bits
            return column
    return np.fromiter(items, object, len(items))


def _flat(name: str, column: NDArray[Any]) -> Ids:
    if column.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array of ids, found shape {column.shape}")
    return column


def _few(groups: Any) -> list[Any] | None:
    """The items of a short series of pandas: for single rows the way through Arrow is too long."""
    if not nw.dependencies.is_pandas_series(groups) or len(groups) > MANY:
        return None
    exact = isinstance(groups.dtype, np.dtype) or hasattr(groups.dtype, "pyarrow_dtype")
    return None if exact else groups.tolist()


def _as_arrow(groups: Any) -> Any:
    """A series of a library other than NumPy as Arrow has it; None if it is not one."""
    if isinstance(groups, pa.Array | pa.ChunkedArray):
        return groups
    if isinstance(getattr(groups, "dtype", None), np.dtype):
        return None  # as a NumPy array it loses nothing
    series = nw.from_native(groups, series_only=True, pass_through=True)
    try:
        if isinstance(series, nw.Series):
            if series.dtype == nw.Object:  # which Arrow would take for addresses
                return None
            return series.to_arrow()
        if hasattr(groups, "__arrow_c_stream__"):
            return pa.chunked_array(groups)
        if hasattr(groups, "__arrow_array__") or hasattr(groups, "__arrow_c_array__"):
            return pa.array(groups)
    except (pa.ArrowException, TypeError, OverflowError):
        pass  # values that Arrow has no type for
    return None


def _from_arrow(array: Any) -> Column:
    codes, values = decoded(array)
    nothing = np.array([value is None for value in [*values, None]])  # NaN: a value to Arrow
    codes = np.where(nothing[codes], -1, codes)
    starts = _starts(codes, codes < 0)
    return _column(codes.size, starts, codes[starts], values)


def _from_array(ids: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> Column:
    if ids.dtype.kind not in "iufbUSMm" or ids.dtype.char == "g":
        return _from_objects(ids, mask)
    if ids.size <= SHORT and mask is None and ids.dtype.kind not in "Mm":
        return _from_items(ids.tolist(), ids)
    ids = ids.astype(ids.dtype.newbyteorder("="), copy=False)
    missing = np.asarray(ids != ids) if ids.dtype.kind in "fMm" else np.zeros(ids.size, np.bool_)
    if mask is not None:
        missing |= mask
    starts = _starts(ids, missing)
    heads, absent = ids[starts], missing[starts]
    if absent.any():
        heads = heads[~absent]
    places, different = in_order(heads) if heads.size > MANY else (None, heads)
    codes = np.full(starts.size, -1)
    codes[~absent] = np.arange(heads.size) if places is None else places
    return _column(ids.size, starts, codes, _keys(different), ids if mask is None else None)


def _keys(values: NDArray[Any]) -> list[Key]:
    kind = values.dtype.kind
    if kind == "M":
        return times(values)
    if kind == "m":
        return durations(values)
    if kind == "f":
        fits = np.abs(values) < 2.0**63
        if fits.all() and np.array_equal(np.trunc(values), values):
            return values.astype(np.int64).tolist()  # type: ignore[no-any-return]
        return list(map(known_by, values.tolist()))
    return values.tolist()  # type: ignore[no-any-return]


def _from_objects(ids: NDArray[Any], mask: NDArray[np.bool_] | None) -> Column:
    items = ids.tolist()
    if mask is not None and mask.any():
        items = [None if hidden else item for item, hidden in zip(items, mask, strict=True)]
    source = ids if mask is None else None
    types = set(map(type, items))
    if len(items) > MANY:
        for wanted, arrow in ((TEXTS, pa.large_string()), (NUMBERS, pa.int64())):
            if types <= wanted and (float not in types or _only_nan(items)):
                try:
                    codes, values = decoded(pa.array(items, arrow, from_pandas=True))
                except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError):
                    continue  # half of a surrogate pair, or more than 64 bits
                starts = _starts(codes, codes < 0)
                return _column(codes.size, starts, codes[starts], values, source)
    return _from_items(items, source)


def _only_nan(items: list[Any]) -> bool:
    """Whether all floats are NaN, which pandas puts where an id is missing."""
    return all(item != item for item in items if type(item) is float)


def _from_items(items: list[Any], source: Ids | list[Any] | None = None) -> Column:
    keys = items if set(map(type, items)) <= SAME else list(map(known_by, items))
    every = np.arange(len(keys))
    return _column(len(keys), every, every, keys, source)


def _starts(values: NDArray[Any], missing: NDArray[np.bool_]) -> Positions:
    """Where neighbours differ; rows without an id differ from all."""
    differ = values[1:] != values[:-1]
    if missing.any():
        differ |= missing[1:] | missing[:-1]
    return np.append(0, np.flatnonzero(differ) + 1)[: values.size]


def _column(
    size: int,
    starts: Positions,
    codes: Positions,
    values: list[Key],
    source: Ids | list[Any] | None = None,
) -> Column:
    """A column, with values that turn out to be missing taken out."""
    types = set(map(type, values))
    if type(None) in types:
        named = np.array([value is not None for value in values])
        codes = np.append(np.where(named, np.cumsum(named) - 1, -1), -1)[codes]
        values = [value for value in values if value is not None]
    return Column(size, starts, codes, values, kinds_of(types), source)
