"""Moments of the environments, each within five standard errors of what is promised."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from headstart import theory
from headstart.environments import (
    ClassificationEnvironment,
    Environment,
    Mixture,
    RegressionEnvironment,
)

BOTH = [RegressionEnvironment(), ClassificationEnvironment()]


@pytest.mark.parametrize("environment", BOTH)
def test_weights_have_the_stated_mean_and_spread(environment: Environment) -> None:
    weights = environment.draw(2000, 1, random_state=0).weights
    error = 5.0 * float(environment.stds[0]) / math.sqrt(weights.size)
    assert abs(weights.mean() - 4.0) < error
    assert abs(weights.std() - 1.0) < error
    assert np.all(np.abs(weights.mean(axis=0) - environment.mean) < 5.0 / math.sqrt(2000))
    for h in (environment.mean, np.zeros(30), np.linspace(0.0, 9.0, 30)):
        estimate = theory.var_h(weights, h)
        assert estimate == pytest.approx(environment.var_h(h), rel=0.02)


@pytest.mark.parametrize("environment", BOTH)
def test_inputs_are_on_the_sphere_and_uniform(environment: Environment) -> None:
    X = environment.draw(500, 20, random_state=1).tasks.X
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    if isinstance(environment, RegressionEnvironment):
        covariance = X.T @ X / len(X)
        assert np.abs(covariance - np.eye(30) / 30).max() < 5.0 / 30.0 / math.sqrt(len(X)) * 2.0
        assert np.abs(X.mean(axis=0)).max() < 5.0 / math.sqrt(30.0 * len(X))


@pytest.mark.parametrize("snr", [1.0, 10.0])
def test_signal_to_noise_ratio_is_of_variances(snr: float) -> None:
    tasks, weights = RegressionEnvironment(snr=snr).draw(400, 100, random_state=2)
    ratios = []
    for (X, y), w in zip(tasks, weights, strict=True):
        signal = X @ w
        ratios.append(np.mean((y - signal) ** 2) / signal.var())
    # a mean of 400 chi-square variables with 100 degrees of freedom, over 100
    assert np.mean(ratios) * snr == pytest.approx(1.0, abs=5.0 * math.sqrt(2.0 / 100.0 / 400.0))


def test_margins_and_labels_of_the_published_figures() -> None:
    tasks, weights = ClassificationEnvironment().draw(300, 100, random_state=3)
    owner = np.repeat(np.arange(300), 100)
    signal = np.einsum("id,id->i", tasks.X, weights[owner])
    assert np.abs(signal).min() >= 0.5
    assert set(np.unique(tasks.y)) == {-1.0, 1.0}
    flipped = np.mean(tasks.y != np.sign(signal))
    expected = np.mean(1.0 / (1.0 + np.exp(10.0 * np.abs(signal))))
    assert abs(flipped - expected) < 5.0 * math.sqrt(expected / len(signal))
    assert abs(np.mean(tasks.y > 0) - 0.5) < 0.03


def test_printed_label_model() -> None:  # erratum E7
    tasks, _ = ClassificationEnvironment(label_model="printed").draw(300, 100, random_state=4)
    assert np.mean(tasks.y > 0) == pytest.approx(0.33, abs=0.02)


def test_oracle_of_the_method_mean() -> None:  # erratum E8
    assert np.all(RegressionEnvironment().oracle_bias == 4.0)
    assert np.all(ClassificationEnvironment().oracle_bias == 8.0)
    assert np.all(ClassificationEnvironment(oracle_scale=1.0).oracle_bias == 4.0)


@pytest.mark.parametrize("environment", BOTH)
def test_a_seed_is_a_draw(environment: Environment) -> None:
    a, b, c = (environment.draw(5, [1, 2, 3, 4, 5], seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.tasks.X, b.tasks.X)
    np.testing.assert_array_equal(a.tasks.y, b.tasks.y)
    assert np.any(a.tasks.X != c.tasks.X)
    assert a.tasks.sizes.tolist() == [1, 2, 3, 4, 5]


def test_directions_of_their_own() -> None:
    environment = RegressionEnvironment(3, center=(1.0, -2.0, 0.0), task_std=(0.5, 0.0, 2.0))
    weights = environment.draw(4000, 1, random_state=0).weights
    error = 5.0 * environment.stds / math.sqrt(4000)
    assert np.all(np.abs(weights.mean(axis=0) - [1.0, -2.0, 0.0]) <= error)
    assert np.all(np.abs(weights.std(axis=0) - [0.5, 0.0, 2.0]) <= error)
    assert environment.var_h([1.0, -2.0, 3.0]) ** 2 == pytest.approx(0.5 * (0.25 + 4.0 + 9.0))
    same = RegressionEnvironment(
        3, center=tuple(np.array([1.0, -2.0, 0.0])), task_std=(0.5, 0.0, 2.0)
    )
    assert (same, hash(same), repr(same)) == (environment, hash(environment), repr(environment))


def test_tasks_with_given_weights() -> None:
    weights = np.array([[1.0, 2.0], [-3.0, 0.5]])
    tasks = RegressionEnvironment(2, snr=1e12).tasks(weights, [3, 4], random_state=0)
    for (X, y), w in zip(tasks, weights, strict=True):
        np.testing.assert_allclose(y, X @ w, atol=1e-4)
    assert tasks.sizes.tolist() == [3, 4]


ENDS = tuple(RegressionEnvironment(2, center=c, task_std=s) for c, s in ((-4.0, 0.0), (4.0, 0.0)))


def test_clusters_come_with_what_tells_them_apart() -> None:
    near, far = (RegressionEnvironment(2, center=c, task_std=0.1) for c in (0.0, (5.0, -5.0)))
    mixture = Mixture((near, far))
    _, weights, side = mixture.draw(1000, 2, random_state=0)
    assert side.shape == (1000, 2)
    np.testing.assert_array_equal(side.sum(axis=1), 1.0)
    assert abs(side[:, 1].mean() - 0.5) < 5.0 * 0.5 / math.sqrt(1000)
    off = weights - np.where(side[:, 1:] == 1.0, far.mean, near.mean)
    assert abs(off.std() - 0.1) < 5.0 * 0.1 / math.sqrt(off.size)
    np.testing.assert_array_equal(mixture.oracle_bias, [2.5, -2.5])
    # what is random: the same tasks for the same seed
    np.testing.assert_array_equal(weights, mixture.draw(1000, 2, random_state=0).weights)


def test_sequences_that_no_chance_made() -> None:
    alternate = Mixture(ENDS, "alternate").draw(5, 1, random_state=0)
    np.testing.assert_array_equal(alternate.weights[:, 0], [-4.0, 4.0, -4.0, 4.0, -4.0])
    drift = Mixture(ENDS, "drift").draw(5, 1, random_state=0)
    np.testing.assert_allclose(drift.weights[:, 0], [-4.0, -2.0, 0.0, 2.0, 4.0])
    np.testing.assert_allclose(drift.side[1], [0.75, 0.25])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RegressionEnvironment(n_features=0), "n_features: expected an integer >= 1"),
        (lambda: RegressionEnvironment(task_std=-1.0), "task_std: expected a finite number >= 0"),
        (lambda: RegressionEnvironment(snr=0.0), "snr: expected a finite number > 0"),
        (lambda: ClassificationEnvironment(label_model="x"), "label_model: expected one of 'steep"),
        (lambda: ClassificationEnvironment(center=0.0, task_std=0.0).draw(1, 5, 0), "margin: 0.5"),
        (lambda: RegressionEnvironment().draw(2, [1, 0]), "n_rows: expected an integer >= 1, or 2"),
        (lambda: RegressionEnvironment().draw(2, 1.5), "n_rows: expected an integer >= 1, or 2"),
        (lambda: RegressionEnvironment(3, center=(1.0, 2.0)), "center: expected length 3, found 2"),
        (lambda: RegressionEnvironment(2, task_std=(1.0, -1.0)), "task_std: expected a finite num"),
        (lambda: RegressionEnvironment(2).tasks([[1.0]], 3), r"weights: expected shape \(tasks, 2"),
        (lambda: Mixture(ENDS, "sideways"), "sequence: expected one of 'random'"),
        (lambda: Mixture((ENDS[0], RegressionEnvironment(3))), "parts: expected environments of"),
        (lambda: Mixture((ENDS[0], ClassificationEnvironment(2))), "parts: expected environments"),
        (lambda: RegressionEnvironment().var_h([0.0]), "bias: expected length 30, found 1"),
    ],
)
def test_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
