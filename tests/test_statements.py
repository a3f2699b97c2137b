"""Statements of the theory pages that no other test has: in expectation, and of no function.

What holds in expectation is tested by going through all data sets of a task with few different
rows, so that nothing is left to chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import Problem, problems, regs

from headstart import biased_erm, biased_sgd, learn_bias
from headstart.environments import RegressionEnvironment
from headstart.theory import certificate, erm_generalisation, primal_value, sgd_regret

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FiniteTask:
    """A task that draws each row from a few, with equal chances; labels for the absolute loss."""

    X: Array
    y: Array
    n: int
    reg: float
    bias: Array

    def data_sets(self) -> Iterator[tuple[Array, Array]]:
        """All samples of n rows, in every order: each is as likely as the others."""
        for chosen in product(range(len(self.y)), repeat=self.n):
            yield self.X[list(chosen)], self.y[list(chosen)]

    def risk(self, w: NDArray[np.floating]) -> float:
        return float(np.abs(self.X @ w - self.y).mean())

    def iterates(self, X: Array, y: Array) -> Array:
        """w_1 to w_n of Algorithm 1, each from the subgradients of the rows before."""
        u = biased_sgd(X, y, self.bias, self.reg).dual
        sums = np.vstack([np.zeros(X.shape[1]), np.cumsum(u[:, None] * X, axis=0)[:-1]])
        return np.asarray(self.bias - sums / (self.reg * np.maximum(np.arange(len(y)), 1))[:, None])

    @property
    def radius(self) -> float:
        return float(np.linalg.norm(self.X, axis=1).max())


@pytest.fixture(scope="module", params=range(4))
def task(request: pytest.FixtureRequest) -> FiniteTask:
    rng = np.random.default_rng(request.param)
    reg = [0.05, 0.3, 1.0, 3.0][request.param]
    return FiniteTask(rng.normal(size=(3, 2)), 2.0 * rng.normal(size=3), 4, reg, rng.normal(size=2))


def test_iterates_pay_their_risk_on_average(task: FiniteTask) -> None:  # items 9 and 10
    paid, risks, excess = [], [], []
    for X, y in task.data_sets():
        w = task.iterates(X, y)
        paid.append(np.abs(np.einsum("kd,kd->k", X, w) - y).mean())
        risks.append(np.mean([task.risk(one) for one in w]))
        average = biased_sgd(X, y, task.bias, task.reg).average
        exact = biased_erm(X, y, task.bias, task.reg).weights
        least = primal_value(X, y, exact, task.bias, task.reg)
        np.testing.assert_allclose(average, w.mean(axis=0), atol=1e-12)
        excess.append(task.risk(average) - least)
    assert np.mean(paid) == pytest.approx(np.mean(risks), rel=1e-12)
    assert np.mean(excess) <= sgd_regret(task.n, task.reg, task.radius)


def test_rows_drawn_again_do_not_pay_their_risk() -> None:  # item 10's caveat, erratum E12
    X, y = np.array([[1.0], [1.0]]), np.array([5.0, -5.0])
    task = FiniteTask(X, y, 2, 0.2, np.zeros(1))
    paid, risks = [], []
    for rows_X, rows_y in task.data_sets():
        for again in product(range(2), repeat=2):  # the rows of a task, drawn with replacement
            drawn_X, drawn_y = rows_X[list(again)], rows_y[list(again)]
            w = task.iterates(drawn_X, drawn_y)
            paid.append(np.abs(np.einsum("kd,kd->k", drawn_X, w) - drawn_y).mean())
            risks.append(np.mean([task.risk(one) for one in w]))
    assert np.mean(paid) < np.mean(risks) - 0.1


def test_certificates_are_below_the_constant_on_average(task: FiniteTask) -> None:  # item 18
    # the minimiser of the regularised risk: that of a task with every row once
    best = biased_erm(task.X, task.y, task.bias, task.reg, tol=1e-10).weights
    epsilons, errors = [], []
    for X, y in task.data_sets():
        found = biased_sgd(X, y, task.bias, task.reg)
        exact = biased_erm(X, y, task.bias, task.reg, tol=1e-10).weights
        epsilons.append(certificate(X, y, found.dual, task.bias, task.reg, weights=best))
        errors.append(task.reg**2 * np.sum((found.last - exact) ** 2))
    constant = sgd_regret(task.n, task.reg, task.radius)
    assert np.mean(epsilons) <= constant
    assert np.mean(errors) <= 2.0 * task.reg * constant  # 4 R^2 L^2 (log n + 1) / n


def test_exact_solutions_generalise_on_average(task: FiniteTask) -> None:  # erratum E3
    excess = []
    for X, y in task.data_sets():
        w = biased_erm(X, y, task.bias, task.reg, tol=1e-10).weights
        excess.append(task.risk(w) - np.abs(X @ w - y).mean())
    assert 0.0 <= np.mean(excess) <= erm_generalisation(task.n, task.reg, task.radius)


@pytest.mark.parametrize("power", [0, 1])  # items 25 and 26
@given(p=problems(reg=regs(-3.0, 2.0)))
def test_the_divisor_may_count_the_row_that_comes(power: int, p: Problem) -> None:
    alpha = np.arange(1.0, p.n + 1.0) ** power
    total, paid, steps = np.zeros(p.h.size), 0.0, 0.0
    A, share = np.cumsum(alpha), alpha / alpha.sum()
    u = np.empty(p.n)
    for k in range(p.n):
        w = p.h - total / (p.lam * A[k])
        z = float(p.X[k] @ w)
        u[k] = float(p.loss.subgradient(z, p.y[k]))
        pull = p.lam / 2.0 * float(np.sum((w - p.h) ** 2))
        paid += share[k] * (float(p.loss.value(z, p.y[k])) + pull)
        steps += alpha[k] ** 2 * u[k] ** 2 * float(p.X[k] @ p.X[k]) / A[k]
        total = total + alpha[k] * u[k] * p.X[k]
    g = p.X.T @ (share * u)  # the dual value of these slopes is a lower bound of the minimum
    lower = -float(share @ p.loss.conjugate(u, p.y)) - g @ g / (2.0 * p.lam) + p.h @ g
    bound = steps / (2.0 * p.lam * A[-1])
    assert paid - lower <= bound + 1e-9 * (1.0 + paid + p.lr**2 / p.lam)
    R2 = float(np.max(np.sum(p.X**2, axis=1)))
    log_free = 2.0 * p.loss.lipschitz**2 * R2 / (p.lam * (p.n + 1))
    quarter = 0.25 * sgd_regret(p.n, p.lam, max(R2, 1e-20) ** 0.5, p.loss.lipschitz)
    assert bound <= (log_free if power else quarter) * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize(("s", "a"), [(4.0, 1.0), (1.0, 0.25), (0.5, 8.0)])
def test_other_units_are_other_parameters(s: float, a: float) -> None:  # statement 28
    tasks = RegressionEnvironment(n_features=4).draw(30, 7, random_state=0).tasks
    reg, step, h = 0.3, 0.5, np.array([1.0, -2.0, 0.5, 3.0])
    here = learn_bias(tasks, reg, step, initial=h).bias
    pairs = [(s * X, a * y) for X, y in tasks]
    there = learn_bias(pairs, s**2 * reg / a, a * step / s**2, initial=a * h / s).bias
    np.testing.assert_allclose(there, a * here / s, rtol=1e-9)


@given(problems(reg=regs(-2.0, 1.0)), st.integers(0, 2**32 - 1))
def test_one_certificate_serves_all_gradients(p: Problem, seed: int) -> None:  # P6
    rng = np.random.default_rng(seed)
    d = p.h.size

    def metric() -> Array:
        root = rng.normal(size=(d, d)) / np.sqrt(d)
        return np.asarray(root @ root.T + 0.2 * np.eye(d))

    def cost(h: Array, D: Array, lam: float) -> tuple[float, Array, float]:
        """What the task costs, the meta-gradient of one pass, and its certificate."""
        S = np.linalg.cholesky(D)
        X, start = p.X @ S, np.linalg.solve(S, h)
        exact = biased_erm(X, p.y, start, lam, p.loss, tol=1e-9).weights
        dual = biased_sgd(X, p.y, start, lam, p.loss).dual
        value = primal_value(X, p.y, exact, start, lam, p.loss)
        gap = certificate(X, p.y, dual, start, lam, p.loss, weights=exact)
        return value, p.X.T @ dual / p.n, gap

    D, lam = metric(), p.lam
    here, g, epsilon = cost(p.h, D, lam)
    for _ in range(3):
        h, other, reg = p.h + rng.normal(size=d), metric(), lam * 10.0 ** rng.uniform(-1, 1)
        slack = 1e-6 * (1.0 + here + epsilon)
        along_D = g @ (h - p.h) - g @ (other - D) @ g / (2.0 * lam)
        assert cost(h, other, lam)[0] >= here + along_D - epsilon - slack
        along_reg = g @ (h - p.h) - 0.5 * (1.0 / reg - 1.0 / lam) * (g @ D @ g)
        assert cost(h, D, reg)[0] >= here + along_reg - epsilon - slack
