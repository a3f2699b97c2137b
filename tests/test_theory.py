"""Prescriptions minimise their bounds; certificates hold for every sample."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from strategies import Array, Problem, problems, regs

from headstart import biased_erm, biased_sgd, learn_bias, theory, weights_from_dual

sizes = st.integers(1, 500)
positive = st.floats(0.1, 10.0)
inners = st.sampled_from(["sgd", "erm"])


def argmin(f: Any, near: float) -> Any:
    return minimize_scalar(lambda t: f(math.exp(t)), bracket=(math.log(near) - 1, math.log(near)))


@given(sizes, positive, inners, positive, positive)
def test_fixed_bias_reg_minimises_its_bound(
    n: int, var: float, inner: str, R: float, L: float
) -> None:
    p = theory.fixed_bias(n, var, inner, R, L)
    best = argmin(lambda reg: theory.fixed_bias_bound(reg, n, var, inner, R, L), 3.0 * p.reg)
    assert p.step is None
    assert p.bound == pytest.approx(best.fun, rel=1e-9)
    assert p.reg == pytest.approx(math.exp(best.x), rel=1e-3)
    assert p.bound == pytest.approx(theory.fixed_bias_bound(p.reg, n, var, inner, R, L))


@given(sizes, st.integers(1, 1000), positive, positive, inners, st.booleans(), positive, positive)
def test_learned_bias_minimises_its_bound(
    n: int, T: int, var: float, D: float, inner: str, sharp: bool, R: float, L: float
) -> None:
    p = theory.learned_bias(n, T, var, D, inner, sharp, R, L)
    assert p.step is not None
    # The within-task term comes twice for sgd: once for its risk, once for its gradients.
    term = theory.sgd_regret if inner == "sgd" else theory.erm_generalisation
    times = 2.0 if inner == "sgd" else 1.0
    within = argmin(lambda reg: times * term(n, reg, R, L) + reg * var**2, 3.0 * p.reg)
    across = argmin(lambda step: theory.meta_rate(n, T, D, step, inner, sharp, R, L), 3.0 * p.step)
    assert p.reg == pytest.approx(math.exp(within.x), rel=1e-3)
    assert p.step == pytest.approx(math.exp(across.x), rel=1e-3)
    assert p.bound == pytest.approx(within.fun + across.fun, rel=1e-9)


def test_the_printed_values() -> None:
    """Each theorem's formula, by hand, for n = 10, T = 1000, R = 2, L = 1, Var = 3, |m| = 5."""
    log = math.log(10) + 1.0
    sgd = theory.fixed_bias(10, 3.0, "sgd", radius=2.0)
    assert sgd.reg == pytest.approx(2.0 / 3.0 * math.sqrt(2.0 * log / 10.0))
    assert sgd.bound == pytest.approx(3.0 * 2.0 * 2.0 * math.sqrt(2.0 * log / 10.0))
    erm = theory.fixed_bias(10, 3.0, "erm", radius=2.0)
    assert erm == pytest.approx((2.0 / 3.0 / math.sqrt(10.0), None, 12.0 / math.sqrt(10.0)))
    C = 1.0 + 4.0 * log / 10.0
    ltl = theory.learned_bias(10, 1000, 3.0, 5.0, "sgd", radius=2.0)
    assert ltl.reg == pytest.approx(2.0 * 2.0 / 3.0 * math.sqrt(log / 10.0))
    assert ltl.step == pytest.approx(5.0 / (2.0 * math.sqrt(2.0 * 1000.0 * C)))
    expected = 3.0 * 4.0 * 2.0 * math.sqrt(log / 10.0) + 5.0 * 2.0 * math.sqrt(2.0 * C / 1000.0)
    assert ltl.bound == pytest.approx(expected)
    exact = theory.learned_bias(10, 1000, 3.0, 5.0, "erm", radius=2.0)
    assert exact.step == pytest.approx(5.0 / (2.0 * math.sqrt(1000.0)))
    assert exact.bound == pytest.approx(12.0 / math.sqrt(10.0) + 10.0 / math.sqrt(1000.0))


def test_errata_of_the_step() -> None:  # E1 and item 24
    paper = theory.learned_bias(10, 1000, 1.0, 1.0)
    assert paper.step is not None
    printed = 2.0 * paper.step
    cost = theory.meta_rate(10, 1000, 1.0, paper.step)
    assert theory.meta_rate(10, 1000, 1.0, printed) == pytest.approx(1.25 * cost)
    sharp = theory.learned_bias(10, 1000, 1.0, 1.0, sharp=True)
    assert sharp.step is not None
    gain = cost / theory.meta_rate(10, 1000, 1.0, sharp.step, sharp=True)
    assert gain == pytest.approx(2.15, abs=0.01)


