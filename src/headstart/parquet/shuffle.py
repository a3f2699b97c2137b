"""Scattered rows put together by many: each writes its rows by the hash of their ids, then sorts.

First every block of partitions becomes a file whose batches hold the rows of one bucket each, a
bucket being a range of hashes. Then each bucket is read from all files, sorted and written. Whole
tasks are in a bucket, and a task's rows keep their order. A bucket must fit into the memory of who
sorts it: it has about as many rows as a partition. But there are at most `MOST_BUCKETS`, so beyond
a billion rows it grows with the dataset: of ten billion rows it has ten million. What is finished
stays: a second run goes on from there. All who take part must see the folder, or reach the object
store that it is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from headstart._core.files import clear_asides, write_aside
from headstart._core.leftovers import temporary_folder
from headstart._core.places import Place, Remote, children, opened, remove_folder
from headstart.parquet.blocks import run_starts
from headstart.parquet.carry import plain_type
from headstart.parquet.cluster import ROW_GROUP, schema_of, task_key
from headstart.parquet.columns import Array, is_null, plain, stored
from headstart.parquet.draw import runs_of
from headstart.parquet.engine import in_blocks
from headstart.parquet.files import Decoding, ParquetError
from headstart.parquet.order import Run, is_grouped
from headstart.parquet.plan import MOST_BATCHES, PARTITION_ROWS, Partition, plan_rows
from headstart.parquet.rows import ParquetRows
from headstart.tasks.ids import hash_ids

Hashes = NDArray[np.uint64]

MOST_BUCKETS = 1 << 10  # each reads the indices of all files, which have lines for all buckets
COPY = re.compile("[0-9a-f]{16}")  # the name of a copy's folder
TOGETHER = 1 << 19  # rows that are dealt to buckets at once
AT_ONCE = 16  # files that a bucket is read from


@contextmanager
def grouped_by(
    run: Run,
    rows: ParquetRows,
    folder: Place | None = None,
    keep: Sequence[str] = (),
    *,
    alone: bool = False,
) -> Iterator[ParquetRows]:
    """The rows themselves if each task's follow each other, or else a copy by whoever `run` asks.

    The copy is made in `folder`, where others can read it and it stays, or in a temporary folder:
    also if this process works `alone` and would have to bring its copy to an object store.
    Workers on other machines do not see a temporary folder: an error then asks for `folder`.
    """
    if is_grouped(rows, run):
        yield rows
    elif folder is None or (alone and isinstance(folder, Remote)):
        with temporary_folder() as place, _seen(place, rows, alone):
            yield shuffled(run, rows, place, keep)
    else:
        yield shuffled(run, rows, folder, keep)


@contextmanager
def _seen(place: Path, rows: ParquetRows, alone: bool) -> Iterator[None]:
    """Say what to do if others look in vain for a file of a temporary folder."""
    try:
        yield
    except (FileNotFoundError, ParquetError) as error:
        if alone or str(place) not in str(error):  # it is not about the copy
            raise
        raise ParquetError(
            f"{rows.known_as}: its rows were put together in {place}, where not all workers could "
            "read them; folder: name one that all workers see"
        ) from None


def shuffled(run: Run, rows: ParquetRows, folder: Place, keep: Sequence[str] = ()) -> ParquetRows:
    """A copy of the rows in `folder` with each task's together, tasks by hash of their ids."""
    names = list(dict.fromkeys([*rows.columns, *keep]))
    blocks = in_blocks(plan_rows(rows, PARTITION_ROWS))
    buckets = min(MOST_BUCKETS, -(-rows.n_rows // PARTITION_ROWS))
    deal = _Deal(rows, tuple(names), folder / _fingerprint(rows, names), buckets)
    for path in (deal.folder, deal.copy):
        clear_asides(path)  # of a run that was killed
    there = {file.name for path in (deal.folder, deal.copy) for file in children(path)}
    todo = [number for number in range(buckets) if deal.bucket(number).name not in there]
    if todo:
        numbered = [(k, tuple(block)) for k, block in enumerate(blocks)]
        dealt = [block for block in numbered if deal.path(block[0]).name not in there]
        found = sum(run(deal.write, dealt))
        if len(dealt) == len(blocks) and found != rows.n_rows:
            raise ParquetError(
                f"{rows.known_as}: {rows.n_rows} rows were to be read, {found} were; did the files "
                "change meanwhile?"
            )
        gather = _Gather(deal, len(blocks), schema_of(rows, [deal.key, *names]))
        list(run(gather.write, todo))
    for number in range(len(blocks)):
        deal.path(number).unlink(missing_ok=True)
    for other in children(folder):  # copies of the dataset as it was before
        if COPY.fullmatch(other.name) and other.name != deal.folder.name:
            remove_folder(other)
    return replace(rows, path=deal.copy, key=deal.key, origin=rows.known_as)


def _fingerprint(rows: ParquetRows, names: list[str]) -> str:
    """What the copy is of: files as they are now, and columns."""
    digest = blake2b(repr(names).encode(), digest_size=8)
    digest.update(repr(sorted(rows.stamps().items())).encode())
    return digest.hexdigest()


class _Deal(NamedTuple):
    """Writes rows by bucket, and knows where buckets will be."""

    rows: ParquetRows
    names: tuple[str, ...]
    folder: Place
    buckets: int

    @property
    def copy(self) -> Place:
        return self.folder / "rows"

    @property
    def key(self) -> str:
        return task_key(self.names)

    def path(self, number: int) -> Place:
        return self.folder / f"dealt-{number:05d}.arrow"

    def bucket(self, number: int) -> Place:
        return self.copy / f"bucket-{number:05d}.parquet"

    def write(self, block: tuple[int, tuple[Partition, ...]]) -> int:
        """The rows of a block of partitions; gives their number."""
        number, partitions = block
        kinds = {f.name: plain_type(f.type) for f in self.rows.schema}
        schema = pa.schema([pa.field(name, kinds[name]) for name in self.names])
        total = 0

        def fill(aside: Path) -> None:
            nonlocal total
            with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, schema) as file:
                for table in self._tables(partitions):
                    batches = self._dealt(table.cast(schema), (number << 40) + total)
                    for batch in batches:
                        file.write_batch(batch)
                    total += table.num_rows

        write_aside(self.path(number), fill)
        return total

    def _tables(self, partitions: tuple[Partition, ...]) -> Iterator[pa.Table]:
        """Rows in tables of about `TOGETHER` rows."""
        decoding = Decoding(self.rows.batch_rows, MOST_BATCHES, threads=False)
        waiting: list[pa.Table] = []
        for partition in partitions:
            for file, numbers in partition.own:
                for table in self.rows.read(file, numbers, list(self.names), decoding):
                    arrays = [plain(table.column(name)) for name in self.names]
                    waiting.append(pa.table(arrays, names=list(self.names)))
                    if sum(part.num_rows for part in waiting) >= TOGETHER:
                        yield pa.concat_tables(waiting)
                        waiting = []
        if waiting:
            yield pa.concat_tables(waiting)

    def _dealt(self, table: pa.Table, first: int) -> Iterator[pa.RecordBatch]:
        """A batch for each bucket, in order, empty ones too."""
        hashes = _row_hashes(self.rows, table.column(self.rows.group), first)
        bucket = (hashes >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32)
        order = np.argsort(bucket, kind="stable")
        table = table.take(order).combine_chunks()
        ends = np.searchsorted(bucket[order], np.arange(1, self.buckets + 1, dtype=np.uint64))
        begin = 0
        for end in ends.tolist():
            part = table.slice(begin, end - begin).combine_chunks()
            arrays = [plain(part.column(k)) for k in range(part.num_columns)]
            yield pa.RecordBatch.from_arrays(arrays, schema=table.schema)
            begin = end


class _Gather(NamedTuple):
    """Reads, sorts and writes buckets.

    The schema is that of the copy. It takes the footers of all files, which nobody reads again.
    """

    deal: _Deal
    blocks: int
    schema: pa.Schema

    @property
    def rows(self) -> ParquetRows:
        return self.deal.rows

    def write(self, bucket: int) -> int:
        """One bucket, sorted; gives its number of rows."""
        deal = self.deal

        def part(source: Any) -> pa.Table:
            file = pa.ipc.open_file(source)
            numbers = range(bucket, file.num_record_batches, deal.buckets)
            return pa.Table.from_batches(map(file.get_batch, numbers), file.schema)

        with ThreadPoolExecutor(AT_ONCE) as pool:  # an object store answers slowly
            parts = list(pool.map(lambda k: opened(deal.path(k), part), range(self.blocks)))
        table = pa.concat_tables(parts).combine_chunks()
        ordered, keys = _sorted(self.rows, table, bucket)
        columns = [pa.array(keys), *(plain(ordered.column(name)) for name in deal.names)]
        found = pa.Table.from_arrays(columns, schema=self.schema)

        def fill(aside: Path) -> None:
            parquet.write_table(
                *(found, aside, ROW_GROUP),
                compression="none",
                use_dictionary=False,
                write_statistics=[deal.key],
            )

        write_aside(deal.bucket(bucket), fill)
        return table.num_rows


def _row_hashes(rows: ParquetRows, ids: Array, first: int) -> Hashes:
    """The hash of each row's id; one that has none has that of its place."""
    runs = runs_of(rows, ids)
    hashes = runs.by_row
    if runs.nameless:
        nobody = np.flatnonzero(is_null(plain(ids)))
        hashes[nobody] = hash_ids(first + nobody)
    return hashes


def _sorted(rows: ParquetRows, table: pa.Table, bucket: int) -> tuple[pa.Table, NDArray[np.int64]]:
    """Rows with each task's together, in their order, and a number that grows from task to task."""
    ids = plain(table.column(rows.group))
    hashes = _row_hashes(rows, ids, 0)
    order = np.argsort(hashes, kind="stable")
    keys = stored(ids)
    starts = run_starts(keys.take(pa.array(order)))
    named = int(np.count_nonzero(~is_null(ids)))
    if len(starts) - (len(ids) - named) > len(np.unique(hashes[~is_null(ids)])):
        # ids that share a hash: apart from each other, in the order in which they first appear
        codes: Array = pc.dictionary_encode(keys).indices
        order = np.lexsort((np.asarray(pc.fill_null(codes, -1)), hashes))
        starts = run_starts(keys.take(pa.array(order)))
    sizes = np.diff(starts, append=len(ids))
    numbers = np.repeat((bucket << 40) + np.arange(len(starts)), sizes)
    return table.take(order), numbers
