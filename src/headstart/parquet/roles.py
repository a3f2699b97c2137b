"""What the columns of a dataset are to be: they are there, once, and of a type that fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headstart._core.checks import check_count
from headstart.parquet.columns import (
    INDEX,
    check_roles,
    is_id,
    is_label,
    is_numeric,
    wrong_name,
)
from headstart.parquet.files import ParquetError
from headstart.parquet.lists import is_list


class Roles(NamedTuple):
    """The names that `ParquetRows` was given."""

    group: str
    target: str
    key: str | None
    features: Sequence[str] | None
    sparse: tuple[str, str] | None
    n_columns: int | None

    def checked(self, path: object, schema: Any) -> tuple[str, ...]:
        """The features; raise unless all columns of the dataset at `path` are right."""
        names, known = self._features(schema.names), set(schema.names)
        check_roles(self.group, self.target, names)
        key = () if self.key is None else (self.key,)
        for name in (self.group, self.target, *key, *names, *(self.sparse or ())):
            if name not in known:
                raise ParquetError(f"{path}: {wrong_name(name, schema.names)}")
        if not names and self.sparse is None:
            both = f"{self.group!r} and {self.target!r}"
            raise ParquetError(f"{path}: expected a column beside {both}")
        kinds = {f.name: f.type for f in schema}
        for name in names:
            if not is_numeric(kinds[name]):
                raise ParquetError(
                    f"{path}: column {name!r}: expected numbers, found {kinds[name]}; leave it out "
                    "of the features, or turn it into numbers first"
                )
        for name, of_integers in zip(self.sparse or (), (True, False), strict=False):
            if not is_list(kinds[name], of_integers):
                what = "integers" if of_integers else "numbers"
                raise ParquetError(
                    f"{path}: column {name!r}: expected lists of {what}, found {kinds[name]}"
                )
        if not is_id(kinds[self.group]):
            raise ParquetError(
                f"{path}: column {self.group!r}: expected numbers, texts or times as ids, found "
                f"{kinds[self.group]}"
            )
        if not is_label(kinds[self.target]):
            raise ParquetError(
                f"{path}: column {self.target!r}: expected numbers, texts or booleans to predict, "
                f"found {kinds[self.target]}"
            )
        return names

    def _features(self, known: list[str]) -> tuple[str, ...]:
        """The columns to predict from: those named, or all others; none beside lists."""
        if self.sparse is not None:
            if self.features or self.n_columns is None or len(self.sparse) != 2:
                raise ValueError(
                    "sparse: expected the names of two columns of lists, n_columns, how many "
                    "columns rows have, and no features"
                )
            check_count("n_columns", self.n_columns)
            return ()
        if self.features is not None:
            return tuple(self.features)
        taken = (self.group, self.target, self.key)
        return tuple(n for n in known if n not in taken and not n.startswith(INDEX))
