"""Learning from a stream of rows: the bias, and every entity's own weights."""

from headstart.online.bias import (
    AUTO,
    CLOSED,
    FOLLOW,
    GRADIENTS,
    OPEN,
    REACH,
    ROWS,
    SQUARES,
    STEPS,
    WEIGHT,
    Bias,
    Pace,
    task_cuts,
)
from headstart.online.candidates import KAPPAS, Tuning, leading_step, sureness
from headstart.online.given import Entities, OpenTasks, predictions
from headstart.online.stream import PREDICTORS, Stream
from headstart.online.tuned import TunedEntities, TunedTasks
from headstart.online.tuned_stream import TunedStream

__all__ = [
    "AUTO",
    "CLOSED",
    "FOLLOW",
    "GRADIENTS",
    "KAPPAS",
    "OPEN",
    "PREDICTORS",
    "REACH",
    "ROWS",
    "SQUARES",
    "STEPS",
    "WEIGHT",
    "Bias",
    "Entities",
    "OpenTasks",
    "Pace",
    "Stream",
    "TunedEntities",
    "TunedStream",
    "TunedTasks",
    "Tuning",
    "leading_step",
    "predictions",
    "sureness",
    "task_cuts",
]
