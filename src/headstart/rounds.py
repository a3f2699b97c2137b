"""Moved to `headstart.meta.rounds`; this path still works."""

from headstart.meta.rounds import *  # noqa: F403
