"""Files that are complete or not there, never half written."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from headstart._core.leftovers import held


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part{path.suffix}")
    try:
        with held(aside):
            write(aside)
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
