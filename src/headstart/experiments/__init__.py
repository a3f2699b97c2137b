"""The paper's experiments: settings, pieces of work, claims and figures."""

from headstart.experiments.pieces import (
    Curve,
    Piece,
    PieceFolder,
    draw_data,
    run_pieces,
)
from headstart.experiments.settings import EXPERIMENTS, METHODS, Experiment, methods_of

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "Curve",
    "Experiment",
    "Piece",
    "PieceFolder",
    "draw_data",
    "methods_of",
    "run_pieces",
]
