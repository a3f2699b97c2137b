"""Algorithm 1 against its transcription, and the identities it satisfies."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import Pass, algorithm_1, average_with_weights, constant_steps
from strategies import LIPSCHITZ, Array, Problem, problems, regs, tie_free

from headstart import (
    SGDState,
    TaskSet,
    biased_erm,
    biased_sgd,
    get_loss,
    sgd_batch,
    task_weights,
    weights_from_dual,
)
from headstart.inner import INNER
from headstart.inner.sgd import PREDICTORS
from headstart.inner.sgd.batch import drawn_gram_pass, gram_pass
from headstart.theory import dual_value

TIGHT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10}


def run(p: Problem, **options: Any) -> Any:
    return biased_sgd(p.X, p.y, p.h, p.lam, p.loss, **options)


def scale(p: Problem) -> float:
    """Size of the iterates, which small regs make huge."""
    return 1.0 + float(np.abs(p.naive.iterates).max())


def far_from_kinks(p: Problem, iterates: Array) -> bool:
    """Whether no rounding can flip a subgradient."""
    z = np.sum(p.X * iterates[:-1], axis=1)
    s = np.abs(z * p.y - 1.0) if p.loss.binary else np.abs(z - p.y)
    kink = p.loss.parameters[0] if p.loss.name == "epsilon_insensitive" else 0.0
    return bool(np.all(np.abs(s - kink) > 1e-6 * (1.0 + np.abs(z))))


@given(tie_free())
def test_kernel_is_the_transcription(p: Problem) -> None:
    result = run(p)
    np.testing.assert_allclose(result.dual, p.naive.dual, **TIGHT)
    np.testing.assert_allclose(result.last, p.naive.last, rtol=1e-10, atol=1e-10 * scale(p))
    np.testing.assert_allclose(result.average, p.naive.average, rtol=1e-10, atol=1e-10 * scale(p))


@given(problems())
def test_iterates_follow_from_the_subgradients(p: Problem) -> None:  # item 1
    """Also where ties leave the transcription's subgradients behind."""
    results = [biased_sgd(p.X[:k], p.y[:k], p.h, p.lam, p.loss) for k in range(1, p.n + 1)]
    iterates = np.array([p.h, *(result.last for result in results)])
    close: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10 * (1.0 + np.abs(iterates).max())}
    for k, (average, last, dual) in enumerate(results, start=1):
        np.testing.assert_allclose(last, p.h - p.X[:k].T @ dual / (k * p.lam), **close)
        np.testing.assert_allclose(average, iterates[:k].mean(axis=0), **close)
        z, y = float(p.X[k - 1] @ iterates[k - 1]), p.y[k - 1]
        around = p.loss.subgradient(z + np.array([-1e-6, 1e-6]) * (1.0 + abs(z)), y)
        assert around[0] - 1e-9 <= dual[-1] <= around[1] + 1e-9
        np.testing.assert_array_equal(dual, results[-1].dual[:k])  # later rows change nothing


@given(problems())
def test_iterates_stay_near_the_bias(p: Problem) -> None:  # items 2 and 15
    result = run(p)
    for w in (result.last, result.average):
        assert p.lam * np.linalg.norm(w - p.h) <= p.lr * (1 + 1e-9) + 1e-9
    gradient = p.X.T @ result.dual / p.n
    np.testing.assert_allclose(-p.lam * (result.last - p.h), gradient, rtol=1e-8, atol=1e-9)


