"""Jobs over all tasks of a dataset: every partition on its own, results as a dataset again.

The files of a partition are written aside and renamed, then a note says that it is done. A job
that was stopped resumes with the partitions that have no note. The index comes last: a folder
without one is not finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, check_jobs, read_only
from headstart._core.jit import source_digest
from headstart.estimators.dataset import StartingModel, start_only, weights_after
from headstart.estimators.protocol import MetaModel
from headstart.jobs.notes import JobIndex, Part, claim, finish, read_note, write_note
from headstart.jobs.sparse import adapt_task_set
from headstart.online import predictions as predict_rows
from headstart.parquet import (
    PARTITION_ROWS,
    Block,
    ParquetError,
    ParquetRows,
    Partition,
    grouped_by,
    plan_partitions,
    read_partition,
    wrong_name,
)
from headstart.parquet.columns import Array
from headstart.parquet.writer import Writer
from headstart.tasks import TaskSet

EXTRA = ["intercept", "rows"]  # columns of the weights beside the features
PREDICTION = "prediction"  # the column of predictions


class AdaptJob(NamedTuple):
    """What is to be done with every partition.

    Attributes
    ----------
    start : where tasks start, and how they are adapted
    rows : the dataset, with each task's rows together
    out : the folder to write to
    weights, predictions : which of them to write
    keep : columns to write beside predictions
    """

    start: StartingModel
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
            files = {f: stack.enter_context(Writer(self.out / f / name)) for f in folders}
            for block, table in read_partition(self.rows, partition, self.keep):
                found = self._adapt(block, table)
                for folder, file in files.items():
                    file.write(found[folder])
                tasks, rows = tasks + int(np.sum(~block.missing)), rows + len(block.y)
                ends += [block.keys[0].as_py(), block.keys[-1].as_py()]
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        part = Part(partition.number, tasks, rows, first, last)
        write_note(self.out, part)
        return part

    def _adapt(self, block: Block, table: pa.Table) -> dict[str, pa.Table]:
        """Weights of the tasks of a block, and predictions of its rows."""
        X, y, ids, sizes, named = block.X, block.y, block.ids, block.sizes, ~block.missing
        if block.missing.any() or block.unlabelled.any():
            own = block.by_row(named) & ~block.unlabelled
            X, y, ids = X[own], y[own], ids.filter(pa.array(named))
            sizes = np.add.reduceat(own, block.starts, dtype=np.int64)[named]
        W = weights_after(self.start, X, y, sizes)
        scores = np.empty(len(block.X) if self.predictions else 0, block.X.dtype)
        if self.predictions:
            entity = block.by_row(np.where(named, np.cumsum(named) - 1, -1))
            bias = self.start.weights(block.X.dtype)
            predict_rows(read_only(block.X), entity, read_only(W), read_only(bias), scores)
        names = list(dict.fromkeys([self.rows.group, *self.keep]))
        beside = table.slice(0, len(scores)).select(names)
        return {
            "weights": self._weights_table(ids, W, sizes),
            "predictions": beside.append_column(PREDICTION, pa.array(self.start.labels(scores))),
        }

    def _weights_table(self, ids: Array, W: FloatArray, sizes: NDArray[np.int64]) -> pa.Table:
        """Weights by id; fields are marked non-nullable: faster to write."""
        columns = [ids, *map(pa.array, np.ascontiguousarray(W.T)), pa.array(sizes)]
        names = [self.rows.group, *(self.rows.features or ()), *EXTRA]
        fields = [
            pa.field(name, column.type, nullable=False)
            for name, column in zip(names, columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields))


def adapt_all(
    model: MetaModel,
    rows: ParquetRows | TaskSet,
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
    Called again with the same arguments it resumes from what is finished, and clears what a killed
    run left; when all is finished, it gives the index.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier
    rows : ParquetRows, or TaskSet of sparse rows
        The features of a dataset are by name those of the model. Of a `TaskSet` weights are
        written, one file of all tasks: for each id the columns that its rows have, and the
        weights there; in all other columns the weights are those of the start.
    out : str or Path
        A folder that is empty, not there, or of the same job.
    weights : bool
        Write the weights of every id, its intercept and on how many rows they were trained.
    predictions : bool
        Write a prediction for every row, labelled or not; without an id by the bias.
    keep : tuple of str
        Columns to be written beside the predictions.
    partition_rows : int
        About how many rows a partition has. Tasks are never cut: one of more rows is a
        partition of its own.
    executor : concurrent.futures.Executor, optional
        Who runs the partitions; threads of this process by default, `n_jobs` of them.
    callback : function of two numbers, optional
        Called after every partition with the rows done and the rows there are.

    Returns
    -------
    JobIndex
    """
    folder = Path(out)
    if isinstance(rows, TaskSet):
        return adapt_task_set(start_only(model), rows, folder)
    taken = [name for name in [rows.group, *(rows.features or ())] if name in EXTRA]
    if taken and weights:
        raise ParquetError(f"{rows.path}: the weights have a column {taken[0]!r} of their own")
    _check_keep(rows, keep, predictions)
    job = AdaptJob(start_only(model), rows, folder, weights, predictions, tuple(keep))
    fingerprint = _fingerprint(job, partition_rows)
    if (finished := claim(folder, fingerprint)) is not None:
        return finished
    with (
        _running(executor, n_jobs) as pool,
        grouped_by(pool.map, rows, folder / "clustered", keep) as together,
    ):
        job = job._replace(rows=together)
        partitions = plan_partitions(together, partition_rows)
        noted = [read_note(folder, p.number) for p in partitions]
        parts = {part.number: part for part in noted if part is not None}
        todo = [p for p in partitions if p.number not in parts]
        for part in pool.map(job.run, todo):
            parts[part.number] = part  # a cluster may run one twice: the results are the same
            if callback is not None:
                callback(sum(p.rows for p in parts.values()), rows.n_rows)
    index = JobIndex(
        folder,
        sum(part.tasks for part in parts.values()),
        sum(part.rows for part in parts.values()),
        [parts[number] for number in sorted(parts)],
    )
    _check(index, rows)
    finish(index, fingerprint)
    return index


