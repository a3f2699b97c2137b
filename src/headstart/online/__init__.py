"""Learning from a stream of rows: where all entities start, and every entity's own weights."""

from headstart.online.bias_stream import BiasStream
from headstart.online.learned import PriorStream
from headstart.online.one_task import OneTask
from headstart.online.own import PriorSettings
from headstart.online.predict import predictions
from headstart.online.settings import PREDICTORS, Settings
from headstart.online.sparse import SparseStream
from headstart.online.stream import Arrays, Chunk, Positions, Stream

AnyStream = PriorStream | SparseStream | BiasStream

__all__ = [
    "PREDICTORS",
    "AnyStream",
    "Arrays",
    "BiasStream",
    "Chunk",
    "OneTask",
    "Positions",
    "PriorSettings",
    "PriorStream",
    "Settings",
    "SparseStream",
    "Stream",
    "predictions",
]
