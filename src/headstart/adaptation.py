"""Moved to `headstart.inner.adapt`; this path still works."""

from headstart.inner.adapt import *  # noqa: F403
