"""What the paper says its experiments show, each held against the numbers of a run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.experiments.settings import Experiment

# What the paper's words are taken to mean, as shares of a loss.
FAR_BELOW = 0.85  # at most this share of the other
CLOSE = 0.05  # differs by no more
BY_LITTLE = 0.20  # below by no more


class Claim(NamedTuple):
    """A statement of the paper with its numbers; the verdict is holds, fails or open.

    A claim is open where the run has not what it takes: a method or an experiment left
    out, or fewer tasks than "many".
    """

    experiment: str
    statement: str
    numbers: str
    verdict: str


Losses = dict[str, NDArray[np.float64]]  # of each method: a row a run, a column a task count


def check_claims(experiment: Experiment, losses: Losses) -> list[Claim]:
    """Hold the paper's statements against the curves of one experiment."""
    claims = [
        _compare(
            experiment, losses, "LTL is far below ITL", "ltl-sgd-sgd", "itl-sgd",
            lambda ltl, itl, _: ltl < FAR_BELOW * itl,
        ),
        _compare(
            experiment, losses, "SGD-SGD is close to ERM-SGD", "ltl-sgd-sgd", "ltl-erm-sgd",
            lambda a, b, _: abs(a - b) <= CLOSE * max(a, b),
        ),
        _compare(
            experiment, losses, "ERM-ERM is lowest, by little", "ltl-erm-erm", "ltl-sgd-sgd",
            lambda exact, sgd, error: (1.0 - BY_LITTLE) * sgd <= exact <= sgd + 2.0 * error,
        ),
        _falls(experiment, losses),
    ]  # fmt: skip
    if experiment.name == "synthetic-regression":
        claims.append(
            _compare(
                experiment, losses, "LTL is close to MEAN for many tasks", "ltl-sgd-sgd",
                "mean-sgd", lambda ltl, mean, _: abs(ltl - mean) <= CLOSE * mean, many=500,
            )
        )  # fmt: skip
    return claims


def _compare(
    experiment: Experiment,
    losses: Losses,
    statement: str,
    first: str,
    second: str,
    holds: Callable[[float, float, float], bool],
    many: int = 0,
) -> Claim:
    """Compare two methods after the last task.

    `holds` takes their means, and the standard error of their difference run by run.
    """
    if first not in losses or second not in losses:
        missing = first if first not in losses else second
        return Claim(experiment.name, statement, f"{missing} was not run", "open")
    a, b = losses[first][:, -1], losses[second][:, -1]
    error = float(np.std(a - b, ddof=1) / np.sqrt(len(a))) if len(a) > 1 else 0.0
    numbers = f"{first} {a.mean():.3f}, {second} {b.mean():.3f}, difference ± {error:.3f}"
    if experiment.n_tasks < many:
        return Claim(experiment.name, statement, f"{numbers}; needs {many} tasks", "open")
    verdict = "holds" if holds(float(a.mean()), float(b.mean()), error) else "fails"
    return Claim(experiment.name, statement, numbers, verdict)


def _falls(experiment: Experiment, losses: Losses) -> Claim:
    statement = "the error of LTL falls with the number of tasks"
    if "ltl-sgd-sgd" not in losses:
        return Claim(experiment.name, statement, "ltl-sgd-sgd was not run", "open")
    curve = losses["ltl-sgd-sgd"].mean(axis=0)
    # at about equal distances on a logarithmic scale, where the paper's curves fall
    marks = np.unique(np.r_[0, np.geomspace(1, len(curve) - 1, 4).astype(int)])
    values = curve[marks]
    numbers = ", ".join(f"{v:.3f} at {t}" for t, v in zip(marks.tolist(), values, strict=True))
    falling = bool(np.all(values[1:] <= values[:-1] * (1.0 + CLOSE)) and values[-1] < values[0])
    return Claim(experiment.name, statement, numbers, "holds" if falling else "fails")


def check_gains(what: str, statement: str, gains: dict[float, float]) -> Claim:
    """Whether the gain, by how much LTL's loss is below ITL's, shrinks as `what` grows."""
    order = sorted(gains)
    numbers = ", ".join(f"{gains[k]:.2f} at {what} {k:g}" for k in order)
    shrinking = all(gains[b] < gains[a] for a, b in pairwise(order))
    verdict = "holds" if shrinking else "fails"
    return Claim("synthetic-regression", statement, f"ITL minus LTL: {numbers}", verdict)
