"""The exact solvers: certified, agreeing with each other and with solvers of other people."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import algorithm_4
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC, LinearSVR
from strategies import LIPSCHITZ, Array, Problem, problems, regs

from headstart import (
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    Huber,
    Loss,
    SmoothedHinge,
    TaskSet,
    biased_erm,
    biased_sgd,
    get_loss,
    task_weights,
)
from headstart.inner.erm import solve_task, workspace
from headstart.theory import dual_value, erm_stability, primal_value

ALL = tuple(LOSSES)


def largest_pull(p: Problem) -> float:
    """A bound on ``|reg (w - h)|``: that of the paper, or R times the root mean square error of h.

    The second is for the squared loss, and follows from the mean square not being larger at w.
    """
    if p.loss.name in LIPSCHITZ:
        return p.lr
    radius = float(np.linalg.norm(p.X, axis=1).max())
    return radius * float(np.sqrt(np.mean((p.X @ p.h - p.y) ** 2)))


def solve(p: Problem, **options: Any) -> Any:
    return biased_erm(p.X, p.y, p.h, p.lam, p.loss, **options)


def synthetic(n: int, d: int, loss: Loss, seed: int = 0) -> tuple[Array, Array]:
    """A task of the paper's experiment: inputs on the unit sphere, weights around 4."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ rng.normal(4.0, 1.0, d)
    y += rng.normal(size=n) * y.std() / np.sqrt(10.0)
    return X, (np.sign(y) if loss.binary else y)


@settings(max_examples=400)
@given(problems(names=ALL))
def test_gap_is_reached_and_is_the_gap(p: Problem) -> None:  # item 11
    result = solve(p)
    assert result.converged
    rounding = 1e-13 * float(np.mean(np.abs(p.X @ p.h) + np.abs(p.y)))
    assert 0.0 <= result.gap <= max(1e-6 * min(1.0, p.lam), rounding)
    primal = primal_value(p.X, p.y, result.weights, p.h, p.lam, p.loss)
    dual = dual_value(p.X, p.y, result.dual, p.h, p.lam, p.loss)
    assert primal + dual == pytest.approx(result.gap, abs=1e-9 * max(1.0, primal))


@given(problems(names=ALL))
def test_optimality_conditions(p: Problem) -> None:  # items 2, 11, 13 and 15
    result = solve(p, tol=1e-10)
    slack = np.sqrt(2.0 * result.gap * p.lam) + 1e-9 * (1.0 + largest_pull(p))
    pull = p.lam * (result.weights - p.h)
    assert np.linalg.norm(pull + p.X.T @ result.dual) <= slack
    assert np.linalg.norm(pull) <= largest_pull(p) + slack
    scores = p.X @ result.weights
    young = p.loss.value(scores, p.y) + p.loss.conjugate(p.n * result.dual, p.y)
    young -= p.n * result.dual * scores
    assert young.mean() <= result.gap + 1e-9 * max(1.0, float(np.abs(scores).max()))


@given(problems(reg=regs(-1.0, 2.0), names=ALL))
def test_coordinate_descent_is_fista(p: Problem) -> None:
    options: dict[str, Any] = {"solver": "fista", "tol": 1e-5, "max_iter": 200_000}
    exact = solve(p, tol=1e-8)
    for smoothness in ("radius", "operator"):
        slow = solve(p, smoothness=smoothness, **options)
        assert slow.converged
        distance = np.linalg.norm(exact.weights - slow.weights)
        bound = np.sqrt(2.0 * exact.gap / p.lam) + np.sqrt(2.0 * slow.gap / p.lam)
        assert distance <= bound + 1e-9 * (1.0 + np.abs(exact.weights).max())


@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
def test_fista_is_the_transcription(reg: float) -> None:
    X, y = synthetic(8, 5, get_loss("absolute"))
    h = np.full(5, 3.0)
    ours = biased_erm(X, y, h, reg, solver="fista", tol=1e-6 / min(1.0, reg))
    np.testing.assert_allclose(ours.weights, algorithm_4(X, y, h, reg), atol=1e-9)


def test_the_operator_norm_needs_fewer_iterations() -> None:
    X, y = synthetic(20, 30, get_loss("absolute"))
    runs = [
        biased_erm(X, y, np.zeros(30), 0.1, solver="fista", smoothness=s).n_iter
        for s in ("radius", "operator")
    ]
    assert runs[1] < 0.7 * runs[0]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reg", [1e-6, 1e-4, 1e-2, 1.0])
def test_many_rows_and_small_reg_still_end_certified(name: str, reg: float) -> None:
    """Plain coordinate descent needs thousands of passes here."""
    X, y = synthetic(150, 20, get_loss(name))
    result = biased_erm(X, y, np.ones(20), reg, name)
    assert result.converged
    assert result.n_iter < 300


