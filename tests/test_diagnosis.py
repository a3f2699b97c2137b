"""The diagnosis: right where sharing helps, where it does not, and where pooling is enough."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import HuberRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart import (
    FewShotCurve,
    MetaRegressor,
    biased_erm,
    diagnose,
    few_shot_curve,
    theory,
)
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.evaluation.diagnosis import REASONS, VERDICTS, Diagnosis, decide
from headstart.evaluation.page import write_diagnosis
from headstart.evaluation.task_variance import TaskVariance, estimate_task_variance
from headstart.tasks import TaskSet

Array = NDArray[np.float64]

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
        (RegressionEnvironment(5, task_std=2.0), {"share", "share a little"}),
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


def test_findings_in_words() -> None:
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


def parts() -> tuple[Diagnosis, TaskSet, int]:
    """A diagnosis of few tasks, the tasks, and the seed by which they were dealt into folds."""
    tasks = RegressionEnvironment(3).draw(12, 6, np.random.default_rng(5)).tasks
    found = diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes), shots=2, folds=3)
    return found, tasks, int(np.random.default_rng(0).integers(2**32))


def test_headstart_and_pooled_are_those_of_few_shot_curves() -> None:
    found, tasks, seed = parts()
    rows = (tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes))
    options: dict[str, Any] = {"shots": [0, 1, 2], "folds": 3, "random_state": seed}
    ahead = few_shot_curve(MetaRegressor(), *rows, **options)
    np.testing.assert_array_equal(found.headstart.errors, ahead.errors)
    linear = make_pipeline(StandardScaler(), HuberRegressor(max_iter=1000))
    pooled = few_shot_curve(linear, *rows, how="pooled", **options)
    np.testing.assert_array_equal(found.pooled.errors, pooled.errors)


def test_alone_is_the_best_exact_solution_from_zero() -> None:
    """A naive transcription, a task at a time; what is best is found on the other tasks."""
    found, tasks, seed = parts()

    def predict(task: Any, k: int, reg: float, constant: float, middle: float) -> NDArray[Any]:
        X, y = task
        wide = np.column_stack([X, np.full(len(X), constant)])
        w = biased_erm(wide[:k], y[:k] - middle, np.zeros(4), reg, "squared").weights
        return wide @ w + middle

    for part in np.array_split(np.random.default_rng(seed).permutation(12), 3):
        known = [tasks[t] for t in range(12) if t not in part]
        X, y = (np.concatenate(columns) for columns in zip(*known, strict=True))
        middle, square, size = y.mean(), np.mean(np.sum(X**2, axis=1)), np.sqrt(np.mean(X**2))
        for column, k in ((1, 1), (2, 2)):
            candidates = [
                (reg * square / k, constant * size)
                for constant in (10.0, 0.1)
                for reg in np.geomspace(1e-3, 1e2, 11)
            ]
            losses = [
                np.mean([np.mean((predict(t, k, *c, middle)[k:] - t[1][k:]) ** 2) for t in known])
                for c in candidates
            ]
            best = candidates[int(np.argmin(losses))]
            for t in part:
                z = predict(tasks[t], k, *best, middle)
                expected = np.abs(z[2:] - tasks[t][1][2:]).mean()
                assert found.independent.errors[t, column] == pytest.approx(expected, rel=1e-5)
        for t in part:
            expected = np.abs(middle - tasks[t][1][2:]).mean()
            assert found.independent.errors[t, 0] == pytest.approx(expected)


def test_bounds_have_the_estimates_put_in() -> None:
    found, tasks, _ = parts()
    radius, s = float(np.sqrt(np.max(np.sum(tasks.X**2, axis=1)))), found.spread
    assert s == estimate_task_variance(tasks)
    expected = {
        "alone": theory.fixed_bias(2, s.var_0, radius=radius).bound,
        "learned": theory.learned_bias(2, 12, s.var_m, s.distance, radius=radius).bound,
        "oracle": theory.fixed_bias(2, s.var_m, radius=radius).bound,
    }
    assert found.bounds == pytest.approx(expected)


def test_the_page_has_verdict_findings_and_a_safe_title(tmp_path: Path) -> None:
    found, _, _ = parts()
    write_diagnosis(tmp_path / "page.html", found, "a<b>.csv: y by user")
    page = (tmp_path / "page.html").read_text()
    assert page.count("a&lt;b&gt;.csv: y by user") == 2  # as title and as heading
    assert "<b>" not in page
    assert f"<strong>verdict: {found.verdict}. {REASONS[found.verdict]}</strong>" in page
    (findings,) = re.findall("<pre>(.*)</pre>", page, flags=re.DOTALL)
    assert html.unescape(findings).splitlines() == found.lines[:-1]


def test_progress_ends_at_one() -> None:
    tasks = RegressionEnvironment(3).draw(30, 12, np.random.default_rng(0)).tasks
    done: list[float] = []
    diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes), callback=done.append)
    assert done == pytest.approx([1 / 3, 2 / 3, 1.0])


def variances_of(seed: int, noise: float = 2.0) -> tuple[float, float, TaskSet]:
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 6, 4)), rng.normal(2.0, 0.5, (60, 4))
    y = np.einsum("tnd,td->tn", X, w) + noise * rng.normal(size=(60, 6))
    tasks = TaskSet.from_list(list(zip(X, y, strict=True)))
    found = estimate_task_variance(tasks)
    return found.var_m**2, found.var_0**2, tasks


def test_variance_is_estimated_without_the_noise_of_fitted_weights() -> None:
    draws = np.array([variances_of(seed)[:2] for seed in range(300)])
    truth = np.array([4 * 0.25 / 2.0, 4 * (0.25 + 4.0) / 2.0])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - truth) < 4.0 * error + 0.02)
    plug_in = []
    for seed in range(20):
        fits = np.array([np.linalg.lstsq(X, y, rcond=None)[0] for X, y in variances_of(seed)[2]])
        plug_in.append(np.sum(fits.var(axis=0, ddof=1)) / 2.0)
    assert np.mean(plug_in) > 3.0 * truth[0]  # what it would be otherwise


def left_out(U: NDArray[Any], estimate: Callable[[NDArray[Any]], float]) -> bool:
    """Whether an estimate from the rows' u, of shape (8 tasks, 4, 2), is surely above 0."""
    without = np.array([estimate(np.delete(U, t, axis=0)) for t in range(8)])
    error = np.sqrt(7.0 / 8.0 * np.sum((without - without.mean()) ** 2))
    return bool(estimate(U) > 2.364624251592785 * error)  # Student's t with 7 degrees of freedom


