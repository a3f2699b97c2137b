"""Datasets on disk and clusters, as ratios measured in one run: ``make growth``.

With a number of tasks as argument the out-of-core part takes so many; 2,000,000 by default,
which are 20 million rows and 4 GB of temporary files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from core import best, report
from distributed import Client, LocalCluster
from pyarrow import parquet

from headstart import MetaRegressor, evaluate_bias, get_loss, learn_bias
from headstart.distributed import ClusterParts, connect, executor
from headstart.environments import RegressionEnvironment
from headstart.jobs import adapt_all
from headstart.meta.rounds import Loading, LocalParts, round_bounds
from headstart.parquet import ParquetRows, plan_partitions

D, FILES = 20, 16


def write_tasks(folder: Path, n_tasks: int, dtype: str, scattered: bool = False) -> Path:
    """Ragged tasks of 5 to 15 rows in files whose borders cut groups."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(n_tasks), rng.integers(5, 16, n_tasks))
    folder.mkdir(parents=True)
    order = rng.permutation(len(ids)) if scattered else np.arange(len(ids))
    for number, (first, last) in enumerate(
        pairwise(np.linspace(0, len(ids), FILES + 1, dtype=int))
    ):
        X = rng.standard_normal((last - first, D)).astype(dtype)
        y = (X @ np.linspace(1.0, 3.0, D) + rng.standard_normal(last - first)).astype(dtype)
        columns = [ids[order[first:last]], *np.ascontiguousarray(X.T), y]
        names = ["id", *(f"x{j}" for j in range(D)), "y"]
        table = pa.table(list(map(pa.array, columns)), names=names)
        name = folder / f"part-{number:02d}.parquet"
        parquet.write_table(table, name, row_group_size=1 << 17)
    return folder


def main() -> None:
    n_tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        on_a_cluster(folder)
        out_of_core(folder, n_tasks)
    quality_per_task()


def on_a_cluster(folder: Path) -> None:
    rows = ParquetRows(write_tasks(folder / "sorted", 400_000, "float32"), "id", "y")
    scattered = write_tasks(folder / "scattered", 400_000, "float32", scattered=True)
    model = MetaRegressor().fit(rows)

    def clear() -> None:
        shutil.rmtree(folder / "out", ignore_errors=True)

    def run(some: ParquetRows, **how: Any) -> Callable[[], None]:
        def act() -> None:
            size = some.n_rows // (FILES + 2)  # a partition for each file
            adapt_all(model, some, folder / "out", predictions=True, partition_rows=size, **how)

        return act

    with (
        _cluster(2) as pair,
        _cluster(1) as single,
        _client(pair) as client,
        _client(single) as one,
    ):
        both, alone = executor(connect(client)), executor(connect(one))
        works = [run(rows, n_jobs=2), run(rows, executor=both), run(rows, executor=alone)]
        best(*works, repeat=1, before=clear)
        threads, two, lone = best(*works, repeat=8, before=clear)
        mixed, two_again = best(
            run(ParquetRows(scattered, "id", "y"), executor=both), works[1], repeat=3, before=clear
        )
        rounds(client, rows)
    what = "adapt and predict 400,000 tasks on two workers over two threads here"
    report(what, f"{two / threads:.2f}x", "at most 1.5x")
    report("two workers over one", f"{lone / two:.2f}x", "at least 1.7x")
    what = "scattered rows, clustering included, over clustered ones"
    report(what, f"{mixed / two_again:.1f}x", "at most 5x")


