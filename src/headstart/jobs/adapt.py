"""Jobs over all tasks of a dataset: every partition on its own, results as a dataset again.

The files of a partition are complete or not there, then a note says that it is done. A job that
was stopped resumes with the partitions that have no note. The index comes last: a folder without
one is not finished. Called again when files of the dataset have changed, it is the next run of the
same job, and keeps the partitions that are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from headstart._core.checks import check_count, check_flag, check_jobs, check_number
from headstart._core.jit import source_digest
from headstart._core.places import AnyPath, Place, as_place, full
from headstart._core.runs import Clock, digest_of
from headstart.estimators.protocol import MetaModel
from headstart.estimators.start import StartingModel, start_only
from headstart.jobs.notes import (
    JobIndex,
    Part,
    claim,
    finish,
    part_file,
    present,
    read_notes,
    write_note,
)
from headstart.jobs.runs import Inputs, report
from headstart.jobs.sparse import adapt_task_set, sparse_tables
from headstart.jobs.tables import Asked, block_tables
from headstart.parquet import (
    PARTITION_ROWS,
    ParquetError,
    ParquetRows,
    Partition,
    grouped_by,
    plan_partitions,
    read_partition,
)
from headstart.parquet.writer import Writer
from headstart.tasks import TaskSet


class AdaptJob(NamedTuple):
    """What is to be done with every partition.

    Attributes
    ----------
    start : where tasks start, and how they are adapted
    rows : the dataset, with each task's rows together
    out : the folder to write to
    asked : what to write
    """

    start: StartingModel
    rows: ParquetRows
    out: Place
    asked: Asked

    def run(self, work: tuple[Partition, str]) -> Part:
        """Adapt to the tasks of one partition with this key, and write what was asked for."""
        partition, key = work
        name, asked = part_file(partition.number, key), self.asked
        tasks, rows, ends = 0, 0, []
        more = (*asked.keep, *self.start.side)
        with ExitStack() as stack:
            files = {f: stack.enter_context(Writer(self.out / f / name)) for f in asked.folders}
            for block, table in read_partition(self.rows, partition, more, columns=True):
                make = block_tables if self.rows.sparse is None else sparse_tables
                found = make(self.start, asked, self.rows, block, table)
                for folder, file in files.items():
                    file.write(found[folder])
                tasks, rows = tasks + int(np.sum(~block.missing)), rows + len(block.y)
                ends += [block.keys[0].as_py(), block.keys[-1].as_py()]
                del block, table, found  # or else they would stay while the next are made
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        file_read, (group, *_) = partition.own[0]
        begin = file_read if self.rows.origin is None else ""  # a copy is gone by the next run
        part = Part(partition.number, tasks, rows, first, last, name, begin, group)
        write_note(self.out, part)
        return part

    @property
    def question(self) -> str:
        """Digest of what is asked of which dataset: the runs of one job have it in common."""
        return digest_of(str(full(self.rows.path)), self.rows.columns, tuple(self.asked))

    @property
    def base(self) -> str:
        """Digest of all that decides the results of every partition, but for its rows."""
        stream, classes = self.start.stream, self.start.classes
        names = None if classes is None else classes.tolist()
        arrays = [np.ascontiguousarray(a).tobytes() for a in stream.arrays().values()]
        return digest_of(source_digest(), self.question, stream.settings, names, *arrays)


def adapt_all(
    model: MetaModel,
    rows: ParquetRows | TaskSet,
    out: AnyPath,
    *,
    weights: bool = True,
    covariance: bool = False,
    predictions: bool = False,
    std: bool = False,
    interval: float | None = None,
    keep: tuple[str, ...] = (),
    versions: int = 1,
    partition_rows: int = PARTITION_ROWS,
    executor: Executor | None = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> JobIndex:
    """Adapt a model to every task of a dataset, and write weights, predictions or both.

    A task's own rows are those with a label. Results are in the folders ``weights`` and
    ``predictions`` of `out`, a file for each partition, and ``index.json`` when all are done,
    which names them. Called again it resumes from what is finished, and clears what a killed
    run left; when all is finished, it gives the index.

    Called again when files of the dataset are new, gone or changed (another length or time), or
    with another model, it is the next run of the job. Partitions whose files and row groups are
    as they were, under the same model and code, are kept; the others are adapted. Of a dataset
    whose tasks do not lie together all are, if one file has changed. The files of the run before
    go when the new index is there. Until then the index names the old ones, and the folders hold
    both: readers who may come at any time take those of ``read_index(out).files()``.

    Parameters
    ----------
    model : fitted MetaRegressor or MetaClassifier
        Its columns of `side` are read from the dataset.
    rows : ParquetRows, or TaskSet of sparse rows
        The features of a dataset are by name those of the model. Of sparse rows the weights of an
        id are two lists, ``columns`` and ``weights``: those columns that its rows have, and the
        weights there; in all other columns the weights are those of the start. Of a `TaskSet`
        weights alone are written, one file of all tasks.
    out : str or Path
        A folder that is empty, not there, or of the same job; or an address on an object store.
    weights : bool
        Write the weights of every id, its intercept and on how many rows they were trained.
    covariance : bool
        Beside the weights, write what is not known of them: a column ``covariance`` of lists,
        each the lower triangle, row by row, of the covariance of the weights, the intercept
        last if there is one. Needs a learned prior.
    predictions : bool
        Write a prediction for every row, labelled or not; without an id by the bias.
    std : bool
        Beside the predictions, write the standard deviation of the label of each row; or of a
        classifier the probability of each class. Needs a learned prior.
    interval : float, optional
        Also columns ``low`` and ``high``, between which the label falls in that share of cases.
    keep : tuple of str
        Columns to be written beside the predictions.
    versions : int
        How many of the newest runs there are afterwards, this one included, for `read_index`.
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
    clock, start = Clock(), start_only(model)
    folder = as_place(out) if executor is None else full(out)  # workers may be in another one
    check_count("versions", versions)
    if interval is not None:
        check_number("interval", interval, above=0.0, below=1.0)
    flags = {"weights": weights, "covariance": covariance, "predictions": predictions, "std": std}
    asked = Asked(**flags, interval=interval, keep=tuple(keep))
    for name, value in flags.items():
        check_flag(name, value)
    if isinstance(rows, TaskSet):
        asked.check_weights_alone()
        return adapt_task_set(start, rows, folder)
    rows = _with_columns_of(model, rows)
    asked.check(rows, start)
    job = AdaptJob(start, rows, folder, asked)
    inputs, base = Inputs.of(rows), job.base
    content = digest_of(base, inputs.stamps)
    before, same = claim(folder, job.question, content)
    if same and before is not None and before.is_there(asked.folders):
        return before
    with (
        _running(executor, n_jobs) as pool,
        grouped_by(
            *(pool.map, rows, folder / "clustered", (*asked.keep, *start.side)),
            alone=executor is None,
        ) as together,
    ):
        job = job._replace(rows=together)
        partitions = plan_partitions(together, partition_rows, _cuts(before))
        keys = inputs.keys(base, together, partitions)
        done = _done(folder, keys, before, asked)
        todo = [work for work in zip(partitions, keys, strict=True) if work[1] not in done]
        parts = {k: done[key] for k, key in enumerate(keys) if key in done}
        n_done, n_rows = sum(part.rows for part in parts.values()), rows.n_rows
        for part in pool.map(job.run, todo):
            n_done += part.rows
            parts[part.number] = part
            if callback is not None:
                callback(n_done, n_rows)
    found = [parts[number]._replace(number=number) for number in sorted(parts)]
    totals = sum(part.tasks for part in found), sum(part.rows for part in found)
    run = report(clock, inputs.stamps, before, kept=len(found) - len(todo), adapted=len(todo))
    index = JobIndex(folder, *totals, found, run, inputs.stamps)
    _check(index, rows, asked)
    finish(index, job._replace(rows=rows).question, content, versions)
    return index


