"""``headstart fit``: a model from a table or a dataset."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from headstart._core.places import Place, as_place, children, full
from headstart.cli.bases import named_base
from headstart.cli.console import error_console, mistakes, print_line
from headstart.cli.dataset import AnyMeta, Source, workers_at
from headstart.cli.info import describe
from headstart.cli.options import (
    Base,
    BatchRows,
    Categorical,
    Classify,
    Data,
    Features,
    Group,
    ModelOut,
    Scheduler,
    Side,
    Target,
    Versions,
    split_names,
)
from headstart.cli.progress import progress_bar
from headstart.cli.rows import Columns, read_rows
from headstart.cli.tables import TableError, are_classes, group_sizes, refuse_itself
from headstart.estimators import MetaClassifier, MetaRegressor, load_model
from headstart.estimators.dataset import content_of
from headstart.estimators.run import FitRun
from headstart.meta.prior.goal import MAX_TASKS
from headstart.meta.prior.prior import Prior
from headstart.parquet import ParquetRows
from headstart.store import StoreError, check_ours, read_versions
from headstart.store.version import PAGE
from headstart.training import fit as learn_from


def fit(
    data: Data,
    group: Group,
    target: Target,
    out: ModelOut,
    features: Features = None,
    side: Side = None,
    categorical: Categorical = None,
    classify: Classify = None,
    base: Base = None,
    loss: Annotated[
        str, typer.Option(help="squared, absolute, huber, ...; logistic, ...")
    ] = "auto",
    metric: Annotated[
        str, typer.Option(help="What entities may differ in: full, diagonal or isotropic.")
    ] = "auto",
    force: Annotated[bool, typer.Option(help="Replace a model that is there.")] = False,
    batch_rows: BatchRows = None,
    scheduler: Scheduler = None,
    initial: Annotated[
        str | None,
        typer.Option(
            help="A model made by fit, where learning begins: yesterday's takes fewer passes. "
            "That of --out is replaced, or left alone if nothing has changed.",
            metavar="PATH",
        ),
    ] = None,
    versions: Versions = None,
    max_tasks: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of a dataset: tasks to learn from, chosen by a hash of their ids; 0 for all. "
            f"{MAX_TASKS} if not given.",
        ),
    ] = None,
) -> None:
    """Learn where entities start, how far they go from there, and every entity's own weights.

    From a folder, with `--batch-rows` or `--scheduler`: the start alone. `adapt` writes weights.
    """
    source = Source(data, batch_rows, scheduler)
    with mistakes(data):
        refuse_itself(data, out)
        there, again = as_place(out), initial is not None and full(initial) == full(out)
        if _is_taken(there) and not (force or again):
            raise TableError(f"{out} exists; give another folder, or --force to replace a model")
        check_ours(there)
        keep = versions or _kept(there)
        if again and not (there / PAGE).exists():
            initial = None  # the first night
        described = split_names(side)
        if source.in_batches:
            for name, value in (("categorical", categorical), ("base", base)):
                if value is not None:
                    raise TableError(f"--{name}: needs a table that is read at once, a single file")
            for name in set(described or ()) & set(split_names(features) or ()):
                raise TableError(f"--side: {name!r} is among --features too; name it once")
            rows = source.rows(group, target, split_names(features))
            kind = _kind(target, rows.labels(enough=3), classify)
            chosen = kind(group=group, loss=loss, metric=metric, side=described)
            before = None if initial is None else load_model(initial)
            most = MAX_TASKS if max_tasks is None else max_tasks or None
            if again and not force and (run := _unchanged(before, content_of(chosen, rows, most))):
                print_line(f"nothing has changed since {run.started}; model: {out}")
                return
            begin = None if before is None else _prior_of(before, initial, rows, described or [])
            model = _fit_in_batches(chosen, rows, scheduler, max_tasks=most, initial=begin)
            model.save(out, keep)
        else:
            for option, given in (("initial", initial), ("max-tasks", max_tasks)):
                if given is not None:
                    raise TableError(f"--{option}: needs a folder, --batch-rows or --scheduler")
            columns = Columns(group, target, features, side, categorical)
            table = read_rows(data, columns)
            kind = _kind(target, table.y, classify)
            below = named_base(base, binary=kind is MetaClassifier)
            sizes = group_sizes(group, table.ids)
            model = kind(group=group, loss=loss, metric=metric, side=described, base=below)
            model.fit(table.X.append_column(group, table.ids), table.y)
            model.save(out, keep)
            if lone := int(np.sum(sizes == 1)):
                print_line(f"{lone} of {sizes.size} groups have one row: their weights say little")
    describe(model)
    print_line(f"model: {out}")


def _is_taken(out: Place) -> bool:
    """Whether there is something that fit must not replace; what a killed fit left may go."""
    inside = children(out) if out.is_dir() else [out] if out.exists() else []
    return any(not path.name.startswith((".", "arrays-")) for path in inside)


def _kept(out: Place) -> int:
    """How many versions there are, and so will be; one where they cannot be read."""
    try:
        return max(len(read_versions(out)), 1)
    except StoreError:
        return 1


def _kind(
    target: str, labels: NDArray[np.generic], asked: bool | None
) -> type[MetaRegressor] | type[MetaClassifier]:
    """The estimator for a target, which is said where the user has not."""
    if not are_classes(target, labels, asked):
        return MetaRegressor
    if asked is None:
        one, other = np.unique(labels).tolist()
        print_line(f"{target}: two classes, {one!r} and {other!r}; --regress would be for amounts")
    return MetaClassifier


def _unchanged(before: AnyMeta | None, content: str) -> FitRun | None:
    """The run by which a model was learned, if it was from this content."""
    run = None if before is None else before.run_
    return run if run is not None and run.content == content else None


def _prior_of(model: AnyMeta, path: str | None, rows: ParquetRows, side: list[str]) -> Prior:
    """The prior of a model of the same columns."""
    if model.reg != "auto":
        raise TableError(f"--initial: {path} has no prior: its reg is a number")
    wanted = [name for name in rows.features or () if name not in side]
    found = list(getattr(model, "feature_names_in_", ()))
    if wanted != found:
        raise TableError(f"--initial: expected a model of the columns {wanted}, found {found}")
    return model.prior_


def _fit_in_batches(
    model: AnyMeta, rows: ParquetRows, scheduler: str | None, **how: Any
) -> AnyMeta:
    """Learn the prior from a dataset, here or on a cluster."""
    with progress_bar(error_console()) as bar, workers_at(scheduler) as workers:
        job = bar.add_task("learning", total=rows.n_rows, unit="rows")
        watched = replace(rows, callback=lambda n: bar.update(job, completed=n))
        fitted: AnyMeta = learn_from(model, watched, client=workers.client, **how)
        return fitted
