"""Experiments: the paper's, and one's own with any tasks, loss and sizes.

An `Experiment` has a `Source` of tasks and settings. `run` gives curves, figures and a report.
"""

from typing import TYPE_CHECKING, Any

from headstart.experiments.methods import METHODS, Method, methods_of
from headstart.experiments.pieces import Curve, Curves, Piece, PieceFolder, run_pieces
from headstart.experiments.settings import EXPERIMENTS, PAPER, Experiment, draw_data
from headstart.experiments.sources import (
    Data,
    Dealt,
    Drawn,
    Exam,
    Lenk,
    Sizes,
    Source,
    deal,
)

if TYPE_CHECKING:
    from headstart.experiments.reproduce import run

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "PAPER",
    "Curve",
    "Curves",
    "Data",
    "Dealt",
    "Drawn",
    "Exam",
    "Experiment",
    "Lenk",
    "Method",
    "Piece",
    "PieceFolder",
    "Sizes",
    "Source",
    "deal",
    "draw_data",
    "methods_of",
    "run",
    "run_pieces",
]


def __getattr__(name: str) -> Any:
    """`run` draws pictures, which need matplotlib: it is imported when it is asked for."""
    if name != "run":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from headstart.experiments.reproduce import run

    return run
