"""Moved to `headstart.experiments.reproduce` and `.settings`; this path still works."""

from headstart.experiments.reproduce import *  # noqa: F403
from headstart.experiments.settings import *  # noqa: F403
