"""The notes of a job in its folder: whose it is, what is done, and at the end the index."""

from __future__ import annotations

import json
import shutil
from operator import methodcaller
from pathlib import Path
from typing import NamedTuple

from headstart._core.files import write_aside
from headstart._core.plain import from_plain, to_plain
from headstart.parquet import ParquetError


class Part(NamedTuple):
    """A finished partition: how many tasks and rows, and the keys it begins and ends with."""

    number: int
    tasks: int
    rows: int
    first: object
    last: object


class JobIndex(NamedTuple):
    """What a finished job wrote: its folder, number of tasks and rows, and the parts."""

    folder: Path
    tasks: int
    rows: int
    parts: list[Part]


def write_note(folder: Path, part: Part) -> None:
    """Say that a partition is done."""
    text = json.dumps([to_plain("part", value) for value in part])
    write_aside(_note(folder, part.number), methodcaller("write_text", text))


def _note(folder: Path, number: int) -> Path:
    return folder / "done" / f"{number:05d}.json"


def read_note(folder: Path, number: int) -> Part | None:
    """What is noted of a partition, if it is done."""
    path = _note(folder, number)
    return Part(*map(from_plain, json.loads(path.read_text()))) if path.exists() else None


def claim(folder: Path, fingerprint: str) -> None:
    """Make the folder this job's; raise if it is another's, or holds other files."""
    note = folder / "job.json"
    if note.exists():
        if json.loads(note.read_text())["job"] != fingerprint:
            raise ParquetError(
                f"{folder}: holds the unfinished results of another job; remove it, or give "
                "another folder"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise ParquetError(f"{folder} exists and is not empty; give another folder")
    write_aside(note, methodcaller("write_text", json.dumps({"job": fingerprint}) + "\n"))


def finish(index: JobIndex) -> None:
    """Write the index, and remove what only an unfinished job needs."""
    content = {
        "tasks": index.tasks,
        "rows": index.rows,
        "parts": [[to_plain("part", value) for value in part] for part in index.parts],
    }
    text = json.dumps(content, indent=1) + "\n"
    write_aside(index.folder / "index.json", methodcaller("write_text", text))
    shutil.rmtree(index.folder / "done", ignore_errors=True)
    shutil.rmtree(index.folder / "clustered", ignore_errors=True)
    (index.folder / "job.json").unlink()
