"""The online validation, candidate by candidate against its transcription."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import online_validation
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from strategies import LIPSCHITZ

from headstart import TaskSet, evaluate_bias, get_loss, learn_bias
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.inner import ALGORITHMS, INNER
from headstart.inner.algorithm import OnePass
from headstart.online.settings import Settings
from headstart.selection import Selection, select_online, select_reg

REGS, STEPS = [0.03, 0.3, 3.0], [0.05, 0.5]


def instance(
    loss: str = "absolute", T: int = 6, seed: int = 0
) -> tuple[TaskSet, tuple[TaskSet, TaskSet], tuple[TaskSet, TaskSet]]:
    """Small ragged tasks: training, validation and test."""
    kind = ClassificationEnvironment if get_loss(loss).binary else RegressionEnvironment
    environment, rng = kind(n_features=4), np.random.default_rng(seed)
    train = environment.draw(T, rng.integers(1, 6, T), rng).tasks
    valid, test = (
        environment.draw(5, rng.integers(5, 9, 5), rng).tasks.split_rows(3) for _ in range(2)
    )
    return train, valid, test


def choose(loss: str = "absolute", seed: int = 0, T: int = 6, **options: Any) -> Selection:
    return select_online(*instance(loss, T, seed), REGS, STEPS, loss, **options)


@pytest.mark.parametrize("loss", LIPSCHITZ)
def test_every_candidate_is_the_transcription(loss: str) -> None:
    train, valid, test = instance(loss)
    found = select_online(train, valid, test, REGS, STEPS, loss)
    pairs = [(*shots, *queries) for shots, queries in zip(*valid, strict=True)]
    expected = online_validation(
        list(train), pairs, REGS, STEPS, loss, get_loss(loss).parameters[0]
    )
    np.testing.assert_allclose(found.validation_loss, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("inner", "evaluate_with", "loss"),
    [
        *itertools.product(INNER, INNER, ["absolute", "hinge", "logistic"]),
        ("erm", "erm", "squared"),
    ],
)
def test_candidates_are_learned_and_evaluated_biases(
    inner: str, evaluate_with: str, loss: str
) -> None:
    train, valid, test = instance(loss)
    found = choose(loss, inner=inner, evaluate_with=evaluate_with)
    assert found.tasks.tolist() == list(range(7))
    for t in range(7):
        seen = train.subset(range(t)) if t else None
        losses = np.empty((len(REGS), len(STEPS)))
        biases = {}
        for i, reg in enumerate(REGS):
            for j, step in enumerate(STEPS):
                bias = (
                    np.zeros(4) if seen is None else learn_bias(seen, reg, step, loss, inner).bias
                )
                biases[i, j] = bias
                losses[i, j] = evaluate_bias(*valid, bias, reg, loss, evaluate_with).mean()
        np.testing.assert_allclose(found.validation_loss[t], losses, rtol=1e-4)
        best = divmod(int(np.argmin(found.validation_loss[t])), len(STEPS))
        assert (found.reg[t], found.step[t]) == (REGS[best[0]], STEPS[best[1]])
        np.testing.assert_allclose(found.bias[t], biases[best], atol=1e-4)
        tested = evaluate_bias(*test, found.bias[t], found.reg[t], loss, evaluate_with).mean()
        assert found.test_loss[t] == pytest.approx(tested)


def test_ties_go_to_the_first_candidate() -> None:
    found = choose()
    assert np.ptp(found.validation_loss[0], axis=1).max() == 0.0  # no task yet: steps are equal
    assert found.step[0] == STEPS[0]
    doubled = select_online(*instance(), [0.3, 0.3], [0.5, 0.5])
    assert np.all(doubled.validation_loss == doubled.validation_loss[:, :1, :1])


@pytest.mark.parametrize("evaluate_with", INNER)
def test_any_number_of_threads_gives_the_same_bits(evaluate_with: str) -> None:
    one = choose(evaluate_with=evaluate_with)
    for jobs in (2, 3):
        many = choose(evaluate_with=evaluate_with, n_jobs=jobs)
        for a, b in zip(one, many, strict=True):
            np.testing.assert_array_equal(a, b)


def test_every_skips_evaluations_but_not_tasks() -> None:
    full, some = choose(T=7), choose(T=7, every=3)
    assert some.tasks.tolist() == [0, 3, 6, 7]
    for a, b in zip(full, some, strict=True):
        np.testing.assert_array_equal(a[some.tasks], b)


def test_every_candidate_draws_its_own_training_rows() -> None:
    drawn = select_online(*instance(), [0.3, 0.3], [0.5], order="resample", random_state=1)
    assert np.all(drawn.validation_loss[0, 0] == drawn.validation_loss[0, 1])
    assert np.any(drawn.validation_loss[:, 0] != drawn.validation_loss[:, 1])


def test_resampling_follows_the_seed() -> None:
    a, b, c = (choose(order="resample", random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.validation_loss, b.validation_loss)
    assert np.any(a.validation_loss != c.validation_loss)
    exact = choose(inner="erm", evaluate_with="erm", order="resample", random_state=1)
    stream = choose(inner="erm", evaluate_with="erm")
    np.testing.assert_array_equal(exact.validation_loss, stream.validation_loss)


@pytest.mark.parametrize("evaluate_with", INNER)
def test_fixed_bias_tunes_only_reg(evaluate_with: str) -> None:
    _, valid, test = instance()
    bias = np.full(4, 4.0)
    found = select_reg(valid, test, bias, REGS, evaluate_with=evaluate_with)
    losses = [evaluate_bias(*valid, bias, reg, inner=evaluate_with).mean() for reg in REGS]
    np.testing.assert_allclose(found.validation_loss, losses, rtol=1e-6)
    assert found.reg == REGS[int(np.argmin(losses))]
    tested = evaluate_bias(*test, bias, found.reg, inner=evaluate_with).mean()
    assert found.test_loss == pytest.approx(tested)


def flat_tasks(T: int, seed: int = 0) -> TaskSet:
    """Tasks whose rows depend on each other: where Newton's steps on free rows go astray."""
    rng, pairs = np.random.default_rng(seed), []
    for _ in range(T):
        X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30))
        pairs.append((X, X @ rng.normal(size=30) + rng.normal(size=40)))
    return TaskSet.from_list(pairs)


