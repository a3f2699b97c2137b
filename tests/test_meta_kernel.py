"""Algorithms 1 and 2 in a kernel's space: against the same with features written out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from strategies import LIPSCHITZ

from headstart import TaskSet, biased_sgd, get_loss, learn_bias, learn_kernel_bias
from headstart._core.checks import FloatArray

RBF = partial(rbf_kernel, gamma=0.5)
THREE: Any = 3
ONE_TABLE: Any = lambda table: table @ table.T  # noqa: E731


def curves(T: int = 20, seed: int = 0) -> TaskSet:
    """One curve at many levels, seen at a few points each."""
    rng, pairs = np.random.default_rng(seed), []
    for n in rng.integers(1, 9, T):
        X = rng.uniform(-3.0, 3.0, (n, 1))
        pairs.append((X, np.sin(X[:, 0]) + rng.normal()))
    return TaskSet.from_list(pairs)


@settings(max_examples=20)
@given(st.sampled_from(LIPSCHITZ), st.integers(0, 2**32 - 1))
def test_the_linear_kernel_gives_algorithms_1_and_2(name: str, seed: int) -> None:
    rng, loss = np.random.default_rng(seed), get_loss(name)
    X, new = rng.normal(size=(31, 3)), rng.normal(size=(5, 3))
    y = np.where(rng.random(31) < 0.5, 1.0, -1.0) if loss.binary else rng.normal(size=31)
    tasks = TaskSet.from_arrays(X[:24], y[:24], rng.integers(0, 6, 24))
    bias = learn_bias(tasks, 0.3, 0.2, loss).bias
    found = learn_kernel_bias(tasks, "linear", 0.3, 0.2, loss)
    np.testing.assert_allclose(found.predict(new), new @ bias, atol=1e-12)
    weights = biased_sgd(X[24:], y[24:], bias, 0.3, loss).average
    adapted = found.adapt(X[24:], y[24:])
    np.testing.assert_allclose(adapted.predict(new), new @ weights, atol=1e-12)


def by_features(
    map_rows: Callable[[FloatArray], FloatArray], tasks: TaskSet, new: FloatArray
) -> FloatArray:
    """Scores of the bias, and of a task that has adapted from it, with features written out."""
    pairs = [(map_rows(X), y) for X, y in tasks]
    bias = learn_bias(pairs, 0.1, 0.3, "huber").bias
    weights = biased_sgd(*pairs[3], bias, 0.1, "huber").average
    return np.concatenate([map_rows(new) @ bias, map_rows(new) @ weights])


def test_all_rows_as_features_give_the_same() -> None:
    tasks = curves()
    exact = learn_kernel_bias(tasks, RBF, 0.1, 0.3, "huber")
    maps = Nystroem(gamma=0.5, n_components=len(tasks.X), random_state=0).fit(tasks.X)
    expected = by_features(maps.transform, tasks, tasks.X)
    found = [exact.predict(tasks.X), exact.adapt(*tasks[3]).predict(tasks.X)]
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-6)


def test_random_features_approach_it() -> None:
    tasks, new = curves(), np.linspace(-3.0, 3.0, 50)[:, None]
    exact = learn_kernel_bias(tasks, RBF, 0.1, 0.3, "huber")
    found = np.concatenate([exact.predict(new), exact.adapt(*tasks[3]).predict(new)])
    off = []
    for n_components in (100, 10_000):
        maps = [RBFSampler(gamma=0.5, n_components=n_components, random_state=s) for s in range(4)]
        scores = [by_features(m.fit(new).transform, tasks, new) for m in maps]
        off.append(np.sqrt(np.mean((np.array(scores) - found) ** 2)))
    assert off[1] < 0.3 * off[0]
    assert off[1] < 0.05 * np.sqrt(np.mean(found**2))


def test_names_are_those_of_scikit_learn() -> None:
    tasks = curves()
    named = learn_kernel_bias(tasks, "rbf", 0.1, 0.3)
    called = learn_kernel_bias(tasks, rbf_kernel, 0.1, 0.3)
    np.testing.assert_array_equal(named.coefficients, called.coefficients)


def test_no_step_is_no_bias() -> None:
    assert not learn_kernel_bias(curves(), "rbf", 0.1, 0.0).predict([[1.0]]).any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: learn_kernel_bias(curves(), "cubic", 1.0, 1.0),
            ValueError,
            "kernel: expected one",
        ),
        (
            lambda: learn_kernel_bias(curves(), THREE, 1.0, 1.0),
            TypeError,
            "or a function, found int 3",
        ),
        (
            lambda: learn_kernel_bias(curves(), lambda a, b: a @ b.T[:, :1], 1.0, 1.0),
            ValueError,
            r"kernel: expected an array of shape \(\d, \d\) for tables of \d and \d rows",
        ),
        (
            lambda: learn_kernel_bias(curves(), ONE_TABLE, 1.0, 1.0),
            TypeError,
            "kernel: as a function of two tables, .* takes 1 positional argument",
        ),
        (
            lambda: learn_kernel_bias(curves(), lambda a, b: np.nan * (a @ b.T), 1.0, 1.0),
            ValueError,
            "kernel: expected finite numbers",
        ),
        (lambda: learn_kernel_bias(curves(), "rbf", 0.0, 1.0), ValueError, "reg: expected"),
        (lambda: learn_kernel_bias(curves(), "rbf", 1.0, -1.0), ValueError, "step: expected"),
        (lambda: learn_kernel_bias(curves(), "rbf", 1.0, 1.0, "hinge"), ValueError, "hinge loss"),
        (
            lambda: learn_kernel_bias(curves(), "rbf", 1.0, 1.0).predict([[1.0, 2.0]]),
            ValueError,
            "X: expected 1 columns as in the tasks learned from, found 2",
        ),
    ],
)
def test_errors(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
