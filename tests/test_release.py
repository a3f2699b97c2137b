"""What a release says of itself in several places is the same in all of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import headstart

ROOT = Path(__file__).parent.parent


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = (ROOT / "CITATION.cff").read_text().splitlines()
    newest = next(
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")
    )
    assert project["version"] == headstart.__version__
    assert f"version: {headstart.__version__}" in cited
    assert newest.split()[1] == headstart.__version__
