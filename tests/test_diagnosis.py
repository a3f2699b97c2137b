"""The diagnosis: right where sharing helps, where it does not, and where pooling is enough."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headstart import diagnose
from headstart.diagnosis import VERDICTS, Diagnosis
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.spread import estimate_spread
from headstart.tasks import TaskSet

DRAWS = 10


def of(environment: RegressionEnvironment | ClassificationEnvironment, seed: int) -> Diagnosis:
    tasks = environment.draw(100, 16, np.random.default_rng(seed)).tasks
    return diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes))


@pytest.mark.parametrize(
    ("environment", "right"),
    [
        (RegressionEnvironment(10, center=0.0, task_std=2.0), {"do not share"}),
        (RegressionEnvironment(10, task_std=0.0), {"pool instead"}),
        (RegressionEnvironment(10), {"share", "share a little"}),
        (RegressionEnvironment(5, task_std=2.0), {"share"}),
        (ClassificationEnvironment(10, center=0.0, task_std=2.0), {"do not share"}),
        (ClassificationEnvironment(10, task_std=0.0), {"pool instead"}),
    ],
    ids=["unrelated", "identical", "related", "loosely", "unrelated-labels", "identical-labels"],
)
def test_verdicts(
    environment: RegressionEnvironment | ClassificationEnvironment, right: set[str]
) -> None:
    found = Counter(of(environment, seed).verdict for seed in range(DRAWS))
    assert sum(found[verdict] for verdict in right) >= DRAWS - 1, found


def test_what_is_told() -> None:
    found = of(RegressionEnvironment(10), 0)
    assert found.headstart.shots == (0, 1, 2, 4, 8)
    assert found.verdict in VERDICTS
    text = repr(found)
    assert "100 tasks, 1600 rows" in text
    assert f"verdict: {found.verdict}." in text
    for curve in found.curves.values():
        assert f"{curve.mean[-1]:.4g}" in text
    for other in (found.independent, found.pooled):
        gap = found.headstart.minus(other)
        for k, gain in enumerate(found.gains(other)):
            assert gain.shots == gap.shots[k]
            assert gain.high - gain.mean == pytest.approx(gap.half_width[k])
            assert f"{gain.mean:+9.3g}   {gain.low:+.3g} to {gain.high:+.3g}" in text
    assert found.bounds["oracle"] < found.bounds["learned"]
    ax = found.plot()
    assert ax.get_title() == f"verdict: {found.verdict}"
    assert len(ax.get_lines()) == 3


def test_progress_ends_at_one() -> None:
    tasks = RegressionEnvironment(3).draw(30, 12, np.random.default_rng(0)).tasks
    told: list[float] = []
    diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes), callback=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def spread_of(seed: int, noise: float = 2.0) -> tuple[float, float, TaskSet]:
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 6, 4)), rng.normal(2.0, 0.5, (60, 4))
    y = np.einsum("tnd,td->tn", X, w) + noise * rng.normal(size=(60, 6))
    tasks = TaskSet.from_list(list(zip(X, y, strict=True)))
    found = estimate_spread(tasks)
    return found.var_m**2, found.var_0**2, tasks


def test_spread_is_estimated_without_the_noise_of_fitted_weights() -> None:
    draws = np.array([spread_of(seed)[:2] for seed in range(300)])
    truth = np.array([4 * 0.25 / 2.0, 4 * (0.25 + 4.0) / 2.0])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - truth) < 4.0 * error + 0.02)
    plug_in = []
    for seed in range(20):
        fits = np.array([np.linalg.lstsq(X, y, rcond=None)[0] for X, y in spread_of(seed)[2]])
        plug_in.append(np.sum(fits.var(axis=0, ddof=1)) / 2.0)
    assert np.mean(plug_in) > 3.0 * truth[0]  # what it would be otherwise


def test_too_little_data_is_said() -> None:
    X, y = np.ones((4, 1)), np.arange(4.0)
    with pytest.raises(ValueError, match="shots: 0 tasks have more than 8 rows"):
        diagnose(X, y, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="groups: expected an id for every row"):
        diagnose(X, y)