@given(tie_free(), st.sampled_from(["average", "last", "suffix", "poly"]))
def test_predictors_are_averages_of_iterates(p: Problem, predictor: str) -> None:  # item 4
    iterates, n = p.naive.iterates, p.n
    expected = {
        "average": p.naive.average,
        "last": p.naive.last,
        "suffix": iterates[n // 2 : n].mean(axis=0),
        "poly": average_with_weights(iterates, np.arange(1.0, n + 1.0)),
    }[predictor]
    w = weights_from_dual(p.X, p.h, p.lam, run(p).dual, predictor)
    np.testing.assert_allclose(w, expected, rtol=1e-10, atol=1e-10 * scale(p))
    tasks = TaskSet.from_list([(p.X, p.y), (p.X[:1], p.y[:1]), (p.X, p.y)])
    many = task_weights(tasks, p.h, p.lam, p.loss, predictor=predictor)
    np.testing.assert_allclose(many[[0, 2]], [w, w], rtol=1e-10, atol=1e-10 * scale(p))


def constant(p: Problem) -> Pass:
    return constant_steps(p.X, p.y, p.h, p.lam, p.loss.name, p.loss.parameters[0])


@given(problems(("normal", "outliers")), st.sampled_from(PREDICTORS))
def test_constant_steps_are_the_transcription(p: Problem, predictor: str) -> None:  # item 27
    naive, n = constant(p), p.n
    assume(far_from_kinks(p, naive.iterates))
    expected = {
        "average": naive.average,
        "last": naive.last,
        "suffix": naive.iterates[n // 2 : n].mean(axis=0),
        "poly": average_with_weights(naive.iterates, np.arange(1.0, n + 1.0)),
    }[predictor]
    few = constant_steps(p.X[:1], p.y[:1], p.h, p.lam, p.loss.name, p.loss.parameters[0])
    tasks = TaskSet.from_list([(p.X, p.y), (p.X[:1], p.y[:1]), (p.X, p.y)])
    for jobs in (1, 2):
        W = task_weights(tasks, p.h, p.lam, p.loss, "constant", predictor, n_jobs=jobs)
        size = 1.0 + float(np.abs(naive.iterates).max())
        np.testing.assert_allclose(W[[0, 2]], [expected] * 2, rtol=1e-10, atol=1e-10 * size)
        one = few.last if predictor == "last" else p.h
        np.testing.assert_allclose(W[1], one, rtol=1e-10, atol=1e-10 * (1.0 + np.abs(one).max()))


@given(problems(("normal", "outliers")))
def test_weights_of_constant_steps(p: Problem) -> None:  # item 27
    """From the subgradients: both predictors, and the meta-gradient's part of the task."""
    naive, n = constant(p), p.n
    assume(far_from_kinks(p, naive.iterates))
    U = np.full((n, 1), np.nan)
    gram_pass(p.X @ p.X.T, (p.X @ p.h)[:, None], p.y, np.array([p.lam]), p.loss.form, True, U)
    dual, size = U[:, 0], 1.0 + float(np.abs(naive.iterates).max())
    average, last = (
        task_weights([(p.X, p.y)], p.h, p.lam, p.loss, "constant", predictor)[0]
        for predictor in ("average", "last")
    )
    share = (n - np.arange(1, n + 1)) / (n * n * p.lam)
    np.testing.assert_allclose(average, p.h - p.X.T @ (dual * share), rtol=1e-9, atol=1e-9 * size)
    gradient = p.lam * (p.h - last)
    np.testing.assert_allclose(gradient, p.X.T @ dual / n, rtol=1e-8, atol=1e-9 * p.lam * size)


@given(problems())
def test_what_constant_steps_pay_while_they_learn(p: Problem) -> None:  # item 27
    task = TaskSet.from_list([(p.X, p.y)])
    paid, spent = 0.0, 0.0
    for k in range(p.n):
        # Weights after k of the n rows, by the package: with a reg for which k rows step as n do.
        w = p.h
        if k > 0:
            shots = task.split_rows(k)[0]
            w = task_weights(shots, p.h, p.lam * p.n / k, p.loss, "constant", "last")[0]
        z = float(p.X[k] @ w)
        paid += float(p.loss.value(z, p.y[k])) / p.n
        u = float(p.loss.subgradient(z, p.y[k]))
        spent += u * u * float(p.X[k] @ p.X[k]) / (2.0 * p.lam * p.n**2)
    best = p.phi(biased_erm(p.X, p.y, p.h, p.lam, p.loss, tol=1e-9).weights)
    assert paid <= best + spent + 1e-7 * (1.0 + best + spent)
    assert spent <= p.lr**2 / (2.0 * p.lam * p.n) * (1.0 + 1e-9) + 1e-300


@pytest.mark.parametrize("name", LIPSCHITZ)
def test_constant_steps_of_every_loss_on_drawn_rows(name: str) -> None:
    loss, rng = get_loss(name), np.random.default_rng(4)
    X, y, H = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(3, 4))
    y = np.where(y > 0.0, 1.0, -1.0) if loss.binary else y
    lams, U = np.array([0.1, 0.2, 0.4, 0.8]), np.empty((7, 4))
    drawn = TaskSet.from_list([(X, y)]).rows("resample", 5).drawn
    visits = np.repeat(drawn[:, None], 4, axis=1)
    drawn_gram_pass(X @ X.T, X @ H, y, visits, lams, loss.form, True, U)
    for q, lam in enumerate(lams):
        naive = constant_steps(X[drawn], y[drawn], H[:, q], lam, name, loss.parameters[0])
        np.testing.assert_allclose(U[:, q], np.bincount(drawn, naive.dual, 7), atol=1e-12)
        options: dict[str, Any] = {"order": "resample", "random_state": 5}
        W = task_weights([(X, y)], H[:, q], lam, name, "constant", **options)
        np.testing.assert_allclose(W[0], naive.average, **TIGHT)


@given(problems())
def test_average_ignores_the_last_row(p: Problem) -> None:  # item 4's consequence
    changed = p.X.copy()
    changed[-1] += 1.0
    other = biased_sgd(changed, p.y, p.h, p.lam, p.loss)
    np.testing.assert_array_equal(run(p).average, other.average)
    one = biased_sgd(p.X[:1], p.y[:1], p.h, p.lam, p.loss)
    np.testing.assert_array_equal(one.average, p.h)


@given(problems(), st.data())
def test_streaming_is_the_same_for_every_cutting(p: Problem, data: st.DataObject) -> None:
    whole = SGDState.start(p.h, p.lam, p.loss).update(p.X, p.y)
    cuts = sorted(data.draw(st.sets(st.integers(1, p.n))) | {0, p.n})
    state = SGDState.start(p.h, p.lam, p.loss)
    for a, b in pairwise(cuts):
        state = state.update(p.X[a:b], p.y[a:b])
    assert state.n_rows == p.n
    np.testing.assert_array_equal(state.average, whole.average)
    np.testing.assert_array_equal(state.last, whole.last)


@given(tie_free())
def test_streaming_is_the_transcription(p: Problem) -> None:  # item 5
    state = SGDState.start(p.h, p.lam, p.loss)
    np.testing.assert_array_equal(state.average, p.h)
    np.testing.assert_array_equal(state.last, p.h)
    for k in range(p.n):
        before = state
        state = state.update(p.X[k : k + 1], p.y[k : k + 1])
        assert before.n_rows == k  # the old state is left alone
        average = p.naive.iterates[: k + 1].mean(axis=0)
        np.testing.assert_allclose(state.average, average, rtol=1e-10, atol=1e-10 * scale(p))
        np.testing.assert_allclose(
            state.last, p.naive.iterates[k + 1], rtol=1e-10, atol=1e-10 * scale(p)
        )


@given(tie_free(), st.integers(0, 2**32 - 1))
def test_batch_is_one_by_one(p: Problem, seed: int) -> None:  # items 3 and 6
    rng = np.random.default_rng(seed)
    biases = np.vstack([p.h, p.h + rng.normal(size=(2, p.h.size))])
    lams = p.lam * np.array([1.0, 2.0])
    alone = [[replace(p, h=h, lam=float(lam)) for lam in lams] for h in biases]
    assume(all(far_from_kinks(q, q.naive.iterates) for row in alone for q in row))
    many = sgd_batch(p.X, p.y, biases[:, None, :], lams, p.loss)
    assert many.average.shape == (3, 2, p.h.size)
    assert many.dual.shape == (3, 2, p.n)
    for i, j in np.ndindex(3, 2):
        q = alone[i][j]
        close: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9 * scale(q)}
        np.testing.assert_allclose(many.dual[i, j], q.naive.dual, **TIGHT)
        np.testing.assert_allclose(many.last[i, j], q.naive.last, **close)
        np.testing.assert_allclose(many.average[i, j], q.naive.average, **close)


