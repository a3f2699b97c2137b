"""A Parquet dataset on disk: its columns and row groups, and how rows are read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from headstart._core.answers import LARGEST
from headstart._core.checks import FloatArray, check_count
from headstart._core.interleave import interleave
from headstart._core.places import Remote, as_place, found_files, full
from headstart._core.retries import StorageError, again
from headstart.parquet.blocks import Batch, Block, make_block
from headstart.parquet.columns import (
    MISSING,
    Array,
    as_labels,
    first_wrong,
    plain,
    stored,
    to_float64,
    wanted_for,
)
from headstart.parquet.files import (
    Decoding,
    Item,
    ParquetError,
    batches,
    read_ahead,
    read_file,
    unreadable,
)
from headstart.parquet.footers import RowGroup, check_columns, place_in, read_row_groups
from headstart.parquet.lists import from_lists
from headstart.parquet.roles import Roles
from headstart.tasks.sparse import Csr

FOOTERS = 16  # of files on an object store that are fetched at once
MOST_BATCHES = 16  # of a row group that is decoded at once, when one reads for all

# Without buffers for whole files, which are slower here and take ten times the memory.
FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False)
)


@dataclass(frozen=True)
class Source:
    """The files of a dataset and the meaning of its columns; see `ParquetRows`."""

    path: str | Path | Remote
    group: str
    target: str
    features: Sequence[str] | None = None
    batch_rows: int = 1 << 16
    key: str | None = None
    origin: str | Path | Remote | None = field(default=None, compare=False, repr=False)
    callback: Callable[[int], object] | None = field(default=None, compare=False, repr=False)
    sparse: tuple[str, str] | None = None
    n_columns: int | None = None

    def __post_init__(self) -> None:
        check_count("batch_rows", self.batch_rows, at_most=2**31 - 1)
        place = as_place(self.path)
        if isinstance(place, Remote) or "://" in str(self.path):
            object.__setattr__(self, "path", place)
        names = self.group, self.target, self.key, self.features, self.sparse, self.n_columns
        object.__setattr__(self, "features", Roles(*names).checked(self.path, self.schema))

    def __reduce__(self) -> tuple[Any, ...]:
        names = [f.name for f in fields(self)]
        known = {name: getattr(self, name) for name in (*names, "schema", "partitioning")}
        return _unpickled, (type(self), {**known, "callback": None})

    @cached_property
    def dataset(self) -> Any:
        """The dataset as Arrow sees it."""
        path, opened = as_place(self.path), partial(ds.dataset, format=FORMAT, partitioning="hive")
        if not path.exists():
            raise ParquetError(f"{path}: there is no such file or folder")
        try:
            if isinstance(path, Remote):
                found = again(partial(opened, path.inside, filesystem=path.filesystem), path)
            else:
                found = opened(str(full(path)))  # workers may be in another folder
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, StorageError):
                raise
            raise ParquetError(unreadable(error, str(path))) from None
        if not found.files:
            raise ParquetError(f"{path}: there is no Parquet file in this folder")
        return found

    @property
    def known_as(self) -> str | Path | Remote:
        """The path in messages: of a copy, that of the dataset that it is of."""
        return self.origin or self.path

    @property
    def store(self) -> Any:
        """The file system of the object store that the files are on; None for files here."""
        return self.path.filesystem if isinstance(self.path, Remote) else None

    def stamps(self) -> dict[str, str]:
        """A text by file that changes when the file is written again."""
        return found_files(self.dataset.filesystem, list(self.files), self.path)

    @cached_property
    def schema(self) -> Any:
        """The columns and their types."""
        return self.dataset.schema

    @cached_property
    def partitioning(self) -> Any:
        """What the names of folders say."""
        return self.dataset.partitioning

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        key = [] if self.key is None else [self.key]
        return [self.group, self.target, *key, *(self.features or ()), *(self.sparse or ())]

    @property
    def n_features(self) -> int:
        """Number of columns to predict from."""
        return len(self.features or ()) if self.sparse is None else int(self.n_columns or 0)

    @property
    def width(self) -> int:
        """Number of columns that are read as numbers: those of lists are not."""
        return len(self.features or ())

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """The float type of the inputs."""
        kinds = {f.name: f.type for f in self.schema}
        if self.sparse is not None:
            return np.float32 if kinds[self.sparse[1]].value_type == pa.float32() else np.float64
        small = all(kinds[name] == pa.float32() for name in self.features or ())
        return np.float32 if small else np.float64

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, by the files' footers."""
        return sum(group.rows for group in self.row_groups)

    @property
    def task_key(self) -> str:
        """The column that tells neighbouring tasks apart."""
        return self.key or self.group

    @cached_property
    def files(self) -> dict[str, Any]:
        """The files by name, as they are found, unopened."""
        return {fragment.path: fragment for fragment in self.dataset.get_fragments()}

    @cached_property
    def fragments(self) -> dict[str, Any]:
        """The files by name, each with the columns that are asked for."""
        about = {"columns": self.columns, "schema": self.schema, "store": self.store}
        list(self._of_each(partial(check_columns, **about)))
        return self.files

    def _of_each(self, function: Callable[[Any], Item]) -> Iterator[Item]:
        """What a function gives of each file, in order; of an object store many at a time."""
        if self.store is None:
            yield from map(function, self.files.values())
            return
        with ThreadPoolExecutor(FOOTERS) as pool:
            yield from pool.map(function, self.files.values())

    @cached_property
    def row_groups(self) -> list[RowGroup]:
        """All row groups in the order in which they are read."""
        self.fragments  # noqa: B018 - files that do not belong to the dataset are refused here
        read = partial(read_row_groups, key=self.task_key, store=self.store)
        found = [group for groups in self._of_each(read) for group in groups]
        if not any(group.rows for group in found):
            raise ParquetError(f"{self.known_as}: there are no rows in it")
        return found

    def batches(self, names: list[str] | None = None) -> Iterator[Batch]:
        """All rows in order, never more than a few batches in memory; with other columns too."""
        row = 0
        for columns in batches(read_ahead(self._tables(names)), self.batch_rows):
            row += columns.num_rows
            yield Batch(columns, row - columns.num_rows)
            del columns
            if self.callback is not None and names is None:
                self.callback(row)

    def _tables(self, names: list[str] | None) -> Iterator[pa.Table]:
        decoding = Decoding(self.batch_rows, MOST_BATCHES)
        for path, groups in groupby(self.row_groups, attrgetter("file")):
            yield from self.read(path, [g.number for g in groups], names or self.columns, decoding)

    def read(
        self, path: str, numbers: Sequence[int], columns: list[str], decoding: Decoding
    ) -> Iterator[pa.Table]:
        """Row groups of a file as tables, with the columns that the names of its folders give."""
        of_folder = ds.get_partition_keys(self.partitioning.parse(path))
        inside = [name for name in columns if name not in of_folder]
        for table in read_file(path, numbers, inside, decoding, self.store):
            for name in columns:
                if name in of_folder:
                    value = pa.scalar(of_folder[name], self.schema.field(name).type)
                    table = table.append_column(name, pa.repeat(value, table.num_rows))
            yield table
            del table  # or else it would stay in memory while the next is made

    def block(self, batch: Batch, X: FloatArray) -> Block:
        """The rows of a batch, with their inputs put into X."""
        if self.sparse is not None:
            raise ParquetError(
                f"{self.known_as}: its rows are sparse, and dense ones are needed here; fit of an "
                "estimator with a learned prior, and adapt_all, take sparse rows"
            )
        columns = self.inputs(batch)
        if not interleave(columns, X):
            self.refuse_wrong(batch, columns)
        return self.labels_of(batch, X)

    def sparse_rows(self, columns: pa.Table | pa.RecordBatch) -> Csr:
        """The inputs of rows in lists."""
        where, what = self.sparse or ("", "")
        try:
            found = from_lists(
                columns.column(where), columns.column(what), self.n_features, self.dtype
            )
        except ValueError as error:
            row, _, fault = str(error).partition(":")
            whose = columns.column(self.group)[int(row)].as_py()
            raise ParquetError(
                f"{self.known_as}, a row of {self.group!r} {whose!r}: columns {where!r} and "
                f"{what!r}: {fault}"
            ) from None
        return found

    def labels_of(self, batch: Batch, X: FloatArray) -> Block:
        """The rows of a batch with these inputs."""
        columns = batch.columns
        y, ids = as_labels(columns.column(self.target)), plain(columns.column(self.group))
        key = ids if self.key is None else plain(columns.column(self.key))
        block = make_block(X, y, ids, stored(key))
        if block.y.dtype.kind == "f":
            largest = LARGEST if X.dtype == np.float64 else float(np.finfo(X.dtype).max)
            row = first_wrong(np.where(block.unlabelled, 0.0, block.y), largest)
            if row is not None:
                raise self._wrong(batch, row, self.target, block.y)
        return block

    def inputs(self, batch: Batch) -> list[NDArray[np.generic]]:
        """The columns to predict from, as they are."""
        return [self._numbers(batch, name) for name in self.features or ()]

    def refuse_wrong(self, batch: Batch, columns: list[NDArray[np.generic]]) -> None:
        """Raise if a number of these inputs is not finite, or too large."""
        for name, column in zip(self.features or (), columns, strict=True):
            row = first_wrong(column)
            if row is not None:  # else only the sum of all squares was too large
                raise self._wrong(batch, row, name, column)

    def _wrong(self, batch: Batch, row: int, name: str, column: NDArray[Any]) -> ParquetError:
        wanted, place = wanted_for(column[row]), self.place(batch, row)
        return ParquetError(f"{place}: column {name!r}: expected {wanted}, found {column[row]}")

    def _numbers(self, batch: Batch, name: str) -> NDArray[np.generic]:
        column: Array = batch.columns.column(name)
        if column.null_count:
            row = int(np.argmax(plain(column).is_null().to_numpy(zero_copy_only=False)))
            raise ParquetError(f"{self.place(batch, row)}: column {name!r}: {MISSING}")
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            return np.asarray(column)
        return np.asarray(to_float64(column))

    def place(self, batch: Batch, row: int) -> str:
        """Where a row of a batch is, in words: its file and row there, or else whose row it is."""
        if batch.first_row is None or self.origin is not None:
            whose = batch.columns.column(self.group)[row].as_py()
            return f"{self.known_as}, a row of {self.group!r} {whose!r}"
        return place_in(self.row_groups, batch.first_row + row)

    def column(self, name: str) -> Iterator[Array]:
        """The values of one column, a part at a time.

        Arrow reads ahead, so whoever uses them must be quicker than the disk.
        """
        self.row_groups  # noqa: B018 - files that do not belong to the dataset are refused here
        if self.store is not None:  # where what fails is to be read again
            yield from (stored(plain(b.columns.column(name))) for b in self.batches([name]))
            return
        try:
            for batch in self.dataset.to_batches(columns=[name], batch_size=1 << 18):
                if batch.num_rows:
                    yield stored(plain(batch.column(name)))
        except (pa.ArrowInvalid, OSError) as error:
            raise ParquetError(unreadable(error, str(self.path))) from None

    def labels(self, enough: int | None = None) -> NDArray[np.generic]:
        """The different labels there are; or as many of them as are `enough`, or more."""
        found: Array = as_labels(pa.array([], self.schema.field(self.target).type))
        for column in self.column(self.target):
            found = pc.unique(pa.concat_arrays([found, pc.unique(as_labels(column))]))
            if enough is not None and len(found.drop_null()) >= enough:
                break
        return np.asarray(found.drop_null().to_numpy(zero_copy_only=False))


def _unpickled(kind: type[Source], known: dict[str, Any]) -> Source:
    """A dataset as it was checked where it was pickled: no folder is listed again."""
    source = object.__new__(kind)
    vars(source).update(known)
    return source
