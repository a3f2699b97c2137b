"""Pictures: errors by the rows of a new task, effects and how entities differ, intervals, outliers.

Every function draws into `ax`, or into the axes of a new figure, and returns the axes. They need
matplotlib: ``pip install headstart[plot]``. Numbers are in the units of the data. Effects stand on
one axis for all features because they are those of a typical step, one standard deviation of the
feature; the effect of one unit is written beside it.
"""

from headstart.plot.answers import calibration, intervals, intervals_of
from headstart.plot.effects import effects, entities, unusual
from headstart.plot.errors import few_shot_curve

__all__ = [
    "few_shot_curve",
    "effects",
    "entities",
    "unusual",
    "intervals",
    "intervals_of",
    "calibration",
]