@pytest.mark.parametrize("loss", [get_loss("absolute"), EpsilonInsensitive(0.2)])
@pytest.mark.parametrize("reg", [1e-3, 1e-2, 0.1, 1.0])
@pytest.mark.parametrize(("n", "d"), [(10, 30), (60, 8)])
def test_against_liblinear_regression(loss: Loss, reg: float, n: int, d: int) -> None:
    """With labels shifted by X h, the biased problem is the usual one in w - h."""
    X, y = synthetic(n, d, loss)
    h = np.linspace(3.0, 5.0, d)
    other = LinearSVR(
        epsilon=loss.parameters[0],
        C=1.0 / (reg * n),
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**7,
    ).fit(X, y - X @ h)
    weights = biased_erm(X, y, h, reg, loss, tol=1e-10).weights
    np.testing.assert_allclose(weights, h + other.coef_, atol=2e-4)


@pytest.mark.parametrize("reg", [1e-8, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (10, 30), (60, 8), (30, 30), (90, 100), (200, 80)])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_squared_loss_against_ridge_regression(reg: float, n: int, d: int, size: float) -> None:
    X, y = synthetic(n, d, get_loss("squared"))
    y, h = size * y, size * np.linspace(3.0, 5.0, d)
    kind: Any = Ridge
    other = kind(alpha=reg * n, fit_intercept=False, solver="svd").fit(X, y - X @ h)
    result = biased_erm(X, y, h, reg, "squared")
    tolerance = 1e-9 * max(1.0, 1e-4 / reg) * size
    np.testing.assert_allclose(result.weights, h + other.coef_, rtol=0.0, atol=tolerance)
    residuals = X @ result.weights - y
    np.testing.assert_allclose(n * result.dual, residuals, rtol=0.0, atol=tolerance)
    assert result.n_iter <= 2


@pytest.mark.parametrize(("n", "d"), [(8, 12), (12, 8)])
@pytest.mark.parametrize("solver", ["cd", "fista"])
@pytest.mark.parametrize("size", [1e8, 1e30])
def test_the_gap_of_large_squares_is_not_lost(n: int, d: int, solver: str, size: float) -> None:
    """Values of 1e16 or more cannot be subtracted, and yet their gap is known."""
    X, y = synthetic(n, d, get_loss("squared"))
    small = biased_erm(X, y, np.zeros(d), 0.1, "squared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        large = biased_erm(
            X, size * y, np.zeros(d), 0.1, "squared", solver=solver, tol=1e-12, max_iter=5000
        )
    np.testing.assert_allclose(large.weights, size * small.weights, rtol=1e-7)
    assert large.gap <= 1e-20 * size**2
    assert large.converged or solver == "fista"


def test_repeated_rows_and_tiny_reg_are_refined() -> None:
    rng = np.random.default_rng(0)
    tall = 100.0 * np.repeat(rng.normal(size=(5, 6)), 8, axis=0)  # of rank 5 in 6 columns
    wide = np.repeat(rng.normal(size=(3, 40)), 2, axis=0)
    for X in (tall, wide):
        y, bias = rng.normal(size=len(X)), np.ones(X.shape[1])
        result = biased_erm(X, y, bias, 1e-12, "squared")
        assert result.converged
        pull = 1e-12 * (result.weights - bias)
        np.testing.assert_allclose(pull, -X.T @ result.dual, rtol=0.0, atol=1e-11)
        with pytest.warns(ConvergenceWarning):  # beyond all digits, and yet no worse than h
            result = biased_erm(1e4 * X, y, bias, 1e-10, "squared")
        assert result.gap <= np.mean((1e4 * X @ bias - y) ** 2) / 2.0


@pytest.mark.parametrize("reg", [1e-3, 1e-2, 0.1, 1.0])
@pytest.mark.parametrize(("n", "d"), [(10, 30), (60, 8)])
def test_against_liblinear_classification(reg: float, n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    C = 1.0 / (reg * n)
    linear = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-10, max_iter=10**7).fit(X, y)
    weights = biased_erm(X, y, np.zeros(d), reg, "hinge", tol=1e-10).weights
    np.testing.assert_allclose(weights, linear.coef_[0], atol=2e-4)


