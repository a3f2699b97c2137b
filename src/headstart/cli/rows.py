"""Rows of a file as models take them: to learn from, and as a model was fitted to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.places import AnyPath
from headstart.cli.categorical import match_categories, split_categories
from headstart.cli.dataset import AnyMeta
from headstart.cli.options import split_names
from headstart.cli.tables import (
    ArrowColumn,
    LabelledRows,
    TableError,
    as_target,
    ids_of,
    numbers_of,
    read_columns,
    read_table,
)


class Columns(NamedTuple):
    """The columns a user has named, in texts with commas."""

    group: str
    target: str
    features: list[str] | None = None
    side: list[str] | None = None
    categorical: list[str] | None = None


def read_rows(data: AnyPath, columns: Columns) -> LabelledRows:
    """Features and what describes entities as numbers, target and ids."""
    table = read_table(data, columns.group)
    named, side = split_names(columns.features), split_names(columns.side) or []
    split = split_names(columns.categorical) or []
    for option, names in (("--categorical", split), ("--side", side)):
        for name in names:
            if name in (columns.group, columns.target):
                raise TableError(f"{option}: column {name!r} is the group or the target")
            if names.count(name) > 1:
                raise TableError(f"{option}: column {name!r} is named twice; name it once")
    if named is not None:
        unknown = [name for name in split if name not in [*named, *side]]
        if unknown:
            raise TableError(f"--categorical: column {unknown[0]!r} is not among --features")
        twice = [name for name in side if name in named]
        if twice:
            raise TableError(f"--side: column {twice[0]!r} is among --features too")
    if any(name in side for name in split):
        raise TableError("--side: expected numbers; columns of --categorical are features")
    before = set(table.column_names)
    table = split_categories(table, split, "--categorical")
    if named is not None:
        made = [name for name in table.column_names if name not in before]
        kept = [name for name in named if name not in split]
        named = [*kept, *made, *side]
    return read_columns(table, columns.group, columns.target, named)


class FittingRows(NamedTuple):
    """Rows with the columns that a model was fitted to.

    Attributes
    ----------
    X : features, and what describes the entity
    ids : whose row it is, if the file says so
    y : the target, if it was asked for
    """

    X: pa.Table
    ids: ArrowColumn | None
    y: NDArray[np.generic] | None

    def with_ids(self, group: str) -> pa.Table:
        """Features and ids in one table, as the estimators take them."""
        return self.X if self.ids is None else self.X.append_column(group, self.ids)


def read_for(model: AnyMeta, data: AnyPath, target: str | None = None) -> FittingRows:
    """The rows of a file as a model takes them."""
    group, names = str(model.group), [str(name) for name in model.feature_names_in_]
    table = match_categories(read_table(data, group), names)
    X = numbers_of(table, [*names, *map(str, model.side or ())])
    ids = ids_of(table, group) if target is not None or group in table.column_names else None
    return FittingRows(X, ids, None if target is None else as_target(table, target))