def test_var_h_is_a_norm_not_a_standard_deviation() -> None:  # E9
    rng = np.random.default_rng(0)
    weights = rng.normal(4.0, 1.0, size=(20_000, 30))
    assert theory.var_h(weights, np.full(30, 4.0)) == pytest.approx(math.sqrt(15.0), rel=0.01)
    assert theory.var_h(weights, np.zeros(30)) == pytest.approx(15.97, rel=0.01)
    mean = weights.mean(axis=0)
    for other in rng.normal(4.0, 0.5, size=(5, 30)):
        assert theory.var_h(weights, mean) < theory.var_h(weights, other)


@given(problems())
def test_regret_of_one_pass(p: Problem) -> None:  # item 8
    exact = biased_erm(p.X, p.y, p.h, p.lam, p.loss)
    least = -theory.dual_value(p.X, p.y, exact.dual, p.h, p.lam, p.loss)
    steps = np.sum(p.naive.full**2, axis=1) / np.arange(1, p.n + 1)
    middle = steps.sum() / (2.0 * p.lam * p.n)
    slack = 1e-9 * (1.0 + p.online_loss()) + exact.gap
    assert p.online_loss() - least <= middle + slack
    R = float(np.linalg.norm(p.X, axis=1).max())
    if R > 0.0:
        bound = theory.sgd_regret(p.n, p.lam, R, p.loss.lipschitz)
        assert middle <= bound * (1.0 + 1e-9)


@given(problems(reg=regs(-4.0, 2.0)), st.integers(0, 2**32 - 1))
def test_certificate_of_the_meta_gradient(p: Problem, seed: int) -> None:  # items 14 and 16
    result = biased_sgd(p.X, p.y, p.h, p.lam, p.loss)
    exact = biased_erm(p.X, p.y, p.h, p.lam, p.loss, tol=1e-8).weights
    best = theory.certificate(p.X, p.y, result.dual, p.h, p.lam, p.loss, exact)
    free = theory.certificate(p.X, p.y, result.dual, p.h, p.lam, p.loss)
    size = 1.0 + p.phi(exact) + p.lr**2 / p.lam
    assert best <= free + 1e-9 * size
    R = float(np.linalg.norm(p.X, axis=1).max())
    if R > 0.0:  # the paper's epsilon is never sharper
        c = theory.sgd_regret(p.n, p.lam, R, p.loss.lipschitz)
        assert free <= -(p.online_loss() - p.phi(result.last)) + c + 1e-9 * size

    gradient, here = p.X.T @ result.dual / p.n, p.phi(exact)
    rng = np.random.default_rng(seed)
    for distance in (0.1, 1.0, 10.0):
        other = p.h + distance * rng.normal(size=p.h.size)
        there = biased_erm(p.X, p.y, other, p.lam, p.loss, tol=1e-8)
        value = theory.primal_value(p.X, p.y, there.weights, other, p.lam, p.loss)
        slack = 1e-6 * (size + value)
        assert value >= here + gradient @ (other - p.h) - best - slack


@given(problems(reg=regs(-4.0, 2.0)))
def test_last_iterate_is_near_the_solution(p: Problem) -> None:  # item 17
    result = biased_sgd(p.X, p.y, p.h, p.lam, p.loss)
    exact = biased_erm(p.X, p.y, p.h, p.lam, p.loss, tol=1e-9)
    epsilon = theory.certificate(p.X, p.y, result.dual, p.h, p.lam, p.loss, exact.weights)
    slack = math.sqrt(2.0 * exact.gap / p.lam) + 1e-6 * (1.0 + np.abs(exact.weights).max())
    distance = np.linalg.norm(exact.weights - result.last)
    assert distance <= theory.last_distance(epsilon, p.lam) + slack
    gradients = p.lam * distance
    assert gradients**2 <= 2.0 * p.lam * (epsilon + exact.gap) + (p.lam * slack) ** 2 + (
        2.0 * p.lam * slack * math.sqrt(2.0 * p.lam * (epsilon + exact.gap))
    )


def test_certificate_of_a_feasible_dual_only() -> None:
    with pytest.raises(ValueError, match="dual: expected subgradients that the absolute loss can"):
        theory.certificate([[1.0]], [3.0], [2.0], [0.0], 1.0)
    assert theory.dual_value([[1.0]], [3.0], [2.0], [0.0], 1.0) == math.inf


