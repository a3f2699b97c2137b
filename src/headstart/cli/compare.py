"""``headstart compare``: errors on new tasks by the rows seen of them, for several ways."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer
from rich.table import Column, Table

from headstart import plot
from headstart._core.files import write_aside
from headstart._core.places import Place, as_place
from headstart.cli.bases import on_base
from headstart.cli.console import console, error_console, mistakes, print_line, shown
from headstart.cli.options import Base, Categorical, Classify, DataFile, Features, Group, Target
from headstart.cli.progress import progress_bar
from headstart.cli.rows import Columns, read_rows
from headstart.cli.tables import WRITERS, TableError, are_classes, refuse_itself, write_table
from headstart.evaluation import FewShotCurve
from headstart.evaluation.diagnosis import diagnose

PICTURES = (".png", ".svg", ".pdf")


def compare(
    data: DataFile,
    group: Group,
    target: Target,
    features: Features = None,
    categorical: Categorical = None,
    classify: Classify = None,
    base: Base = None,
    shots: Annotated[int, typer.Option(min=1, help="The most rows of a new task to learn.")] = 8,
    out: Annotated[
        str | None,
        typer.Option(help="A picture, *.png, *.svg or *.pdf, or a table to write.", metavar="PATH"),
    ] = None,
) -> None:
    """Errors on new tasks against the rows seen of them: headstart and what it competes with."""
    with mistakes(data):
        refuse_itself(data, out)
        place = None if out is None else as_place(out)
        if place is not None and place.suffix.lower() not in (*PICTURES, *WRITERS):
            raise TableError(f"--out: expected a file named {', '.join((*PICTURES, *WRITERS))}")
        table = read_rows(data, Columns(group, target, features, None, categorical))
        classes = are_classes(target, table.y, classify)
        with progress_bar(error_console()) as progress:
            bar = progress.add_task("comparing", total=1.0)
            found = diagnose(
                *(table.X, table.y, table.ids),
                shots=shots,
                classify=classes,
                estimators=on_base(base, binary=classes),
                callback=lambda done: progress.update(bar, completed=done),
            )
        what = "share of wrong labels" if classes else f"mean absolute error of {target}"
        _print(found.curves, what)
        if place is not None:
            _write(found.curves, what, place)
            print_line(f"written: {out}")


def _print(curves: dict[str, FewShotCurve], what: str) -> None:
    """A row for each way, a column for each number of rows."""
    shots = next(iter(curves.values())).shots
    title = f"{what}, after so many rows of a new task"
    table = Table(Column("way", overflow="fold"), *map(str, shots), title=shown(title))
    for way, curve in curves.items():
        errors = zip(curve.mean, curve.half_width, strict=True)
        table.add_row(shown(way), *(f"{mean:.4g} ± {half:.2g}" for mean, half in errors))
    console.print(table)


def _write(curves: dict[str, FewShotCurve], what: str, out: Place) -> None:
    """The curves as a picture or a table."""
    if out.suffix.lower() in PICTURES:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots()
        plot.few_shot_curve(curves, ax=ax, error=what)
        write_aside(out, lambda aside: figure.savefig(aside, bbox_inches="tight", dpi=150))
        plt.close(figure)
        return
    rows = [
        {"way": way, "rows": k, "error": float(mean), "half_width": float(half)}
        for way, curve in curves.items()
        for k, mean, half in zip(curve.shots, curve.mean, curve.half_width, strict=True)
    ]
    write_table(pa.Table.from_pylist(rows), out)
