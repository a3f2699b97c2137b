"""Learning the prior: likelihoods that rise, mixed models, units, order, threads, odd tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from reference import Array, em_step, normal_posterior
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge
from test_losses import OwnHuber
from threadpoolctl import ThreadpoolController

from headstart import Huber, Pinball, Prior, Squared, TaskSet, get_loss, learn_prior
from headstart.environments import RegressionEnvironment
from headstart.inner.posterior import Evidence
from headstart.meta.prior.accelerate import climb
from headstart.meta.prior.em import Aim, Learning, learn
from headstart.meta.prior.shapes import Diagonal, Full
from headstart.meta.prior.shown import task_evidence
from headstart.meta.prior.units import start_seen_from
from headstart.parquet import ParquetRows
from headstart.tasks.columns import Columns
from headstart.tasks.ids import hash_ids

SEEDS = st.integers(0, 2**32 - 1)
METRICS = ["isotropic", "diagonal", "full"]


def drawn(
    seed: int, T: int = 60, d: int = 3, n: int = 8, loss: str = "squared", noise: float = 1.0
) -> TaskSet:
    rng = np.random.default_rng(seed)
    h, root = rng.normal(size=d), np.tril(rng.normal(size=(d, d)))
    pairs = []
    for size in rng.integers(max(1, n // 2), n + n // 2 + 1, T):
        X = rng.normal(size=(size, d))
        z = X @ (h + root @ rng.normal(size=d)) + noise * rng.normal(size=size)
        pairs.append((X, np.where(z > 0.0, 1.0, -1.0) if get_loss(loss).binary else z))
    return TaskSet.from_list(pairs)


def same(one: Prior, other: Prior, rtol: float) -> None:
    size = np.sqrt(np.diag(other.covariance))
    assert np.abs(one.bias - other.bias).max() <= rtol * (size.max() + np.abs(other.bias).max())
    assert np.abs(one.covariance - other.covariance).max() <= rtol * np.abs(other.covariance).max()
    assert one.noise == pytest.approx(other.noise, rel=rtol)


@settings(max_examples=60)
@given(SEEDS, st.sampled_from(METRICS), st.sampled_from(["squared", "hinge", "huber"]))
def test_no_step_lowers_the_likelihood(seed: int, metric: str, name: str) -> None:
    tasks = drawn(seed, T=1 + seed % 9, d=1 + seed % 3, n=4, loss=name)
    loss = get_loss(name)
    shared = 0 if seed % 4 == 3 else None
    shape = (
        Full(0.3, np.ones(tasks.n_features), shared)
        if metric == "full"
        else Diagonal(same=metric == "isotropic", shared=shared)
    )
    learning = Learning(task_evidence(tasks, loss)[0], loss, shape)
    values = []

    def watched(point: Array, state: Any) -> Any:
        step = learning.take(point, state)
        assert step.sure is not None
        sure = learning.take(step.sure(), step.state)
        values.append((step.value, sure.value))
        return step

    climb(watched, learning.first, learning.moments, 1e-6, 25)
    for before, after in values:
        assert after >= before - 1e-6 * (1.0 + abs(before))


@given(SEEDS)
def test_the_sure_step_is_expectation_maximisation(seed: int) -> None:
    tasks = drawn(seed, T=8, d=2, n=5)
    loss = get_loss("squared")
    e, columns, *_ = task_evidence(tasks, loss)
    learning = Learning(e, loss, Full(), pulled=False)
    step = learning.take(learning.first, learning.moments)
    assert step.sure is not None
    before, after = learning.prior(step.point)[0], learning.prior(step.sure())[0]
    pairs = [(columns.rows(X), y) for X, y in tasks]
    h, C, noise = em_step(pairs, before.effects[:, 0], np.diag(before.variances), before.noise)
    np.testing.assert_allclose(after.effects[:, 0], h, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(after.covariance, C, rtol=1e-5, atol=1e-7)
    assert after.noise == pytest.approx(noise, rel=1e-7)
    likely = sum(
        normal_posterior(
            X, y, before.effects[:, 0], np.diag(before.variances), np.full(len(y), before.noise)
        ).log_likelihood
        for X, y in pairs
    )
    assert step.value == pytest.approx(likely, rel=1e-9)


@pytest.mark.parametrize("seed", range(1, 6))
def test_against_a_mixed_model(seed: int) -> None:
    tasks = drawn(seed, T=80, d=2, n=10)
    prior = learn_prior(tasks, metric="full", shrink=0.0, tol=1e-9)
    groups = np.repeat(np.arange(len(tasks)), tasks.sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sm.MixedLM(tasks.y, tasks.X, groups, exog_re=tasks.X).fit(
            reml=False, method=["lbfgs", "powell", "bfgs"]
        )
    assert prior.log_likelihood(tasks) >= fit.llf - 1e-3
    np.testing.assert_allclose(prior.bias, fit.fe_params, rtol=1e-3, atol=1e-3)
    scale = np.abs(prior.covariance).max()
    np.testing.assert_allclose(prior.covariance, fit.cov_re, atol=1e-3 * scale)
    assert prior.noise == pytest.approx(fit.scale, rel=1e-3)


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_weight_that_tasks_share_against_a_mixed_model(seed: int) -> None:
    tasks, loss = drawn(seed, T=80, d=3, n=10), Squared()
    e, columns, *_ = task_evidence(tasks, loss)
    found = learn(e, loss, Aim("full", 0.0, 1e-9, 500, shared=1))
    prior = Prior.learned(found.start, columns, loss, "full", found.n_iter, found.converged)
    groups = np.repeat(np.arange(len(tasks)), tasks.sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sm.MixedLM(tasks.y, tasks.X, groups, exog_re=tasks.X[:, [0, 2]]).fit(
            reml=False, method=["lbfgs", "powell", "bfgs"]
        )
    assert prior.log_likelihood(tasks) == pytest.approx(fit.llf, abs=1e-2)
    np.testing.assert_allclose(prior.bias, fit.fe_params, rtol=1e-3, atol=1e-3)
    whole = np.zeros((3, 3))
    whole[np.ix_([0, 2], [0, 2])] = fit.cov_re
    np.testing.assert_allclose(prior.covariance, whole, atol=1e-3 * np.abs(whole).max())
    assert prior.noise == pytest.approx(fit.scale, rel=1e-3)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_what_made_the_tasks_is_found(metric: str, loss: str) -> None:
    rng = np.random.default_rng(0)
    h, sd = (
        np.array([2.0, -1.0, 0.0]),
        np.array([1.0, 1.0, 1.0] if metric == "isotropic" else [1.0, 0.2, 1.5]),
    )
    pairs = []
    for _ in range(1500):
        X = rng.normal(size=(12, 3))
        z = X @ rng.normal(h, sd)
        if loss == "logistic":
            z = np.where(rng.random(12) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)
        else:
            z += (
                rng.laplace(scale=0.5, size=12) if loss == "absolute" else 0.5 * rng.normal(size=12)
            )
        pairs.append((X, z))
    prior = learn_prior(pairs, loss, metric)
    wide = 0.2 if loss == "absolute" else 0.12  # its bound loses a small variance
    np.testing.assert_allclose(prior.bias, h, atol=wide)
    np.testing.assert_allclose(np.sqrt(np.diag(prior.covariance)), sd, atol=wide)
    assert prior.noise == pytest.approx(
        {"squared": 0.25, "absolute": 0.5, "logistic": 1.0}[loss], rel=0.1
    )


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic", "hinge"])
def test_rows_and_tasks_in_another_order(loss: str) -> None:
    tasks = drawn(5, loss=loss)
    rng = np.random.default_rng(0)
    pairs = []
    for t in rng.permutation(len(tasks)):
        X, y = tasks[int(t)]
        rows = rng.permutation(len(y))
        pairs.append((X[rows], y[rows]))
    same(learn_prior(pairs, loss), learn_prior(tasks, loss), 1e-5)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    tasks = drawn(6, T=2000)
    for loss in ("squared", "absolute"):
        one, three = (learn_prior(tasks, loss, n_jobs=n, max_iter=500) for n in (1, 3))
        np.testing.assert_array_equal(one.covariance, three.covariance)
        np.testing.assert_array_equal(one.bias, three.bias)
        assert one.noise == three.noise


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_units_do_not_matter(metric: str, loss: str) -> None:
    tasks = drawn(7, T=100, loss=loss)
    factor, shift = np.array([1.0, 10.0, 15_000.0]), np.array([0.0, 5.0, -2e5])
    a, c = (1.0, 0.0) if loss == "logistic" else (30.0, 700.0)
    other = TaskSet(tasks.X * factor + shift, a * tasks.y + c, tasks.offsets, tasks.ids)
    shots, _ = tasks.split_rows(2)
    moved, _ = other.split_rows(2)
    one, two = (learn_prior(t, loss, metric, fit_intercept=True) for t in (tasks, other))
    new = np.random.default_rng(0).normal(size=(50, 3))
    for t in (0, 50):
        mine = one.posterior(*shots[t])
        theirs = two.posterior(*moved[t])
        unit = a * tasks.y.std()
        np.testing.assert_allclose(
            a * mine.predict(new) + c, theirs.predict(new * factor + shift), atol=1e-5 * unit
        )
        np.testing.assert_allclose(
            a * a * mine.variance(new), theirs.variance(new * factor + shift), rtol=1e-4
        )


def test_results_are_in_the_users_units() -> None:
    rng = np.random.default_rng(1)
    years, user = rng.uniform(1990.0, 2020.0, 4000), np.repeat(np.arange(400), 10)
    slope = rng.normal(2.0, 0.5, 400)
    y = 100.0 + slope[user] * (years - 2005.0) + rng.normal(size=4000)
    prior = learn_prior(TaskSet.from_arrays(years[:, None], y, user), fit_intercept=True)
    assert prior.bias[0] == pytest.approx(2.0, abs=0.1)
    assert prior.bias[1] == pytest.approx(100.0 - 2.0 * 2005.0, abs=200.0)
    assert np.sqrt(prior.covariance[0, 0]) == pytest.approx(0.5, rel=0.1)
    assert prior.posterior().predict([[2005.0]])[0] == pytest.approx(100.0, abs=0.5)
    assert prior.noise == pytest.approx(1.0, rel=0.1)


def test_shrinking_helps_where_tasks_are_few() -> None:
    """Held-out likelihood of a full covariance from 30 tasks: shrunk by default, and not."""
    environment = RegressionEnvironment(n_features=12)
    rng = np.random.default_rng(0)
    train, new = environment.draw(30, 8, rng).tasks, environment.draw(300, 8, rng).tasks
    shrunk, bare = (learn_prior(train, metric="full", shrink=s, max_iter=2000) for s in (None, 0.0))
    assert shrunk.log_likelihood(new) > bare.log_likelihood(new) + 100.0


def test_a_shrunk_covariance_is_where_shrinking_leaves_it() -> None:
    """(1 - rho) C + rho D, C being that of the next step and D the best diagonal one."""
    tasks = drawn(3, T=40, d=3)
    prior = learn_prior(tasks, metric="full", shrink=0.3, tol=1e-11, max_iter=3000)
    diagonal = learn_prior(tasks, metric="diagonal", shrink=0.0, tol=1e-11, max_iter=3000)
    pairs = [(prior.columns.rows(X), y) for X, y in tasks]
    start = prior.standard
    _, C, _ = em_step(pairs, start.effects[:, 0], start.covariance, start.noise)
    expected = 0.7 * C + 0.3 * np.diag(diagonal.standard.variances)
    np.testing.assert_allclose(start.covariance, expected, atol=1e-4 * np.abs(C).max())


def test_what_is_known_of_tasks_moves_their_start() -> None:
    rng = np.random.default_rng(0)
    side = rng.normal(10.0, 3.0, (400, 1))
    pairs = []
    for s in side[:, 0]:
        X = rng.normal(size=(4, 2))
        pairs.append(
            (X, X @ (np.array([1.0, 2.0 * s]) + 0.1 * rng.normal(size=2)) + rng.normal(size=4))
        )
    prior = learn_prior(pairs, side=side)
    assert prior.side_effects is not None
    np.testing.assert_allclose(prior.side_effects[:, 0], [0.0, 2.0], atol=0.1)
    np.testing.assert_allclose(prior.start([5.0]), [1.0, 10.0], atol=0.5)
    assert np.sqrt(np.diag(prior.covariance)).max() < 0.5
    plain = learn_prior(pairs)
    assert prior.log_likelihood(pairs, side) > plain.log_likelihood(pairs) + 500.0


def test_rows_that_count_twice() -> None:
    tasks = drawn(8, T=40)
    times = np.random.default_rng(0).integers(0, 3, len(tasks.y))
    times[tasks.offsets[:-1]] = 1
    rows = np.repeat(np.arange(len(times)), times)
    groups = np.repeat(np.arange(len(tasks)), tasks.sizes)
    repeated = TaskSet.from_arrays(tasks.X[rows], tasks.y[rows], groups[rows])
    for loss in ("squared", "absolute"):
        weighted = learn_prior(tasks, loss, sample_weight=times, fit_intercept=True)
        same(weighted, learn_prior(repeated, loss, fit_intercept=True), 1e-4)


def test_an_own_loss_learns_a_prior() -> None:
    tasks = drawn(9)
    same(learn_prior(tasks, OwnHuber(0.5)), learn_prior(tasks, Huber(0.5)), 1e-12)


def finite(prior: Prior) -> None:
    assert np.isfinite(prior.bias).all()
    assert np.isfinite(prior.covariance).all()
    assert np.linalg.eigvalsh(prior.covariance).min() > -1e-9 * np.abs(prior.covariance).max()
    assert 0.0 < prior.noise < np.inf


def odd(kind: str, loss: str) -> TaskSet:
    rng = np.random.default_rng(0)
    T, n, d = 40, 6, 3
    X = rng.normal(size=(T, n, d))
    w = rng.normal([1.0, -1.0, 0.5], 0.5, (T, d))
    if kind == "one row each":
        X = X[:, :1]
    if kind == "constant column":
        X[:, :, 2] = 7.0
    if kind == "zero column":
        X[:, :, 2] = 0.0
    if kind == "duplicated column":
        X[:, :, 2] = X[:, :, 0]
    if kind in ("identical", "separable"):
        w[:] = [1.0, -1.0, 0.5]
    z = np.einsum("tnd,td->tn", X, w)
    if kind not in ("separable", "without noise"):
        z += rng.normal(size=z.shape)
    if kind == "all labels equal":
        z[:] = 1.0
    y = np.where(z > 0.0, 1.0, -1.0) if get_loss(loss).binary else z
    count = 1 if kind == "one task" else T
    return TaskSet.from_list(list(zip(X, y, strict=True))[:count])


KINDS = [
    "one row each", "constant column", "zero column", "duplicated column", "identical",
    "separable", "without noise", "all labels equal", "one task",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic", "hinge"])
@pytest.mark.parametrize("metric", METRICS)
def test_odd_tasks(kind: str, loss: str, metric: str) -> None:
    tasks = odd(kind, loss)
    for intercept in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            prior = learn_prior(tasks, loss, metric, fit_intercept=intercept, max_iter=100)
        finite(prior)
        known = prior.posterior(*tasks[0])
        assert np.isfinite(known.predict(tasks.X)).all()
        assert np.isfinite(known.variance(tasks.X)).all()


def test_identical_tasks_are_pooled() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=(300, 5))
    prior = learn_prior(list(zip(X, y, strict=True)))
    pooled = np.linalg.lstsq(X.reshape(-1, 2), y.ravel())[0]
    np.testing.assert_allclose(prior.bias, pooled, atol=1e-2)
    assert np.sqrt(np.diag(prior.covariance)).max() < 0.15
    one = prior.posterior(X[0], y[0])
    assert np.abs(one.weights - prior.bias).max() < 0.1


@pytest.mark.parametrize("seed", range(10))
def test_a_level_that_all_tasks_share_does_not_keep_others_moving(seed: int) -> None:
    tasks = RegressionEnvironment(10).draw(80, 16, np.random.default_rng(seed)).tasks
    prior = learn_prior(tasks, fit_intercept=True)
    assert prior.n_iter < 80


def test_tasks_without_noise_are_learned_whole() -> None:
    tasks = odd("without noise", "squared")
    prior = learn_prior(tasks)
    X, y = tasks[0]
    np.testing.assert_allclose(prior.posterior(X, y).predict(X), y, atol=1e-3)
    assert prior.noise < 1e-6


def test_thousands_of_columns_with_a_diagonal() -> None:
    rng = np.random.default_rng(0)
    d = 2000
    h = np.where(np.arange(d) < 5, 3.0, 0.0)
    pairs = []
    for _ in range(150):
        X = rng.normal(size=(6, d))
        pairs.append((X, X @ h + rng.normal(size=6)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        prior = learn_prior(pairs, max_iter=15)
    assert prior.metric == "diagonal"
    finite(prior)
    assert np.abs(prior.bias[:5]).min() > 2.0 * np.abs(prior.bias[5:]).std()


def test_wider_than_a_square_matrix_could_be() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 10_000)), rng.normal(size=30)
    prior = learn_prior(TaskSet.from_arrays(X, y, np.repeat(np.arange(6), 5)), fit_intercept=True)
    assert prior.covariance.nnz <= 3 * 10_001  # type: ignore[attr-defined]
    d, units = prior.standard.variances, prior.columns
    M = np.append(-units.centre / units.scale, 1.0)
    last = prior.covariance[[10_000]].toarray()[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(last[:-1], (M * d)[:-1] / units.scale, rtol=1e-12)
    np.testing.assert_allclose(last[-1], M * d @ M, rtol=1e-12)


def pooled_rows(n: int, d: int, heaviest: float) -> tuple[Array, Array, Array, Evidence]:
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(n, d)), rng.uniform(1.0, heaviest, n)
    y = X @ rng.normal(0.0, 0.3, d) + rng.normal(size=n)
    tasks = TaskSet.from_arrays(X, y, np.arange(n) // 5)
    e = task_evidence(tasks, get_loss("squared"), sample_weight=weight)[0]
    assert isinstance(e, Evidence)
    assert len(e.y) == n  # rows, no sums
    return e.X, e.y, e.weight, e


@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize(("n", "d"), [(30, 70), (70, 30)])
def test_pooled_weights_are_those_of_the_ridge(n: int, d: int, ridge: float) -> None:
    X, y, weight, e = pooled_rows(n, d, 2.0)
    A, c = (X.T * weight) @ X, (X.T * weight) @ y
    least = 1e-8 * np.trace(A) / d
    h = np.linalg.solve(A + max(ridge, least) * np.eye(d), c)
    np.testing.assert_allclose(e.pooled(d).weights(ridge), h, atol=1e-6)
    assert e.pooled(d).square == pytest.approx(weight @ y**2)
    first = np.linalg.solve(A[:9, :9] + ridge * np.eye(9), c[:9])
    np.testing.assert_allclose(e.pooled(9).weights(ridge), first, atol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(30, 70), (70, 30), (500, 12)])
def test_pooled_variances_are_most_likely(n: int, d: int) -> None:
    X, y, _, e = pooled_rows(n, d, 1.0)
    none: dict[str, Any] = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 1e-300)
    theirs = BayesianRidge(fit_intercept=False, tol=1e-12, max_iter=10_000, **none).fit(X, y)
    spread, noise = e.pooled(d).variances()
    assert 0.6 < spread * theirs.lambda_ < 1.6  # ratios in steps of two are tried
    assert 0.7 < noise * theirs.alpha_ < 1.4


@pytest.mark.filterwarnings("ignore:learn_prior. the likelihood")
def test_as_many_rows_as_columns_do_no_harm() -> None:
    env, rng = RegressionEnvironment(30), np.random.default_rng(5)
    shots, queries = env.draw(60, 30, rng).tasks.split_rows(10)
    nothing = np.mean([np.abs(y).mean() for _, y in queries])
    for _ in range(5):
        prior = learn_prior(env.draw(3, 10, rng).tasks)  # 30 rows of 30 columns
        own = [prior.posterior(*task) for task in shots]
        off = [np.abs(w.predict(X) - y).mean() for w, (X, y) in zip(own, queries, strict=True)]
        assert np.mean(off) < 2.0 * nothing


@pytest.mark.parametrize("far", [0.0, 50.0])
def test_columns_that_are_much_alike_keep_their_weights(far: float) -> None:
    rng = np.random.default_rng(0)
    x, who = rng.uniform(0.0, 10.0, 600) + far, np.repeat(np.arange(60), 10)
    curve = 2.0 * np.sin((x - far) / 2.0)
    y = curve + rng.normal(size=60)[who] + rng.normal(0.0, 0.05, 600)
    tasks = TaskSet.from_arrays(np.column_stack([x, x**2, x**3]), y, who)
    prior = learn_prior(tasks, fit_intercept=True)
    assert np.std(prior.predict(tasks.X) - curve) < 0.15  # as near as a cubic comes to it


def test_auto_is_full_up_to_64_columns() -> None:
    for d, metric in ((64, "full"), (65, "diagonal")):
        assert learn_prior(drawn(0, T=10, d=d, n=2), tol=10.0).metric == metric


def test_the_tasks_with_the_smallest_hashes_are_used(tmp_path: Path) -> None:
    tasks = drawn(2, T=300)
    names = [f"user {t}" for t in range(300)]
    chosen = np.sort(np.argsort(hash_ids(np.array(names)))[:100])
    groups = np.repeat(names, tasks.sizes)
    whole = TaskSet.from_arrays(tasks.X, tasks.y, groups)
    sampled = learn_prior(whole, max_tasks=100)
    same(sampled, learn_prior(whole.subset(chosen)), 1e-12)
    backwards = TaskSet.from_arrays(tasks.X[::-1], tasks.y[::-1], groups[::-1])
    same(sampled, learn_prior(backwards, max_tasks=100), 1e-6)
    columns = {f"x{j}": tasks.X[:, j] for j in range(3)}
    values: dict[str, Any] = {"user": groups, **columns, "y": tasks.y}
    table = pa.table(values)
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=200)
    rows = ParquetRows(tmp_path, "user", "y", batch_rows=150)
    same(learn_prior(rows, max_tasks=100), sampled, 1e-6)
    same(learn_prior(rows, max_tasks=None), learn_prior(whole, max_tasks=None), 1e-6)


def test_from_a_dataset_whose_rows_are_scattered(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    tasks = drawn(4, T=50)
    groups = np.repeat(np.arange(50), tasks.sizes)
    order = np.random.default_rng(0).permutation(len(groups))
    columns = {f"x{j}": tasks.X[order, j] for j in range(3)}
    values: dict[str, Any] = {"user": groups[order], **columns, "y": tasks.y[order]}
    parquet.write_table(pa.table(values), tmp_path / "a.parquet")
    for loss in ("squared", "absolute"):
        found = learn_prior(ParquetRows(tmp_path, "user", "y"), loss, fit_intercept=True)
        same(found, learn_prior(tasks, loss, fit_intercept=True), 1e-4)


def test_not_converging_is_said() -> None:
    with pytest.warns(
        ConvergenceWarning, match="still rises after 3 passes; raise max_iter or tol"
    ):
        prior = learn_prior(drawn(0), max_iter=3)
    assert not prior.converged
    assert prior.n_iter == 3


BEGIN = [*(("squared", metric) for metric in METRICS), ("huber", "full"), ("logistic", "isotropic")]


@pytest.mark.parametrize(("loss", "metric"), BEGIN)
def test_learning_goes_on_from_a_prior(loss: str, metric: str) -> None:
    tasks = drawn(1, 220, loss=loss)
    asked: dict[str, Any] = {"loss": loss, "metric": metric, "fit_intercept": True}
    moved: Any = [(X * [1.0, 20.0, 0.1] + [3.0, 0.0, -50.0], y) for X, y in tasks]
    before, fresh = learn_prior(moved[:200], **asked), learn_prior(moved, **asked)
    again = learn_prior(moved, initial=before, **asked)
    assert again.converged
    assert again.n_iter < fresh.n_iter
    settled = learn_prior(moved, tol=1e-10, max_iter=5000, **asked)
    far = Prior(settled.bias + 1.0, 3.0, 1.0, loss, metric, intercept=True)
    for begin in (before, far):
        same(learn_prior(moved, initial=begin, tol=1e-10, max_iter=5000, **asked), settled, 2e-3)


def test_many_tasks_go_on_from_a_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.meta.prior.sample.MANY_TASKS", 120)
    monkeypatch.setattr("headstart.meta.prior.shown.MANY_TASKS", 120)
    tasks = drawn(2, 600)
    fresh = learn_prior(tasks)
    again = learn_prior(tasks, initial=learn_prior(tasks.subset(range(550))))
    assert again.n_iter < fresh.n_iter
    same(again, fresh, 0.01)


@pytest.mark.parametrize("whole", [True, False])
def test_a_prior_in_the_units_of_other_rows(whole: bool) -> None:
    rng = np.random.default_rng(0)
    then, now = (
        Columns(rng.normal(size=2), rng.uniform(0.5, 2.0, 2), rng.normal(), intercept=True)
        for _ in range(2)
    )
    root = rng.normal(size=(3, 3))
    C = then.covariance(root @ root.T if whole else np.diag([1.0, 2.0, 3.0]))
    rest: Any = {"side_effects": rng.normal(size=(3, 2)), "intercept": True}
    one, other = (
        Prior([1.0, 2.0, 3.0], C, columns=units, **rest).standard for units in (then, now)
    )
    if not whole:  # of which the rounding of the users' units leaves a little beside the diagonal
        one = one._replace(covariance=np.empty((0, 0)))
    found = start_seen_from(one, then, now)
    np.testing.assert_allclose(found.effects, other.effects, rtol=1e-12)
    np.testing.assert_allclose(found.variances, other.variances, rtol=1e-12)
    if whole:
        np.testing.assert_allclose(found.covariance, other.covariance, rtol=1e-12)


def test_what_is_known_of_tasks_goes_on_too() -> None:
    rng = np.random.default_rng(0)
    side, tasks = rng.normal(100.0, 3.0, (300, 1)), drawn(3, 300)
    pairs = [(X, y + 5.0 * s * X[:, 0]) for (X, y), (s,) in zip(tasks, side, strict=True)]
    fresh = learn_prior(pairs, side=side, metric="isotropic")
    again = learn_prior(pairs, side=side, metric="isotropic", initial=fresh)
    assert again.n_iter <= 0.5 * fresh.n_iter
    same(again, fresh, 1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "round"}, "metric: expected one of 'auto', 'isotropic'"),
        ({"tol": 0.0}, "tol: expected a finite number > 0"),
        ({"max_iter": 0}, "max_iter: expected an integer >= 1"),
        ({"max_tasks": 0}, "max_tasks: expected an integer >= 1"),
        ({"shrink": 1.0}, "shrink: expected a finite number >= 0 and < 1"),
        ({"loss": "hinge"}, "y: the hinge loss takes labels -1 and"),
        ({"side": [[1.0]]}, "side: expected a row of numbers for each of 2 tasks"),
        ({"sample_weight": [1.0]}, "sample_weight: expected one number per row"),
        (
            {"initial": Prior([1.0, 2.0], 1.0)},
            r"initial: .* Squared\(\), metric 'full', 1 columns, no .*, found .* 2 columns",
        ),
        ({"initial": Prior([1.0], 1.0, loss="huber")}, r"initial: .* found one of Huber"),
        ({"initial": Prior([1.0], 1.0, metric="diagonal")}, "initial: .* found .* 'diagonal'"),
        ({"initial": Prior([1.0, 0.0], 1.0, intercept=True)}, "initial: .* found .* an intercept"),
        ({"initial": Prior([1.0], 1.0, side_effects=[[1.0]])}, "initial: .* found .* 1 numbers"),
    ],
)
def test_errors(change: dict[str, Any], message: str) -> None:
    tasks: Any = [([[1.0]], [2.0]), ([[1.0]], [3.0])]
    make: Callable[[], Prior] = lambda: learn_prior(tasks, **change)  # noqa: E731
    with pytest.raises(ValueError, match=message):
        make()


@dataclass(frozen=True)
class OwnSquared(Squared):
    """The squared loss by another name: it goes the way of own losses."""

    name = "own_squared"


def test_a_squared_loss_of_ones_own_is_ones_own() -> None:
    for n in (2, 9):
        tasks = drawn(10, n=n, d=4)
        same(learn_prior(tasks, OwnSquared()), learn_prior(tasks), 1e-6)


@pytest.mark.parametrize("loss", ["absolute", "huber", "squared", "pinball"])
def test_labels_in_tiny_units_and_no_labels_at_all(loss: str) -> None:
    tasks = drawn(11, T=60)
    if loss != "huber":  # whose width has a unit
        tiny = TaskSet(tasks.X, 1e-12 * tasks.y, tasks.offsets, tasks.ids)
        one, other = learn_prior(tasks, loss), learn_prior(tiny, loss)
        np.testing.assert_allclose(other.bias * 1e12, one.bias, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(
            other.covariance * 1e24, one.covariance, atol=1e-3 * np.abs(one.covariance).max()
        )
    nothing = TaskSet(tasks.X, 0.0 * tasks.y, tasks.offsets, tasks.ids)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        prior = learn_prior(nothing, loss, max_iter=60)
    np.testing.assert_allclose(prior.bias, 0.0, atol=1e-6)


def test_what_is_always_the_same_has_no_effect() -> None:
    tasks = drawn(12, T=40)
    prior = learn_prior(tasks, side=np.full(40, 3.1))
    assert prior.side_effects is not None
    np.testing.assert_allclose(prior.side_effects, 0.0, atol=1e-6)
    X = np.column_stack([tasks.X, np.full(len(tasks.X), 1700000000.1)])
    constant = learn_prior(TaskSet(X, tasks.y, tasks.offsets, tasks.ids), fit_intercept=True)
    moved = X[:1] + np.array([0.0, 0.0, 0.0, 1.0])
    near, far = constant.posterior().predict(np.concatenate([X[:1], moved]))
    assert abs(far - near) < 1e-6


def test_threads_for_linear_algebra_are_given_back() -> None:
    tasks = drawn(13, T=100)
    controller = ThreadpoolController()
    before = [library["num_threads"] for library in controller.info()]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: learn_prior(tasks), range(12)))
    assert [library["num_threads"] for library in controller.info()] == before


def test_half_of_a_task_and_intervals_of_a_quantile_are_refused() -> None:
    prior = Prior([0.0], 1.0)
    with pytest.raises(ValueError, match="y: expected both X and y, or neither"):
        prior.posterior([[1.0]])
    with pytest.raises(ValueError, match="predicts a quantile"):
        Prior([0.0], 1.0, loss=Pinball(0.9)).posterior().interval([[1.0]])


@pytest.mark.parametrize("loss", ["huber", "absolute", "pinball", "squared"])
def test_what_a_prior_of_huge_noise_is_worth_is_refused(loss: str) -> None:
    with pytest.raises(ValueError, match="noise: expected one that can be squared, found 1e"):
        _ = Prior([1.0], 1.0, 1e160, loss).worth
