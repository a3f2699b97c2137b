"""Prescriptions minimise their bounds; certificates hold for every sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from strategies import Problem, problems, regs

from headstart import biased_erm, biased_sgd, theory

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
    assert theory.certificate([[1.0]], [3.0], [2.0], [0.0], 1.0) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
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
