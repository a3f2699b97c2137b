"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

# Paths are texts, because they may be addresses: headstart._core.places knows what they mean.
Data = Annotated[
    str,
    typer.Argument(
        help="Parquet, CSV or Arrow; or a folder of Parquet. A path, or s3://..., gs://...",
        metavar="PATH",
        show_default=False,
    ),
]
DataFile = Annotated[
    str,
    typer.Argument(
        help="A file of Parquet, CSV or Arrow. A path, or s3://..., gs://...",
        metavar="PATH",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    str, typer.Argument(help="A folder made by fit.", metavar="PATH", show_default=False)
]
ModelOut = Annotated[str, typer.Option(help="The folder to write the model to.", metavar="PATH")]
Group = Annotated[str, typer.Option(help="The column that says whose row it is.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
Features = Annotated[
    list[str] | None, typer.Option(help="Columns to predict from, with commas; all others if none.")
]
Classify = Annotated[
    bool | None,
    typer.Option(
        "--classify/--regress",
        help="Two classes, or amounts? Texts are classes; of a target of two numbers you must say.",
        show_default=False,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="Columns of text, with commas: a column of zeros and ones for each value."),
]
Side = Annotated[
    list[str] | None,
    typer.Option(help="Columns that describe the entity, with commas; it starts from them."),
]
Base = Annotated[
    str | None,
    typer.Option(help="A model of all rows below: gradient-boosting or random-forest."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Load a model with a base: you know who saved it.")
]
ResultsFile = Annotated[
    str, typer.Option(help="The file, or for a dataset the folder, to write.", metavar="PATH")
]
BatchRows = Annotated[
    int | None, typer.Option(min=1, help="Read Parquet in batches of so many rows.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Partitions at once; all cores.")]
Version = Annotated[
    int,
    typer.Option(min=0, help="0 for the newest, 1 for the one before it, as far as they are kept."),
]
Versions = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many of the newest stay, this one included; as many as there are."
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(help="Of a Dask cluster to run on, tcp://...; else this machine.")
]


def split_names(texts: list[str] | None) -> list[str] | None:
    """The names in texts with commas, an option being given once or often; None if it is not."""
    if not texts:
        return None
    names = [name for text in texts for name in text.split(",") if name]
    if not names:
        raise ValueError(f"expected names with commas between them, found {','.join(texts)!r}")
    return names
