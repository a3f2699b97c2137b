"""What commands print, and how they end: exit codes, and mistakes as one line."""

from __future__ import annotations

import errno
import linecache
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console

NOT_DONE, WRONG, STOPPED = 1, 2, 130  # exit codes
PACKAGE = Path(__file__).parent.parent
OF_ROWS = ("X", "y", "groups", "tasks", "shots")  # arguments that commands make of a file
FULL = {errno.ENOSPC, errno.EDQUOT}

# Names of columns and files are shown as they are: brackets and colons mean nothing.
PLAIN = {"markup": False, "emoji": False, "highlight": False}
console = Console(**PLAIN)  # type: ignore[arg-type]


def error_console() -> Console:
    """Standard error, as it is now."""
    return Console(stderr=True, **PLAIN)  # type: ignore[arg-type]


def print_line(line: str) -> None:
    """Print a line as it is: no colours, no markup, no line breaks added."""
    console.print(shown(line), soft_wrap=True)


def shown(text: str) -> str:
    """A text with what the terminal cannot show written out; spaces and line ends stay."""
    plain = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    return plain.encode(console.encoding, "backslashreplace").decode(console.encoding)


def stop(line: str, code: int) -> NoReturn:
    """End the command with a line on standard error and an exit code."""
    error_console().print(shown("\\n".join(line.splitlines())), soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def mistakes(data: str | None = None) -> Iterator[None]:
    """A user's mistake, or a full disk, is one line and exit code 2; warnings are a line each.

    What is wrong with rows as a whole is said with the name of the file, `data`.

    A user's mistake is what this package raises itself. Any other error is a fault of its own,
    and ends in a traceback.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except typer.Exit:  # a RuntimeError too, but of a command that has said why
            raise
        except OSError as error:
            stop(_about_file(error), WRONG)
        except (ValueError, TypeError, RuntimeError) as error:
            if not raised_here(error):
                raise
            of_rows = data is not None and str(error).split(":")[0] in OF_ROWS
            stop(f"{data}: {error}" if of_rows else str(error), WRONG)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    error_console().print(shown(f"warning: {message}"), soft_wrap=True)


def _about_file(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    if error.errno in FULL:
        return f"{where}the disk is full; nothing half written stays, make room and try again"
    return f"{where}{error.strerror or error}"


def raised_here(error: Exception) -> bool:
    """Whether a statement of this package raised the error, and nothing that it called.

    Without the source no line can be looked at: what comes from this package is taken for said.
    """
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return False
    file = step.tb_frame.f_code.co_filename
    line = linecache.getline(file, step.tb_lineno).strip()
    return (not line or line.startswith("raise ")) and Path(file).is_relative_to(PACKAGE)
