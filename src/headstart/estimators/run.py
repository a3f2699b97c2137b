"""How learning from a dataset went: what a model keeps of the run that made it."""

from __future__ import annotations

from typing import Any, NamedTuple

from headstart._core.checks import check_count, check_number
from headstart._core.saved import MANY


class FitRun(NamedTuple):
    """How `fit` of a dataset went.

    Attributes
    ----------
    started : when it began, UTC
    seconds : how long it took
    peak_mb : the most memory that this process had so far, in megabytes; workers are not counted
    files, rows : how many the dataset has
    tasks : how many the prior was learned from
    passes : over these; 0 by the paper's algorithms
    content : digest of the files as they were, what is learned from them, and the code
    """

    started: str
    seconds: float
    peak_mb: float
    files: int
    rows: int
    tasks: int
    passes: int
    content: str

    @classmethod
    def checked(cls, found: Any) -> FitRun:
        """What a page says, if it can be shown."""
        if not isinstance(found, dict) or set(found) != set(cls._fields):
            raise ValueError(f"run: expected {', '.join(cls._fields)}, found {found!r:.60}")
        run = cls(**found)
        for name, text in (("started", run.started), ("content", run.content)):
            if not isinstance(text, str) or len(text) > 60 or not text.isprintable():
                raise ValueError(f"run: {name}: expected a short text, found {text!r:.60}")
        for name in ("seconds", "peak_mb"):
            check_number(f"run: {name}", getattr(run, name), at_least=0.0, below=1e50)
        for name in ("files", "rows", "tasks", "passes"):
            check_count(f"run: {name}", getattr(run, name), at_least=0, at_most=MANY)
        return run

    def __str__(self) -> str:
        return (
            f"{self.started}: {self.files} files of {self.rows} rows, {self.tasks} tasks learned "
            f"from in {self.passes} passes, {self.seconds:.1f} s, at most {self.peak_mb:.0f} MB in "
            "this process"
        )
