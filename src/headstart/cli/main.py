"""The command line: the paper's experiments, and models on tables in files."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# What each command is for, which stands here so that the list of commands imports none of them.
COMMANDS = {
    "reproduce": "The paper's experiments: curves, figures and a report.",
    "fit": "Learn where entities start, how far they go from there, and every entity's own "
    "weights.",
    "predict": "Predict every row: by its entity's own weights, or by the bias if the id is new.",
    "adapt": "Weights for new entities from a few of their rows; the model is left alone.",
    "diagnose": "Is sharing worth it here? Each task alone, all pooled, and headstart, "
    "on tasks held out.",
    "compare": "Errors on new tasks against the rows seen of them: headstart and what it competes "
    "with.",
    "info": "What a model has learned, or a run over a dataset wrote, and the versions there are.",
    "warm": "Compile every kernel now, so that no first call has to wait: for images and servers.",
}


class Commands(TyperGroup):
    """The commands, of which only the one that is run is imported.

    Contexts and commands are `Any` here: newer versions of typer have their own click.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """What the list of commands says of one."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is asked for, imported, and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load_command(str(name)), rest


def load_command(name: str) -> Any:
    """A command, from the file of its name."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(getattr(import_module(f"headstart.cli.{name}"), name))
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=Commands, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False
)


@app.callback()
def main() -> None:
    """Learn one starting point from many small tasks, and give every new task that head start."""
