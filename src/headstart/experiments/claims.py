"""What the paper says its experiments show, each held against the numbers of a run.

Methods are compared run by run, on the same tasks. What a claim allows of their difference is a
range, and the 95 % interval of the mean difference (Student's, over the runs) decides.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from headstart._core.checks import Vector
from headstart.experiments.settings import Experiment

# What the paper's words are taken to mean, as shares of a loss.
FAR_BELOW = 0.85  # at most this share of the other
CLOSE = 0.05  # differs by no more
BY_LITTLE = 0.20  # below by no more
MANY = 500  # tasks
COVERAGE = 0.95
BELOW = math.nextafter(0.0, -1.0)  # the largest number below 0

VERDICTS = {
    "holds": "the 95 % interval of the difference lies within what the claim allows",
    "fails": "it lies outside",
    "unclear": "a part of it lies within: the runs cannot tell. So it is with a single run",
    "open": "the run has not what it takes: a method was left out, or there are too few tasks",
}


class Claim(NamedTuple):
    """A statement of the paper with its numbers; see `VERDICTS` for the verdict."""

    experiment: str
    statement: str
    allowed: str
    numbers: str
    verdict: str


Losses = dict[str, NDArray[np.float64]]  # of each method: a row a run, a column a task count


class Range(NamedTuple):
    """What a claim allows of a difference; ends included."""

    low: float
    high: float


class Interval(NamedTuple):
    """The mean of some runs, and how far it may be from the mean of all runs there could be.

    `half` is NaN for one run, which says nothing of that.
    """

    mean: float
    half: float

    @classmethod
    def of(cls, values: Vector) -> Interval:
        """The Student interval of 95 %.

        Examples
        --------
        >>> print(str(Interval.of(np.array([1.0, 2.0, 3.0]))))
        +2.000 (-0.484 to +4.484)
        """
        n = len(values)
        if n == 1:
            return cls(float(values[0]), math.nan)
        error = float(np.std(values, ddof=1)) / math.sqrt(n)
        return cls(float(np.mean(values)), float(stats.t.ppf(0.5 + COVERAGE / 2, n - 1)) * error)

    def judge(self, allowed: Range) -> str:
        """Holds within the range, fails outside of it, and is unclear across its ends."""
        low, high = self.mean - self.half, self.mean + self.half
        if math.isnan(self.half):
            return "unclear"
        if allowed.low <= low and high <= allowed.high:
            return "holds"
        return "fails" if high < allowed.low or low > allowed.high else "unclear"

    def __str__(self) -> str:
        if math.isnan(self.half):
            return f"{self.mean:+.3f} (one run)"
        return f"{self.mean:+.3f} ({self.mean - self.half:+.3f} to {self.mean + self.half:+.3f})"


def check_claims(experiment: Experiment, losses: Losses) -> list[Claim]:
    """Hold the paper's statements against the curves of one experiment of the paper."""
    claims = [
        _far_below(experiment, losses),
        _close(experiment, losses),
        _lowest(experiment, losses),
        _falls(experiment, losses),
    ]
    return [*claims, _matches(experiment, losses)] if experiment.source.has_mean else claims


def _last(losses: Losses, *methods: str) -> tuple[list[Vector], str]:
    """The methods' losses after the last task, and the first method that was not run."""
    missing = next((m for m in methods if m not in losses), "")
    return ([] if missing else [losses[m][:, -1] for m in methods]), missing


def _open(e: Experiment, statement: str, allowed: str, missing: str) -> Claim:
    return Claim(e.name, statement, allowed, f"{missing} was not run", "open")


def _far_below(e: Experiment, losses: Losses) -> Claim:
    statement = "LTL is far below ITL"
    allowed = f"ltl-sgd-sgd at most {100 * FAR_BELOW:g} % of itl-sgd"
    found, missing = _last(losses, "ltl-sgd-sgd", "itl-sgd")
    if missing:
        return _open(e, statement, allowed, missing)
    ltl, itl = found
    excess = Interval.of(ltl - FAR_BELOW * itl)
    numbers = f"{ltl.mean():.3f} against {itl.mean():.3f}, difference {Interval.of(ltl - itl)}"
    return Claim(e.name, statement, allowed, numbers, excess.judge(Range(-math.inf, 0.0)))


def _close(e: Experiment, losses: Losses) -> Claim:
    statement = "SGD-SGD is close to ERM-SGD"
    allowed = f"differ by at most {100 * CLOSE:g} % of the larger"
    found, missing = _last(losses, "ltl-sgd-sgd", "ltl-erm-sgd")
    if missing:
        return _open(e, statement, allowed, missing)
    a, b = found
    most, gap = CLOSE * max(float(a.mean()), float(b.mean())), Interval.of(a - b)
    numbers = f"{a.mean():.3f} against {b.mean():.3f}, difference {gap}"
    return Claim(e.name, statement, allowed, numbers, gap.judge(Range(-most, most)))


