"""Jobs over all tasks: every task adapted, results as files."""

from headstart.jobs.adapt import PREDICTION, adapt_all
from headstart.jobs.notes import JobIndex, Part

__all__ = ["PREDICTION", "JobIndex", "Part", "adapt_all"]
