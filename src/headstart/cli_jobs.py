"""The command line's long jobs: over datasets on disk, here or on a cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from headstart.estimators import MetaClassifier, MetaRegressor
from headstart.jobs import JobIndex, adapt_all
from headstart.parquet import ParquetRows
from headstart.training import fit_rounds

AnyMeta = MetaRegressor | MetaClassifier


class _Speed(ProgressColumn):
    """What is done in a second."""

    def render(self, task: Task) -> Text:
        unit, elapsed = task.fields.get("unit", ""), task.elapsed or 0.0
        mean = task.completed / elapsed if elapsed > 0.0 else 0.0  # all there is after one step
        speed = task.speed or task.finished_speed or mean
        return Text(f"{speed:,.0f} {unit}/s" if speed and unit else "")


def progress_bar(where: Console) -> Progress:
    """A bar with elapsed and remaining time."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        _Speed(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=where,
    )


def is_dataset(data: Path, batch_rows: int | None, scheduler: str | None) -> bool:
    """Whether data is read in batches instead of as a whole."""
    return data.is_dir() or batch_rows is not None or scheduler is not None


def open_dataset(
    data: Path, group: str, target: str, features: list[str] | None, batch_rows: int | None
) -> ParquetRows:
    """The dataset with the columns asked for."""
    rows = ParquetRows(data, group, target, features)
    return rows if batch_rows is None else replace(rows, batch_rows=batch_rows)


@contextmanager
def cluster_of(scheduler: str | None) -> Iterator[tuple[Any, Executor | None]]:
    """A client and its executor for an address; none without one."""
    if scheduler is None:
        yield None, None
        return
    from headstart.distributed import connect, executor, watching

    client = connect(scheduler)
    try:
        with watching(client, "what is finished is kept, and the same command goes on"):
            yield client, executor(client)
    finally:
        client.close(timeout=2)


def fit_dataset(
    model: AnyMeta, rows: ParquetRows, scheduler: str | None, batch_size: int, out: Path
) -> AnyMeta:
    """Learn the bias, task by task here or in rounds on a cluster."""
    with progress_bar(Console(stderr=True)) as bar, cluster_of(scheduler) as (client, _):
        if client is None:
            job = bar.add_task("learning", total=rows.n_rows, unit="rows")
            watched = replace(rows, callback=lambda n: bar.update(job, completed=n))
            return model.fit(watched)
        job = bar.add_task("learning in rounds", total=None, unit="tasks")
        kept = out.with_name(f".{out.name}.rounds")
        found: AnyMeta = fit_rounds(
            model,
            rows,
            client=client,
            batch_size=batch_size,
            folder=kept,
            callback=lambda done, total: bar.update(job, completed=done, total=total),
        )
    shutil.rmtree(kept, ignore_errors=True)
    return found


def adapt_dataset(
    model: AnyMeta,
    rows: ParquetRows,
    out: Path,
    scheduler: str | None,
    jobs: int,
    **what: Any,
) -> JobIndex:
    """Weights or predictions of all tasks as a dataset in the folder `out`."""
    with progress_bar(Console(stderr=True)) as bar, cluster_of(scheduler) as (_, executor):
        job = bar.add_task("adapting", total=rows.n_rows, unit="rows")
        return adapt_all(
            *(model, rows, out),
            **what,
            executor=executor,
            n_jobs=jobs,
            callback=lambda done, _: bar.update(job, completed=done),
        )
