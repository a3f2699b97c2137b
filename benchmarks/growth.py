"""Datasets on disk and clusters, as ratios measured in one run: ``make growth``.

With a number of tasks as argument the out-of-core part takes so many; 2,000,000 by default,
which are 20 million rows and 4 GB of temporary files, twice: in tasks of 10 and of 100 rows.
What is said of 10⁹ tasks is arithmetic with the figures of this run; see `docs/growth.md`.
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

from headstart import MetaRegressor, evaluate_bias, learn_bias
from headstart.distributed import ClusterEngine, connect, executor
from headstart.environments import RegressionEnvironment
from headstart.jobs import adapt_all
from headstart.parquet import PARTITION_ROWS, ParquetRows, plan_partitions
from headstart.parquet.engine import Parts
from headstart.training import fit

D, FILES = 20, 16
MANY = 10_000  # partitions, and files
TASKS, WORKERS = 1_000_000_000, 100  # of the cluster that is not here


def write_tasks(
    folder: Path, n_tasks: int, dtype: str, scattered: bool = False, rows: int = 10
) -> Path:
    """Ragged tasks, of so many rows on average, in files whose borders cut groups."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(n_tasks), rng.integers(rows // 2, rows + rows // 2 + 1, n_tasks))
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
        plans(folder)
        # Before there are clusters: they set variables by which Arrow has one thread.
        cost = out_of_core(folder, n_tasks)
        on_a_cluster(folder)
        many_workers(cost)
    quality_per_task()