def _with_columns_of(model: MetaModel, rows: ParquetRows) -> ParquetRows:
    """The dataset with the features that the model was fitted to, if those have names."""
    if rows.sparse is not None:
        return rows
    names = getattr(model, "feature_names_in_", None)
    wanted = rows.features if names is None else tuple(map(str, names))
    if wanted == rows.features:
        return rows
    lacking = [name for name in wanted or () if name not in (rows.features or ())]
    if lacking:
        raise ParquetError(
            f"{rows.path}: there is no feature {lacking[0]!r}, which the model was fitted to"
        )
    return replace(rows, features=wanted)


def _cuts(before: JobIndex | None) -> frozenset[tuple[str, int]]:
    """Where partitions of the run before began."""
    return frozenset() if before is None else frozenset(part.begins for part in before.parts)


def _done(folder: Place, keys: list[str], before: JobIndex | None, asked: Asked) -> dict[str, Part]:
    """The partitions that are done, by a run that was stopped or by the one before."""
    parts = read_notes(folder, keys)
    parts |= {} if before is None else {part.key: part for part in before.parts}
    there = present(folder, asked.folders) if parts else set()
    return {key: parts[key] for key in keys if key in parts and parts[key].is_in(there)}


def _check(index: JobIndex, rows: ParquetRows, asked: Asked) -> None:
    """Raise if a row was lost or taken twice, a task was cut, or a file is gone."""
    if index.rows != rows.n_rows:
        raise ParquetError(
            f"{rows.path}: {rows.n_rows} rows were to be read, {index.rows} were; did the files "
            "change meanwhile? Remove the output and begin again"
        )
    ends = [(part.first, part.last) for part in index.parts if part.first is not None]
    for one, other in pairwise(ends):
        if one[1] == other[0]:
            raise ParquetError(f"{rows.path}: the rows of {one[1]!r} were taken apart")
    if not index.is_there(asked.folders):
        raise ParquetError(
            f"{index.folder}: files of this run are gone; does another run write there? Run again"
        )


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
