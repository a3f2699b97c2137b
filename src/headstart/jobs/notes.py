"""The notes of a job in its folder: whose it is, what is done, and at the end the index."""

from __future__ import annotations

import json
import shutil
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from headstart._core.files import write_aside
from headstart._core.leftovers import clear_asides
from headstart._core.plain import from_plain, to_plain
from headstart.parquet import ParquetError

JOB, INDEX = "job.json", "index.json"  # of a job that runs, and of one that is finished


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


def claim(folder: Path, fingerprint: str) -> JobIndex | None:
    """Make the folder this job's, or give the index if the job is finished.

    Raise if the folder is another job's, or holds other files. What a killed run of this job left
    half written is removed.
    """
    if (folder / INDEX).exists():
        return _finished(folder, fingerprint)
    note = folder / JOB
    if note.exists():
        if _read(note).get("job") != fingerprint:
            raise ParquetError(
                f"{folder}: holds the unfinished results of another job; remove it, or give "
                "another folder"
            )
        for part in ("weights", "predictions", "done", "."):
            clear_asides(folder / part)
        return None
    if folder.exists() and not folder.is_dir():
        raise ParquetError(f"{folder} is a file; give a folder to write to")
    clear_asides(folder)  # of a run that was killed before its first note
    if folder.exists() and any(folder.iterdir()):
        raise ParquetError(f"{folder} exists and is not empty; give another folder")
    write_aside(note, methodcaller("write_text", json.dumps({"job": fingerprint}) + "\n"))
    return None


def _finished(folder: Path, fingerprint: str) -> JobIndex:
    """The index of this job; raise if that of another is there."""
    content = _read(folder / INDEX)
    if content.get("job") != fingerprint:
        raise ParquetError(
            f"{folder}: holds the finished results of another job: of other data, another model, "
            "other settings or other code; remove it, or give another folder"
        )
    _tidy(folder)
    try:
        parts = [Part(*map(from_plain, part)) for part in content["parts"]]
        return JobIndex(folder, content["tasks"], content["rows"], parts)
    except (KeyError, TypeError, ValueError):
        raise ParquetError(f"{folder / INDEX} is damaged; remove the folder") from None


def _read(path: Path) -> dict[str, Any]:
    """A page of JSON."""
    try:
        content = json.loads(path.read_text())
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ParquetError(f"{path} is damaged; remove the folder")
    return content


def finish(index: JobIndex, fingerprint: str) -> None:
    """Write the index, and remove what only an unfinished job needs."""
    content = {
        "job": fingerprint,
        "tasks": index.tasks,
        "rows": index.rows,
        "parts": [[to_plain("part", value) for value in part] for part in index.parts],
    }
    text = json.dumps(content, indent=1) + "\n"
    write_aside(index.folder / INDEX, methodcaller("write_text", text))
    _tidy(index.folder)


def _tidy(folder: Path) -> None:
    """Remove what only an unfinished job needs."""
    for name in ("done", "clustered"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / JOB).unlink(missing_ok=True)
    for name in ("weights", "predictions", "."):
        clear_asides(folder / name)
