"""Jobs over all tasks: every task adapted, results as files."""

from headstart.jobs.adapt import adapt_all
from headstart.jobs.notes import JobIndex, Part

__all__ = ["JobIndex", "Part", "adapt_all"]