def between(U: NDArray[Any]) -> float:
    """Mean product of the means of two different tasks."""
    products = U.mean(axis=1) @ U.mean(axis=1).T
    return float(products[~np.eye(len(U), dtype=bool)].mean())


def half_variance(U: NDArray[Any]) -> float:
    """Half the mean product of two rows of a task, less that of two tasks."""
    products = np.einsum("tid,tjd->tij", U, U)[:, ~np.eye(4, dtype=bool)]
    return float((products.mean() - between(U)) / 2.0)


def test_intervals_are_the_jackknifes() -> None:
    rng = np.random.default_rng(0)
    outcomes = []
    for size in np.linspace(0.0, 1.0, 60):
        X, w = rng.normal(size=(8, 4, 2)), rng.normal(size, 1.0 - size, (8, 2))
        y = np.einsum("tnd,td->tn", X, w) + 0.3 * rng.normal(size=(8, 4))
        tasks = TaskSet.from_list(list(zip(X, y, strict=True)))
        inverse = np.linalg.inv(tasks.X.T @ tasks.X / 32.0)
        w0 = np.linalg.lstsq(tasks.X, tasks.y, rcond=None)[0]
        apart = left_out((X * (y - X @ w0)[:, :, None]) @ inverse, half_variance)
        common = left_out((X * (y - np.median(y))[:, :, None]) @ inverse, between)
        found = estimate_task_variance(tasks)
        assert (found.surely_apart, found.surely_common) == (apart, common)
        outcomes.append((apart, common))
    assert np.all(np.mean(outcomes, axis=0) > 0.1)
    assert np.all(np.mean(outcomes, axis=0) < 0.9)


APART = TaskVariance(1.0, 1.0, 1.0, surely_apart=True, surely_common=True)
ALIKE = TaskVariance(1.0, 0.0, 1.0, surely_apart=False, surely_common=True)
NOTHING = TaskVariance(1.0, 0.0, 0.0, surely_apart=False, surely_common=False)


@pytest.mark.parametrize(
    ("head", "alone", "pooled", "variance", "verdict"),
    [
        (0.89, 1.0, 1.2, APART, "share"),
        (0.91, 1.0, 1.2, APART, "share a little"),  # by less than a tenth of alone
        (0.91, 1.2, 1.0, APART, "share a little"),  # or of pooled
        (0.89, 1.2, 1.0, APART, "share"),
        (0.89, 1.2, 0.8, APART, "pool instead"),  # pooling does surely better
        (0.89, 1.2, 1.0, ALIKE, "pool instead"),
        (1.0, 1.0, 0.9, ALIKE, "pool instead"),
        (1.0, 1.0, 0.9, APART, "do not share"),
        (1.0, 1.0, 1.1, NOTHING, "do not share"),
        (1.1, 1.0, 1.2, APART, "do not share"),
    ],
)
def test_the_verdict_follows_from_curves_and_variance(
    head: float, alone: float, pooled: float, variance: TaskVariance, verdict: str
) -> None:
    assert decide(curve(head), curve(alone), curve(pooled), variance) == verdict


def curve(level: float, noise: float = 0.0) -> FewShotCurve:
    """Errors of four tasks around a level, after no rows and after eight."""
    last = level + noise * np.array([1.0, -1.0, 1.0, -1.0])
    return FewShotCurve((0, 8), np.column_stack([last, last]), np.arange(4))


def test_what_is_likely_but_not_sure_is_shared_a_little() -> None:
    noisy = curve(0.95, noise=0.2)
    assert decide(noisy, curve(1.0), curve(1.0), APART) == "share a little"
    assert decide(noisy, curve(1.0), curve(0.9, noise=0.1), APART) == "do not share"
    assert decide(noisy, curve(1.0), curve(1.0), NOTHING) == "do not share"
    learned = FewShotCurve((0, 8), np.tile([2.0, 0.5], (4, 1)), np.arange(4))
    assert decide(learned, curve(1.0), curve(1.0), ALIKE) == "share"  # rows surely help


def test_too_little_data_is_said() -> None:
    X, y = np.ones((4, 1)), np.arange(4.0)
    with pytest.raises(ValueError, match="shots: 0 tasks have more than 8 rows"):
        diagnose(X, y, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="groups: expected an id for every row"):
        diagnose(X, y)
