"""Moved to `headstart.meta.prior`; this path still works."""

from headstart.meta.prior import *  # noqa: F403