def finite_task(rng: np.random.Generator, binary: bool) -> tuple[Array, Array]:
    """Three points, one of which a row of the task is, each with the same chance."""
    X = rng.normal(size=(3, 2))
    return X, np.where(rng.random(3) < 0.5, 1.0, -1.0) if binary else 2.0 * rng.normal(size=3)


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
@pytest.mark.parametrize("predictor", ["average", "suffix", "poly"])
def test_predictors_in_expectation(predictor: str, loss: str) -> None:
    """Over all data sets that a finite task can give, so that there is no error of sampling."""
    rng = np.random.default_rng(0)
    for lam in (0.05, 0.3, 2.0):
        X, y = finite_task(rng, loss == "hinge")
        h, R = rng.normal(size=2), float(np.linalg.norm(X, axis=1).max())
        least = theory.meta_objective([(X, y)], h, lam, loss)  # of the regularised true risk
        best = biased_erm(X, y, h, lam, loss).weights
        for n in range(1, 5):
            excess, far = [], np.zeros(n + 1)
            for rows in itertools.product(range(3), repeat=n):
                data = X[list(rows)], y[list(rows)]
                found = biased_sgd(*data, h, lam, loss, keep_path=True)
                w = weights_from_dual(data[0], h, lam, found.dual, predictor)
                excess.append(theory.primal_value(X, y, w, h, lam, loss) - least)
                assert found.path is not None
                far += np.sum((found.path - best) ** 2, axis=1) / 3.0**n
            assert np.mean(excess) <= theory.sgd_regret(n, lam, R, 1.0, predictor) + 1e-9
            k, G = np.arange(1, n + 2), 2.0 * R  # the lemma of the docstring
            assert np.all(far <= np.where(k == 2, 2.0, 1.0) * G**2 / (lam**2 * k) + 1e-9)


def test_bounds_of_the_other_predictors_by_hand() -> None:
    assert theory.sgd_regret(9, 0.5, 2.0, 1.0, "poly") == pytest.approx(8.0 * 4.0 / (0.5 * 10.0))
    tail = 1.0 + 1.0 / 3.0 + 1.0 / 4.0 + 1.0 / 5.0  # n = 5, m = 2
    assert theory.sgd_regret(5, 0.5, 2.0, 1.0, "suffix") == pytest.approx(2.0 * 4.0 * tail / 1.5)
    assert theory.sgd_regret(1, 2.0, predictor="suffix") == pytest.approx(1.0)
    for n in (1000, 10**9):  # no logarithm
        for predictor in ("poly", "suffix"):
            assert n * theory.sgd_regret(n, 1.0, predictor=predictor) < 8.0
            assert theory.sgd_regret(n, 1.0, predictor=predictor) < theory.sgd_regret(n, 1.0)


@given(sizes, positive, st.sampled_from(["suffix", "poly"]), positive)
def test_predictors_have_their_own_reg(n: int, var: float, predictor: str, R: float) -> None:
    p = theory.fixed_bias(n, var, "sgd", R, 1.0, predictor)
    best = argmin(
        lambda reg: theory.fixed_bias_bound(reg, n, var, "sgd", R, 1.0, predictor), 3.0 * p.reg
    )
    assert p.bound == pytest.approx(best.fun, rel=1e-9)
    assert p.reg == pytest.approx(math.exp(best.x), rel=1e-3)
    learned = theory.learned_bias(n, 100, var, 1.0, "sgd", True, R, 1.0, predictor)
    terms = sum(theory.sgd_regret(n, learned.reg, R, 1.0, p) for p in ("average", predictor))
    cost = theory.meta_rate(n, 100, 1.0, learned.step or 0.0, "sgd", True, R, 1.0)
    assert learned.bound == pytest.approx(terms + learned.reg * var**2 + cost)


@given(sizes, st.integers(1, 1000), positive, positive, st.just(0.0) | positive, inners)
def test_conditional_bias(n: int, T: int, var: float, D: float, K: float, inner: str) -> None:
    p = theory.conditional_bias(n, T, var, D, K, inner, 2.0)
    alone = theory.learned_bias(n, T, var, D, inner, True, 2.0)
    G = 2.0 * math.sqrt(1.0 + K**2)
    across = argmin(lambda step: D**2 / (2.0 * step * T) + step * G**2 / 2.0, 3.0 * (p.step or 1))
    assert p.reg == alone.reg
    assert p.step == pytest.approx(math.exp(across.x), rel=1e-3)
    assert p.bound == pytest.approx(alone.bound - D * 2.0 / math.sqrt(T) + across.fun, rel=1e-9)


def some_tasks(p: Problem, seed: int) -> list[tuple[Array, Array]]:
    """The problem's task and three more like it."""
    rng = np.random.default_rng(seed)
    binary = p.loss.binary
    more = [(rng.normal(size=(4, p.h.size)), 2.0 * rng.normal(size=4)) for _ in range(3)]
    return [(p.X, p.y), *((X, np.where(y > 0.0, 1.0, -1.0) if binary else y) for X, y in more)]


