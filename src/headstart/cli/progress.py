"""The bar that shows how far a long job has come."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Speed(ProgressColumn):
    """How many units are done in a second."""

    def render(self, task: Task) -> Text:
        unit, elapsed = task.fields.get("unit", ""), task.elapsed or 0.0
        # rich measures between steps: after a single one only the mean is known
        mean = task.completed / elapsed if elapsed > 0.0 else 0.0
        speed = task.speed or task.finished_speed or mean
        return Text(f"{speed:,.0f} {unit}/s" if speed and unit else "")


def progress_bar(console: Console) -> Progress:
    """A bar with speed, elapsed and remaining time."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        _Speed(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
