"""Moved to `headstart.inner.sgd`; this path still works."""

from headstart.inner.sgd import *  # noqa: F403
