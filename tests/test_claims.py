"""Every verdict, and that it turns when its curves are tampered with."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.experiments import EXPERIMENTS
from headstart.experiments.claims import (
    VERDICTS,
    Claim,
    Interval,
    Range,
    check_claims,
    check_gains,
)

Losses = dict[str, NDArray[np.float64]]


def curves() -> Losses:
    """Ten runs shaped like the paper's regression."""
    rng, t = np.random.default_rng(0), np.arange(1001)
    falling = 1.3 + 2.0 * np.exp(-t / 40.0)
    level = {
        "itl-sgd": np.full(1001, 3.3), "mean-sgd": np.full(1001, 1.29), "ltl-sgd-sgd": falling,
        "ltl-erm-sgd": falling * 1.01, "ltl-erm-erm": falling * 0.98,
    }  # fmt: skip
    return {m: v + 0.003 * rng.standard_normal((10, 1)) for m, v in level.items()}


def claims(losses: Losses, name: str = "synthetic-regression") -> dict[str, Claim]:
    return {c.statement: c for c in check_claims(EXPERIMENTS[name], losses)}


def verdicts(losses: Losses, name: str = "synthetic-regression") -> dict[str, str]:
    return {statement: c.verdict for statement, c in claims(losses, name).items()}


LOWEST = "ERM-ERM is lowest, by little"
MATCHES = "LTL almost matches MEAN for many tasks"
FALLS = "the error of LTL falls with the number of tasks"


def test_all_hold_on_curves_like_the_papers() -> None:
    found = verdicts(curves())
    assert len(found) == 5
    assert set(found.values()) == {"holds"}
    assert len(verdicts(curves(), "lenk-regression")) == 4  # no MEAN there
    assert MATCHES in verdicts(curves(), "synthetic-classification")


@pytest.mark.parametrize(
    ("statement", "method", "factor"),
    [
        ("LTL is far below ITL", "itl-sgd", 0.4),
        ("SGD-SGD is close to ERM-SGD", "ltl-erm-sgd", 1.1),
        (LOWEST, "ltl-erm-erm", 1.05),
        (LOWEST, "ltl-erm-erm", 0.7),
        (MATCHES, "mean-sgd", 0.9),
    ],
)
def test_tampering_turns_the_verdict(statement: str, method: str, factor: float) -> None:
    losses = curves()
    losses[method] = losses[method] * factor
    assert verdicts(losses)[statement] == "fails"


def constant(first: str, a: float, second: str, b: float, apart: float = 1e-6) -> Losses:
    """Four runs of two methods, whose difference has the standard error `apart`."""
    shift = apart * math.sqrt(3.0) * np.array([[1.0], [1.0], [-1.0], [-1.0]])
    return {first: np.full((4, 1001), a) + shift, second: np.full((4, 1001), b)}


REACH = float(stats.t.ppf(0.975, 3))  # of the interval of four runs, in standard errors


@pytest.mark.parametrize(
    ("statement", "first", "second", "turns", "side"),
    [
        ("LTL is far below ITL", "ltl-sgd-sgd", "itl-sgd", 0.85, 1),
        (LOWEST, "ltl-erm-erm", "ltl-sgd-sgd", 0.8, -1),
        (LOWEST, "ltl-erm-erm", "ltl-sgd-sgd", 1.0, 1),
        (MATCHES, "ltl-sgd-sgd", "mean-sgd", 1.05, 1),
        ("SGD-SGD is close to ERM-SGD", "ltl-sgd-sgd", "ltl-erm-sgd", 0.95, -1),
    ],
)
def test_verdicts_turn_at_their_thresholds(
    statement: str, first: str, second: str, turns: float, side: int
) -> None:
    """The whole interval within the threshold, a part of it, none of it."""
    error = 0.002
    for place, verdict in (
        (-1.05, "holds"),
        (-0.95, "unclear"),
        (0.95, "unclear"),
        (1.05, "fails"),
    ):
        value = turns + side * place * REACH * error
        assert verdicts(constant(first, value, second, 1.0, error))[statement] == verdict


def test_ltl_may_pass_mean() -> None:
    losses = constant("ltl-sgd-sgd", 0.098, "mean-sgd", 0.102)
    assert verdicts(losses, "synthetic-classification")[MATCHES] == "holds"


