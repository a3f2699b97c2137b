"""The prior of a dataset: from a sample of its tasks, or from all of them where they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headstart._core.answers import quietly
from headstart._core.places import Place
from headstart.losses import Loss
from headstart.meta.prior.all_tasks import AllSums
from headstart.meta.prior.dataset import Reading, Sample, draw_sample
from headstart.meta.prior.goal import Goal, learn_from
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.sample import MANY_TASKS, Shown
from headstart.meta.prior.shown import task_evidence
from headstart.meta.prior.summaries import Summaries
from headstart.parquet import grouped_by, plan_partitions
from headstart.parquet.engine import Engine, LocalEngine


class DatasetPrior(NamedTuple):
    """A prior, the tasks it was learned from, and how many rows have no id."""

    prior: Prior
    n_tasks: int
    n_nameless: int


def dataset_prior(
    reading: Reading, goal: Goal, engine: Engine | None = None, folder: Place | None = None
) -> DatasetPrior:
    """The prior of a dataset, by threads of this process or by another engine.

    Rows may lie anywhere, unless all tasks are asked for: then those of a task are put together
    first if need be, in `folder` if there is one.
    """
    run = LocalEngine() if engine is None else engine
    loss = reading.loss
    if goal.most is None and loss.is_squared:
        alone = engine is None
        with grouped_by(run.map, reading.rows, folder, reading.side, alone=alone) as together:
            whole = reading._replace(rows=together)
            tasks = AllSums(whole, plan_partitions(together, reading.partition_rows), run)
            known = tasks.units.side if reading.side else None
            few = tasks.few(MANY_TASKS // 4) if tasks.size.n_tasks > MANY_TASKS else None
            shown = Shown(tasks, tasks.units.columns, known, few)
            prior = learn_from(shown, loss, goal)
            return DatasetPrior(prior, tasks.size.n_tasks, tasks.n_nameless)
    sample = draw_sample(reading, goal.most, run)
    n_tasks, n_nameless = sample.n_tasks, sample.n_nameless
    with quietly():
        shown = _sample_shown(sample, loss, reading.intercept)
    del sample  # its rows are not needed beside what they show
    return DatasetPrior(learn_from(shown, loss, goal), n_tasks, n_nameless)


def _sample_shown(sample: Sample, loss: Loss, intercept: bool) -> Shown:
    if isinstance(sample.shown, Summaries):
        return sample.shown.evidence(None, sample.side, hashed=True)
    hashes = np.asarray(sample.shown.ids, np.uint64)
    return task_evidence(sample.shown, loss, intercept, None, sample.side, hashes=hashes)
