"""What to do, from the errors of each way on the same held-out tasks."""

from __future__ import annotations

from typing import NamedTuple

from headstart.evaluation.curve import FewShotCurve

REASONS = {
    "share": "New tasks do clearly better from a learned start than alone or with one model.",
    "share a little": "A learned start surely helps, but by less than a tenth.",
    "pool instead": "One model for all does as well: tasks are too alike for weights of their own.",
    "do not share": "Each task alone does as well: the tasks have too little in common.",
    "cannot tell": "There are too few tasks to tell; more of them would.",
}
VERDICTS = list(REASONS)
SMALL_GAIN = 0.1  # a share of the error below which a gain is little
WORTH = 0.01  # a share below which it is not worth the trouble
NOTHING = 1e-4  # a share of the error of who knows nothing, below which errors are rounding
FEWEST = 10  # held-out tasks, below which nothing is said


class Gain(NamedTuple):
    """Mean paired difference of two ways' errors after so many rows, and its 95 % interval."""

    shots: int
    mean: float
    low: float
    high: float


def gains(one: FewShotCurve, other: FewShotCurve) -> list[Gain]:
    """Errors of `one` minus those of `other`, by rows of a new task; below 0, `one` is better."""
    gap = one.minus(other)
    points = zip(gap.shots, gap.mean.tolist(), gap.half_width.tolist(), strict=True)
    return [Gain(k, mean, mean - half, mean + half) for k, mean, half in points]


def last_gain(one: FewShotCurve, other: FewShotCurve) -> Gain:
    """The difference after the most rows."""
    return gains(one, other)[-1]


def surely_better(one: FewShotCurve, other: FewShotCurve) -> bool:
    """Whether the whole interval of the difference is below 0, after the most rows."""
    return last_gain(one, other).high < 0.0


def decide(
    head: FewShotCurve, levels: FewShotCurve, alone: FewShotCurve, pooled: FewShotCurve
) -> str:
    """One of `VERDICTS`: sharing must surely be better than both simpler ways to be advised.

    Where it is not, or by less than a hundredth, the better of these two is advised, if a gain of
    a tenth of its error is out of the question; else there are too few tasks to tell. Errors that
    are 0 but for rounding decide nothing.
    """
    if len(head.errors) < FEWEST:
        return "cannot tell"
    simple = alone if alone.mean[-1] < pooled.mean[-1] else pooled
    least = max(WORTH * float(simple.mean[-1]), NOTHING * float(alone.mean[0]))
    matters = max(SMALL_GAIN * float(simple.mean[-1]), least)
    sharing = levels if surely_better(levels, head) else head
    gain = last_gain(sharing, simple)
    sure = surely_better(sharing, alone) and surely_better(sharing, pooled)
    if sure and -gain.mean >= least:
        return "share" if -gain.mean >= matters else "share a little"
    if -gain.low > matters:
        return "cannot tell"
    return "pool instead" if simple is pooled else "do not share"
