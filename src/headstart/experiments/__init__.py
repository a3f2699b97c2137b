"""Experiments: the paper's, and one's own with any tasks, loss and sizes.

An `Experiment` has a `Source` of tasks and settings. `run` gives curves, figures and a report.
"""

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
    "run_pieces",
]