@pytest.mark.parametrize("steps", [algorithm_1, constant_steps])
@pytest.mark.parametrize("name", LIPSCHITZ)
def test_gram_pass_is_the_transcription(name: str, steps: Any) -> None:
    loss, rng = get_loss(name), np.random.default_rng(6)
    for n, m in ((1, 1), (2, 3), (9, 5)):
        X, y, H = rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=(3, m))
        y = np.where(y > 0.0, 1.0, -1.0) if loss.binary else y
        lams, U = rng.uniform(0.1, 1.0, m), np.full((n, m), np.nan)
        gram_pass(X @ X.T, X @ H, y, lams, loss.form, steps is constant_steps, U)
        for q, lam in enumerate(lams):
            naive = steps(X, y, H[:, q], lam, name, loss.parameters[0])
            np.testing.assert_allclose(U[:, q], naive.dual, atol=1e-12)


@pytest.mark.parametrize("loss", LIPSCHITZ)
def test_drawn_rows_of_every_bias(loss: str) -> None:
    rng, chosen = np.random.default_rng(0), get_loss(loss)
    X, H, lams = rng.normal(size=(7, 3)), rng.normal(size=(3, 4)), np.array([0.1, 0.2, 0.4, 0.8])
    y, drawn = np.where(rng.random(7) < 0.5, -1.0, 1.0), rng.integers(7, size=(7, 4))
    U = np.empty((7, 4))
    drawn_gram_pass(X @ X.T, X @ H, y, drawn, lams, chosen.form, False, U)
    for q, rows in enumerate(drawn.T):
        visits = biased_sgd(X[rows], y[rows], H[:, q], lams[q], loss).dual
        np.testing.assert_allclose(U[:, q], np.bincount(rows, visits, minlength=7), atol=1e-12)


