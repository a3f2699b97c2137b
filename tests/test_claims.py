"""Every verdict, and that it turns when its curves are tampered with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.experiments import EXPERIMENTS
from headstart.experiments.claims import Claim, check_claims, check_gains

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


def verdicts(losses: Losses, name: str = "synthetic-regression") -> dict[str, str]:
    return {c.statement: c.verdict for c in check_claims(EXPERIMENTS[name], losses)}


def test_all_hold_on_curves_like_the_papers() -> None:
    found = verdicts(curves())
    assert len(found) == 5
    assert set(found.values()) == {"holds"}
    assert len(verdicts(curves(), "lenk-regression")) == 4  # no MEAN there


@pytest.mark.parametrize(
    ("statement", "method", "factor"),
    [
        ("LTL is far below ITL", "itl-sgd", 0.4),
        ("SGD-SGD is close to ERM-SGD", "ltl-erm-sgd", 1.1),
        ("ERM-ERM is lowest, by little", "ltl-erm-erm", 1.05),
        ("ERM-ERM is lowest, by little", "ltl-erm-erm", 0.7),
        ("LTL is close to MEAN for many tasks", "mean-sgd", 0.9),
    ],
)
def test_tampering_turns_the_verdict(statement: str, method: str, factor: float) -> None:
    losses = curves()
    losses[method] = losses[method] * factor
    assert verdicts(losses)[statement] == "fails"


def constant(first: str, a: float, second: str, b: float, apart: float = 0.0) -> Losses:
    """Two runs of two methods; their difference is `apart` more in one run, and less in the other.

    The standard error of the difference is `apart` then.
    """
    shift = np.array([[apart], [-apart]])
    return {first: np.full((2, 1001), a) + shift, second: np.full((2, 1001), b)}


@pytest.mark.parametrize(
    ("statement", "losses", "verdict"),
    [
        ("LTL is far below ITL", constant("ltl-sgd-sgd", 0.849, "itl-sgd", 1.0), "holds"),
        ("LTL is far below ITL", constant("ltl-sgd-sgd", 0.851, "itl-sgd", 1.0), "fails"),
        (
            "SGD-SGD is close to ERM-SGD",
            constant("ltl-sgd-sgd", 2.0, "ltl-erm-sgd", 1.901),
            "holds",
        ),
        (
            "SGD-SGD is close to ERM-SGD",
            constant("ltl-sgd-sgd", 2.0, "ltl-erm-sgd", 1.899),
            "fails",
        ),
        (
            "ERM-ERM is lowest, by little",
            constant("ltl-erm-erm", 0.801, "ltl-sgd-sgd", 1.0),
            "holds",
        ),
        (
            "ERM-ERM is lowest, by little",
            constant("ltl-erm-erm", 0.799, "ltl-sgd-sgd", 1.0),
            "fails",
        ),
        (
            "ERM-ERM is lowest, by little",
            constant("ltl-erm-erm", 1.0195, "ltl-sgd-sgd", 1.0, apart=0.01),
            "holds",
        ),
        (
            "ERM-ERM is lowest, by little",
            constant("ltl-erm-erm", 1.0205, "ltl-sgd-sgd", 1.0, apart=0.01),
            "fails",
        ),
        (
            "LTL is close to MEAN for many tasks",
            constant("ltl-sgd-sgd", 2.099, "mean-sgd", 2.0),
            "holds",
        ),
        (
            "LTL is close to MEAN for many tasks",
            constant("ltl-sgd-sgd", 2.101, "mean-sgd", 2.0),
            "fails",
        ),
    ],
)
def test_verdicts_turn_at_their_thresholds(statement: str, losses: Losses, verdict: str) -> None:
    assert verdicts(losses)[statement] == verdict


def test_few_tasks_are_not_many() -> None:
    statement = "LTL is close to MEAN for many tasks"
    for n_tasks, verdict in ((499, "open"), (500, "holds")):
        experiment = replace(EXPERIMENTS["synthetic-regression"], n_tasks=n_tasks)
        found = {c.statement: c.verdict for c in check_claims(experiment, curves())}
        assert found[statement] == verdict


def test_the_error_is_that_of_the_difference_of_the_runs() -> None:
    losses = constant("ltl-sgd-sgd", 1.0, "itl-sgd", 2.0, apart=0.25)
    claim = check_claims(EXPERIMENTS["lenk-regression"], losses)[0]
    assert claim.numbers == "ltl-sgd-sgd 1.000, itl-sgd 2.000, difference ± 0.250"


def test_a_rising_curve_does_not_fall() -> None:
    losses = curves()
    statement = "the error of LTL falls with the number of tasks"
    losses["ltl-sgd-sgd"] = losses["ltl-sgd-sgd"][:, ::-1]
    assert verdicts(losses)[statement] == "fails"
    losses["ltl-sgd-sgd"] = np.full((10, 1001), 2.0)
    assert verdicts(losses)[statement] == "fails"
    for height, verdict in ((2.09, "holds"), (2.11, "fails")):  # a twentieth more is no rise
        losses["ltl-sgd-sgd"] = np.array([[4.0, 2.0, height, 1.5, 1.0]])
        assert verdicts(losses)[statement] == verdict


def test_what_was_not_run_is_open() -> None:
    losses = curves()
    del losses["ltl-sgd-sgd"], losses["mean-sgd"]
    assert set(verdicts(losses).values()) == {"open"}


def test_gains() -> None:
    assert check_gains("n", "s", {10.0: 3.0, 40.0: 2.0, 160.0: 1.0}).verdict == "holds"
    assert check_gains("n", "s", {10.0: 3.0, 40.0: 3.0, 160.0: 1.0}).verdict == "fails"  # a tie
    found = check_gains("n", "s", {160.0: 1.0, 40.0: 3.0, 10.0: 2.0})
    assert found == Claim(
        "synthetic-regression", "s",
        "ITL minus LTL: 2.00 at n 10, 3.00 at n 40, 1.00 at n 160", "fails",
    )  # fmt: skip
