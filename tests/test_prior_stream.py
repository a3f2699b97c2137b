"""The prior from a stream of which nothing is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_prior import drawn

from headstart import PriorState, TaskSet, continue_prior, learn_prior, start_prior
from headstart.meta.prior.stream import FIRST


def followed(tasks: TaskSet, cuts: Any = (), **options: Any) -> PriorState:
    state = start_prior(**options)
    for part in np.split(np.arange(len(tasks)), cuts):
        if part.size:
            state = continue_prior(state, tasks.subset(part))
    return state


@settings(max_examples=15)
@given(
    st.integers(0, 1000),
    st.sampled_from(["squared", "huber", "logistic"]),
    st.sampled_from(["full", "diagonal", "isotropic"]),
)
def test_any_cutting_of_the_tasks_gives_the_same_bits(seed: int, loss: str, metric: str) -> None:
    tasks = drawn(seed, T=FIRST + 20, n=4, loss=loss)
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(tasks), 4))
    options: Any = {"loss": loss, "metric": metric, "fit_intercept": bool(seed % 2)}
    one, many = followed(tasks, **options).prior, followed(tasks, cuts, **options).prior
    np.testing.assert_array_equal(one.bias, many.bias)
    np.testing.assert_array_equal(one.covariance, many.covariance)
    assert one.noise == many.noise


@pytest.mark.parametrize(
    ("loss", "share"), [("squared", 0.05), ("absolute", 0.25), ("logistic", 0.1)]
)
@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_one_pass_comes_near_the_batch(loss: str, share: float, metric: str) -> None:
    tasks = drawn(1, T=1500, n=10, loss=loss)
    streamed, batch = (
        followed(tasks, loss=loss, metric=metric).prior,
        learn_prior(tasks, loss, metric),
    )
    unit = np.sqrt(np.diag(batch.covariance)).max()
    assert np.abs(streamed.bias - batch.bias).max() < (share + 0.02) * unit
    assert np.abs(streamed.covariance - batch.covariance).max() < 2.5 * share * unit**2
    assert streamed.noise == pytest.approx(batch.noise, rel=share)


def test_the_first_tasks_are_learned_together_and_then_let_go() -> None:
    tasks = drawn(2, T=FIRST + 1)
    state = followed(tasks.subset(range(FIRST - 1)))
    assert len(state.waiting) == 1
    expected = learn_prior(tasks.subset(range(FIRST - 1)))
    np.testing.assert_allclose(state.prior.bias, expected.bias)
    state = continue_prior(state, tasks.subset([FIRST - 1]))
    assert state.waiting == ()
    np.testing.assert_allclose(state.prior.bias, learn_prior(tasks.subset(range(FIRST))).bias)
    assert state.n_tasks == FIRST


def test_units_do_not_matter() -> None:
    tasks = drawn(3, T=200)
    other = TaskSet(tasks.X * [1.0, 10.0, 1e4] + [0.0, 5.0, -9e4], 7.0 * tasks.y + 3.0,
                    tasks.offsets, tasks.ids)  # fmt: skip
    one, two = (followed(t, fit_intercept=True).prior.posterior() for t in (tasks, other))
    new = tasks.X[:30]
    np.testing.assert_allclose(
        7.0 * one.predict(new) + 3.0, two.predict(new * [1.0, 10.0, 1e4] + [0.0, 5.0, -9e4]),
        atol=1e-4,
    )  # fmt: skip


def test_errors() -> None:
    with pytest.raises(ValueError, match="state: expected at least one task, found none"):
        _ = start_prior().prior
    for count in (3, FIRST):
        state = followed(drawn(4, T=count))
        with pytest.raises(ValueError, match="tasks: expected 3 features as before, found 2"):
            continue_prior(state, [([[1.0, 2.0]], [1.0])])
    with pytest.raises(ValueError, match="metric: expected one of 'auto'"):
        start_prior(metric="round")


def test_a_buffer_may_be_used_again() -> None:
    tasks = drawn(5, T=FIRST + 5, n=6)
    state, X, y = start_prior(), np.empty((20, 3)), np.empty(20)
    for inputs, labels in tasks:
        n = len(labels)
        X[:n], y[:n] = inputs, labels
        state = continue_prior(state, TaskSet.from_arrays(X[:n], y[:n], np.zeros(n, int)))
    np.testing.assert_allclose(state.prior.bias, followed(tasks).prior.bias)


def test_large_offsets() -> None:
    tasks = drawn(6, T=60)
    far = TaskSet(tasks.X * 0.1 + [1e9, 0.0, 3e8], tasks.y, tasks.offsets, tasks.ids)
    one, other = (followed(t, fit_intercept=True).prior.posterior() for t in (tasks, far))
    np.testing.assert_allclose(one.predict(tasks.X[:9]), other.predict(far.X[:9]), atol=1e-4)
    with pytest.raises(TypeError, match="state: expected a PriorState"):
        continue_prior(None, tasks)  # type: ignore[arg-type]