def plans(folder: Path) -> None:
    """Plans of many small files; half as many should take half as long."""
    columns: dict[str, Any] = {name: np.zeros(10) for name in [*(f"x{j}" for j in range(D)), "y"]}
    seconds = []
    for count in (MANY // 2, MANY):
        place = folder / f"files-{count}"
        place.mkdir()
        for k in range(count):
            columns["id"] = np.full(10, k)
            table = pa.table(columns)
            parquet.write_table(table, place / f"{k:05d}.parquet")
        start = time.perf_counter()
        plan_partitions(ParquetRows(place, "id", "y"), 10)
        seconds.append(time.perf_counter() - start)
        shutil.rmtree(place)
    report(f"plan of {MANY:,} files", f"{seconds[1]:.1f} s", "at most 10 s")
    report("    over a plan of half of them", f"{seconds[1] / seconds[0]:.2f}x", "about 2x")


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

    def learn(client: Any) -> Callable[[], object]:
        size = rows.n_rows // (FILES + 2)
        return lambda: fit(MetaRegressor(), rows, client=client, partition_rows=size)

    with (
        _cluster(2) as pair,
        _cluster(1) as single,
        _client(pair) as client,
        _client(single) as one,
    ):
        both, alone = executor(connect(client)), executor(connect(one))
        works = [run(rows, n_jobs=2), run(rows, executor=both), run(rows, executor=alone)]
        best(*works, repeat=1, before=clear)
        threads, two, lone = best(*works, repeat=5, before=clear)
        mixed, two_again = best(
            run(ParquetRows(scattered, "id", "y"), executor=both), works[1], repeat=2, before=clear
        )
        priors = [learn(client), learn(one)]
        best(*priors, repeat=1)
        prior_two, prior_one = best(*priors, repeat=3)
        each = empty_rounds(client)
    copy_two, copy_one = copies(2), copies(1)
    what = "adapt and predict 400,000 tasks on two workers over two threads here"
    report(what, f"{two / threads:.2f}x", "at most 1.5x")
    report("    two workers over one", f"{lone / two:.2f}x", "at least 1.7x")
    report("prior of 400,000 tasks, two workers over one", f"{prior_one / prior_two:.2f}x")
    report("a plain copy of memory, two processes over one", f"{copy_two / copy_one:.2f}x")
    what = "scattered rows, put together by the workers, over clustered ones"
    report(what, f"{mixed / two_again:.1f}x", "at most 5x")
    what = f"a round of {MANY:,} empty partitions, two workers"
    report(what, f"{each * 1e3:.0f} ms", "at most 100 ms")


COPY = """
import time
import numpy as np
x = np.ones(1 << 25)
y = x.copy()
end, n = time.perf_counter() + 2.0, 0
while time.perf_counter() < end:
    np.copyto(y, x)
    n += 1
print(n)
"""


def copies(count: int) -> float:
    """How often so many processes together copy an array in two seconds."""
    running = [
        subprocess.Popen([sys.executable, "-c", COPY], stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    return float(sum(int(process.communicate()[0]) for process in running))


def nothing(_: Any) -> int:
    return 0


def weightless(_: int) -> int:
    return 0


def zeros(_: int, __: int, size: int) -> Any:
    return np.zeros(size)


def empty_rounds(client: Any) -> float:
    """Seconds of a round in which nothing is to be computed."""
    parts: Any = Parts(nothing, range(MANY), weightless)  # type: ignore[arg-type]
    held = ClusterEngine(client).hold(parts)
    held.sum(zeros, D)
    (seconds,) = best(lambda: [held.sum(zeros, D) for _ in range(5)], repeat=3)
    return seconds / 5


OUT_OF_CORE = """
import os, shutil, sys, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import parquet
from headstart import MetaRegressor, get_loss, learn_bias
from headstart.jobs import adapt_all
from headstart.meta.prior.all_tasks import AllSums
from headstart.meta.prior.dataset import Reading, draw_sample
from headstart.parquet import ParquetRows, plan_partitions
from headstart.parquet.engine import LocalEngine
from headstart.parquet.order import is_grouped
what, small, large, out = sys.argv[1:]
ADAPT = {"adapt_all": {}, "adapt_all with std": {"predictions": True, "std": True}}
def write(name, count, width):
    some = np.random.default_rng(0).standard_normal((width, 1 << 17))
    fields = [pa.field("id", pa.int64(), False)]
    fields += [pa.field(f"x{j}", pa.float64(), False) for j in range(width)]
    table = pa.table([np.arange(1 << 17), *some], schema=pa.schema(fields))
    how = {"compression": "lz4", "use_dictionary": False, "write_statistics": ["id"]}
    def part(number):
        with parquet.ParquetWriter(f"{name}-{number}", table.schema, **how) as file:
            for first in range(0, count // 2, 1 << 17):
                file.write_table(table[: count // 2 - first])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(part, range(2)))
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
def scan(path, lean, **how):
    options = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True,
                                            buffer_size=1 << 16)
    format = ds.ParquetFileFormat(default_fragment_scan_options=options) if lean else "parquet"
    settings = {"batch_size": 1 << 15, "batch_readahead": 2, "fragment_readahead": 1}
    for _ in ds.dataset(path, format=format).to_batches(**settings if lean else {}, **how):
        pass
def job(path):
    rows = ParquetRows(path, "id", "y")
    reading = Reading(rows, get_loss("squared"), True)
    if what == "learn_bias":
        learn_bias(rows, 0.5, 0.01)
    elif what == "MetaRegressor.fit":
        MetaRegressor(n_jobs=2).fit(rows)
    elif what == "sample":
        draw_sample(reading, 65_536, LocalEngine())
    elif what == "summaries":
        AllSums(reading, plan_partitions(rows), LocalEngine())
    elif what in ADAPT:
        adapt_all(model, rows, out, n_jobs=2, **ADAPT[what])
    elif what == "bare write":  # of what adapt_all with std writes, as quickly as pyarrow can
        os.makedirs(out)
        write(out + "/weights", rows.n_rows // 10, 22)
        write(out + "/predictions", rows.n_rows, 2)
    elif what == "whether tasks lie together":
        assert is_grouped(rows)
    elif what == "scan of ids":
        scan(path, True, columns=["id"])
    elif what == "scan of ids and sampled rows":  # of as many ids, anywhere
        scan(path, True, columns=["id"])
        n_tasks = rows.n_rows // 10
        chosen = np.random.default_rng(0).permutation(n_tasks)[:65_536]
        scan(path, True, filter=pc.field("id").isin(chosen))
    else:  # pyarrow as it is, or with the settings that were quickest here
        scan(path, what == "lean scan")
model = MetaRegressor().fit(ParquetRows(small, "id", "y")) if what in ADAPT else None
seconds = []
for path in (small, large, large):
    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    job(path)
    seconds.append(time.perf_counter() - start)
print(min(seconds[1:]), peak())
"""
GOALS = {
    "sample": ("scan of ids and sampled rows", 0.8),
    "summaries": ("scan of long tasks", 0.5),
    "adapt_all": ("", 0.5),
    "adapt_all with std": ("", 0.5),
}


def out_of_core(folder: Path, n_tasks: int) -> dict[str, float]:
    """Speeds and memory, each in a process of its own; gives seconds for a row."""
    small = write_tasks(folder / "small", 2000, "float64")
    large = write_tasks(folder / "large", n_tasks, "float64")
    long = write_tasks(folder / "long", n_tasks // 10, "float64", rows=100)
    works = (
        *("scan", "lean scan", "scan of ids", "whether tasks lie together"),
        *("scan of ids and sampled rows", "sample"),
        *("MetaRegressor.fit", "learn_bias", "adapt_all", "adapt_all with std", "bare write"),
        *("scan of long tasks", "summaries"),
    )
    found: dict[str, list[list[float]]] = {what: [] for what in works}
    for what in works * 2:  # in turn, because the machine is not always as quick
        path = long if what in ("scan of long tasks", "summaries") else large
        asked = "lean scan" if what == "scan of long tasks" else what
        arguments = [asked, str(small), str(path), str(folder / "weights")]
        told = subprocess.run(
            [sys.executable, "-c", OUT_OF_CORE, *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found[what].append([float(part) for part in told.stdout.split()])
    rows = ParquetRows(large, "id", "y").n_rows
    quickest = {what: min(seconds for seconds, _ in told) for what, told in found.items()}
    scan = min(quickest["scan"], quickest["lean scan"])
    for what, seconds in quickest.items():
        bare, goal = GOALS.get(what, ("", 0.6))
        share = quickest.get(bare, scan) / seconds
        speed = f"{rows / seconds / 1e6:.1f} million rows/s, {share:.0%}"
        against = f"at least {goal:.0%} of the {bare or 'quicker scan'}"
        bare_one = "scan" in what or what == "bare write"
        report(f"{what} over {rows:,} rows on disk", speed, "" if bare_one else against)
        peak = max(megabytes for _, megabytes in found[what])
        report("    peak resident memory", f"{peak:.0f} MB", "under 800 MB")
    return {what: seconds / rows for what, seconds in quickest.items()}


def many_workers(cost: dict[str, float]) -> None:
    """A scheduler with 100 workers that compute nothing; what they would is reckoned."""
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=False,
            memory_limit=0,
            dashboard_address=":0",
        ) as cluster,
        _client(cluster) as client,
    ):
        each = empty_rounds(client)
        engine, blocks = ClusterEngine(client), range(256)
        (tree,) = best(lambda: engine.tree(nothing, blocks, max), repeat=3)
    report(f"a round of {MANY:,} empty partitions, {WORKERS} workers", f"{each * 1e3:.0f} ms")
    report("256 calls and their merging, likewise", f"{tree * 1e3:.0f} ms")
    rows = 10 * TASKS
    parts = rows / PARTITION_ROWS
    report(f"reckoned for {TASKS:,} tasks of 10 rows on {WORKERS} workers of one core:", "")
    report("    partitions of 2^20 rows", f"{parts:,.0f}")
    # and how many cores the figures here were of
    cores = {"scan of ids": 1, "whether tasks lie together": 2, "lean scan": 2, "summaries": 2}
    for what, used in cores.items():
        report(f"    {what}", f"{used * cost[what] * rows / WORKERS:.0f} s")
    report("    calls and their merging, three times", f"{3 * tree:.1f} s")
    report("    one pass of EM over all tasks, beyond computing", f"{each:.2f} s")


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
