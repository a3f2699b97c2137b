"""The command line: the paper's experiments, and models on tables in files."""

from __future__ import annotations

import typer

from headstart.cli.adapt import adapt
from headstart.cli.diagnose import diagnose
from headstart.cli.fit import fit
from headstart.cli.info import info
from headstart.cli.predict import predict
from headstart.cli.reproduce import reproduce

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Learn one starting point from many small tasks, and give every new task that head start."""


for command in (reproduce, fit, predict, adapt, diagnose, info):
    app.command()(command)