def _check_keep(rows: ParquetRows, keep: tuple[str, ...], predictions: bool) -> None:
    """Raise unless the columns to keep are there, and none has the name of the predictions."""
    for name in keep:
        if rows.schema.names.count(name) != 1:
            raise ParquetError(f"{rows.path}: keep: {wrong_name(name, rows.schema.names)}")
    if predictions and PREDICTION in (rows.group, *keep):
        raise ParquetError(f"{rows.path}: the predictions are a column {PREDICTION!r} themselves")


def _fingerprint(job: AdaptJob, partition_rows: int) -> str:
    """Digest of all that decides results: data, model, what is asked, and the code."""
    digest = blake2b(source_digest().encode(), digest_size=12)
    for path in job.rows.fragments:
        status = Path(path).stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    asked = [job.rows.columns, job.weights, job.predictions, job.keep, partition_rows]
    stream, classes = job.start.stream, job.start.classes
    names = None if classes is None else classes.tolist()
    digest.update(json.dumps([*asked, repr(stream.settings), repr(names)]).encode())
    for array in stream.arrays().values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _check(index: JobIndex, rows: ParquetRows) -> None:
    """Raise if a row was lost or taken twice, or a task was cut."""
    if index.rows != rows.n_rows:
        raise ParquetError(
            f"{rows.path}: {rows.n_rows} rows were to be read, {index.rows} were; did the files "
            "change meanwhile? Remove the output and begin again"
        )
    ends = [(part.first, part.last) for part in index.parts if part.first is not None]
    for one, other in pairwise(ends):
        if one[1] == other[0]:
            raise ParquetError(f"{rows.path}: the rows of {one[1]!r} were taken apart")


@contextmanager
def _running(executor: Executor | None, n_jobs: int | None) -> Iterator[Executor]:
    """The executor, or threads of this process, which start nothing more after a fault."""
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(check_jobs(n_jobs)) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
