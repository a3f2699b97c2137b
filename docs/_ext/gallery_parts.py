"""What the gallery needs beside sphinx-gallery: an order, titles, and pictures that scripts write.

A script is a plain one: the first line of its docstring is a sentence, and what stands before the
colon is the title of its page.
"""

from __future__ import annotations

import builtins
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx_gallery.scrapers import figure_rst

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER = [
    "algorithm_and_dual.py",
    "moreau_envelope.py",
    "path_of_the_bias.py",
    "bounds_and_risk.py",
    "certificates.py",
    "validation_map.py",
    "learned_metric.py",
    "intervals_that_cover.py",
    "when_sharing_hurts.py",
    "own_loss.py",
    "own_environment.py",
    "own_data.py",
]


SENTENCE = re.compile(r"(^\.\. _sphx_glr_auto_\w+\.py:\n\n)(.+)\n", re.MULTILINE)
THUMBNAIL = re.compile(r"(<div class=\"sphx-glr-thumbnail-title\">)([^<]+)")


class Told:
    """The key by which scripts are sorted: those told first, then the others by name."""

    def __init__(self, src_dir: object) -> None:
        del src_dir

    def __call__(self, name: str) -> tuple[int, str]:
        """The place of a script."""
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def written_picture(block: object, block_vars: dict[str, Any], gallery_conf: Any) -> str:
    """The picture that a script names PICTURE and has written, as one of its page."""
    del block
    picture = block_vars["example_globals"].get("PICTURE")
    if picture is None or not Path(picture).exists():
        return ""
    place = Path(next(block_vars["image_path_iterator"]))
    shutil.copy(picture, place)
    return figure_rst([str(place)], gallery_conf["src_dir"])


def give_file(gallery_conf: object, fname: str) -> None:
    """Let scripts know where they stand, as Python does: sphinx-gallery has no ``__file__``."""
    del gallery_conf
    builtins.__file__ = str(EXAMPLES / fname)


def title_and_rest(sentence: str) -> tuple[str, str]:
    """What stands before a colon, and what after it, as a sentence; without one, the title alone.

    Examples
    --------
    >>> title_and_rest("Two ways: one is longer.")
    ('Two ways', 'One is longer.')
    """
    title, _, rest = sentence.partition(": ")
    return title.rstrip("."), rest[:1].upper() + rest[1:]


def put_titles(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give pages and thumbnails of scripts their titles."""
    del app
    if not docname.startswith("auto_"):
        return

    def heading(found: re.Match[str]) -> str:
        title, rest = title_and_rest(found[2])
        return f"{found[1]}{title}\n{'=' * len(title)}\n\n{rest}\n"

    text = SENTENCE.sub(heading, source[0])
    source[0] = THUMBNAIL.sub(lambda found: found[1] + title_and_rest(found[2])[0], text)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Put titles where pages are read."""
    app.connect("source-read", put_titles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
