"""What pip is to install for tests with the oldest libraries that `pyproject.toml` allows."""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path

TOOLS = ("dev", "docs", "peers")  # extras that users do not have
FRAMES = ("pandas", "polars")  # which users may have, but need not

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
users = chain(*(extras[name] for name in extras if name not in (*TOOLS, "all")))
frames = (asked for asked in extras["dev"] if asked.startswith(FRAMES) and "-stubs" not in asked)
for asked in dict.fromkeys([*project["dependencies"], *users, *frames]):
    print(asked.replace(">=", "==") + ".*")
