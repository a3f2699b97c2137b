"""Jobs over all tasks: every task adapted, results as files."""

from headstart.jobs.adapt import adapt_all
from headstart.jobs.notes import JobIndex, Part, Run, read_index
from headstart.jobs.tables import PREDICTION

__all__ = ["PREDICTION", "JobIndex", "Part", "Run", "adapt_all", "read_index"]
