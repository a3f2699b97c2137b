"""Jobs over all tasks of a dataset: every partition on its own, results as a dataset again.

A partition's files are written aside and renamed, and then noted; a job that was stopped goes
on with what is not noted. The index comes last: a folder without one is not finished.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from headstart._checks import FloatArray, check_jobs, read_only
from headstart._files import write_aside
from headstart._jit import source_digest
from headstart.estimators.dataset import start_only, state_of, weights_after
from headstart.online import predictions as predict_rows
from headstart.parquet import (
    PARTITION_ROWS,
    Block,
    ParquetError,
    ParquetRows,
    Partition,
    grouped,
    plan_partitions,
    read_partition,
)
from headstart.plain import from_plain, to_plain

ROW_GROUP = 1 << 16  # rows of the files that are written
EXTRA = ["intercept", "rows"]  # columns of the weights beside the features


class Part(NamedTuple):
    """A finished partition: how many tasks and rows, and the keys it begins and ends with."""

    number: int
    tasks: int
    rows: int
    first: Any
    last: Any


class JobIndex(NamedTuple):
    """What a finished job wrote: its folder, number of tasks and rows, and the parts."""

    folder: Path
    tasks: int
    rows: int
    parts: list[Part]


class AdaptJob(NamedTuple):
    """What is to be done with every partition."""

    model: Any
    rows: ParquetRows
    out: Path
    weights: bool
    predictions: bool
    keep: tuple[str, ...]

    def run(self, partition: Partition) -> Part:
        """Adapt to the tasks of one partition, and write what was asked for."""
        name = f"part-{partition.number:05d}.parquet"
        folders = [f for f in ("weights", "predictions") if getattr(self, f)]
        tasks, rows, ends = 0, 0, []
        with ExitStack() as stack:
            files = {f: stack.enter_context(_Writer(self.out / f / name)) for f in folders}
            for block, table in read_partition(self.rows, partition, self.keep):
                found = self._adapt(block, table)
                for folder, file in files.items():
                    file.write(found[folder])
                tasks, rows = tasks + int(np.sum(~block.missing)), rows + len(block.y)
                ends += [block.keys[0].as_py(), block.keys[-1].as_py()]
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        part = Part(partition.number, tasks, rows, first, last)
        noted = json.dumps([to_plain("part", value) for value in part])
        write_aside(_note(self.out, partition.number), methodcaller("write_text", noted))
        return part

    def _adapt(self, block: Block, table: pa.Table) -> dict[str, pa.Table]:
        """Weights of the tasks of a block, and predictions of its rows."""
        X, y, ids, sizes, named = block.X, block.y, block.ids, block.sizes, ~block.missing
        if block.missing.any() or block.unlabelled.any():
            own = block.spread(named) & ~block.unlabelled
            X, y, ids = X[own], y[own], ids.filter(pa.array(named))
            sizes = np.add.reduceat(own, block.starts, dtype=np.int64)[named]
        W = weights_after(self.model, X, y, sizes)
        scores = np.empty(len(block.X) if self.predictions else 0, block.X.dtype)
        if self.predictions:
            entity = block.spread(np.where(named, np.cumsum(named) - 1, -1))
            start = np.append(self.model.bias_, self.model.intercept_).astype(block.X.dtype)
            predict_rows(read_only(block.X), entity, read_only(W), read_only(start), scores)
        names = list(dict.fromkeys([self.rows.group, *self.keep]))
        told = table.slice(0, len(scores)).select(names)
        return {
            "weights": self._table(ids, W, sizes),
            "predictions": told.append_column("prediction", pa.array(self.model._told(scores))),
        }

    def _table(self, ids: Any, W: FloatArray, sizes: NDArray[np.int64]) -> pa.Table:
        """Weights by id; that no value is missing is said, because it is quicker to write."""
        columns = [ids, *map(pa.array, np.ascontiguousarray(W.T)), pa.array(sizes)]
        names = [self.rows.group, *(self.rows.features or ()), *EXTRA]
        fields = [
            pa.field(name, column.type, nullable=False)
            for name, column in zip(names, columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields))


class _Writer:
    """A Parquet file written aside, a row group at a time, and put in its place at the end."""

    def __init__(self, path: Path) -> None:
        self.path, self.waiting = path, list[pa.Table]()
        self.file: Any = None
        self.aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")

    def __enter__(self) -> _Writer:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, table: pa.Table) -> None:
        """Add rows; small tables are gathered, because a row group has a cost of its own."""
        self.waiting.append(table)
        if sum(map(len, self.waiting)) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self.waiting:
            return
        if self.file is None:
            schema = self.waiting[0].schema
            self.file = parquet.ParquetWriter(
                *(self.aside, schema),
                compression="lz4",
                use_dictionary=False,
                write_statistics=schema.names[:1],  # of the ids, by which rows are looked up
            )
        self.file.write_table(pa.concat_tables(self.waiting), row_group_size=2 * ROW_GROUP)
        self.waiting = []

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
        if self.file is not None:
            self.file.close()
        if kind is None and self.file is not None:
            self.aside.replace(self.path)
        self.aside.unlink(missing_ok=True)


def adapt_all(
    model: Any,
    rows: ParquetRows,
    out: str | Path,
    *,
    weights: bool = True,
    predictions: bool = False,
    keep: tuple[str, ...] = (),
    partition_rows: int = PARTITION_ROWS,
    executor: Executor | None = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> JobIndex:
    """Adapt a model to every task of a dataset, and write weights, predictions or both.

    A task's own rows are those with a label. Results are in the folders ``weights`` and
    ``predictions`` of `out`, a file for each partition, and ``index.json`` when all are done.
    Called again with the same arguments it goes on from what is finished.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier
    rows : ParquetRows
        Its features by name are those of the model.
    out : str or Path
        A folder that is empty, not there, or of the same job.
    weights : bool
        Write the weights of every id, its intercept and on how many rows they were trained.
    predictions : bool
        Write a prediction for every row, labelled or not; without an id by the bias.
    keep : tuple of str
        Columns to be written beside the predictions.
    partition_rows : int
        Rows of a partition, which is in memory as a whole; a larger task is one too.
    executor : concurrent.futures.Executor, optional
        Who runs the partitions; threads of this process by default, `n_jobs` of them.
    callback : function of two numbers, optional
        Called after every partition with the rows done and the rows there are.

    Returns
    -------
    JobIndex
    """
    folder = Path(out)
    taken = [name for name in rows.features or () if name in EXTRA]
    if taken and weights:
        raise ParquetError(f"{rows.path}: the weights have a column {taken[0]!r} of their own")
    job = AdaptJob(start_only(model), rows, folder, weights, predictions, tuple(keep))
    _claim(folder, _fingerprint(job, partition_rows))
    with (
        grouped(rows, folder / "clustered", in_order=False) as whole,
        _running(executor, n_jobs) as pool,
    ):
        job = job._replace(rows=whole)
        partitions = plan_partitions(whole, partition_rows)
        done = [_noted(folder, p.number) for p in partitions]
        parts = {part.number: part for part in done if part is not None}
        todo = [p for p in partitions if p.number not in parts]
        for part in pool.map(job.run, todo):
            parts[part.number] = part  # a twin of a partition that was run twice is the same
            if callback is not None:
                callback(sum(p.rows for p in parts.values()), rows.n_rows)
    index = JobIndex(
        folder,
        sum(part.tasks for part in parts.values()),
        sum(part.rows for part in parts.values()),
        [parts[number] for number in sorted(parts)],
    )
    _check(index, rows)
    _finish(index)
    return index


def _note(folder: Path, number: int) -> Path:
    return folder / "done" / f"{number:05d}.json"


def _noted(folder: Path, number: int) -> Part | None:
    path = _note(folder, number)
    return Part(*map(from_plain, json.loads(path.read_text()))) if path.exists() else None


def _fingerprint(job: AdaptJob, partition_rows: int) -> str:
    """What makes a job the job it is; also the code, which may cut and compute otherwise."""
    digest = blake2b(source_digest().encode(), digest_size=12)
    for path in job.rows.fragments:
        status = Path(path).stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    asked = [job.rows.columns, job.weights, job.predictions, job.keep, partition_rows]
    digest.update(json.dumps([*asked, repr(job.model.get_params())]).encode())
    for array in state_of(job.model):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _claim(folder: Path, fingerprint: str) -> None:
    """Make the folder this job's, or find that it is."""
    note = folder / "job.json"
    if note.exists():
        if json.loads(note.read_text())["job"] != fingerprint:
            raise ParquetError(
                f"{folder}: holds the unfinished results of another job; remove it, or give "
                "another folder"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise ParquetError(f"{folder} exists and is not empty; give another folder")
    write_aside(note, methodcaller("write_text", json.dumps({"job": fingerprint}) + "\n"))


def _check(index: JobIndex, rows: ParquetRows) -> None:
    """No row lost or taken twice, no task cut."""
    if index.rows != rows.n_rows:
        raise ParquetError(
            f"{rows.path}: {rows.n_rows} rows were to be read, {index.rows} were; did the files "
            "change meanwhile? Remove the output and begin again"
        )
    ends = [(part.first, part.last) for part in index.parts if part.first is not None]
    for one, other in pairwise(ends):
        if one[1] == other[0]:
            raise ParquetError(f"{rows.path}: the rows of {one[1]!r} were taken apart")


def _finish(index: JobIndex) -> None:
    told = {
        "tasks": index.tasks,
        "rows": index.rows,
        "parts": [[to_plain("part", value) for value in part] for part in index.parts],
    }
    text = json.dumps(told, indent=1) + "\n"
    write_aside(index.folder / "index.json", methodcaller("write_text", text))
    shutil.rmtree(index.folder / "done", ignore_errors=True)
    shutil.rmtree(index.folder / "clustered", ignore_errors=True)
    (index.folder / "job.json").unlink()


@contextmanager
def _running(executor: Executor | None, n_jobs: int | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(check_jobs(n_jobs)) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