@pytest.mark.parametrize("loss", [Huber(0.5), SmoothedHinge(0.7), get_loss("logistic")])
@pytest.mark.parametrize("reg", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("n", "d"), [(10, 15), (60, 8)])
def test_smooth_losses_against_scipy(loss: Loss, reg: float, n: int, d: int) -> None:
    rng = np.random.default_rng(2)
    X, h = rng.normal(size=(n, d)), rng.normal(size=d)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    y = np.sign(y) if loss.binary else y

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        slopes = loss.subgradient(X @ w, y)
        return primal_value(X, y, w, h, reg, loss), X.T @ slopes / n + reg * (w - h)

    other = minimize(
        value_and_gradient, h, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}
    )
    result = biased_erm(X, y, h, reg, loss, tol=1e-10)
    assert primal_value(X, y, result.weights, h, reg, loss) <= other.fun + result.gap + 1e-12
    np.testing.assert_allclose(result.weights, other.x, atol=1e-3)


def test_not_converging_is_said() -> None:
    X, y = synthetic(60, 8, get_loss("absolute"))
    message = "not solved after 3 iterations: duality gap .* above tol .* = 1.0e-08; raise max_iter"
    for solver in ("cd", "fista"):
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            result = biased_erm(X, y, np.zeros(8), 1e-2, solver=solver, max_iter=3)
        assert caught[0].filename == __file__  # at the user's line, not in the package
        assert not result.converged
        assert result.n_iter == 3
        primal = primal_value(X, y, result.weights, np.zeros(8), 1e-2)
        assert primal + dual_value(X, y, result.dual, np.zeros(8), 1e-2) == pytest.approx(
            result.gap
        )


@pytest.mark.parametrize("loss", ["absolute", "squared", "hinge", "logistic"])
@pytest.mark.parametrize("reg", [1e-2, 1e-4, 1e-6])
def test_columns_of_very_different_sizes(loss: str, reg: float) -> None:
    """A year and a mileage among the features: the gap is small, and is the real one."""
    for seed in range(8):
        rng, n = np.random.default_rng(seed), 20
        columns = [np.ones(n), rng.normal(2e3, 10, n), rng.normal(5e4, 2e4, n)]
        X = np.column_stack([*columns, rng.integers(0, 2, n)])
        y = X @ [5.0, 0.1, 1e-3, 7.0] + rng.standard_normal(n)
        y = np.where(y > np.median(y), 1.0, -1.0) if get_loss(loss).binary else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = biased_erm(X, y, np.zeros(4), reg, loss)
        primal = primal_value(X, y, result.weights, np.zeros(4), reg, loss)
        dual = dual_value(X, y, result.dual, np.zeros(4), reg, loss)
        assert result.gap <= 1e-6
        assert primal + dual == pytest.approx(result.gap, rel=0.1, abs=1e-11 * (1.0 + primal))


def found_case(loss: Loss) -> tuple[Array, Array, Array, float, Array]:
    """A task of 39 distinct rows among 100, of rank 15 in 26 columns, and a warm start b."""
    case = np.load(Path(__file__).parent / "data" / "erm_not_finite.npz")
    y = np.where(case["y"] > np.median(case["y"]), 1.0, -1.0) if loss.binary else case["y"]
    return case["X"], y, case["h"], float(case["lam"]), np.clip(case["b"], *loss.domain)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("start", ["zero", "warm", "nan", "inf"])
def test_free_rows_that_depend_on_each_other(name: str, start: str) -> None:
    """Newton's step on such rows leads far away; no start, and no such step, is the end of it."""
    loss = get_loss(name)
    X, y, h, lam, b = found_case(loss)
    if start != "warm":
        b[:] = 0.0
    if start in ("nan", "inf"):
        b[7] = float(start)
    w, target = np.empty(h.size), 1e-6 * lam
    objective, work = loss.regularised(lam, "erm"), workspace(*X.shape)
    gap, _, converged = solve_task(X, y, objective, h, w, b, target, 2000, work)
    assert converged
    assert 0.0 <= gap <= target
    u = (b * y if loss.binary else b) / len(y)
    primal, dual = primal_value(X, y, w, h, lam, loss), dual_value(X, y, u, h, lam, loss)
    assert primal + dual == pytest.approx(gap, abs=1e-12)


def test_no_pass_ends_farther_away_than_it_began() -> None:
    X, y, h, lam, b = found_case(get_loss("absolute"))
    objective, work, w = Absolute().regularised(lam, "erm"), workspace(*X.shape), np.empty(h.size)
    gaps = []
    for max_iter in range(1, 16):
        warm = b.copy()
        gaps.append(solve_task(X, y, objective, h, w, warm, 1e-9, max_iter, work)[0])
    assert max(gaps) <= gaps[0]


