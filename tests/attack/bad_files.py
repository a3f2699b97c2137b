"""Tables that are hard to read or wrong, and files that are damaged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

HOSTILE = [
    *("a", "A", "__task", "__task_", "start", "file", "filename", "file_row_number", "place"),
    *("c0", "c1", "first", "data", "ids", "key", "rows", "intercept", "prediction", "weights"),
    *("", " ", "[b]x[/b]", "[/]", 'q"uote', "it's", "line\nbreak", "tab\t", "a,b", "ünï", "🙂"),
    *("=1+1", "-x", "@x", "x.y", "x", "__index_level_0__", "\u202e", "$1", "%s", "{x}", "NaN"),
    *("a; DROP TABLE data", "--out", "-", "/tmp", "C0", "Place", "\\", "null", "1", "nan"),
]
SUFFIXES = [".parquet", ".csv", ".arrow", ".pq", ".feather"]
Rng = np.random.Generator
Column = Any  # of Arrow


class Case(NamedTuple):
    """A table and the meaning of its columns, and how it is written."""

    table: pa.Table
    group: str
    target: str
    features: list[str]
    suffix: str
    damage: str


def draw_case(rng: Rng) -> Case:
    """A table with zero to two faults, and a way to write it."""
    T, n, d = int(rng.integers(3, 12)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    entity = np.repeat(np.arange(T), n)
    if rng.random() < 0.5:
        entity = rng.permutation(entity)
    X = rng.normal(size=(len(entity), d))
    y = X @ rng.normal(size=d) + rng.normal(size=T)[entity] + 0.1 * rng.normal(size=len(entity))
    plain = ["user", "y", "x0", "x1", "x2"]
    names = list(rng.choice(HOSTILE, d + 2, replace=False)) if rng.random() < 0.4 else plain
    group, target, *features = [str(name) for name in names[: d + 2]]
    columns: dict[str, Column] = {name: pa.array(X[:, k]) for k, name in enumerate(features)}
    columns[target] = pa.array(y)
    columns[group] = _ids(rng, entity)
    for _ in range(int(rng.integers(0, 3))):
        name = str(rng.choice([target, *features]))
        fault = FAULTS[str(rng.choice(list(FAULTS)))]
        with suppress(pa.ArrowException, OverflowError):  # of a fault upon a fault
            columns[name] = fault(rng, columns[name])
    order = [str(name) for name in rng.permutation(list(columns))]
    table = pa.table([columns[name] for name in order], names=order)
    if rng.random() < 0.15:
        table = WHOLE[int(rng.integers(len(WHOLE)))](rng, table)
    damage = str(rng.choice(list(DAMAGES))) if rng.random() < 0.3 else "none"
    return Case(table, group, target, features, str(rng.choice(SUFFIXES)), damage)


def _ids(rng: Rng, entity: np.ndarray[Any, Any]) -> Column:
    kind = int(rng.integers(14))
    missing = rng.random(len(entity)) < 0.1
    if kind == 0:
        return pa.array([f"u{k}" for k in entity])
    if kind == 1:
        return pa.array(np.where(missing, np.nan, entity.astype(float)))
    if kind == 2:
        return pa.array(entity, mask=missing)
    if kind == 3:
        return pa.array(entity + 2**60)
    if kind == 4:
        return pa.array([f"u{k}" for k in entity]).dictionary_encode()
    if kind == 5:
        return pa.array([Decimal(int(k)) / 8 for k in entity])
    if kind == 6:
        return pa.array(entity).cast(pa.timestamp("ns"))
    if kind == 7:
        return pa.array([str(HOSTILE[k]) for k in entity])
    if kind == 8:
        return pa.array([bytes([k]) for k in entity])
    if kind == 9:
        return pa.array([[int(k)] for k in entity])
    if kind == 10:
        return pa.array(entity % 2 == 0)
    if kind == 11:
        return pa.array(np.where(entity == 0, -0.0, -entity.astype(np.float32)))
    return pa.array(entity)


def _some(rng: Rng, column: Column, value: Any) -> Column:
    """The column with this value in one or more rows."""
    values = column.to_pylist()
    for row in rng.integers(0, max(len(values), 1), int(rng.integers(1, 4))):
        if values:
            values[row] = value
    try:
        return pa.array(values)
    except (ValueError, OverflowError, TypeError):  # of Arrow too
        return pa.array([str(v) for v in values])


def _scaled(factor: float) -> Callable[[Rng, Column], Column]:
    def scale(_: Rng, column: Column) -> Column:
        values = [factor * v if isinstance(v, float) else v for v in _py(column)]
        return pa.array(values, column.type)

    return scale


def _as(kind: Any) -> Callable[[Rng, Column], Column]:
    def cast(_: Rng, column: Column) -> Column:
        small = [v if isinstance(v, float) and abs(v) < 1e6 else 0.0 for v in _py(column)]
        numbers = [round(4.0 * v) for v in small]
        return pa.array(numbers).cast(kind)

    return cast


def _py(column: Column) -> list[Any]:
    return list(column.to_pylist())


FAULTS: dict[str, Callable[[Rng, Column], Column]] = {
    "null": lambda rng, c: _some(rng, c, None),
    "nan": lambda rng, c: _some(rng, c, float("nan")),
    "inf": lambda rng, c: _some(rng, c, float("-inf")),
    "text": lambda rng, c: _some(rng, c, "old"),
    "all null": lambda _, c: pa.nulls(len(c), pa.string()),
    "no type": lambda _, c: pa.nulls(len(c)),
    "texts of numbers": lambda _, c: pa.array([str(v) for v in _py(c)]),
    "constant": lambda _, c: pa.array([1.5] * len(c)),
    "two numbers": lambda rng, c: pa.array(rng.integers(0, 2, len(c))),
    "two texts": lambda rng, c: pa.array([["no", "yes"][k] for k in rng.integers(0, 2, len(c))]),
    "three texts": lambda rng, c: pa.array([["a", "b", ""][k] for k in rng.integers(0, 3, len(c))]),
    "booleans": lambda rng, c: pa.array(rng.random(len(c)) < 0.5),
    "large": _scaled(1e100),
    "huge": _scaled(1e160),
    "most": _scaled(1e307),
    "tiny": _scaled(1e-310),
    "list": lambda _, c: pa.array([[v] for v in _py(c)]),
    "record": lambda _, c: pa.array([{"user": v, "y": v} for v in _py(c)]),
    "times": _as(pa.timestamp("us")),
    "spans": _as(pa.duration("ns")),
    "decimals": _as(pa.decimal128(25, 3)),
    "wide decimals": _as(pa.decimal256(60, 3)),
    "integers": _as(pa.int16()),
    "halves": lambda _, c: pa.array(np.arange(len(c)) / 8.0).cast(pa.float16()),
    "float32": lambda _, c: pa.array(np.arange(len(c)) % 5 - 2.0).cast(pa.float32()),
    "unsigned": lambda rng, c: pa.array(rng.integers(0, 2**64, len(c), np.uint64)),
    "dictionary": lambda _, c: c if pa.types.is_null(c.type) else c.dictionary_encode(),
    "bytes": lambda _, c: pa.array([str(v).encode() for v in _py(c)]),
}


def _twice(rng: Rng, table: pa.Table) -> pa.Table:
    name = table.column_names[int(rng.integers(table.num_columns))]
    return table.append_column(name, table.column(0))


def _wide(rng: Rng, table: pa.Table) -> pa.Table:
    for k in range(int(rng.integers(50, 1000))):
        table = table.append_column(f"w{k}", pa.array(rng.normal(size=len(table))))
    return table


WHOLE: list[Callable[[Rng, pa.Table], pa.Table]] = [
    lambda _, t: t.slice(0, 0),
    lambda _, t: t.slice(0, 1),
    lambda _, t: t.slice(0, 2),
    lambda _, t: t.select([]),
    lambda rng, t: t.select([int(rng.integers(t.num_columns))]),
    lambda rng, t: t.drop_columns([t.column_names[int(rng.integers(t.num_columns))]]),
    _twice,
    _wide,
]


# files


def _flip(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        changed[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


DAMAGES: dict[str, Callable[[Rng, bytes], bytes]] = {
    "truncated": lambda rng, data: data[: int(rng.integers(len(data)))],
    "flipped": _flip,
    "empty": lambda _, __: b"",
    "noise": lambda rng, data: rng.bytes(len(data)),
    "twice": lambda _, data: data + data,
    "byte order mark": lambda _, data: b"\xef\xbb\xbf" + data,
    "latin-1": lambda _, data: data.replace(b"u1", "é".encode("latin-1")),
    "utf-16": lambda _, data: data.decode("latin-1").encode("utf-16"),
    "semicolons": lambda _, data: data.replace(b",", b";"),
    "ragged": lambda _, data: data.replace(b"\n", b",1\n", 3),
    "quotes": lambda _, data: data.replace(b"\n", b'\n"', 2),
    "returns": lambda _, data: data.replace(b"\n", b"\r\n"),
    "zeros": lambda _, data: data.replace(b"1", b"\0", 2),
}


def write_case(rng: Rng, case: Case, folder: Path) -> Path:
    """The file, under a name that may be of another kind."""
    path = folder / f"data{case.suffix}"
    try:
        if case.suffix == ".csv":
            csv.write_csv(case.table, path)
        elif case.suffix in (".arrow", ".feather"):
            feather.write_feather(case.table, str(path), compression="uncompressed")
    except (pa.ArrowException, ValueError):  # lists in CSV, one name twice in Feather
        path.unlink(missing_ok=True)
        path = path.with_suffix(".parquet")
    if path.suffix in (".parquet", ".pq"):
        parquet.write_table(
            case.table,
            path,
            row_group_size=int(rng.choice([3, 1000])),
            write_statistics=bool(rng.random() < 0.8),
            compression="none" if rng.random() < 0.5 else "snappy",
        )
    if case.damage != "none" and path.stat().st_size:
        path.write_bytes(DAMAGES[case.damage](rng, path.read_bytes()))
    if rng.random() < 0.05:
        path = path.rename(path.with_suffix(str(rng.choice(SUFFIXES))))
    return path


def read_plainly(path: Path) -> pa.Table:
    """The table in a file, by Arrow alone."""
    if path.suffix == ".csv":
        return csv.read_csv(path)
    if path.suffix in (".arrow", ".feather"):
        return feather.read_table(str(path))
    return parquet.read_table(path)
