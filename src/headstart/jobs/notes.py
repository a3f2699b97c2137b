"""The notes of a job in its folder: whose it is, what is done, and at the end the index.

A partition's files have its key in their names, and then a note says that it is done. The index
comes last, and names the files of the newest run: it alone says which files belong together, so
that nothing is renamed and nothing of an older run goes before the new one is complete.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller
from typing import Any, NamedTuple

from headstart._core.checks import check_count
from headstart._core.files import clear_asides, write_aside
from headstart._core.places import AnyPath, Place, as_place, children, remove_folder
from headstart._core.plain import from_plain, to_plain
from headstart.parquet import ParquetError

JOB, INDEX = "job.json", "index.json"  # of a job that runs, and of one that is finished
RUNS = "runs"  # the folder of the indices of older runs
RESULTS = ("weights", "predictions")
AT_ONCE = 16  # notes that are read at once


class Part(NamedTuple):
    """A finished partition.

    Attributes
    ----------
    number : its place among the partitions of the run
    tasks, rows : how many it has
    first, last : the keys it begins and ends with
    file : the name of its files
    input, group : the file of the dataset and the row group in it that it begins with; the file
        is "" if the rows were put together in a copy
    """

    number: int
    tasks: int
    rows: int
    first: object
    last: object
    file: str
    input: str
    group: int

    @property
    def begins(self) -> tuple[str, int]:
        """Where it begins in the dataset."""
        return self.input, self.group

    def is_in(self, names: set[str]) -> bool:
        """Whether its files are there; without rows it has none."""
        return self.rows == 0 or self.file in names

    @property
    def key(self) -> str:
        """Digest of all that decides its results."""
        return self.file.removesuffix(".parquet").rpartition("-")[2]


def part_file(number: int, key: str) -> str:
    """The name of the files of a partition."""
    return f"part-{number:05d}-{key}.parquet"


class Run(NamedTuple):
    """What a run did.

    Attributes
    ----------
    number : 1 for the first run of the job
    started : when it began, UTC
    seconds : how long it took, since it was last resumed
    peak_mb : the most memory that this process had so far, in megabytes; workers are not counted
    adapted, kept : partitions that were computed since then, and those that were there already
    new, changed, gone : files of the dataset, as against the run before
    """

    number: int
    started: str
    seconds: float
    peak_mb: float
    adapted: int
    kept: int
    new: list[str]
    changed: list[str]
    gone: list[str]


class JobIndex(NamedTuple):
    """What a finished run wrote: its folder, number of tasks and rows, the parts, and how it went.

    `inputs` has a text for each file of the dataset, which changes when the file does.
    """

    folder: Place
    tasks: int
    rows: int
    parts: list[Part]
    run: Run
    inputs: dict[str, str]

    def files(self, what: str = "weights") -> list[Place]:
        """The files of the run with ``"weights"`` or ``"predictions"``, in order of the keys."""
        return [self.folder / what / part.file for part in self.parts if part.rows]

    def is_there(self, what: list[str]) -> bool:
        """Whether no file of the run is gone from these folders."""
        there = present(self.folder, what)
        return all(part.is_in(there) for part in self.parts)


def read_index(out: AnyPath, version: int = 0) -> JobIndex:
    """What a finished run of `adapt_all` wrote into the folder `out`.

    Parameters
    ----------
    out : str or Path
    version : int
        0 for the newest run, 1 for the one before it, and so on, as far as
        ``adapt_all(..., versions=...)`` keeps them.
    """
    check_count("version", version, at_least=0)
    folder = as_place(out)
    if not (folder / INDEX).exists():
        raise FileNotFoundError(f"{folder} holds no finished results: it has no {INDEX}")
    found = [_index(folder, _read(folder / INDEX))]
    if version:
        found += _older(folder, found[0].run.number)
    if version >= len(found):
        raise ValueError(
            f"version: expected 0 for the newest run to {len(found) - 1} for the oldest that "
            f"{folder} keeps, found {version}; versions= of adapt_all or --versions keeps more"
        )
    return found[version]


def read_runs(out: AnyPath) -> list[JobIndex]:
    """All finished runs that the folder `out` keeps, the newest first; none if it has no index."""
    folder = as_place(out)
    if not (folder / INDEX).exists():
        return []
    newest = read_index(folder)
    return [newest, *_older(folder, newest.run.number)]


def _older(folder: Place, newest: int) -> list[JobIndex]:
    """The indices of the runs before the newest, newest first."""
    places = [place for place in children(folder / RUNS) if place.suffix == ".json"]
    found = [_index(folder, _read(place)) for place in places]
    older = [index for index in found if index.run.number < newest]
    return sorted(older, key=lambda index: -index.run.number)


def write_note(folder: Place, part: Part) -> None:
    """Say that a partition is done."""
    text = json.dumps([to_plain("part", value) for value in part])
    write_aside(folder / "done" / f"{part.key}.json", methodcaller("write_text", text))


def read_notes(folder: Place, keys: list[str]) -> dict[str, Part]:
    """What is noted of those of these partitions that are done, by key."""
    done = folder / "done"
    there = {place.name for place in children(done)}
    noted = [done / f"{key}.json" for key in keys if f"{key}.json" in there]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        texts = pool.map(methodcaller("read_text"), noted)
        found = (Part(*map(from_plain, json.loads(text))) for text in texts)
        return {part.key: part for part in found}


def claim(folder: Place, job: str, run: str) -> tuple[JobIndex | None, bool]:
    """Make the folder this job's; gives the index of its last run, and whether that is this one.

    Raise if the folder is another job's, or holds other files. What a killed run of this job left
    half written is removed.
    """
    if (folder / INDEX).exists():
        content = _read(folder / INDEX)
        if content.get("job") != job:
            raise ParquetError(
                f"{folder}: holds the finished results of another job: of another dataset, other "
                "columns, or something else that was asked for; remove it, or give another folder"
            )
        _clear_asides(folder)
        same = content.get("content") == run
        if same:
            _tidy(folder)
        return _index(folder, content), same
    note = folder / JOB
    if note.exists():
        if _read(note).get("job") != job:
            raise ParquetError(
                f"{folder}: holds the unfinished results of another job; remove it, or give "
                "another folder"
            )
        _clear_asides(folder)
        return None, False
    if folder.exists() and not folder.is_dir():
        raise ParquetError(f"{folder} is a file; give a folder to write to")
    _clear_asides(folder)  # of a run that was killed before its first note
    if children(folder):
        raise ParquetError(f"{folder} exists and is not empty; give another folder")
    write_aside(note, methodcaller("write_text", json.dumps({"job": job}) + "\n"))
    return None, False


def _index(folder: Place, content: dict[str, Any]) -> JobIndex:
    """The index that a page holds."""
    try:
        parts = [Part(*map(from_plain, part)) for part in content["parts"]]
        run, inputs = Run(**content["run"]), dict(content["inputs"])
        return JobIndex(folder, content["tasks"], content["rows"], parts, run, inputs)
    except (KeyError, TypeError, ValueError):
        raise ParquetError(f"{folder / INDEX} is damaged; remove the folder") from None


def _read(path: Place) -> dict[str, Any]:
    """A page of JSON."""
    try:
        content = json.loads(path.read_text())
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ParquetError(f"{path} is damaged; remove the folder")
    return content


def finish(index: JobIndex, job: str, run: str, versions: int = 1) -> None:
    """Write the index, and remove what only an unfinished job, or no version, needs."""
    folder, kept = index.folder, []
    if (folder / INDEX).exists():
        before = _read(folder / INDEX)
        kept = [_index(folder, before), *_older(folder, before["run"]["number"])][: versions - 1]
        if kept:  # first, so that the newest of them is never without a page
            text = json.dumps(before)
            place = folder / RUNS / f"{kept[0].run.number:05d}.json"
            write_aside(place, methodcaller("write_text", text))
    content = {
        "job": job,
        "content": run,
        "tasks": index.tasks,
        "rows": index.rows,
        "run": index.run._asdict(),
        "inputs": index.inputs,
        "parts": [[to_plain("part", value) for value in part] for part in index.parts],
    }
    text = json.dumps(content, indent=1) + "\n"
    write_aside(folder / INDEX, methodcaller("write_text", text))
    _remove_others(folder, [index, *kept])
    _tidy(folder)


def present(folder: Place, what: list[str]) -> set[str]:
    """The names of files that are there in all of these folders."""
    names = [{place.name for place in children(folder / name)} for name in what]
    return set.intersection(*names) if names else set()


def _remove_others(folder: Place, versions: list[JobIndex]) -> None:
    """Remove files and indices of runs that are kept no longer."""
    named = {part.file for index in versions for part in index.parts}
    pages = {f"{index.run.number:05d}.json" for index in versions[1:]}
    for name, wanted in [(what, named) for what in RESULTS] + [(RUNS, pages)]:
        for place in children(folder / name):
            if place.name not in wanted and not place.name.startswith("."):
                place.unlink(missing_ok=True)
    if not pages:
        remove_folder(folder / RUNS)


def _tidy(folder: Place) -> None:
    """Remove what only an unfinished job needs."""
    for name in ("done", "clustered"):
        remove_folder(folder / name)
    (folder / JOB).unlink(missing_ok=True)
    _clear_asides(folder)


def _clear_asides(folder: Place) -> None:
    """Remove what killed runs left half written."""
    for name in (*RESULTS, "done", RUNS, "."):
        clear_asides(folder / name)