def test_lowest_is_against_the_better_of_two_and_says_what_it_is() -> None:
    """0.124 against 0.123 is not lowest."""
    losses = constant("ltl-erm-erm", 0.124, "ltl-sgd-sgd", 0.123, 0.001)
    claim = claims(losses)[LOWEST]
    assert claim.verdict == "unclear"
    assert "0.124 against ltl-sgd-sgd 0.123" in claim.numbers
    assert claim.numbers.endswith(": not lowest, within error")
    losses["ltl-erm-sgd"] = np.full((4, 1001), 0.110)
    claim = claims(losses)[LOWEST]
    assert claim.verdict == "fails"
    assert "against ltl-erm-sgd 0.110" in claim.numbers
    assert claim.numbers.endswith(": not lowest")
    assert claims(constant("ltl-erm-erm", 0.12, "ltl-sgd-sgd", 0.123))[LOWEST].numbers.endswith(
        ": lowest"
    )


def test_one_run_is_unclear_and_has_no_error() -> None:
    losses = {m: runs[:1] for m, runs in curves().items()}
    found = claims(losses)
    assert {c.verdict for c in found.values()} == {"unclear"}
    assert "(one run)" in found["LTL is far below ITL"].numbers
    assert not any("±" in c.numbers or "nan" in c.numbers for c in found.values())


def test_few_tasks_are_not_many() -> None:
    for n_tasks, verdict in ((499, "open"), (500, "holds")):
        experiment = replace(EXPERIMENTS["synthetic-regression"], n_tasks=n_tasks)
        found = {c.statement: c.verdict for c in check_claims(experiment, curves())}
        assert found[MATCHES] == verdict


def test_the_interval_is_that_of_the_differences_of_the_runs() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    found = Interval.of(values)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high))
    assert str(found) == f"{4.0:+.3f} ({low:+.3f} to {high:+.3f})"
    losses = constant("ltl-sgd-sgd", 1.0, "itl-sgd", 2.0, 0.1)
    losses["itl-sgd"] = losses["ltl-sgd-sgd"] + 1.0  # runs differ, their differences do not
    claim = check_claims(EXPERIMENTS["lenk-regression"], losses)[0]
    assert claim.numbers.endswith("difference -1.000 (-1.000 to -1.000)")


def test_judging() -> None:
    around = Interval(0.0, 1.0)
    assert around.judge(Range(-1.0, 1.0)) == "holds"
    assert around.judge(Range(-0.5, 2.0)) == "unclear"
    assert around.judge(Range(1.5, 2.0)) == "fails"
    assert around.judge(Range(-3.0, -1.5)) == "fails"
    assert Interval(0.0, math.nan).judge(Range(-1.0, 1.0)) == "unclear"


def test_a_rising_curve_does_not_fall() -> None:
    losses = curves()
    losses["ltl-sgd-sgd"] = losses["ltl-sgd-sgd"][:, ::-1]
    assert verdicts(losses)[FALLS] == "fails"
    losses["ltl-sgd-sgd"] = np.full((10, 1001), 2.0)
    assert verdicts(losses)[FALLS] == "fails"  # it does not rise, nor does it fall
    noise = 1e-6 * np.array([[1.0], [-1.0], [1.0], [-1.0]])
    for height, verdict in ((2.09, "holds"), (2.11, "fails")):  # a twentieth more is no rise
        bumpy = {"ltl-sgd-sgd": np.array([4.0, 2.0, height, 1.5, 1.0]) + noise * np.arange(5)}
        assert verdicts(bumpy)[FALLS] == verdict


def test_what_was_not_run_is_open() -> None:
    losses = curves()
    del losses["ltl-sgd-sgd"], losses["mean-sgd"]
    assert set(verdicts(losses).values()) == {"open"}


def test_gains() -> None:
    runs = 5.0 * np.arange(4.0)  # what all have in common goes out of the differences
    noise = 0.01 * np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])

    def gains(*levels: float) -> dict[float, NDArray[np.float64]]:
        return {k: v + runs + e for k, v, e in zip((160.0, 40.0, 10.0), levels, noise, strict=True)}

    assert check_gains("n", "s", gains(1.0, 2.0, 3.0)).verdict == "holds"
    assert check_gains("n", "s", gains(1.0, 3.0, 2.0)).verdict == "fails"
    assert check_gains("n", "s", gains(1.0, 3.0, 3.0)).verdict == "unclear"
    one = check_gains("n", "s", {10.0: np.array([2.0]), 40.0: np.array([1.0])})
    assert (one.verdict, one.numbers) == ("unclear", "ITL minus LTL: 2.00 at n 10, 1.00 at n 40")


def test_every_verdict_is_explained() -> None:
    assert list(VERDICTS) == ["holds", "fails", "unclear", "open"]
