"""Every verdict, and that it turns when its curves are tampered with."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.claims import Claim, check_claims, check_gains
from headstart.experiments import EXPERIMENTS

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


def test_a_rising_curve_does_not_fall() -> None:
    losses = curves()
    statement = "the error of LTL falls with the number of tasks"
    losses["ltl-sgd-sgd"] = losses["ltl-sgd-sgd"][:, ::-1]
    assert verdicts(losses)[statement] == "fails"
    losses["ltl-sgd-sgd"] = np.full((10, 1001), 2.0)
    assert verdicts(losses)[statement] == "fails"


def test_what_was_not_run_is_open() -> None:
    losses = curves()
    del losses["ltl-sgd-sgd"], losses["mean-sgd"]
    assert set(verdicts(losses).values()) == {"open"}


def test_gains() -> None:
    assert check_gains("n", "s", {10.0: 3.0, 40.0: 2.0, 160.0: 1.0}).verdict == "holds"
    found = check_gains("n", "s", {160.0: 1.0, 40.0: 3.0, 10.0: 2.0})
    assert found == Claim(
        "synthetic-regression", "s",
        "ITL minus LTL: 2.00 at n 10, 3.00 at n 40, 1.00 at n 160", "fails",
    )  # fmt: skip
