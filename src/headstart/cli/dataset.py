"""Datasets on disk that are read in batches, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headstart._core.checks import cores
from headstart._core.places import AnyPath, as_place
from headstart.cli.console import error_console
from headstart.cli.progress import progress_bar
from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.jobs import JobIndex, adapt_all
from headstart.jobs.notes import read_runs
from headstart.parquet import ParquetRows, check_roles

if TYPE_CHECKING:
    from distributed import Client

AnyMeta = MetaRegressor | MetaClassifier


class Source(NamedTuple):
    """A dataset as the user named it, and how it is to be worked on."""

    path: AnyPath
    batch_rows: int | None
    scheduler: str | None
    jobs: int | None = None

    @property
    def in_batches(self) -> bool:
        """Whether it is read in batches instead of as one table."""
        asked = self.batch_rows is not None or self.scheduler is not None
        return asked or as_place(self.path).is_dir()

    def rows(self, group: str, target: str, features: list[str] | None) -> ParquetRows:
        """Its rows with the columns asked for."""
        check_roles(group, target, features or (), "--")
        rows = ParquetRows(self.path, group, target, features)
        return rows if self.batch_rows is None else replace(rows, batch_rows=self.batch_rows)

    def rows_for(self, model: AnyMeta, target: str) -> ParquetRows:
        """Its rows with the columns that a model was fitted to."""
        names = [str(name) for name in model.feature_names_in_]
        return self.rows(str(model.group), target, names)


class Workers(NamedTuple):
    """A client of a Dask cluster, its executor and how many calls it runs at once; else None."""

    client: Client | None = None
    executor: Executor | None = None
    threads: int | None = None


def check_target(model: AnyMeta, target: str) -> None:
    """Raise if the target is a column that the model uses for something else."""
    role = "the group" if target == model.group else "a feature"
    if target == model.group or target in model.feature_names_in_:
        raise ValueError(f"--target: {target!r} is {role} of the model; name another column")


def only_of_datasets(**options: object) -> None:
    """Raise if one of these options is given for a table that is read at once."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"--{name}: is for a dataset; with --batch-rows a file is read as one")


@contextmanager
def workers_at(scheduler: str | None) -> Iterator[Workers]:
    """The cluster at an address, until the job is over; this machine without one."""
    if scheduler is None:
        yield Workers()
        return
    from headstart.distributed import connect, executor, threads, watching

    client = connect(scheduler)
    try:
        with watching(client, "what is finished is kept, and the same command goes on"):
            yield Workers(client, executor(client), threads(client))
    finally:
        client.close(timeout=2)


def adapt_dataset(
    model: AnyMeta,
    source: Source,
    target: str,
    out: str,
    versions: int | None,
    **asked: Any,
) -> JobIndex:
    """Weights or predictions of all tasks as a dataset in the folder `out`; see `adapt_all`."""
    rows = source.rows_for(model, target)
    with progress_bar(error_console()) as bar, workers_at(source.scheduler) as workers:
        job = bar.add_task("adapting", total=rows.n_rows, unit="rows")
        return adapt_all(
            *(model, rows, out),
            **asked,
            versions=versions or max(len(read_runs(out)), 1),
            executor=workers.executor,
            n_jobs=source.jobs or cores(),
            callback=lambda done, _: bar.update(job, completed=done),
        )
