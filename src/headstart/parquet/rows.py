"""Rows of a Parquet dataset, read in bounded batches and put together into whole tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from headstart._checks import FloatArray, check_count
from headstart.parquet.blocks import (
    AHEAD,
    Block,
    Buffers,
    as_task_set,
    joined,
    make_block,
    part_of,
)
from headstart.parquet.columns import INDEX, Array, as_floats, is_numeric, plain
from headstart.parquet.files import ParquetError, batches, read_ahead, read_file, unreadable
from headstart.parquet.footers import Piece, check_columns, row_groups
from headstart.parquet.interleave import interleave
from headstart.tasks import TaskSet

WHOLE = 16  # batches of a row group that is decoded at once when one reads for all

# Without buffers for whole files, which are slower here and take ten times the memory.
FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False)
)


@dataclass(frozen=True)
class ParquetRows:
    """A Parquet dataset as rows of tasks: a file, a folder, or hive partitions.

    It is read in the order of the files' names, never more than a few batches at once.

    Parameters
    ----------
    path : str or Path
    group : str
        The column that says whose row it is; null for a row that is a task of its own.
    target : str
        The column to predict.
    features : sequence of str, optional
        The columns to predict from; all others by default. float32 if all of them are.
    batch_rows : int
        How many rows are read at once.
    key : str, optional
        A column that increases from task to task; `group` by default.
    callback : function of a number, optional
        Called after every batch with the number of rows read so far.

    Examples
    --------
    >>> import tempfile
    >>> from pyarrow import parquet
    >>> table = pa.table({"user": [1, 1, 2], "x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parquet.write_table(table, f"{folder}/a.parquet")
    ...     rows = ParquetRows(folder, "user", "y")
    ...     print(rows.n_rows, rows.features, [len(block.y) for block in rows.blocks()])
    3 ('x',) [3]
    """

    path: str | Path
    group: str
    target: str
    features: Sequence[str] | None = None
    batch_rows: int = 1 << 16
    key: str | None = None
    callback: Callable[[int], object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_count("batch_rows", self.batch_rows)
        names = self.features
        if names is None:
            taken = (self.group, self.target, self.key)
            names = [n for n in self.schema.names if n not in taken and not n.startswith(INDEX)]
        object.__setattr__(self, "features", tuple(names))
        for name in self.columns:
            if name not in self.schema.names:
                known = ", ".join(map(repr, self.schema.names))
                raise ParquetError(f"{self.path}: there is no column {name!r}; it has {known}")
        if not names:
            raise ParquetError(
                f"{self.path}: expected a column beside {self.group!r} and {self.target!r}"
            )
        for name in names:
            kind = self.schema.field(name).type
            if not is_numeric(kind):
                raise ParquetError(
                    f"{self.path}: column {name!r}: expected numbers, found {kind}; leave it out "
                    "of the features, or turn it into numbers first"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.path, self.group, self.target, self.features, self.batch_rows, self.key)
        return ParquetRows, fields

    @cached_property
    def dataset(self) -> Any:
        """The dataset as Arrow sees it."""
        path = Path(self.path)
        if not path.exists():
            raise ParquetError(f"{path}: there is no such file or folder")
        try:
            found = ds.dataset(str(path), format=FORMAT, partitioning="hive")
        except (pa.ArrowInvalid, OSError) as error:
            raise ParquetError(unreadable(error)) from None
        if not found.files:
            raise ParquetError(f"{path}: there is no Parquet file in this folder")
        return found

    @property
    def schema(self) -> Any:
        """The columns and their types."""
        return self.dataset.schema

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        key = [] if self.key is None else [self.key]
        return [self.group, self.target, *key, *(self.features or ())]

    @property
    def n_features(self) -> int:
        """Number of columns to predict from."""
        return len(self.features or ())

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """The float type of the inputs."""
        kinds = {self.schema.field(name).type for name in self.features or ()}
        return np.float32 if kinds == {pa.float32()} else np.float64

    @property
    def n_rows(self) -> int:
        """Number of rows, by the files' footers."""
        return sum(piece.rows for piece in self.pieces)

    @cached_property
    def files(self) -> dict[str, Any]:
        """The files by name, as they are found, unopened."""
        return {fragment.path: fragment for fragment in self.dataset.get_fragments()}

    @cached_property
    def fragments(self) -> dict[str, Any]:
        """The files by name, each with the columns that are asked for."""
        for fragment in self.files.values():
            check_columns(fragment, self.columns, self.schema)
        return self.files

    @cached_property
    def pieces(self) -> list[Piece]:
        """All row groups in the order in which they are read."""
        key = self.key or self.group
        found = [p for fragment in self.fragments.values() for p in row_groups(fragment, key)]
        if not any(piece.rows for piece in found):
            raise ParquetError(f"{self.path}: there are no rows in it")
        return found

    def blocks(self, *, reuse: bool = False) -> Iterator[Block]:
        """All rows in order, a batch at a time.

        With `reuse` the inputs of a block are overwritten when the next is asked for.
        """
        return read_ahead(self._blocks(Buffers(self.n_features, self.dtype, reuse)), AHEAD)

    def _blocks(self, buffers: Buffers) -> Iterator[Block]:
        for batch, row in self._batches():
            block = self._block(batch, row, buffers.next(batch.num_rows))
            del batch
            yield block

    def task_sets(self, multiple: int = 1, *, reuse: bool = False) -> Iterator[TaskSet]:
        """Whole tasks, a batch at a time: as many in each set as a multiple of `multiple`.

        The last set has what is left. Rows that do not follow each other are clustered first.
        `reuse` is as in `blocks`.
        """
        sets = self._task_sets(multiple, Buffers(self.n_features, self.dtype, reuse))
        return read_ahead(sets, AHEAD)

    def _task_sets(self, multiple: int, buffers: Buffers) -> Iterator[TaskSet]:
        from headstart.parquet.cluster import grouped

        with grouped(self) as whole:
            waiting: Block | None = None
            ready = 1
            for batch, row in whole._batches():
                kept = 0 if waiting is None else len(waiting.y)
                X = buffers.next(kept + batch.num_rows, in_turn=ready > 0)
                block = whole._block(batch, row, X[kept:])
                del batch
                if block.missing.any():
                    raise ParquetError(
                        f"{self.path}: column {self.group!r}: expected an id in every row, found "
                        "null; give such rows an id, or leave them out"
                    )
                if waiting is not None:
                    X[:kept] = waiting.X
                    block = joined(waiting, block, X)
                ready = (len(block.starts) - 1) // multiple * multiple  # the last may go on
                if ready:
                    yield as_task_set(part_of(block, 0, ready, int(block.starts[ready])))
                waiting = part_of(block, ready, len(block.starts), len(block.y))
            if waiting is not None:
                yield as_task_set(waiting)

    def _batches(self) -> Iterator[tuple[Any, int]]:
        """Record batches that are not empty, with the number of their first row."""
        row = 0
        for batch in batches(read_ahead(self._tables()), self.batch_rows):
            yield batch, row
            row += batch.num_rows
            del batch
            if self.callback is not None:
                self.callback(row)

    def _tables(self) -> Iterator[Any]:
        for path, pieces in groupby(self.pieces, attrgetter("file")):
            numbers = [piece.number for piece in pieces]
            yield from self.read(path, numbers, self.columns, self.batch_rows, whole=WHOLE)

    def read(
        self,
        path: str,
        numbers: Sequence[int],
        columns: list[str],
        batch_rows: int,
        *,
        whole: int,
        threads: bool = True,
    ) -> Iterator[Any]:
        """Row groups of a file as tables, see `read_file`, with what its folders say."""
        given = ds.get_partition_keys(self.files[path].partition_expression)
        told = [name for name in columns if name in given]
        inside = [name for name in columns if name not in given]
        for table in read_file(path, numbers, inside, batch_rows, whole=whole, threads=threads):
            for name in told:
                value = pa.scalar(given[name], self.schema.field(name).type)
                table = table.append_column(name, pa.repeat(value, table.num_rows))
            yield table
            del table  # or else it would stay in memory while the next is made

    def _block(self, batch: Any, first_row: int, X: FloatArray) -> Block:
        self.fill(X, batch, first_row)
        block = make_block(X, *self.labels_and_ids(batch))
        if block.unlabelled.any():
            where = self.place(int(np.argmax(block.unlabelled)), first_row)
            raise ParquetError(f"{where}: column {self.target!r}: a value is missing")
        return block

    def labels_and_ids(self, batch: Any) -> tuple[Array, Array, Array]:
        """Labels, ids and keys of a record batch or table."""
        y, ids = plain(batch.column(self.target)), plain(batch.column(self.group))
        return y, ids, ids if self.key is None else plain(batch.column(self.key))

    def fill(self, X: FloatArray, batch: Any, first_row: int | None = None) -> None:
        """Put the features of a record batch into X; `first_row` is its place in the dataset."""
        names = self.features or ()
        columns = [self._numbers(batch.column(name), name, first_row) for name in names]
        if interleave(columns, X):
            return
        for name, column in zip(names, columns, strict=True):
            wrong = np.flatnonzero(~np.isfinite(column))
            if wrong.size:  # else the sum alone was too large
                raise ParquetError(
                    f"{self.place(int(wrong[0]), first_row)}: column {name!r}: expected finite "
                    f"numbers, found {column[wrong[0]]}"
                )

    def _numbers(self, column: Array, name: str, first_row: int | None) -> NDArray[np.generic]:
        if column.null_count:
            row = int(np.argmax(plain(column).is_null().to_numpy(zero_copy_only=False)))
            raise ParquetError(f"{self.place(row, first_row)}: column {name!r}: a value is missing")
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            return np.asarray(column)
        return np.asarray(as_floats(column))

    def column(self, name: str) -> Iterator[Array]:
        """The values of one column, a part at a time, to be used quicker than they are read."""
        self.pieces  # noqa: B018 - a file that does not belong is told now
        try:
            for batch in self.dataset.to_batches(columns=[name], batch_size=1 << 18):
                if batch.num_rows:
                    yield plain(batch.column(name))
        except (pa.ArrowInvalid, OSError) as error:
            raise ParquetError(unreadable(error)) from None

    def labels(self) -> NDArray[np.generic]:
        """The different labels there are."""
        found: Array = pa.array([], self.schema.field(self.target).type)
        for column in self.column(self.target):
            found = pc.unique(pa.concat_arrays([plain(found), pc.unique(column)]))
        return np.asarray(found.drop_null().to_numpy(zero_copy_only=False))

    def place(self, row: int, first_row: int | None) -> str:
        """Where a row of a block is, in words."""
        if first_row is None:
            return str(self.path)
        row += first_row
        for piece in self.pieces:
            if row < piece.rows:
                before = sum(
                    p.rows for p in self.pieces if p.file == piece.file and p.number < piece.number
                )
                return f"{piece.file}, row {before + row}"
            row -= piece.rows
        return str(self.path)
