"""Moments of the environments, each within five standard errors of what is promised."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from headstart import theory
from headstart.environments import ClassificationEnvironment, Environment, RegressionEnvironment

BOTH = [RegressionEnvironment(), ClassificationEnvironment()]


@pytest.mark.parametrize("environment", BOTH)
def test_weights_have_the_stated_mean_and_spread(environment: Environment) -> None:
    weights = environment.draw(2000, 1, random_state=0).weights
    error = 5.0 * environment.task_std / math.sqrt(weights.size)
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
        (lambda: RegressionEnvironment().var_h([0.0]), "bias: expected length 30, found 1"),
    ],
)
def test_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
