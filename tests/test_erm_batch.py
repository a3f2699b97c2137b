"""The exact solution from many biases at once: certified, warm or cold, and quick where it can."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Array, Problem, problems

from headstart import LOSSES, Loss, biased_erm, get_loss
from headstart._core.checks import FloatArray
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.inner.erm import TOLERANCE, solve_batch
from headstart.inner.erm.batch import improve, read_task
from headstart.losses.form import ABSOLUTE_FORM, HINGE_FORM
from headstart.theory import dual_value, primal_value

ALL = tuple(LOSSES)
LAMS = np.repeat(np.geomspace(1e-4, 1e2, 7), 3)


def solve(X: FloatArray, y: FloatArray, H: Array, loss: Loss, B: Array) -> tuple[Array, Array]:
    W, gaps = np.empty_like(H), np.empty(LAMS.size)
    solve_batch(X, y, H, LAMS, loss.form, B, W, gaps)
    return W, gaps


def check_certified(p: Problem, H: Array, B: Array, W: Array) -> None:
    """The gap of each weight and dual point is small, and the weight is near the solution."""
    X, y, loss = p.X, p.y, p.loss
    for lam, h, b, w in zip(LAMS.tolist(), H.T, B.T, W.T, strict=True):
        u = (b * y if loss.binary else b) / len(y)
        primal = primal_value(X, y, w, h, lam, loss)
        gap = primal + dual_value(X, y, u, h, lam, loss)
        rounding = 1e-13 * float(np.mean(np.abs(X @ h) + np.abs(y)))
        target = max(TOLERANCE * min(1.0, lam), rounding)
        assert gap <= 1.01 * target + 1e-11 * (1.0 + primal)
        exact = biased_erm(X, y, h, lam, loss).weights
        assert np.sum((w - exact) ** 2) <= 8.0 * target / lam + 1e-12 * (1.0 + np.sum(w**2))


@settings(max_examples=60)
@given(problems(names=ALL), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-9, 1e-3, 1.0]))
def test_every_candidate_is_solved_cold_and_warm(p: Problem, seed: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    H = p.h[:, None] + rng.normal(size=(p.h.size, LAMS.size)) * rng.integers(0, 2, LAMS.size)
    B = np.zeros((len(p.y), LAMS.size))
    for _ in range(2):
        W, gaps = solve(p.X, p.y, H, p.loss, B)
        assert not gaps.any()
        check_certified(p, H, B, W)
        H = H + far * rng.normal(size=H.shape)


@pytest.mark.parametrize("name", ALL)
def test_tasks_of_the_paper_are_solved_without_the_slow_road(name: str) -> None:
    """`solve_task` would hide a fault of the quick road, and take its time."""
    loss, rng = get_loss(name), np.random.default_rng(0)
    kind = ClassificationEnvironment if loss.binary else RegressionEnvironment
    solved = []
    for X, y in kind(n_features=30).draw(20, 10, rng).tasks:
        H = rng.normal(2.0, 1.0, (30, 1)) * rng.random(LAMS.size)
        B, gaps = np.zeros((10, LAMS.size)), np.empty(LAMS.size)
        for _ in range(3):
            batch = read_task(X, y, H, LAMS, loss.form)
            improve(batch, loss.form, B, gaps)
            solved.append(gaps <= batch.targets)
            H = H + 0.01 * rng.normal(size=H.shape)
    assert np.mean(solved) > 0.999


def test_a_bias_that_is_not_finite_is_left_alone() -> None:
    X, y = RegressionEnvironment(n_features=4).draw(1, 6, np.random.default_rng(0)).tasks[0]
    loss, H = get_loss("absolute"), np.ones((4, LAMS.size))
    H[1, 2], H[2, 5] = np.nan, np.inf
    B = np.zeros((6, LAMS.size))
    W, gaps = solve(X, y, H, loss, B)
    assert not gaps.any()
    finite = np.isfinite(H).all(axis=0)
    np.testing.assert_array_equal(W[:, ~finite], H[:, ~finite])
    for q in np.flatnonzero(finite):
        exact = biased_erm(X, y, H[:, q], LAMS[q]).weights
        np.testing.assert_allclose(W[:, q], exact, atol=2e-3)
    assert np.isfinite(B).all()


def test_a_start_that_is_not_finite_is_forgotten() -> None:
    X, y = RegressionEnvironment(n_features=4).draw(1, 6, np.random.default_rng(0)).tasks[0]
    loss, H, B = get_loss("absolute"), np.ones((4, LAMS.size)), np.zeros((6, LAMS.size))
    cold, _ = solve(X, y, H, loss, B)
    B[2, ::2], B[4, 1::3] = np.nan, np.inf
    warm, gaps = solve(X, y, H, loss, B)
    assert not gaps.any()
    assert np.isfinite(B).all()
    np.testing.assert_allclose(warm, cold, atol=4e-3)


def test_a_candidate_does_not_depend_on_its_neighbours() -> None:
    """They share factors: the same with and without what another has left."""
    rng = np.random.default_rng(0)
    X, y = RegressionEnvironment(n_features=12).draw(1, 8, rng).tasks[0]
    for name in ("absolute", "huber", "logistic"):
        loss = get_loss(name)
        labels = np.where(y > 0.0, 1.0, -1.0) if loss.binary else y
        H = np.repeat(rng.normal(size=(12, 1)), LAMS.size, axis=1)
        B, flipped = np.zeros((8, LAMS.size)), np.zeros((8, LAMS.size))
        W, _ = solve(X, labels, H, loss, B)
        other, gaps = np.empty_like(H), np.empty(LAMS.size)
        solve_batch(X, labels, H, LAMS[::-1].copy(), loss.form, flipped, other, gaps)
        np.testing.assert_allclose(other[:, ::-1], W, rtol=1e-9)


def test_the_constant_forms_are_those_of_the_losses() -> None:
    assert get_loss("absolute").form == ABSOLUTE_FORM
    assert get_loss("hinge").form == HINGE_FORM
