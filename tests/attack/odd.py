"""Odd and hostile values: the same numbers in other clothes, and what no one should hand over."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

Maker = Callable[[Any], Any]


def _readonly(a: Any) -> Any:
    copy = a.copy()
    copy.flags.writeable = False
    return copy


def _strided(a: Any) -> Any:
    wide = np.zeros([2 * n for n in a.shape], a.dtype)
    inner = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    inner[...] = a
    return inner


def _reversed(a: Any) -> Any:
    return a[::-1].copy()[::-1]


# The same numbers; these must be taken wherever an array is.
CLOTHES: dict[str, Maker] = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist()),
    "fortran": np.asfortranarray,
    "big endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "read only": _readonly,
    "strided": _strided,
    "reversed": _reversed,
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "objects": lambda a: a.astype(object),
    "unmasked": lambda a: np.ma.MaskedArray(a, np.zeros(a.shape, bool)),
    "subclass": lambda a: a.view(np.recarray),
}
# The same numbers; these are taken, or refused in clear words.
COSTUMES: dict[str, Maker] = {
    "fractions": lambda a: np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(a),
    "decimals": lambda a: np.vectorize(lambda v: Decimal(float(v)), otypes=[object])(a),
    "strings of numbers": lambda a: a.astype(str),
    "complex": lambda a: a.astype(complex),
    "rows": list,
    "pandas": lambda a: pd.DataFrame(a) if a.ndim == 2 else pd.Series(a),
    "pandas, odd index": lambda a: (
        pd.DataFrame(a, index=np.arange(len(a))[::-1] * 3)
        if a.ndim == 2
        else pd.Series(a, index=[7] * len(a))
    ),
    "pandas, nullable": lambda a: (
        pd.DataFrame(a).astype("Float64") if a.ndim == 2 else pd.Series(a, dtype="Float64")
    ),
    "pandas, arrow": lambda a: (
        pd.DataFrame(a).astype("double[pyarrow]")
        if a.ndim == 2
        else pd.Series(a, dtype="double[pyarrow]")
    ),
    "pandas, odd names": lambda a: _odd_names(a) if a.ndim == 2 else pd.Series(a, name=("t", 1)),
    "polars": lambda a: (
        pl.DataFrame(a, [f"c{j}" for j in range(a.shape[1])]) if a.ndim == 2 else pl.Series(a)
    ),
    "arrow": lambda a: (
        pa.table({f"c{j}": a[:, j] for j in range(a.shape[1])}) if a.ndim == 2 else pa.array(a)
    ),
    "chunked": lambda a: _chunked(a),
    "matrix": lambda a: np.asmatrix(a) if a.ndim == 2 else a,
}


def _sparse(form: str) -> Maker:
    make = getattr(sp, f"{form}_array")
    return lambda a: make(a) if a.ndim == 2 else sp.coo_array(a)


for _name in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
    COSTUMES[f"sparse {_name}"] = _sparse(_name)
COSTUMES["sparse matrix"] = lambda a: sp.csr_matrix(np.atleast_2d(a))


def _odd_names(a: Any) -> Any:
    names: list[Any] = ["", "x y", "__task", "start", "Ü[b]", "a", "A", "group"]
    return pd.DataFrame(a, columns=names[: a.shape[1]])


def _chunked(a: Any) -> Any:
    if a.ndim == 2:
        return pa.concat_tables(COSTUMES["arrow"](part) for part in np.array_split(a, 2))
    return pa.chunked_array(np.array_split(a, 2))


def _put(value: Any) -> Maker:
    def put(a: Any) -> Any:
        copy = a.astype(np.result_type(a, np.asarray(value).dtype)) if a.size else a
        if copy.size:
            copy.flat[copy.size // 2] = value
        return copy

    return put


def _hidden(a: Any) -> Any:
    mask = np.zeros(a.shape, bool)
    mask.flat[: min(1, a.size)] = True
    return np.ma.MaskedArray(a, mask)


def _objects(value: Any) -> Maker:
    def put(a: Any) -> Any:
        copy = a.astype(object)
        copy.flat[-1 if a.size else slice(0)] = value
        return copy

    return put


# What is wrong with these, if anything, depends on who gets them.
DAMAGES: dict[str, Maker] = {
    "nan": _put(np.nan),
    "inf": _put(np.inf),
    "-inf": _put(-np.inf),
    "1e308": _put(1e308),
    "-1e308": _put(-1e308),
    "1e200": _put(1e200),
    "1e150": _put(-1e150),
    "1e-200": _put(1e-200),
    "5e-324": _put(5e-324),
    "all 1e308": lambda a: np.full(a.shape, 1e308),
    "all times 1e200": lambda a: a * 1e200,
    "all times 1e160": lambda a: a * 1e160,
    "all times 1e-170": lambda a: a * 1e-170,
    "all times 1e-310": lambda a: a * 1e-310,
    "float32 max": lambda a: np.full(a.shape, np.finfo(np.float32).max, np.float32),
    "float32 times 1e30": lambda a: (a * 1e30).astype(np.float32),
    "long double 1e400": lambda a: np.full(a.shape, np.longdouble("1e400")),
    "negative zero": lambda a: -np.zeros(a.shape),
    "ones": lambda a: np.ones(a.shape),
    "integers": lambda a: np.rint(a).astype(np.int8),
    "unsigned": lambda a: np.rint(np.abs(a)).astype(np.uint64),
    "integers of 2^63": lambda a: np.full(a.shape, 2**63, np.uint64),
    "bool": lambda a: a > 0.0,
    "empty": lambda a: a[:0],
    "no columns": lambda a: a[..., :0],
    "0-d": lambda a: a.sum(),
    "flat": np.ravel,
    "3-d": lambda a: a[..., None, None][..., 0] if a.ndim == 2 else a[:, None],
    "column": lambda a: a.reshape(-1, 1),
    "row": lambda a: a.reshape(1, -1),
    "one row": lambda a: a[:1],
    "less": lambda a: a[:-1],
    "more": lambda a: np.concatenate([a, a[:1]]),
    "twice as wide": lambda a: np.concatenate([a, a], axis=-1),
    "transposed": lambda a: a.T,
    "masked": _hidden,
    "masked all": lambda a: np.ma.MaskedArray(np.zeros(a.shape), True),
    "None inside": _objects(None),
    "text inside": _objects("a"),
    "a list inside": lambda a: [*a.tolist(), [1.0]],
    "an object inside": _objects(object()),
    "a huge integer inside": _objects(2**1100),
    "NA inside": _objects(pd.NA),
    "None": lambda _: None,
    "text": lambda _: "abc",
    "bytes": lambda a: a.astype("S5"),
    "texts": lambda a: np.full(a.shape, "red"),
    "dates": lambda a: a.astype(np.int64).astype("M8[D]"),
    "durations": lambda a: a.astype(np.int64).astype("m8[s]"),
    "records": lambda a: np.zeros(len(a), [("a", float)]),
    "ragged": lambda a: [a.ravel()[: k % 3].tolist() for k in range(len(a))],
    "dict": lambda a: dict(enumerate(a.tolist())),
    "set": lambda a: set(a.ravel().tolist()),
    "generator": lambda a: (v for v in a.tolist()),
    "range": lambda a: range(len(a)),
    "number": lambda _: 3.5,
    "function": lambda _: len,
    "class": lambda _: dict,
    "frame with text": lambda a: pd.DataFrame({"a": ["x"] * len(a), "b": 1.0}),
    "frame with NaN": lambda a: pd.DataFrame({"a": [np.nan] * len(a), "b": 1.0}),
    "frame with dates": lambda a: pd.DataFrame({"a": pd.date_range("2020", periods=len(a))}),
    "frame, same names": lambda a: pd.DataFrame(np.ones((len(a), 2)), columns=["a", "a"]),
    "frame without rows": lambda _: pd.DataFrame({"a": [], "b": []}),
    "categories": lambda a: pd.DataFrame({"a": pd.Categorical(["u"] * len(a))}),
    "polars with nulls": lambda a: pl.DataFrame({"a": [None] * len(a), "b": [1.0] * len(a)}),
    "arrow with nulls": lambda a: pa.table({"a": pa.nulls(len(a)), "b": [1.0] * len(a)}),
    "lazy": lambda a: pl.DataFrame({"a": [1.0] * len(a)}).lazy(),
    "sparse with NaN": lambda a: sp.csr_array(np.full(np.atleast_2d(a).shape, np.nan)),
    "sparse huge": lambda a: sp.csr_array(np.full(np.atleast_2d(a).shape, 1e200)),
    "sparse empty": lambda a: sp.csr_array(np.atleast_2d(a).shape),
    "sparse complex": lambda a: sp.csr_array(np.atleast_2d(a).astype(complex)),
}

SCALARS: list[Any] = [
    None, np.nan, np.inf, -np.inf, 0, 0.0, -0.0, -1, -1.0, 1e-310, 5e-324, 1e-308, 1e-200, 1e-100,
    1e100, 1e200, 1e308, 1.7e308, 1, 2, 0.5, "auto", "x", "", "1", b"x", [], [1.0], [1.0, 2.0], (),
    {}, True, False, np.True_, 1j, np.float32(0.5), np.float16(0.5), np.longdouble("0.5"),
    np.longdouble("1e400"), np.int8(1), np.uint64(2**64 - 1), np.array(1.0), np.array([1.0]),
    np.array([0.5, 2.0]), np.array("a"), Decimal("0.5"), Fraction(1, 2), 2**31, 2**63, 2**64, 2**70,
    -(2**63), 10**400, object(), len, dict, dt.date(2020, 1, 1), np.datetime64("NaT", "s"), pd.NA,
    pd.NaT, pd.Series([1.0]), pl.Series([1.0]), ..., np.ma.masked, slice(0, 1), {1, 2},
    NotImplemented,
    np.random.default_rng(0), np.random.RandomState(0), "stream", "sgd", "erm", "full", "squared",
]  # fmt: skip


SAME_IDS = 13  # of the kinds below, those that are the same ids as integers


def ids_of(kind: int, count: int, owner: Any) -> tuple[str, Any]:
    """Ids of many kinds for the rows of `count` tasks; row i is of task ``owner[i]``."""
    base = dt.datetime(2020, 1, 1)
    texts = [f"u{t}" for t in range(count)]
    options: list[tuple[str, Callable[[], Any]]] = [  # the first are all the same ids
        ("integers", lambda: owner),
        ("list", lambda: owner.tolist()),
        ("floats", lambda: owner.astype(float)),
        ("int8", lambda: owner.astype(np.int8)),
        ("big endian", lambda: owner.astype(">i4")),
        ("decimals", lambda: [Decimal(int(t)) for t in owner]),
        ("pandas", lambda: pd.Series(owner, index=owner)),
        ("pandas nullable", lambda: pd.Series(owner, dtype="Int64")),
        ("polars", lambda: pl.Series(owner)),
        ("arrow", lambda: pa.array(owner)),
        ("chunked", lambda: pa.chunked_array(np.array_split(owner, 2))),
        ("strided", lambda: _strided(owner)),
        ("index", lambda: pd.Index(owner)),
        ("texts", lambda: np.array(texts)[owner]),
        ("objects", lambda: np.array(texts, object)[owner]),
        ("halves", lambda: owner + 0.5),
        ("beyond 2^53", lambda: [2**60 + int(t) for t in owner]),
        ("beyond 64 bits", lambda: [2**70 + int(t) for t in owner]),
        ("tuples", lambda: [(int(t), "a") for t in owner]),
        ("bytes", lambda: [b"%d" % t for t in owner]),
        ("dates", lambda: [base + dt.timedelta(days=int(t)) for t in owner]),
        ("datetime64", lambda: owner.astype("M8[ns]")),
        ("durations", lambda: owner.astype("m8[s]")),
        ("uuids", lambda: [uuid.UUID(int=int(t)) for t in owner]),
        ("mixed", lambda: [int(t) if t % 2 else f"u{t}" for t in owner]),
        ("categories", lambda: pd.Series(pd.Categorical(np.array(texts)[owner]))),
        ("pandas texts", lambda: pd.Series(np.array(texts)[owner], dtype="string")),
        ("polars categories", lambda: pl.Series(np.array(texts)[owner], dtype=pl.Categorical)),
        ("arrow dictionary", lambda: pa.array(np.array(texts)[owner]).dictionary_encode()),
    ]
    name, make = options[kind % len(options)]
    return name, make()


BAD_IDS: dict[str, Maker] = {
    "None": lambda _: None,
    "missing": lambda g: [None, *list(g)[1:]],
    "nan": lambda g: np.append(np.nan, np.zeros(len(g) - 1)),
    "NaT": lambda g: np.full(len(g), np.datetime64("NaT", "s")),
    "NA": lambda g: pd.Series([pd.NA] * len(g)),
    "polars null": lambda g: pl.Series([None] * len(g)),
    "less": lambda g: list(g)[:-1],
    "more": lambda g: [*list(g), 0],
    "empty": lambda _: [],
    "2-d": lambda g: np.zeros((len(g), 2)),
    "0-d": lambda _: np.array(3),
    "number": lambda _: 3,
    "text": lambda g: "a" * len(g),
    "set": lambda g: set(range(len(g))),
    "dict": lambda g: dict.fromkeys(range(len(g))),
    "lists": lambda g: [[1]] * len(g),
    "dicts": lambda g: [{}] * len(g),
    "arrays": lambda g: [np.zeros(2)] * len(g),
    "complex": lambda g: np.zeros(len(g), complex),
    "inf": lambda g: np.full(len(g), np.inf),
    "frame": lambda g: pd.DataFrame({"a": np.zeros(len(g))}),
    "masked": lambda g: np.ma.MaskedArray(np.zeros(len(g)), True),
    "generator": lambda g: (i for i in g),
    "records": lambda g: np.zeros(len(g), [("a", float)]),
    "all different": lambda g: np.arange(len(g)),
    "all the same": lambda g: np.zeros(len(g)),
    "a NUL": lambda g: ["a\0"] * len(g),
    "half a pair": lambda g: ["\ud800"] * len(g),
}