def _lowest(e: Experiment, losses: Losses) -> Claim:
    statement = "ERM-ERM is lowest, by little"
    allowed = (
        "ltl-erm-erm below the better of ltl-sgd-sgd and ltl-erm-sgd, by at most "
        f"{100 * BY_LITTLE:g} % of it"
    )
    found, missing = _last(losses, "ltl-erm-erm", "ltl-sgd-sgd")
    if missing:
        return _open(e, statement, allowed, missing)
    exact, name, best = found[0], "ltl-sgd-sgd", found[1]
    if "ltl-erm-sgd" in losses and losses["ltl-erm-sgd"][:, -1].mean() < best.mean():
        name, best = "ltl-erm-sgd", losses["ltl-erm-sgd"][:, -1]
    gap = Interval.of(exact - best)
    verdict = gap.judge(Range(-BY_LITTLE * float(best.mean()), 0.0))
    place = "lowest" if gap.mean < 0.0 else "not lowest"
    within = ", within error" if abs(gap.mean) <= gap.half else ""
    numbers = (
        f"{exact.mean():.3f} against {name} {best.mean():.3f}, difference {gap}: {place}{within}"
    )
    return Claim(e.name, statement, allowed, numbers, verdict)


def _matches(e: Experiment, losses: Losses) -> Claim:
    statement = "LTL almost matches MEAN for many tasks"
    allowed = f"ltl-sgd-sgd above mean-sgd by at most {100 * CLOSE:g} %, after {MANY} tasks or more"
    found, missing = _last(losses, "ltl-sgd-sgd", "mean-sgd")
    if missing:
        return _open(e, statement, allowed, missing)
    ltl, mean = found
    gap = Interval.of(ltl - mean)
    numbers = f"{ltl.mean():.3f} against {mean.mean():.3f}, difference {gap}"
    if e.n_tasks < MANY:
        return Claim(e.name, statement, allowed, f"{numbers}, after {e.n_tasks} tasks", "open")
    verdict = gap.judge(Range(-math.inf, CLOSE * float(mean.mean())))
    return Claim(e.name, statement, allowed, numbers, verdict)


def _falls(e: Experiment, losses: Losses) -> Claim:
    statement = "the error of LTL falls with the number of tasks"
    allowed = f"lower at the end, and no rise by more than {100 * CLOSE:g} % on the way"
    if "ltl-sgd-sgd" not in losses:
        return _open(e, statement, allowed, "ltl-sgd-sgd")
    runs = losses["ltl-sgd-sgd"]
    # at about equal distances on a logarithmic scale, where the paper's curves fall
    marks = np.unique(np.r_[0, np.geomspace(1, runs.shape[1] - 1, 4).astype(int)])
    values = runs[:, marks].mean(axis=0)
    numbers = ", ".join(f"{v:.3f} at {t}" for t, v in zip(marks.tolist(), values, strict=True))
    whole = Interval.of(runs[:, -1] - runs[:, 0]).judge(Range(-math.inf, BELOW))
    steps = [
        Interval.of(runs[:, b] - runs[:, a]).judge(Range(-math.inf, CLOSE * runs[:, a].mean()))
        for a, b in pairwise(marks.tolist())
    ]
    return Claim(e.name, statement, allowed, numbers, _worst([whole, *steps]))


def _worst(verdicts: list[str]) -> str:
    return next(word for word in ("fails", "unclear", "holds") if word in verdicts)


def check_gains(what: str, statement: str, gains: dict[float, Vector]) -> Claim:
    """Whether the gain, by how much LTL's loss is below ITL's, shrinks as `what` grows.

    The gains are those of the runs; a run has the same random numbers for every value of `what`.
    """
    order = sorted(gains)
    found = [(key, Interval.of(gains[key])) for key in order]
    numbers = ", ".join(f"{said(gain)} at {what} {key:g}" for key, gain in found)
    steps = [
        Interval.of(gains[b] - gains[a]).judge(Range(-math.inf, BELOW)) for a, b in pairwise(order)
    ]
    allowed = f"a smaller gain for each larger {what}"
    numbers = f"ITL minus LTL: {numbers}"
    return Claim("synthetic-regression", statement, allowed, numbers, _worst(steps))


def said(interval: Interval) -> str:
    """Mean and half width, or the mean of the one run."""
    if math.isnan(interval.half):
        return f"{interval.mean:.2f}"
    return f"{interval.mean:.2f} ± {interval.half:.2f}"
