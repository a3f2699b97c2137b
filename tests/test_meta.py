"""Algorithm 2 against its transcription, its state, its threads, and the laws of its regret."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import algorithm_2, constant_step_rounds
from sklearn.exceptions import ConvergenceWarning
from strategies import LIPSCHITZ, Array, losses, regs

from headstart import (
    Absolute,
    Loss,
    TaskSet,
    biased_erm,
    biased_sgd,
    continue_bias,
    evaluate_bias,
    learn_bias,
    start_bias,
    task_weights,
)
from headstart._core.checks import FloatArray
from headstart._core.team import run_team
from headstart.inner import INNER, get_inner
from headstart.meta.minibatch import CHUNK, take_rounds
from headstart.meta.step import Iterates
from headstart.theory import certificate, primal_value


@dataclass(frozen=True)
class Stream:
    """Ragged tasks around a common vector, with reg, step, loss and initial bias."""

    pairs: list[tuple[Array, Array]]
    lam: float
    gamma: float
    loss: Loss
    h: Array

    @cached_property
    def tasks(self) -> TaskSet:
        return TaskSet.from_list(self.pairs)

    @cached_property
    def naive(self) -> Array:
        return algorithm_2(
            self.pairs, self.lam, self.gamma, self.loss.name, self.loss.parameters[0], self.h
        )

    def learn(self, **options: Any) -> Any:
        options = {"initial": self.h, "keep_path": True, **options}
        return learn_bias(self.tasks, self.lam, self.gamma, self.loss, **options)


@st.composite
def streams(draw: st.DrawFn, reg: st.SearchStrategy[float] | None = None) -> Stream:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, sizes = draw(st.integers(1, 5)), draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    loss, lam = draw(losses(LIPSCHITZ)), draw(regs(-2.0, 2.0) if reg is None else reg)
    center, pairs = rng.normal(size=d), []
    for n in sizes:
        X = rng.normal(size=(n, d))
        y = X @ (center + 0.3 * rng.normal(size=d)) + 0.1 * rng.normal(size=n)
        pairs.append((X, np.where(y > 0, 1.0, -1.0) if loss.binary else y))
    return Stream(pairs, lam, draw(st.floats(0.0, 2.0)), loss, rng.normal(size=d))


def close(actual: Any, desired: Any) -> None:
    size = 1.0 + float(np.abs(desired).max())
    np.testing.assert_allclose(actual, desired, rtol=1e-10, atol=1e-10 * size)


@given(streams())
def test_stream_is_the_transcription(s: Stream) -> None:
    result = s.learn()
    close(result.path, s.naive)
    close(result.last, s.naive[-1])
    close(result.bias, s.naive.mean(axis=0))  # of h_1 .. h_{T+1}
    assert result.path.shape == (len(s.pairs) + 1, s.h.size)
    assert s.learn(keep_path=False).path is None
    np.testing.assert_array_equal(s.learn(keep_path=False).bias, result.bias)


@given(streams())
def test_a_step_is_reptiles(s: Stream) -> None:  # item 19
    path = s.learn().path
    rate = s.gamma * s.lam
    for t, (X, y) in enumerate(s.pairs):
        last = biased_sgd(X, y, path[t], s.lam, s.loss).last
        close(path[t + 1], (1.0 - rate) * path[t] + rate * last)


@given(streams(), st.integers(1, 9))
def test_constant_steps_are_the_transcription(s: Stream, batch: int) -> None:  # item 27, B.1
    given_to = (s.pairs, s.lam, s.gamma, s.loss.name, s.loss.parameters[0], s.h)
    for size in (1, batch):
        naive = constant_step_rounds(*given_to, batch=size)
        result = s.learn(inner="constant", batch_size=size)
        close(result.path, naive)
        close(result.bias, naive.mean(axis=0))


@given(streams())
def test_exact_meta_gradients(s: Stream) -> None:
    path = s.learn(inner="erm").path
    for t, (X, y) in enumerate(s.pairs):
        w = biased_erm(X, y, path[t], s.lam, s.loss, tol=1e-9).weights
        expected = path[t] + s.gamma * s.lam * (w - path[t])
        slack = s.gamma * s.lam * np.sqrt(2e-6 * min(1.0, s.lam) / s.lam)
        assert np.linalg.norm(path[t + 1] - expected) <= 2.0 * slack + 1e-9


def test_exact_meta_gradients_of_the_squared_loss() -> None:
    tasks, h, lam = many_tasks(9), np.ones(6), 0.3
    one = learn_bias(tasks, lam, 1.0, "squared", "erm", initial=h, batch_size=9).last
    gradients = []
    for X, y in tasks:
        K = X @ X.T / (len(y) * lam) + np.eye(len(y))
        gradients.append(X.T @ np.linalg.solve(K, X @ h - y) / len(y))
    close(one, h - np.mean(gradients, axis=0))
    shots, queries = tasks.subset(tasks.sizes > 2).split_rows(2)
    W = task_weights(shots, h, lam, "squared", "erm")
    means = [np.mean((X @ w - y) ** 2) / 2.0 for w, (X, y) in zip(W, queries, strict=True)]
    close(evaluate_bias(shots, queries, h, lam, "squared", "erm"), means)
    with pytest.raises(ValueError, match="needs a loss of bounded slope"):
        learn_bias(tasks, lam, 1.0, "squared")


@given(streams(), st.integers(1, 9))
def test_a_batch_takes_the_mean_of_gradients_at_one_bias(s: Stream, batch: int) -> None:
    path = s.learn(batch_size=batch).path
    T = len(s.pairs)
    assert len(path) == -(-T // batch) + 1
    for r, first in enumerate(range(0, T, batch)):
        gradients = [
            X.T @ biased_sgd(X, y, path[r], s.lam, s.loss).dual / len(y)
            for X, y in s.pairs[first : first + batch]
        ]
        close(path[r + 1], path[r] - s.gamma * np.mean(gradients, axis=0))


@given(streams(), st.data())
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("order", ["stream", "resample"])
def test_a_continued_state_is_one_run_bit_for_bit(
    inner: str, order: str, s: Stream, data: st.DataObject
) -> None:
    batch = data.draw(st.integers(1, 3))
    cut = batch * data.draw(st.integers(0, len(s.pairs) // batch))
    options: dict[str, Any] = {"inner": inner, "order": order, "batch_size": batch}
    whole = s.learn(random_state=7, **options)
    rng, state = np.random.default_rng(7), start_bias(s.h.size, s.h)
    for part in (s.pairs[:cut], s.pairs[cut:]):
        if part:
            state = continue_bias(state, part, s.lam, s.gamma, s.loss, random_state=rng, **options)
    np.testing.assert_array_equal(state.last, whole.last)
    np.testing.assert_array_equal(state.bias, whole.bias)
    np.testing.assert_array_equal(state.bias, state.total / (state.steps + 1))
    assert state.steps == len(whole.path) - 1


@pytest.mark.parametrize("seed", range(20))
def test_a_last_task_alone_is_still_a_batch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [(X, X @ [1.0, 2.0, 3.0]) for X in rng.standard_normal((7, 5, 3))]
    state = start_bias(3)
    for part in (pairs[:6], pairs[6:]):
        state = continue_bias(state, part, 1.0, 0.9, batch_size=2)
    np.testing.assert_array_equal(state.bias, learn_bias(pairs, 1.0, 0.9, batch_size=2).bias)


def many_tasks(T: int, d: int = 6, seed: int = 0) -> TaskSet:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, T)
    X = rng.normal(size=(sizes.sum(), d))
    y = X @ np.full(d, 2.0) + rng.normal(size=len(X))
    return TaskSet.from_arrays(X, y, np.repeat(np.arange(T), sizes))


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("batch", [1, 5, 100, 1000, 10**6])
def test_any_number_of_threads_gives_the_same_bits(inner: str, batch: int) -> None:
    tasks = many_tasks(400 if inner == "erm" else 3000)
    one = learn_bias(tasks, 0.1, 0.2, inner=inner, batch_size=batch, keep_path=True)
    for jobs in (2, 3, 7, -1):
        many = learn_bias(
            tasks, 0.1, 0.2, inner=inner, batch_size=batch, keep_path=True, n_jobs=jobs
        )
        np.testing.assert_array_equal(one.path, many.path)
        np.testing.assert_array_equal(one.bias, many.bias)


def test_more_members_than_cores_share_the_rounds() -> None:
    """`learn_bias` asks for no more threads than cores; the team itself does not care."""
    tasks, h = many_tasks(20 * CHUNK), np.zeros(6)
    results = []
    for jobs in (1, 2, 5):
        iterates = Iterates.of(h, h, np.empty((0, 6)), tasks.rows().X)
        objective, gaps = Absolute().regularised(0.1), np.zeros(len(tasks))
        inner = get_inner("sgd")
        take_rounds(tasks.rows(), objective, inner, 5 * CHUNK, 0.2, iterates, gaps, jobs)
        results.append(iterates.total)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_team_ends_when_a_member_fails() -> None:
    def work(member: int) -> bool:
        if member == 1:
            raise MemoryError("no room")
        return False

    with pytest.raises(MemoryError, match="no room"):
        run_team(work, 3)


def test_minibatch_gradient_is_a_mean_epsilon_subgradient() -> None:  # item 23
    rng = np.random.default_rng(0)
    tasks, h, lam = many_tasks(30), rng.normal(size=6), 0.3
    step = learn_bias(tasks, lam, 1.0, initial=h, batch_size=30)
    gradient = h - step.last
    epsilons = [certificate(X, y, biased_sgd(X, y, h, lam).dual, h, lam) for X, y in tasks]

    def mean_objective(at: Array) -> float:
        W = task_weights(tasks, at, lam, inner="erm")
        return float(
            np.mean([primal_value(X, y, w, at, lam) for (X, y), w in zip(tasks, W, strict=True)])
        )

    here = mean_objective(h)
    for _ in range(20):
        other = h + rng.normal(size=6) * 10.0 ** rng.uniform(-2, 1)
        bound = here + gradient @ (other - h) - np.mean(epsilons)
        assert mean_objective(other) >= bound - 1e-6


@given(streams(), st.integers(0, 2**32 - 1))
def test_meta_regret(s: Stream, seed: int) -> None:  # items 20 and 21
    c = s.h + np.random.default_rng(seed).normal(size=s.h.size)
    gamma = max(s.gamma, 1e-2)
    path = learn_bias(s.tasks, s.lam, gamma, s.loss, initial=s.h, keep_path=True).path
    assert path is not None
    gradients = (path[:-1] - path[1:]) / gamma
    linear = np.sum((path[:-1] - c) * gradients)
    closed = (np.sum((s.h - c) ** 2) - np.sum((path[-1] - c) ** 2)) / (2.0 * gamma)
    closed += gamma / 2.0 * np.sum(gradients**2)
    assert linear == pytest.approx(closed, rel=1e-6, abs=1e-6)

    paid, best, epsilons = 0.0, 0.0, 0.0
    for h, (X, y) in zip(path[:-1], s.pairs, strict=True):
        exact = [biased_erm(X, y, b, s.lam, s.loss, tol=1e-8).weights for b in (h, c)]
        paid += primal_value(X, y, exact[0], h, s.lam, s.loss)
        best += primal_value(X, y, exact[1], c, s.lam, s.loss)
        dual = biased_sgd(X, y, h, s.lam, s.loss).dual
        epsilons += certificate(X, y, dual, h, s.lam, s.loss, exact[0])
    bound = np.sum((c - s.h) ** 2) / (2.0 * gamma) + gamma / 2.0 * np.sum(gradients**2) + epsilons
    assert paid - best <= bound + 1e-6 * (1.0 + paid + best)


@given(streams(), st.sampled_from(INNER))
def test_evaluate_bias_is_train_then_test(s: Stream, inner: str) -> None:
    pairs = [(X, y) for X, y in s.pairs if len(y) > 1] or [(np.ones((2, s.h.size)), np.ones(2))]
    shots, queries = TaskSet.from_list(pairs).split_rows(1)
    found = evaluate_bias(shots, queries, s.h, s.lam, s.loss, inner)
    assert found.shape == (len(pairs),)
    for value, (X, y) in zip(found, pairs, strict=True):
        w: FloatArray = s.h  # which is what averages of one row are
        if inner == "erm":
            w = biased_erm(X[:1], y[:1], s.h, s.lam, s.loss).weights
        assert value == pytest.approx(s.loss.value(X[1:] @ w, y[1:]).mean(), rel=1e-7, abs=1e-7)


def test_evaluate_bias_options() -> None:
    shots, queries = many_tasks(50).subset(many_tasks(50).sizes > 3).split_rows(3)
    h = np.full(6, 2.0)
    values = {
        p: evaluate_bias(shots, queries, h, 0.1, predictor=p).mean()
        for p in ("average", "last", "suffix", "poly")
    }
    assert len(set(values.values())) == 4
    assert evaluate_bias(shots, queries, h, 0.1, inner="constant").mean() not in values.values()
    a, b, c = (
        evaluate_bias(shots, queries, h, 0.1, order="resample", random_state=seed)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(a, b)
    assert np.any(a != c)
    np.testing.assert_array_equal(
        evaluate_bias(shots, queries, h, 0.1), evaluate_bias(shots, queries, h, 0.1, n_jobs=2)
    )


def test_learning_helps() -> None:
    """The point of it all: tasks around one vector do better from the learned bias."""
    tasks = many_tasks(400)
    rest = tasks.subset(np.arange(300, 400))
    shots, queries = rest.subset(rest.sizes > 2).split_rows(2)
    bias = learn_bias(tasks.subset(np.arange(300)), 0.5, 0.5).bias
    alone = evaluate_bias(shots, queries, np.zeros(6), 0.5).mean()
    assert evaluate_bias(shots, queries, bias, 0.5).mean() < 0.6 * alone


def test_float32_tasks_give_float32_results() -> None:
    tasks = many_tasks(40)
    narrow = TaskSet(
        tasks.X.astype(np.float32), tasks.y.astype(np.float32), tasks.offsets, tasks.ids
    )
    wide = TaskSet(narrow.X.astype(float), narrow.y.astype(float), tasks.offsets, tasks.ids)
    for inner in INNER:
        result = learn_bias(narrow, 0.1, 0.1, inner=inner, keep_path=True)
        assert result.path is not None
        assert result.bias.dtype == result.last.dtype == result.path.dtype == np.float32
        exact = learn_bias(wide, 0.1, 0.1, inner=inner)
        np.testing.assert_allclose(result.bias, exact.bias, rtol=1e-4)


def test_unsolved_tasks_are_counted() -> None:
    tasks = TaskSet.from_list([(np.array([[1e150]]), np.array([1.0]))] * 3)
    with pytest.warns(ConvergenceWarning, match="3 of 3 tasks not solved: duality gap"):
        learn_bias(tasks, 1e-100, 0.0, inner="erm")


def test_no_warning_when_all_is_well() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn_bias(many_tasks(50), 1e-4, 0.1, inner="erm")
