"""What commands print, and how they end: exit codes, and mistakes as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console

NOT_DONE, WRONG, STOPPED = 1, 2, 130  # exit codes

console = Console()


def print_line(line: str) -> None:
    """Print a line as it is: no colours, no markup, no line breaks added."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def stop(line: str, code: int) -> NoReturn:
    """End the command with a line on standard error and an exit code."""
    Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def mistakes() -> Iterator[None]:
    """A user's mistake, or a full disk, is one line and exit code 2."""
    try:
        yield
    except typer.Exit:  # a RuntimeError too, but of a command that has said why
        raise
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}" if error.strerror else str(error), WRONG)
    except (ValueError, TypeError, RuntimeError) as error:
        stop(str(error), WRONG)
