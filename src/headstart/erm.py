"""Moved to `headstart.inner.erm`; this path still works."""

from headstart.inner.erm import *  # noqa: F403