@pytest.mark.parametrize("evaluate_with", ["sgd", "erm"])
def test_exact_candidates_are_finite_and_solved(evaluate_with: str) -> None:
    tasks = flat_tasks(12)
    valid = tasks.subset(range(6)).split_rows(30)
    grid = 10.0 ** np.arange(-4.0, 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = select_online(
            tasks.subset(range(6, 12)), valid, valid, grid, [0.1], "absolute", "erm", evaluate_with
        )
        fixed = select_reg(valid, valid, np.zeros(30), grid, evaluate_with="erm")
    for part in (*found, fixed.validation_loss):
        assert np.isfinite(part).all()


def test_the_found_case_as_a_task_of_validation() -> None:
    case = np.load(Path(__file__).parent / "data" / "erm_not_finite.npz")
    tasks = TaskSet.from_list([(case["X"], case["y"])] * 2)
    pair = tasks.split_rows(90)
    found = select_online(
        tasks, pair, pair, [1e-3, 1e-2], [1.0, 30.0], inner="erm", evaluate_with="erm"
    )
    for part in found:
        assert np.isfinite(part).all()


def nearly_dependent() -> tuple[TaskSet, tuple[TaskSet, TaskSet]]:
    """Tasks whose exact solutions are beyond double precision where reg is tiny."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 200, 3))
    X[:, :, 1] = X[:, :, 0] * (1.0 + 1e-9)
    tasks = TaskSet.from_list([(x, rng.standard_normal(200)) for x in X])
    return tasks, tasks.split_rows(190)


def test_unsolved_tasks_are_counted_and_said_once() -> None:
    train, pair = nearly_dependent()
    message = r"1?\d of \d+ tasks not solved: duality gap"
    for call in (
        lambda: select_online(train, pair, pair, [1e-30], [1e-3], inner="erm"),
        lambda: select_online(train, pair, pair, [1e-30], [1e-3], evaluate_with="erm"),
        lambda: select_reg(pair, pair, np.zeros(3), [1e-30], evaluate_with="erm"),
    ):
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            call()
        assert len(caught) == 1
        assert caught[0].filename == __file__


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
@pytest.mark.parametrize("inner", ["sgd", "constant"])
def test_a_candidate_that_is_not_finite_loses(loss: str, inner: str) -> None:
    """An infinite weight can have a hinge loss of 0, and NaN is the smallest of all to argmin."""
    scale = 1e10  # of inputs: with the tiny reg weights are beyond all numbers
    train, *pairs = instance(loss)
    train = times(scale, train)
    valid, test = ((times(scale, shots), times(scale, queries)) for shots, queries in pairs)
    reg, steps = 3.0 * scale**2, [0.05 / scale**2]
    found = select_online(train, valid, test, [1e-300, reg], steps, loss, inner, inner)
    alone = select_online(train, valid, test, [reg], steps, loss, inner, inner)
    assert np.all(found.validation_loss[:, 0, 0] == np.inf)
    assert not np.isnan(found.validation_loss).any()
    assert np.all(found.reg == reg)
    np.testing.assert_allclose(found.validation_loss[:, 1:, :], alone.validation_loss, rtol=1e-9)
    np.testing.assert_allclose(found.bias, alone.bias, rtol=1e-9)
    with pytest.raises(ValueError, match=r"regs, steps: .* beyond all numbers; use smaller steps"):
        select_online(train, valid, test, [1e-300], steps, loss, inner, inner)


def times(scale: float, tasks: TaskSet) -> TaskSet:
    return TaskSet(scale * tasks.X, tasks.y, tasks.offsets, tasks.ids)


def test_no_reg_is_chosen_among_none() -> None:
    tasks = TaskSet.from_list([(np.full((3, 1), 1e150), np.ones(3))] * 3)
    pair = tasks.split_rows(2)
    with pytest.raises(ValueError, match=r"regs: .* beyond all numbers; use larger regs, or"):
        select_reg(pair, pair, [1e150], [1e-300])


def test_float32_tasks() -> None:
    train, valid, test = instance()
    narrow = select_online(
        train.astype(np.float32),
        (valid[0].astype(np.float32), valid[1].astype(np.float32)),
        (test[0].astype(np.float32), test[1].astype(np.float32)),
        REGS,
        STEPS,
    )
    np.testing.assert_allclose(narrow.validation_loss, choose().validation_loss, rtol=1e-4)


def sparse(tasks: TaskSet) -> list[tuple[Any, Any]]:
    return [(csr_array(X), y) for X, y in tasks]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t, v, e: select_online(t, v, e, [], [1.0]), ValueError, "regs: .* at least one"),
        (lambda t, v, e: select_online(t, v, e, [1.0], [0.0]), ValueError, "steps: expected numb"),
        (lambda t, v, e: select_online(t, v[0], e, 1.0, 1.0), TypeError, "valid: expected a pair"),
        (
            lambda t, v, e: select_online(t, (v[0], v[1].subset([0])), e, 1.0, 1.0),
            ValueError,
            "valid queries: expected the tasks of shots in the same order",
        ),
        (
            lambda _, v, e: select_online([(np.ones((1, 3)), [1.0])], v, e, 1.0, 1.0),
            ValueError,
            "valid: expected 3 features as in train, found 4",
        ),
        (lambda t, v, e: select_online(t, v, e, 1.0, 1.0, "hinge"), ValueError, "hinge loss takes"),
        (
            lambda t, v, e: select_online(t, v, e, 1.0, 1.0, inner="x"),
            ValueError,
            "inner: expected",
        ),
        (
            lambda t, v, e: select_online(t, v, e, 1.0, 1.0, evaluate_with="x"),
            ValueError,
            "evaluate_with: expected one of 'sgd', 'constant', 'erm'",
        ),
        (
            lambda t, v, e: select_online(t, v, e, 1.0, 1.0, "squared", evaluate_with="erm"),
            ValueError,
            "loss: .* needs a loss of bounded slope",
        ),
        (
            lambda t, v, e: select_online(t, v, e, 1.0, 1.0, "squared", inner="erm"),
            ValueError,
            "loss: .* needs a loss of bounded slope",
        ),
        (lambda t, v, e: select_online(t, v, e, 1.0, 1.0, every=0), ValueError, "every: expected"),
        (lambda t, v, e: select_online(t, v, e, 1.0, 1.0, order="x"), ValueError, "order: expect"),
        (lambda _, v, e: select_reg(v, e, [1.0], 1.0), ValueError, "bias: expected length 4"),
        (
            lambda t, v, e: select_online(t, (v[0], sparse(v[1])), e, 1.0, 1.0),
            ValueError,
            "valid: expected dense rows, found sparse ones",
        ),
        *(
            (
                lambda t, v, e, inner=inner: select_online(sparse(t), v, e, 1.0, 1.0, inner=inner),
                ValueError,
                "train: expected dense rows, found sparse ones",
            )
            for inner in ("sgd", "erm")
        ),
    ],
)
def test_errors(call: Callable[..., object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(*instance())


def test_an_algorithm_without_kernels_for_many_biases_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own(OnePass):
        name = "own"
        everywhere = False

    monkeypatch.setitem(ALGORITHMS, "own", Own())
    monkeypatch.setattr("headstart.inner.algorithm.INNER", list(ALGORITHMS))
    draw, rng = RegressionEnvironment(3).draw, np.random.default_rng(0)
    train, pair = draw(5, 4, rng).tasks, draw(5, 8, rng).tasks.split_rows(4)
    same = learn_bias(train, 0.5, 0.1)
    np.testing.assert_array_equal(learn_bias(train, 0.5, 0.1, inner="own").bias, same.bias)
    with pytest.raises(ValueError, match="inner: 'own' is there for learn_bias and task_weights"):
        select_online(train, pair, pair, [1.0], [1.0], inner="own")
    with pytest.raises(ValueError, match="evaluate_with: 'own' is there for learn_bias"):
        select_online(train, pair, pair, [1.0], [1.0], evaluate_with="own")
    settings = Settings(get_loss("absolute"), reg=1.0, inner="own")
    with pytest.raises(ValueError, match="'own' is there for learn_bias"):
        settings.rules()
