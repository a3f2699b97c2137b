"""Pages as a browser shows them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def open_page(page: Path, folder: Path) -> tuple[str, bytes]:
    """The document after loading, and a picture of it, kept where HEADSTART_SCREENSHOT says."""
    picture = folder / "page.png"
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--no-first-run", f"--user-data-dir={folder / 'profile'}", "--window-size=1100,2400",
    ]  # fmt: skip
    dump = subprocess.run(
        [*command, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    subprocess.run(
        [*command, f"--screenshot={picture}", page.as_uri()],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    if kept := os.environ.get("HEADSTART_SCREENSHOT"):
        shutil.copy(picture, Path(kept) / f"{page.stem}.png")
    return dump.stdout, picture.read_bytes()