@pytest.mark.parametrize("name", LIPSCHITZ)
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_low_rank(name: str, seed: int) -> None:
    loss, rng = get_loss(name), np.random.default_rng(seed)
    n, d, rank = rng.integers(20, 70), rng.integers(20, 64), rng.integers(1, 5)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    y = np.where(y > 0.0, 1.0, -1.0) if loss.binary else y
    for reg in 10.0 ** np.arange(-5.0, 5.0):
        result = biased_erm(X, y, np.zeros(d), reg, loss)
        assert result.converged
        assert np.isfinite(result.weights).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("solver", ["cd", "fista"])
@pytest.mark.parametrize("size", [1e10, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("bias", [1.0, 1e200])
def test_numbers_that_overflow_are_said_and_never_returned(
    name: str, solver: str, size: float, bias: float
) -> None:
    X, y = synthetic(6, 3, get_loss(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            result = biased_erm(
                size * X, y, np.full(3, bias), 1e-3, name, solver=solver, max_iter=9
            )
        except ValueError as error:
            assert re.match("X|bias", str(error))  # noqa: PT017
            assert max(size, bias) > 1e50
            return
    assert size < 1e150
    assert bias < 1e150
    assert np.isfinite(result.weights).all()
    assert np.isfinite(result.dual).all()
    assert 0.0 <= result.gap < np.inf


@pytest.mark.parametrize("max_iter", [1, 5, 8, 9, 12, 20, 30])
def test_the_gap_returned_belongs_to_the_point_returned(max_iter: int) -> None:
    X, y = synthetic(100, 10, get_loss("absolute"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = biased_erm(X, y, np.zeros(10), 1e-5, max_iter=max_iter)
    assert result.n_iter <= max_iter
    primal = primal_value(X, y, result.weights, np.zeros(10), 1e-5)
    dual = dual_value(X, y, result.dual, np.zeros(10), 1e-5)
    assert primal + dual == pytest.approx(result.gap, rel=1e-6)


@given(problems(reg=regs(-3.0, 1.0), names=ALL), st.integers(0, 2**32 - 1))
def test_meta_objective_is_convex_smooth_and_lipschitz(p: Problem, seed: int) -> None:  # item 12
    other = p.h + np.random.default_rng(seed).normal(size=p.h.size)
    here = solve(p, tol=1e-9)
    there = biased_erm(p.X, p.y, other, p.lam, p.loss, tol=1e-9)
    value = primal_value(p.X, p.y, here.weights, p.h, p.lam, p.loss)
    moved = primal_value(p.X, p.y, there.weights, other, p.lam, p.loss)
    gradient, step = -p.lam * (here.weights - p.h), other - p.h
    slack = 1e-7 * (1.0 + value + np.linalg.norm(step) * largest_pull(p))
    rise = moved - value - gradient @ step
    assert rise >= -slack
    assert rise <= p.lam / 2.0 * step @ step + slack
    if p.loss.name in LIPSCHITZ:
        assert abs(moved - value) <= p.lr * np.linalg.norm(step) + slack


def test_stability_is_twice_what_the_paper_prints() -> None:  # erratum E3
    far = [biased_erm([[1.0]], [y], [0.0], 1.0).weights[0] for y in (-10.0, 10.0)]
    assert abs(far[1] - far[0]) == pytest.approx(erm_stability(n=1, reg=1.0))


def test_weights_of_a_set_are_the_weights_of_its_tasks() -> None:
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(n, 5)), rng.normal(size=n)) for n in (1, 3, 20, 7)]
    h = rng.normal(size=5)
    for loss in ("absolute", "squared"):
        many = task_weights(TaskSet.from_list(pairs), h, 0.01, loss, inner="erm")
        for w, (X, y) in zip(many, pairs, strict=True):
            np.testing.assert_allclose(w, biased_erm(X, y, h, 0.01, loss).weights, atol=1e-12)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_float32_data(loss: str) -> None:
    X, y = (a.astype(np.float32) for a in synthetic(40, 6, get_loss(loss)))
    narrow = biased_erm(X, y, np.zeros(6), 0.01, loss)
    wide = biased_erm(X.astype(float), y, np.zeros(6), 0.01, loss)
    assert narrow.converged
    assert narrow.weights.dtype == narrow.dual.dtype == np.float32
    np.testing.assert_allclose(narrow.weights, wide.weights, rtol=1e-5)
    np.testing.assert_allclose(
        dual_value(X, y, narrow.dual, np.zeros(6), 0.01, loss),
        -primal_value(X, y, wide.weights, np.zeros(6), 0.01, loss),
        rtol=1e-3,
    )


def test_one_pass_of_sgd_is_never_better() -> None:
    X, y = synthetic(30, 10, get_loss("absolute"))
    h = np.zeros(10)
    best = primal_value(X, y, biased_erm(X, y, h, 0.1).weights, h, 0.1)
    assert primal_value(X, y, biased_sgd(X, y, h, 0.1).last, h, 0.1) > best
