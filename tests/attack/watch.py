"""Attacks in a process of their own, which says before and after each how it goes."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

PATIENCE = 60.0  # seconds for one attack
PREPARING = 900.0  # and before the first: kernels may have to be compiled
NOTHING: Mapping[str, str] = MappingProxyType({})


def place() -> str | None:
    """Where files are written and read soonest."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def say_try(what: str) -> None:
    """Say which attack comes, so that it is known even if this process dies of it."""
    print(f"try {what}", flush=True)


def say_harm(harm: str | None) -> None:
    """Say what harm it did."""
    print("harm " + " ".join(harm.split())[:300] if harm else "fine", flush=True)


def watched(
    module: str,
    word: str,
    seed: int,
    count: int,
    at_once: int,
    environment: Mapping[str, str] = NOTHING,
) -> list[str]:
    """Have ``python -m module word seed first number`` try all; a line for each that did harm.

    One that ends the process, or does not end by itself, is a failure too, and the next process
    goes on after it.
    """
    failures: list[str] = []
    first = 0
    while first < count:
        last = min(first + at_once, count)
        process = _process([module, word, str(seed), str(first), str(last - first)], environment)
        first = _watch(process, f"{module} {word} {seed}:", first, last, failures)
    return failures


def _process(what: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path, **environment}
    command = [sys.executable, "-m", *what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings)


def _watch(
    process: subprocess.Popen[str], name: str, first: int, last: int, failures: list[str]
) -> int:
    """Watch one process; gives the number of the first attack that it did not come to."""
    with process:
        lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        threading.Thread(target=_pass_on, args=(process.stdout, lines), daemon=True).start()
        tried, done, ended = "", first, ""
        while not ended:
            try:
                line = lines.get(timeout=PATIENCE if tried else PREPARING)
            except queue.Empty:
                process.kill()
                ended = "no answer"
                break
            if line == "":
                ended = f"the process ended with {process.wait()}"
            elif line.startswith("try "):
                tried = f"{name} {line[4:].strip()}"
            else:
                done += 1
                if line.startswith("harm "):
                    failures.append(f"{tried}: {line[5:].strip()}")
    if done == last and process.returncode == 0:
        return last
    failures.append(f"{tried or name}: {ended}")
    return done + 1 if tried else last


def _pass_on(lines: IO[str], into: queue.Queue[str]) -> None:
    for line in lines:
        into.put(line)
    into.put("")


def numbers(seed: int, first: int, count: int) -> Iterable[tuple[int, list[int]]]:
    """The numbers of attacks, each with a seed of its own."""
    return ((number, [seed, number]) for number in range(first, first + count))
