"""What is known of tasks: the textbook's formulas, every loss, every shape of the covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Array, normal_posterior
from sklearn.linear_model import Ridge
from strategies import losses
from test_losses import OwnHuber

from headstart import (
    LOSSES,
    Absolute,
    Huber,
    Logistic,
    Loss,
    Posterior,
    Prior,
    TaskSet,
    biased_erm,
    get_loss,
)
from headstart._core.jit import uncached
from headstart.inner.posterior import dense
from headstart.inner.posterior.evidence import packed, unpacked

SEEDS = st.integers(0, 2**32 - 1)


def spread(rng: np.random.Generator, k: int) -> Array:
    root = rng.normal(size=(k, k)) * 10.0 ** rng.uniform(-2.0, 1.0, k)
    return np.asarray(root.T @ root + 1e-6 * np.eye(k))


def labels(rng: np.random.Generator, loss: Loss, z: Array) -> Array:
    noisy = z + rng.normal(size=z.shape)
    return np.where(noisy > 0.0, 1.0, -1.0) if loss.binary else noisy


@given(SEEDS, st.integers(1, 9), st.integers(1, 5))
def test_the_posterior_is_the_textbooks(seed: int, n: int, d: int) -> None:
    """Few rows and many columns, and the other way round."""
    rng = np.random.default_rng(seed)
    X, h, sigma, noise = rng.normal(size=(n, d)), rng.normal(size=d), spread(rng, d), 0.3
    y = X @ h + rng.normal(size=n)
    known = Prior(h, sigma, noise).posterior(X, y)
    expected = normal_posterior(X, y, h, sigma, np.full(n, noise))
    scale = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    np.testing.assert_allclose(known.weights, expected.mean, atol=1e-6 * np.sqrt(scale.max()))
    np.testing.assert_allclose(known.covariance, expected.covariance, atol=1e-6 * scale.max())
    likely = Prior(h, sigma, noise).log_likelihood([(X, y)])
    assert likely == pytest.approx(expected.log_likelihood, rel=1e-6, abs=1e-6)


def test_an_isotropic_prior_is_ridge_toward_the_bias() -> None:
    rng = np.random.default_rng(0)
    X, y, h = rng.normal(size=(20, 4)), rng.normal(size=20), rng.normal(size=4)
    known = Prior(h, 0.5, noise=2.0, metric="isotropic").posterior(X, y)
    ridge = Ridge(alpha=2.0 / 0.5, fit_intercept=False).fit(X, y - X @ h)
    np.testing.assert_allclose(known.weights, h + ridge.coef_, rtol=1e-9)


@pytest.mark.parametrize("loss", [Absolute(), Huber(0.5), Logistic(), get_loss("hinge")])
def test_where_little_is_left_unknown_the_posterior_is_the_exact_solution(loss: Loss) -> None:
    """With noise and covariance going to 0 together the variance goes, and the mean is the mode.

    That is `biased_erm` in columns scaled by the covariance's root, with reg noise / n.
    """
    rng = np.random.default_rng(1)
    X, h = rng.normal(size=(12, 3)), rng.normal(size=3)
    root = np.tril(rng.normal(size=(3, 3))) + 2.0 * np.eye(3)
    y = labels(rng, loss, X @ h)
    tiny = 1e-7
    exact = biased_erm(X @ root, y, np.linalg.solve(root, h), 0.2 / 12, loss, tol=1e-12)
    if loss.binary:  # the noise is 1: rows count more often instead, and the prior is as tight
        known = Prior(h, tiny * root @ root.T / 0.2, loss=loss).posterior(
            X, y, sample_weight=np.full(12, 1.0 / tiny)
        )
    else:
        known = Prior(h, tiny * root @ root.T, noise=0.2 * tiny, loss=loss).posterior(X, y)
    near = 0.03 if loss.bounded else 0.15  # the logistic loss has a stand-in
    np.testing.assert_allclose(known.weights, root @ exact.weights, atol=near)


@settings(max_examples=50)
@given(SEEDS, losses())
def test_all_ways_to_a_posterior_agree(seed: int, loss: Loss) -> None:
    """Dense or by the rows, alone or among others, in any order, in another thread."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    sizes = rng.integers(1, 12, 40)
    W = rng.normal(size=(40, d))
    pairs = []
    for n, w in zip(sizes, W, strict=True):
        X = rng.normal(size=(n, d))
        pairs.append((X, labels(rng, loss, X @ w)))
    noise = 1.0 if loss.binary else 0.5
    prior = Prior(rng.normal(size=d), spread(rng, d) + np.eye(d), noise, loss)
    many = prior.posteriors(pairs, covariance=True)
    assert many.covariance is not None
    np.testing.assert_array_equal(
        many.weights, prior.posteriors(pairs, covariance=True, n_jobs=3).weights
    )
    for t in (0, 7, 39):
        X, y = pairs[t]
        order = rng.permutation(len(y))
        one = prior.posterior(X[order], y[order])
        np.testing.assert_allclose(one.weights, many.weights[t], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(one.covariance, many.covariance[t], rtol=1e-4, atol=1e-5)


@given(SEEDS, losses())
def test_a_diagonal_is_a_full_covariance_without_the_rest(seed: int, loss: Loss) -> None:
    rng = np.random.default_rng(seed)
    X, variances = rng.normal(size=(3, 8)), 10.0 ** rng.uniform(-1.0, 1.0, 8)
    y = labels(rng, loss, X @ np.ones(8))
    diagonal = Prior(np.zeros(8), variances, loss=loss)
    almost = np.diag(variances)
    almost[0, 1] = almost[1, 0] = 1e-13
    full = Prior(np.zeros(8), almost, loss=loss)
    assert diagonal.standard.covariance.size == 0 < full.standard.covariance.size
    for one, other in zip(
        (diagonal.posterior(X, y).weights, diagonal.posterior(X, y).covariance),
        (full.posterior(X, y).weights, full.posterior(X, y).covariance),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_thousands_of_columns() -> None:
    """O(n^2 d): were anything as large as d^2 for every task, this would take minutes."""
    rng = np.random.default_rng(0)
    d = 2000
    variances = 10.0 ** rng.uniform(-2.0, 0.0, d)
    pairs = []
    for _ in range(200):
        X = rng.normal(size=(5, d))
        pairs.append((X, X @ (np.sqrt(variances) * rng.normal(size=d))))
    prior = Prior(np.zeros(d), variances, noise=0.1)
    W = prior.posteriors(pairs).weights
    X, y = pairs[3]
    gain = variances[:, None] * X.T @ np.linalg.inv((X * variances) @ X.T + 0.1 * np.eye(5))
    np.testing.assert_allclose(W[3], gain @ y, rtol=1e-8)


@given(SEEDS, losses())
def test_a_row_at_a_time(seed: int, loss: Loss) -> None:
    """Exact for the squared loss; for all, the same as the rows at once as they are given."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))
    y = labels(rng, loss, X @ np.array([1.0, -1.0]))
    prior = Prior([0.5, -0.5], [[0.5, 0.2], [0.2, 0.5]], loss=loss)
    known = prior.posterior()
    for i in range(6):
        known = known.update(X[i : i + 1], y[i : i + 1])
    if loss.name == "squared":
        whole = prior.posterior(X, y)
        np.testing.assert_allclose(known.weights, whole.weights, atol=1e-9)
        np.testing.assert_allclose(known.covariance, whole.covariance, atol=1e-9)
    at_once = prior.posterior().update(X, y)
    np.testing.assert_array_equal(known.weights, at_once.weights)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared"])
def test_a_row_at_a_time_is_near_all_rows_together(name: str) -> None:
    """On the mean over tasks: no bound holds for each."""
    loss, near, far = get_loss(name), [], []
    prior = Prior([0.5, -0.5], [[0.5, 0.2], [0.2, 0.5]], loss=loss)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6, 2))
        y = labels(rng, loss, X @ np.array([1.0, -1.0]))
        whole = prior.posterior(X, y).weights
        near.append(np.abs(prior.posterior().update(X, y).weights - whole).mean())
        far.append(np.abs(prior.bias - whole).mean())
    assert np.mean(near) < 0.25 * np.mean(far)


@pytest.mark.parametrize("name", ["logistic", "hinge", "absolute"])
@pytest.mark.parametrize(("f", "v", "y"), [(0.0, 1.0, 1.0), (0.0, 1e4, 1.0), (3.0, 1e3, -1.0)])
def test_one_row_taken_either_way_is_near_the_true_posterior(
    name: str, f: float, v: float, y: float
) -> None:
    """By numbers on a fine grid; however wide the prior is, the iteration ends."""
    prior = Prior([f], v, loss=name)
    single = prior.posterior().update([[1.0]], [y])
    batch = prior.posterior([[1.0]], [y])
    z = np.linspace(f - 8.0 * np.sqrt(v) - 30.0, f + 8.0 * np.sqrt(v) + 30.0, 100_001)
    density = np.exp(-((z - f) ** 2) / (2.0 * v) - get_loss(name).value(z, y))
    mean = float((density * z).sum() / density.sum())
    width = np.sqrt(v)
    assert single.weights[0] == pytest.approx(batch.weights[0], abs=0.15 * width)
    assert single.weights[0] == pytest.approx(mean, abs=0.15 * width)


@given(SEEDS, losses())
def test_a_row_that_counts_twice_is_two_rows(seed: int, loss: Loss) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 3))
    y = labels(rng, loss, X.sum(axis=1))
    prior = Prior(np.ones(3), 1.0, loss=loss)
    times = np.array([2.0, 0.0, 1.0, 3.0])
    rows = np.repeat(np.arange(4), times.astype(int))
    weighted, repeated = (
        prior.posterior(X, y, sample_weight=times),
        prior.posterior(X[rows], y[rows]),
    )
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-4, atol=1e-6)


def test_an_own_loss_has_a_posterior() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    ours, theirs = (Prior(np.zeros(3), 1.0, 0.4, loss) for loss in (OwnHuber(0.5), Huber(0.5)))
    np.testing.assert_array_equal(ours.posterior(X, y).weights, theirs.posterior(X, y).weights)
    assert ours.log_likelihood([(X, y)]) == theirs.log_likelihood([(X, y)])


def test_float32_is_kept() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 2)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    prior = Prior(np.zeros(2), 1.0)
    known = prior.posterior(X, y)
    assert known.weights.dtype == known.covariance.dtype == np.float32
    assert prior.posteriors([(X, y)]).weights.dtype == np.float32
    np.testing.assert_allclose(
        known.weights, prior.posterior(X.astype(float), y).weights, rtol=1e-6
    )


def test_what_is_known_before_any_row_is_the_prior() -> None:
    sigma = np.array([[2.0, 0.5], [0.5, 1.0]])
    known = Prior([1.0, 2.0], sigma, noise=0.25).posterior()
    assert isinstance(known, Posterior)
    np.testing.assert_allclose(known.covariance, sigma, rtol=1e-12)
    np.testing.assert_allclose(known.variance([[1.0, 1.0]]), [4.0 + 0.25])
    low, high = known.interval([[1.0, 1.0]], coverage=0.5)[0]
    assert (low + high) / 2.0 == pytest.approx(3.0)
    assert high - low == pytest.approx(2.0 * 0.6744897 * np.sqrt(4.25))


def test_probabilities_go_to_a_half_where_little_is_known() -> None:
    sure, unsure = (Prior([2.0], v, loss="logistic").posterior() for v in (1e-9, 100.0))
    assert sure.probability([[1.0]])[0] == pytest.approx(1.0 / (1.0 + np.exp(-2.0)))
    expected = 1.0 / (1.0 + np.exp(-2.0 / np.sqrt(1.0 + np.pi * 100.0 / 8.0)))
    assert unsure.probability([[1.0]])[0] == pytest.approx(expected)


def test_probabilities_are_those_of_the_integral() -> None:
    """Of the sigmoid over the normal distribution of the prediction, to a percent."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(200)
    for f, v in ((0.3, 0.5), (2.0, 4.0), (-1.0, 9.0)):
        exact = shares @ (1.0 / (1.0 + np.exp(-(f + np.sqrt(v) * nodes)))) / shares.sum()
        found = Prior([f], v, loss="logistic").posterior().probability([[1.0]])[0]
        assert found == pytest.approx(exact, abs=0.01)


@uncached
def swept(M: Any, k: int, live: int, log_det: Any, product: Any, column: Any) -> None:
    """The compiled form of what only kernels call."""
    dense.sweep(M, k, live, log_det, product, column)


@given(SEEDS, st.integers(1, 12), st.integers(1, 40))
def test_inverses_side_by_side(seed: int, k: int, live: int) -> None:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(live, k, k))
    full = roots @ roots.transpose(0, 2, 1) + np.eye(k)
    live = min(live, dense.LANES)
    M = np.full((k * (k + 1) // 2, dense.LANES), np.nan)
    M[:, :live] = packed(full[:live]).T
    log_det, product = np.zeros(dense.LANES), np.empty(dense.LANES)
    swept(M, k, live, log_det, product, np.empty((k + 2, dense.LANES)))
    np.testing.assert_allclose(
        unpacked(-M[:, :live].T.copy()), np.linalg.inv(full[:live]), atol=1e-8
    )
    np.testing.assert_allclose(log_det[:live], np.linalg.slogdet(full[:live])[1], rtol=1e-9)


def test_what_is_no_covariance_has_no_inverse() -> None:
    M = np.repeat(packed(np.diag([1.0, -1.0, -1.0]))[:, None], dense.LANES, axis=1)
    log_det, product = np.zeros(dense.LANES), np.empty(dense.LANES)
    swept(M, 3, dense.LANES, log_det, product, np.empty((5, dense.LANES)))
    assert np.isnan(log_det).all()
    assert np.isnan(M).all()


def call(**change: Any) -> object:
    return Prior(**{"bias": np.zeros(2), "covariance": np.eye(2), **change})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: call(covariance=[1.0]), r"covariance: expected shape \(2, 2\), found \(1,\)"),
        (lambda: call(covariance=-1.0), "covariance: expected a finite number > 0"),
        (lambda: call(covariance=[[1.0, 2.0], [2.0, 1.0]]), "expected a positive definite matrix"),
        (lambda: call(covariance=[[1.0, 2.0], [0.0, 9.0]]), "expected a symmetric matrix"),
        (lambda: call(noise=0.0), "noise: expected a finite number > 0, found 0"),
        (lambda: call(noise=2.0, loss="hinge"), "noise: expected 1 with the hinge loss"),
        (lambda: call(metric="round"), "metric: expected one of 'isotropic'"),
        (lambda: call(side_effects=[[1.0]]), "side_effects: expected 2 rows, found 1"),
        (
            lambda: Prior([0.0], 1.0).posterior([[1.0, 2.0]], [1.0]),
            "X: expected 1 columns, found 2",
        ),
        (lambda: Prior([0.0], 1.0).posterior([[np.nan]], [1.0]), "X: expected finite numbers"),
        (
            lambda: Prior([0.0], 1.0).posterior([[1.0]], [1.0], sample_weight=[-1.0]),
            "sample_weight: expected numbers >= 0, found -1",
        ),
        (
            lambda: Prior([0.0], 1.0, loss="hinge").posterior([[1.0]], [0.0]),
            "y: the hinge loss takes labels -1 and",
        ),
        (lambda: Prior([0.0], 1.0, loss="hinge").posterior().interval([[1.0]]), "use probability"),
        (lambda: Prior([0.0], 1.0).posterior().probability([[1.0]]), "need the logistic loss"),
        (
            lambda: Prior([0.0], 1.0).posteriors([([[1.0, 1.0]], [1.0])]),
            "expected 1 columns, found 2",
        ),
        (
            lambda: Prior([0.0], 1.0, side_effects=[[1.0]]).start(),
            "side: a start needs the 1 numbers known of each task",
        ),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_task_that_is_known_starts_from_what_is_known() -> None:
    prior = Prior([1.0, 0.0], 1.0, side_effects=[[0.0], [2.0]])
    np.testing.assert_allclose(prior.start([3.0]), [1.0, 6.0])
    np.testing.assert_allclose(prior.posterior(side=[3.0]).weights, [1.0, 6.0])
    shifted = Prior([1.0, 6.0], 1.0)
    X, y = np.array([[1.0, 2.0]]), np.array([4.0])
    np.testing.assert_allclose(
        prior.posterior(X, y, side=[3.0]).weights, shifted.posterior(X, y).weights
    )
    many = prior.posteriors([(X, y), (X, y)], side=[[3.0], [0.0]]).weights
    np.testing.assert_allclose(many[0], shifted.posterior(X, y).weights)


def test_a_set_of_tasks_in_the_users_units_with_an_intercept() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(2000.0, 10.0, (30, 1))
    y = 3.0 * X[:, 0] + rng.normal(size=30)
    prior = Prior([3.0, 0.0], [[1.0, 0.0], [0.0, 400.0]], intercept=True)
    tasks = TaskSet.from_arrays(X, y, np.repeat(np.arange(6), 5))
    wide = Prior([3.0, 0.0], [[1.0, 0.0], [0.0, 400.0]])
    ones = TaskSet.from_arrays(np.column_stack([X, np.ones(30)]), y, np.repeat(np.arange(6), 5))
    np.testing.assert_allclose(
        prior.posteriors(tasks).weights, wide.posteriors(ones).weights, rtol=1e-6
    )