def test_batch_pairs_and_broadcasts() -> None:
    rng = np.random.default_rng(0)
    X, y, H = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(4, 3))
    paired = sgd_batch(X, y, H, [0.1, 0.2, 0.3, 0.4])
    crossed = sgd_batch(X, y, H[:, None], [0.1, 0.2, 0.3, 0.4])
    turned = sgd_batch(X, y, H, np.array([[0.1], [0.2], [0.3], [0.4]]))
    for i in range(4):
        np.testing.assert_array_equal(paired.last[i], crossed.last[i, i])
        np.testing.assert_array_equal(paired.average[i], turned.average[i, i])
    assert sgd_batch(X, y, H[0], 0.1).last.shape == (3,)


@given(problems())
def test_dual_value_of_one_pass(p: Problem) -> None:  # item 7
    value = dual_value(p.X, p.y, p.naive.dual / p.n, p.h, p.lam, p.loss)
    steps = np.sum(p.naive.full**2, axis=1) / np.arange(1, p.n + 1)
    size = steps.sum() / (2 * p.lam * p.n)
    expected = -p.online_loss() + size
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1.0 + size + p.online_loss()))


def test_resample_is_algorithm_1_on_the_drawn_rows() -> None:
    rng = np.random.default_rng(3)
    X, y, h = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=3)
    tasks = TaskSet.from_list([(X, y)])
    drawn = tasks.rows("resample", 5).drawn
    assert len(set(drawn.tolist())) < 7  # the seed does repeat a row
    expected = algorithm_1(X[drawn], y[drawn], h, 0.3, "absolute", 0.0)
    for result in (
        biased_sgd(X, y, h, 0.3, order="resample", random_state=5),
        biased_sgd(X, y, h, 0.3, order="resample", random_state=np.random.default_rng(5)),
    ):
        np.testing.assert_allclose(result.average, expected.average, **TIGHT)
        np.testing.assert_allclose(result.last, expected.last, **TIGHT)
    many = task_weights(tasks, h, 0.3, order="resample", random_state=5)
    np.testing.assert_allclose(many[0], expected.average, **TIGHT)


@settings(max_examples=30)
@given(tie_free(regs(-2.0, 1.0)))
def test_float32_data_is_worked_on_in_float64(p: Problem) -> None:
    X, y = p.X.astype(np.float32), p.y.astype(np.float32)
    wide = biased_sgd(X.astype(float), y.astype(float), p.h, p.lam, p.loss)
    result = biased_sgd(X, y, p.h, p.lam, p.loss)
    for narrow, exact in zip(result, wide, strict=True):
        assert narrow.dtype == np.float32
        np.testing.assert_array_equal(narrow, exact.astype(np.float32))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    tasks = TaskSet.from_list(
        [(rng.normal(size=(n, 4)), rng.normal(size=n)) for n in rng.integers(1, 9, 101)]
    )
    for inner in INNER:
        one = task_weights(tasks, np.zeros(4), 0.1, inner=inner)
        for jobs in (2, 5, -1):
            many = task_weights(tasks, np.zeros(4), 0.1, inner=inner, n_jobs=jobs)
            np.testing.assert_array_equal(one, many)


@given(problems(("normal",)), st.booleans())
def test_the_path_is_every_iterate(p: Problem, resample: bool) -> None:
    order = "resample" if resample else "stream"
    found = biased_sgd(p.X, p.y, p.h, p.lam, p.loss, order, 0, keep_path=True)
    assert biased_sgd(p.X, p.y, p.h, p.lam, p.loss).path is None
    assert found.path is not None
    assert found.path.shape == (p.n + 1, p.h.size)
    scale = 1e-9 * (1.0 + np.abs(found.path).max())
    np.testing.assert_allclose(found.path[-1], found.last, atol=scale)
    np.testing.assert_allclose(found.path[:-1].mean(axis=0), found.average, atol=scale)
    if not resample:
        np.testing.assert_allclose(found.path, p.naive.iterates, atol=scale)