def rounds(client: Any, rows: ParquetRows) -> None:
    partitions = plan_partitions(rows, rows.n_rows // (FILES + 2))
    loading, objective = Loading(rows), get_loss("absolute").regularised(0.5)
    there = ClusterParts(client, loading, partitions)
    here = LocalParts([loading.load(p) for p in partitions])
    h, sizes = np.zeros(D), there.sizes()

    def go(parts: Any) -> Callable[[], None]:
        def act() -> None:
            for k in range(20):
                parts.sums(h, round_bounds(sizes, 1600, k), objective)

        return act

    go(there)()
    slow, fast = best(go(there), go(here), repeat=3)
    what = f"overhead of a round with {len(partitions)} partitions"
    report(what, f"{(slow - fast) / 20 * 1e3:.0f} ms", "at most 60 ms")


OUT_OF_CORE = """
import shutil, sys, time
import pyarrow.dataset as ds
from headstart import MetaRegressor, learn_bias
from headstart.jobs import adapt_all
from headstart.parquet import ParquetRows
what, small, large, out = sys.argv[1:]
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
def job(path):
    rows = ParquetRows(path, "id", "y")
    if what == "learn_bias":
        learn_bias(rows, 0.5, 0.01)
    elif what == "MetaRegressor.fit":
        MetaRegressor().fit(rows)
    elif what == "adapt_all":
        shutil.rmtree(out, ignore_errors=True)
        adapt_all(model, rows, out, n_jobs=2)
    else:  # pyarrow as it is, or with the settings that were quickest here
        options = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True,
                                                buffer_size=1 << 16)
        lean = ds.ParquetFileFormat(default_fragment_scan_options=options)
        settings = {"batch_size": 1 << 15, "batch_readahead": 2, "fragment_readahead": 1}
        dataset = ds.dataset(path, format=lean if what == "lean scan" else "parquet")
        for _ in dataset.to_batches(**settings if what == "lean scan" else {}):
            pass
model = MetaRegressor().fit(ParquetRows(small, "id", "y")) if what == "adapt_all" else None
job(small)
seconds = []
for _ in range(2):
    start = time.perf_counter()
    job(large)
    seconds.append(time.perf_counter() - start)
print(min(seconds), peak())
"""


def out_of_core(folder: Path, n_tasks: int) -> None:
    small = write_tasks(folder / "small", 2000, "float64")
    large = write_tasks(folder / "large", n_tasks, "float64")
    works = ("scan", "lean scan", "learn_bias", "MetaRegressor.fit", "adapt_all")
    found: dict[str, list[list[float]]] = {what: [] for what in works}
    for what in works * 3:  # in turn, because the machine is not always as quick
        arguments = [what, str(small), str(large), str(folder / "weights")]
        told = subprocess.run(
            [sys.executable, "-c", OUT_OF_CORE, *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found[what].append([float(part) for part in told.stdout.split()])
    rows = ParquetRows(large, "id", "y").n_rows
    quickest = {what: min(seconds for seconds, _ in told) for what, told in found.items()}
    scan = min(quickest["scan"], quickest["lean scan"])
    for what, seconds in quickest.items():
        speed = f"{rows / seconds / 1e6:.1f} million rows/s, {scan / seconds:.0%}"
        report(f"{what} over {rows:,} rows on disk", speed, "at least 60 % of the quicker scan")
        peak = max(megabytes for _, megabytes in found[what])
        report("    peak resident memory", f"{peak:.0f} MB", "under 800 MB")


def quality_per_task() -> None:
    """Error on new tasks after so many tasks, one after another and in rounds."""
    draw = RegressionEnvironment(n_features=D).draw
    steps = np.logspace(-1.0, 2.5, 8)
    for T in (1000, 10_000):
        rng = np.random.default_rng(0)
        tasks = draw(T, 10, rng).tasks
        shots, queries = draw(200, 110, rng).tasks.split_rows(10)
        told = []
        for batch in (1, 16, 64, 256):
            errors = []
            for step in steps:
                bias = learn_bias(tasks, 0.1, step, batch_size=batch).bias
                errors.append(evaluate_bias(shots, queries, bias, 0.1).mean())
            told.append(f"{batch}: {min(errors):.3f} (step {steps[int(np.argmin(errors))]:.2g})")
        report(f"error after {T:,} tasks by tasks a round, best step", ", ".join(told))


def _cluster(workers: int) -> Any:
    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )


def _client(cluster: Any) -> Any:
    return Client(cluster, set_as_default=False)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"{time.perf_counter() - start:.0f} s in all")
