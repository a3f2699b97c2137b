"""Clusters of processes, their workers and schedulers killed, and a dataset for their jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets_on_disk import table, write
from distributed import Client

from headstart.parquet import ParquetRows

STARTING = 300  # seconds a worker may take to start, on a machine with much else to do


def kill_a_worker(client: Any) -> None:
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


def kill_a_busy_worker(client: Any) -> Callable[[], list[str]]:
    """Wait until a worker is at work, then kill it; gives a function that says which it was."""
    pids = client.run(os.getpid)

    def act() -> None:
        for _ in range(STARTING * 200):
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if busy and busy[0] in pids:
                os.kill(pids[busy[0]], signal.SIGKILL)
                killed.append(busy[0])
                return
            time.sleep(0.005)

    killed: list[str] = []
    thread = threading.Thread(target=act)
    thread.start()

    def which() -> list[str]:
        thread.join()
        return killed

    return which


def once(action: Callable[[], object], after: int) -> Callable[[int, int], None]:
    """A callback that acts when so much is done, one time."""
    waiting = [action]

    def tell(done: int, _: int) -> None:
        if done >= after and waiting:
            waiting.pop()()

    return tell


def dataset(folder: Path, scattered: bool = False, n_tasks: int = 300) -> ParquetRows:
    frame = table(n_tasks)
    if scattered:
        frame = frame.sample(frac=1.0, random_state=0)
    return ParquetRows(write(frame, folder, [333, 334, 900], 97), "id", "y", batch_rows=50)


class Outside:
    """A scheduler and a worker in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        note = folder / "scheduler.json"
        note.unlink(missing_ok=True)
        module = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.scheduler = subprocess.Popen(
            [*module, "--port", "0", "--no-dashboard", "--scheduler-file", str(note)], **quiet
        )
        for _ in range(STARTING * 10):
            if note.exists() and note.stat().st_size:
                break
            time.sleep(0.1)
        self.worker = self.start_worker()
        self.address = str(json.loads(note.read_text())["address"])
        with Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(1, timeout=STARTING)

    def start_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard"]
        note = str(self.folder / "scheduler.json")
        return subprocess.Popen(
            [*command, "--nthreads", "1", "--scheduler-file", note, "--death-timeout", "30"],
            cwd=self.folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        for process in (self.worker, self.scheduler):
            process.kill()
            process.wait()
