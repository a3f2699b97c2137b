"""CSV files: ids keep all their digits, and a spreadsheet runs none of the texts.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a return. Such a
text is written with an apostrophe before it, unless it is a number; texts that begin with
apostrophes and then one of these get one more. Reading takes it away again.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

EXACT_FLOATS = 2.0**53  # up to here every integer has a float of its own
RUN = r"^'*[=+\-@\t\r]"  # texts that are run, or were made not to be
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"

Column = Any  # a chunked array, whose stubs do not know what it can be made of


def read_csv(path: str, group: str | None = None) -> pa.Table:
    """A table, nothing where a text is empty, and all digits of the numbers in column `group`."""
    with Path(path).open("rb") as file:
        if file.read(2) in UTF16:
            raise pa.ArrowInvalid("invalid UTF8")
    table = csv.read_csv(path)
    names = _taken_back(pa.array(table.column_names, pa.string())).to_pylist()
    columns = [_read(column, name) for column, name in zip(table.columns, names, strict=True)]
    found = pa.Table.from_arrays(columns, names=names)
    if group is None or names.count(group) != 1:
        return found
    at = names.index(group)
    ids: Column = found.column(at)
    if not pa.types.is_floating(ids.type) or (pc.max(pc.abs(ids)).as_py() or 0.0) < EXACT_FLOATS:
        return found
    title = table.column_names[at]
    as_text = csv.ConvertOptions(
        include_columns=[title], column_types={title: pa.string()}, strings_can_be_null=True
    )
    texts: Column = csv.read_csv(path, convert_options=as_text)[title].combine_chunks()
    return found.set_column(at, group, _all_digits(texts))


def _read(column: Column, name: str) -> Column:
    if pa.types.is_binary(column.type):
        raise pa.ArrowInvalid(f"column {name!r}: invalid UTF8")
    if not pa.types.is_string(column.type):
        return column
    texts = _taken_back(column)
    return pc.if_else(pc.equal(texts, pa.scalar("")), pa.scalar(None, pa.string()), texts)


def _taken_back(texts: Column) -> Column:
    """Texts without the apostrophe that writing put before them."""
    quoted = pc.match_substring_regex(texts, r"^'+[=+\-@\t\r]")
    if not pc.any(quoted).as_py():
        return texts
    found = pc.if_else(quoted, pc.utf8_slice_codeunits(texts, 1), texts)
    if pc.count_distinct(found).as_py() != pc.count_distinct(texts).as_py():
        raise pa.ArrowInvalid(
            "two texts differ by an apostrophe before '=', '+', '-' or '@', which CSV files for "
            "spreadsheets do not tell apart; save it as Parquet"
        )
    return found


def _all_digits(texts: Column) -> Column:
    """Numbers that no type but that of decimals can hold; the texts if they are no numbers."""
    different = texts.dictionary_encode()
    try:
        numbers = pa.array([Decimal(text) for text in different.dictionary.to_pylist()])
        return numbers.take(different.indices)
    except (InvalidOperation, pa.ArrowInvalid):  # not a number, or more than 76 digits
        return texts


def write_csv(table: pa.Table, path: str) -> None:
    """A table as a file whose texts no spreadsheet runs."""
    names = pa.array(table.column_names, pa.string())
    columns = [_not_run(column) for column in table.columns]
    csv.write_csv(pa.Table.from_arrays(columns, names=_not_run(names).to_pylist()), path)


def _not_run(column: Column) -> Column:
    """Texts with an apostrophe before those that a spreadsheet would run."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    texts_or_bytes = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary
    if not any(is_one(kind) for is_one in (*texts_or_bytes, pa.types.is_large_binary)):
        return column
    texts = column.cast(pa.string())
    run = pc.and_not(pc.match_substring_regex(texts, RUN), pc.match_substring_regex(texts, NUMBER))
    return pc.if_else(run, pc.binary_join_element_wise("'", texts, ""), texts)
