"""Pages as a browser shows them."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def _browse(page: Path, folder: Path, *options: str) -> str:
    """What the browser prints with these options."""
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-quic", "--no-first-run", f"--user-data-dir={folder / 'profile'}",
        "--window-size=1100,2400", *options, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def evaluate(page: Path, folder: Path, script: str, *options: str) -> Any:
    """What a script gives that runs in the page once it is laid out, as JSON."""
    probe = folder / "probe.html"
    say = f"document.title = JSON.stringify((() => {{ {script} }})())"
    ending = f"<script>addEventListener('load', () => {{ {say} }})</script>"
    probe.write_text(page.read_text(encoding="utf-8") + ending, encoding="utf-8")
    document = _browse(probe, folder, "--dump-dom", *options)
    return json.loads(html.unescape(document.split("<title>")[1].split("</title>")[0]))


def open_page(page: Path, folder: Path) -> tuple[str, bytes]:
    """The document after loading, and a picture of it, kept where HEADSTART_SCREENSHOT says."""
    picture = folder / "page.png"
    document = _browse(page, folder, "--dump-dom")
    _browse(page, folder, f"--screenshot={picture}")
    if kept := os.environ.get("HEADSTART_SCREENSHOT"):
        shutil.copy(picture, Path(kept) / f"{page.stem}.png")
    return document, picture.read_bytes()
