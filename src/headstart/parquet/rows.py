"""Rows of a Parquet dataset, read in bounded batches and put together into whole tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from headstart._core.checks import FloatArray
from headstart.parquet.blocks import AHEAD, Batch, Block, Buffers, as_task_set, whole_tasks
from headstart.parquet.cluster import grouped
from headstart.parquet.columns import MISSING, is_numeric, wrong_name
from headstart.parquet.files import ParquetError, read_ahead
from headstart.parquet.source import Source
from headstart.tasks import TaskSet


@dataclass(frozen=True)
class ParquetRows(Source):
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
    sparse : tuple of two str, optional
        The columns of sparse rows: lists of the numbers of those columns that are not 0, from 0
        on, and lists of what is there. There are no other features then.
    n_columns : int, optional
        How many columns sparse rows have.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> table = pa.table({"user": [1, 1, 2], "x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parquet.write_table(table, f"{folder}/a.parquet")
    ...     rows = ParquetRows(folder, "user", "y")
    ...     print(rows.n_rows, rows.features, [len(block.y) for block in rows.blocks()])
    3 ('x',) [3]
    """

    def blocks(self, *, reuse: bool = False) -> Iterator[Block]:
        """All rows in order, a batch at a time.

        With `reuse` the inputs of a block are overwritten when the next is asked for.
        """
        return read_ahead(self._blocks(self._buffers(reuse)), AHEAD)

    def _blocks(self, buffers: Buffers) -> Iterator[Block]:
        for batch in self.batches():
            block = self.labelled(batch, buffers.next(batch.columns.num_rows))
            if self.sparse is not None:
                inputs: Any = self.sparse_rows(batch.columns)
                block = block._replace(X=inputs)
            del batch
            yield block

    def task_sets(self, multiple: int = 1, *, reuse: bool = False) -> Iterator[TaskSet]:
        """Whole tasks, a batch at a time: as many in each set as a multiple of `multiple`.

        The last set has what is left. Rows that do not follow each other are clustered first.
        `reuse` is as in `blocks`.
        """
        return read_ahead(self._task_sets(multiple, self._buffers(reuse)), AHEAD)

    def _task_sets(self, multiple: int, buffers: Buffers) -> Iterator[TaskSet]:
        self.check_numbers()
        if self.sparse is not None:
            raise ParquetError(
                f"{self.known_as}: its rows are sparse, and dense ones are needed here"
            )
        with grouped(self) as rows:  # these, or a copy with each task's rows together

            def make(batch: Batch, X: FloatArray) -> Block:
                return self._named(rows.labelled(batch, X))

            for block, _ in whole_tasks(rows.batches(), make, buffers, multiple=multiple):
                yield as_task_set(block)

    def _buffers(self, reuse: bool) -> Buffers:
        return Buffers(self.width, self.dtype, AHEAD + 1 if reuse else 0)

    def labelled(self, batch: Batch, X: FloatArray) -> Block:
        """The rows of a batch, with their inputs put into X; raise if one has no label."""
        block = self.block(batch, X) if self.sparse is None else self.labels_of(batch, X)
        if block.unlabelled.any():
            where = self.place(batch, int(np.argmax(block.unlabelled)))
            raise ParquetError(f"{where}: column {self.target!r}: {MISSING}")
        return block

    def _named(self, block: Block) -> Block:
        if block.missing.any():
            self.refuse_nameless()
        return block

    def refuse_unlabelled(self, block: Block) -> None:
        """Raise if a row has no label."""
        if block.unlabelled.any():
            run = int(np.searchsorted(block.starts, np.argmax(block.unlabelled), side="right")) - 1
            raise ParquetError(
                f"{self.known_as}, a row of {self.group!r} {block.ids[run].as_py()!r}: column "
                f"{self.target!r}: {MISSING}"
            )

    def refuse_nameless(self) -> NoReturn:
        """Raise because a row has no id."""
        raise ParquetError(
            f"{self.known_as}: column {self.group!r}: expected an id in every row, found "
            "null; give such rows an id, or leave them out"
        )

    def check_numbers(self) -> None:
        """Raise unless the target is numbers, as regression needs."""
        kind = self.schema.field(self.target).type
        if not is_numeric(kind):
            raise ParquetError(
                f"{self.known_as}: column {self.target!r}: expected numbers to predict, found "
                f"{kind}; of two classes a classifier learns"
            )

    def check_number_column(self, argument: str, name: str) -> None:
        """Raise unless there is a column of this name, and numbers in it."""
        known = self.schema.names
        if known.count(name) != 1:
            raise ParquetError(f"{self.known_as}: {argument}: {wrong_name(name, known)}")
        kind = self.schema.field(name).type
        if not is_numeric(kind):
            raise ParquetError(
                f"{self.known_as}: {argument}: column {name!r}: expected numbers, found {kind}"
            )
