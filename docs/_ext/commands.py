"""The page of the command line, written from what the commands themselves say."""

from __future__ import annotations

from pathlib import Path

import typer
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from typer.cli import get_docs_for_click

from headstart.cli.main import COMMANDS, load_command

TOP = """# Command line

`pip install 'headstart[cli]'` brings `headstart`. Exit code 0 means that everything asked for was
done, 2 that an argument or the data is wrong, which one line says. A table is a Parquet, CSV or
Arrow file; a folder is a Parquet dataset and read in batches.

"""


def page() -> str:
    """The page, in Markdown."""
    parts = [TOP]
    for name in COMMANDS:
        command = load_command(name)
        context = typer.Context(command, info_name=f"headstart {name}")
        parts.append(
            get_docs_for_click(obj=command, ctx=context, indent=1, name=f"headstart {name}")
        )
    return "".join(parts)


def write_page(app: Sphinx, config: object) -> None:
    """Write it beside the other pages."""
    del config
    place = Path(app.srcdir) / "command-line.md"
    text = page()
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the page before sphinx looks for pages."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