@given(problems(("normal",), regs(-2.0, 1.0)), st.integers(0, 99))
def test_meta_objective_and_its_gradient(p: Problem, seed: int) -> None:  # item 12
    tasks = some_tasks(p, seed)
    one = [theory.meta_objective([task], p.h, p.lam, p.loss) for task in tasks]
    assert theory.meta_objective(tasks, p.h, p.lam, p.loss) == pytest.approx(np.mean(one))
    assert one[0] <= p.phi(p.h) + 1e-9
    gradient = theory.meta_gradient(tasks, p.h, p.lam, p.loss)
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=p.h.size)
    there = p.h + 0.1 * direction / np.linalg.norm(direction)
    here = theory.meta_objective(tasks, p.h, p.lam, p.loss)
    rise = theory.meta_objective(tasks, there, p.lam, p.loss) - here - gradient @ (there - p.h)
    slack = 1e-4 * (1.0 + p.lam)
    assert -slack <= rise <= p.lam / 2.0 * 0.01 + slack  # convex and lam-smooth
    passed = theory.meta_gradient(tasks[:1], p.h, p.lam, p.loss, inner="sgd")
    np.testing.assert_allclose(passed, p.X.T @ p.naive.dual / p.n, atol=1e-9)


@given(problems(("normal",), regs(-3.0, 1.0)))
def test_gradient_error_is_within_its_certificate(p: Problem) -> None:  # item 17
    found = theory.gradient_error(p.X, p.y, p.h, p.lam, p.loss)
    exact = theory.meta_gradient([(p.X, p.y)], p.h, p.lam, p.loss)
    passed = theory.meta_gradient([(p.X, p.y)], p.h, p.lam, p.loss, inner="sgd")
    assert found.error == pytest.approx(float(np.linalg.norm(exact - passed)), abs=1e-9)
    assert found.bound**2 == pytest.approx(2.0 * p.lam * found.epsilon)
    assert found.error <= found.bound + 1e-3 * math.sqrt(p.lam) + 1e-6


@pytest.mark.parametrize("inner", ["sgd", "erm"])
@given(
    p=problems(("normal", "outliers"), regs(-2.0, 1.0)),
    step=positive,
    seed=st.integers(0, 99),
)
def test_meta_regret_of_any_sequence(inner: str, p: Problem, step: float, seed: int) -> None:
    tasks = some_tasks(p, seed)  # item 21
    found = theory.meta_regret(tasks, p.h, p.lam, step, p.loss, inner)
    assert found.regret <= found.bound + 1e-4 * (1.0 + p.lam)
    path = learn_bias(tasks, p.lam, step, p.loss, inner, keep_path=True).path
    assert path is not None
    regret = sum(
        theory.meta_objective([task], h, p.lam, p.loss)
        - theory.meta_objective([task], p.h, p.lam, p.loss)
        for task, h in zip(tasks, path[:-1], strict=True)
    )
    assert found.regret == pytest.approx(regret, abs=1e-5 * (1.0 + abs(regret)))
    assert found.distance == pytest.approx(float(p.h @ p.h) / (2.0 * step))
    square = sum(
        np.sum(np.square(theory.meta_gradient([task], h, p.lam, p.loss, inner)))
        for task, h in zip(tasks, path[:-1], strict=True)
    )
    assert found.gradients == pytest.approx(step / 2.0 * square, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.sgd_regret(5, 1.0, predictor="last"),
            "predictor: expected one of 'average",
        ),
        (lambda: theory.meta_gradient([([[1.0]], [1.0])], [0.0], 1.0, inner="constant"), "inner: "),
        (lambda: theory.meta_regret([([[1.0]], [1.0])], [0.0, 1.0], 1.0, 1.0), "comparator: expec"),
        (lambda: theory.conditional_bias(5, 5, 1.0, 1.0, -1.0), "side_radius: expected a finite n"),
        (lambda: theory.fixed_bias(0, 1.0), "n: expected an integer >= 1 and <= .*, found 0"),
        (lambda: theory.fixed_bias(5, 0.0), "var_h: expected a finite number > 0, found 0"),
        (lambda: theory.fixed_bias(5, 1.0, "adam"), "inner: expected one of 'sgd', 'erm'"),
        (lambda: theory.learned_bias(5, 0, 1.0, 1.0), "n_tasks: expected an integer >= 1"),
        (lambda: theory.sgd_regret(5, -1.0), "reg: expected a finite number > 0, found -1"),
        (lambda: theory.erm_stability(5, 1.0, radius=0.0), "radius: expected a finite number > 0"),
        (lambda: theory.var_h([1.0], [1.0]), "weights: expected a 2-D array"),
        (lambda: theory.last_distance(-1.0, 1.0), "epsilon: expected a finite number >= 0"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
