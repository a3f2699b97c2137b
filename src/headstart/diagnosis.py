"""Moved to `headstart.evaluation.diagnosis`; this path still works."""

from headstart.evaluation.diagnosis import *  # noqa: F403
