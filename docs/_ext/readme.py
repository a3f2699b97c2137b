"""The README as a page of the site: its links lead to pages instead of files."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

README = Path(__file__).parents[2] / "README.md"


def as_page(text: str) -> str:
    """The text with links as they are from the folder of the pages."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\(examples/(\w+)\.py\)", r"](auto_examples/\1.rst)", text)


def put_readme(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give the page named "readme" its text."""
    if docname == "readme":
        app.env.note_dependency(str(README))
        source[0] = as_page(README.read_text(encoding="utf-8"))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Read the README where its page is read."""
    app.connect("source-read", put_readme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
