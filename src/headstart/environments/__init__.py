"""Tasks to draw: the paper's two environments, and mixtures of such.

Whether sharing pays depends on how much tasks differ, on the rows a task has and on the noise: all
are parameters. `Mixture` joins environments into clusters, or into a sequence that is not random.
"""

from headstart.environments.linear import (
    ClassificationEnvironment,
    Draw,
    Environment,
    RegressionEnvironment,
)
from headstart.environments.mixture import Mixture, MixtureDraw

__all__ = [
    "ClassificationEnvironment",
    "Draw",
    "Environment",
    "Mixture",
    "MixtureDraw",
    "RegressionEnvironment",
]
