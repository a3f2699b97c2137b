"""Learning from a stream of rows: the bias, and every entity's own weights."""

from headstart.online.bias import (
    AUTO,
    CLOSED,
    FOLLOW,
    OPEN,
    ROWS,
    SQUARES,
    STEPS,
    WEIGHT,
    Bias,
    Pace,
)
from headstart.online.stream import PREDICTORS, Entities, OpenTasks, Stream, predictions

__all__ = [
    "AUTO",
    "CLOSED",
    "FOLLOW",
    "OPEN",
    "PREDICTORS",
    "ROWS",
    "SQUARES",
    "STEPS",
    "WEIGHT",
    "Bias",
    "Entities",
    "OpenTasks",
    "Pace",
    "Stream",
    "predictions",
]
