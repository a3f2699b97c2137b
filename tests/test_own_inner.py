"""A within-task algorithm of one's own: a transcription of a built-in one gives its results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import ArrayLike
from reference import Array
from scipy.sparse import csr_array

from headstart import (
    Loss,
    MetaRegressor,
    TaskSet,
    biased_erm,
    continue_bias,
    evaluate_bias,
    learn_bias,
    select_online,
    select_reg,
    start_bias,
    task_weights,
)

REG, STEP = 0.4, 0.3


def algorithm_1(X: Array, y: Array, bias: Array, reg: float, loss: Loss) -> tuple[Array, Array]:
    """Algorithm 1 as the paper has it; the mean of its iterates, and the subgradients."""
    w, u, iterates = bias.copy(), np.empty(len(y)), []
    for k in range(1, len(y) + 1):
        iterates.append(w)
        u[k - 1] = float(loss.subgradient(X[k - 1] @ w, y[k - 1]))
        w = w - (u[k - 1] * X[k - 1] + reg * (w - bias)) / (k * reg)
    return np.mean(iterates, axis=0), u


def exact(X: Array, y: Array, bias: Array, reg: float, loss: Loss) -> tuple[ArrayLike, None]:
    """The exact solution; no dual, so that the meta-gradient is reg (bias - weights)."""
    return biased_erm(X, y, bias, reg, loss).weights, None


def drawn(T: int = 12, n: int = 8, d: int = 3, seed: int = 0) -> TaskSet:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T * n, d))
    w = rng.normal(2.0, 1.0, (T, d)).repeat(n, axis=0)
    y = (X * w).sum(axis=1) + rng.standard_normal(T * n)
    return TaskSet.from_arrays(X, y, np.repeat(np.arange(T), n))


PAIRS = [(algorithm_1, "sgd"), (exact, "erm")]


@pytest.mark.parametrize(("own", "name"), PAIRS)
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("order", ["stream", "resample"])
def test_the_bias_is_that_of_the_built_in_algorithm(
    own: Any, name: str, batch_size: int, order: str
) -> None:
    if name == "erm" and order == "resample":
        pytest.skip("the built-in one does not visit drawn rows")
    how: Any = {"batch_size": batch_size, "order": order, "random_state": 3, "keep_path": True}
    tasks, initial = drawn(), [1.0, 0.0, -1.0]
    found = learn_bias(tasks, REG, STEP, inner=own, initial=initial, **how)
    same = learn_bias(tasks, REG, STEP, inner=name, initial=initial, **how)
    assert found.path is not None
    assert same.path is not None
    np.testing.assert_allclose(found.path, same.path, rtol=1e-5)
    np.testing.assert_allclose(found.bias, same.bias, rtol=1e-5)
    np.testing.assert_allclose(found.last, same.last, rtol=1e-5)


@pytest.mark.parametrize(("own", "name"), PAIRS)
def test_weights_losses_and_a_state_that_goes_on(own: Any, name: str) -> None:
    tasks, bias = drawn(), [1.0, 2.0, 3.0]
    np.testing.assert_allclose(
        task_weights(tasks, bias, REG, inner=own),
        task_weights(tasks, bias, REG, inner=name), rtol=1e-5,
    )  # fmt: skip
    shots, queries = tasks.split_rows(5)
    np.testing.assert_allclose(
        evaluate_bias(shots, queries, bias, REG, inner=own),
        evaluate_bias(shots, queries, bias, REG, inner=name), rtol=1e-5,
    )  # fmt: skip
    state = start_bias(3)
    for task in tasks:
        state = continue_bias(state, [task], REG, STEP, inner=own)
    np.testing.assert_allclose(state.bias, learn_bias(tasks, REG, STEP, inner=name).bias, rtol=1e-5)


@pytest.mark.parametrize(("own", "name"), PAIRS)
@pytest.mark.parametrize("order", ["stream", "resample"])
def test_selection_is_that_of_the_built_in_algorithm(own: Any, name: str, order: str) -> None:
    train, pair = drawn(6, 5), drawn(5, 9, seed=1).split_rows(5)
    grid: Any = ([0.1, 1.0], [0.1, 1.0])
    if order == "resample" and name == "erm":
        pytest.skip("the built-in one does not visit drawn rows")
    how: Any = {"order": order, "random_state": 5}
    found = select_online(train, pair, pair, grid[0], grid[1], inner=own, evaluate_with=own, **how)
    same = select_online(train, pair, pair, grid[0], grid[1], inner=name, evaluate_with=name, **how)
    np.testing.assert_allclose(found.validation_loss, same.validation_loss, rtol=1e-5)
    np.testing.assert_allclose(found.test_loss, same.test_loss, rtol=1e-5)
    np.testing.assert_allclose(found.bias, same.bias, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(found.step, same.step)
    one = select_reg(pair, pair, [2.0] * 3, grid[0], evaluate_with=own, **how)
    other = select_reg(pair, pair, [2.0] * 3, grid[0], evaluate_with=name, **how)
    np.testing.assert_allclose(one.validation_loss, other.validation_loss, rtol=1e-5)
    assert one.reg == other.reg
    assert one.test_loss == pytest.approx(other.test_loss, rel=1e-5)


def test_a_candidate_beyond_all_numbers_is_not_chosen() -> None:
    def wild(X: Array, y: Array, bias: Array, reg: float, loss: Loss) -> tuple[Array, Array | None]:
        assert np.isfinite(bias).all()
        w, u = algorithm_1(X, y, bias, reg, loss)
        return (np.full_like(w, np.inf), np.full_like(u, np.inf)) if reg < 0.5 else (w, u)

    train, pair = drawn(4, 5), drawn(4, 9, seed=1).split_rows(5)
    found = select_online(train, pair, pair, [0.1, 1.0], [0.1], inner=wild, evaluate_with=wild)
    same = select_online(train, pair, pair, [1.0], [0.1])
    assert np.isinf(found.validation_loss[:, 0]).all()
    np.testing.assert_allclose(found.test_loss, same.test_loss, rtol=1e-6)
    assert set(found.reg.tolist()) == {1.0}


def test_infinite_weights_are_not_chosen_though_their_hinge_loss_is_zero() -> None:
    def sure(X: Array, y: Array, bias: Array, reg: float, loss: Loss) -> tuple[ArrayLike, None]:
        assert (X.shape, y.shape, loss.name) == ((2, 1), (2,), "hinge")
        return (np.array([np.inf]) if reg < 0.5 else bias), None

    tasks = [(np.ones((2, 1)), np.ones(2))] * 3
    found = select_reg((tasks, tasks), (tasks, tasks), [0.5], [0.1, 1.0], "hinge", sure)
    np.testing.assert_array_equal(found.validation_loss, [np.inf, 0.5])
    assert (found.reg, found.test_loss) == (1.0, 0.5)


def test_the_recipe_of_the_page_on_architecture(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
    script = tmp_path / "recipe.py"
    script.write_text(
        page.split("### Add a within-task algorithm")[1].split("```python\n")[1].split("```")[0]
    )
    found = run_path(str(script))
    h, path = np.zeros(3), [np.zeros(3)]
    for X, y in found["tasks"]:
        total = np.zeros(3)
        for k in range(len(y)):
            w = h - total / ((k + 1) * 1.0)
            total += np.sign(X[k] @ w - y[k]) * X[k]
        h = h - 0.1 * total / len(y)
        path.append(h)
    same = learn_bias(found["tasks"], 1.0, 0.1, inner=found["slower"]).bias
    np.testing.assert_allclose(same, np.mean(path, axis=0), rtol=1e-9)


def ridge(X: Array, y: Array, bias: Array, reg: float, loss: Loss) -> tuple[ArrayLike, None]:
    assert loss.name == "squared"
    gram = X.T @ X / len(y) + reg * np.eye(len(bias))
    return np.linalg.solve(gram, X.T @ y / len(y) + reg * bias), None


def test_any_loss_will_do() -> None:
    found = learn_bias(drawn(), REG, STEP, "squared", ridge).bias
    np.testing.assert_allclose(
        found, learn_bias(drawn(), REG, STEP, "squared", "erm").bias, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("own", "error", "message"),
    [
        (lambda *_: np.zeros(3), TypeError, r"inner: expected a function that gives a pair"),
        (lambda *_: (np.zeros(2), None), ValueError, r"inner: weights: expected shape \(3,\)"),
        (lambda *_: (np.zeros(3), np.zeros(7)), ValueError, r"inner: dual: expected shape \(8,\)"),
        (lambda *_: (["a"] * 3, None), TypeError, "inner: weights: expected"),
        (lambda X: (X[0], None), TypeError, r"inner: expected a function of \(X, y, bias, reg"),
        (dict, TypeError, r"inner: expected a function of \(X, y, bias, reg"),
        (lambda *_: len(cast(str, 3)), TypeError, "^object of type 'int' has no len"),
    ],
)
def test_what_a_function_gives_is_checked(
    own: Callable[..., Any], error: type[Exception], message: str
) -> None:
    for call in (learn_bias, continue_from_zero, weights_at_zero):
        with pytest.raises(error, match=message):
            call(drawn(), REG, STEP, inner=own)


def continue_from_zero(tasks: TaskSet, reg: float, step: float, inner: Any) -> object:
    return continue_bias(start_bias(3), tasks, reg, step, inner=inner)


def weights_at_zero(tasks: TaskSet, reg: float, _: float, inner: Any) -> object:
    return task_weights(tasks, [0.0] * 3, reg, inner=inner)


def test_what_a_function_may_not_do() -> None:
    def greedy(
        X: Array, y: Array, bias: Array, reg: float, loss: Loss
    ) -> tuple[Array, Array | None]:
        w, u = algorithm_1(X, y, bias, reg, loss)
        bias[:] = 7.0  # its own copy
        return w, u

    found = learn_bias(drawn(), REG, STEP, inner=greedy).bias
    np.testing.assert_allclose(found, learn_bias(drawn(), REG, STEP).bias, rtol=1e-6)
    sparse = [(csr_array(X), y) for X, y in drawn()]
    with pytest.raises(ValueError, match="a function of one's own needs dense rows"):
        learn_bias(sparse, REG, STEP, inner=algorithm_1)
    with pytest.raises(ValueError, match="a function of one's own needs dense rows"):
        task_weights(sparse, [0.0] * 3, REG, inner=algorithm_1)
    X, y = drawn()[0]
    with pytest.raises(TypeError, match="inner: expected one of 'sgd', 'constant', 'erm'"):
        MetaRegressor(reg=1.0, inner=cast(str, algorithm_1)).fit(X, y, groups=np.zeros(len(y)))
