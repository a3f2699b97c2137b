"""Wrong arguments of the public functions: which, what was found, what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headstart
from headstart import (
    Loss,
    SGDState,
    TaskSet,
    biased_erm,
    biased_sgd,
    continue_bias,
    evaluate_bias,
    learn_bias,
    sgd_batch,
    start_bias,
    task_weights,
)
from headstart._core.checks import check_count, check_number

X, y, h = np.eye(3), np.array([1.0, -1.0, 1.0]), np.zeros(3)
TASKS = TaskSet.from_list([(X, y), (X[:1], y[:1])])
nan = float("nan")


def changed(base: dict[str, Any], **change: Any) -> dict[str, Any]:
    return {**base, **change}


ONE: dict[str, Any] = {"X": X, "y": y, "bias": h, "reg": 1.0}


@pytest.mark.parametrize("function", [biased_sgd, biased_erm])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": X[0]}, ValueError, r"X: expected a 2-D array, found shape \(3,\)"),
        ({"X": [["a"] * 3] * 3}, TypeError, "X: expected an array of numbers, found dtype <U1"),
        ({"X": np.full((3, 3), nan)}, ValueError, "X: .* found nan in row 0, column 0"),
        ({"X": -np.inf * np.ones((3, 3))}, ValueError, "X: expected finite numbers, found -inf"),
        ({"X": np.empty((0, 3)), "y": []}, ValueError, "X: expected at least one row"),
        ({"y": y[:2]}, ValueError, r"y: expected one label per row of X \(3\), found 2"),
        ({"y": ["a", "b", "c"]}, TypeError, "y: expected an array of numbers"),
        ({"y": [1, 2, 1], "loss": "hinge"}, ValueError, r"labels -1 and \+1, found 2 in row 1"),
        ({"y": [0, 1, 1], "loss": "logistic"}, ValueError, "logistic loss .* found 0 in row 0"),
        ({"bias": np.zeros(4)}, ValueError, "bias: expected length 3, found 4"),
        ({"bias": [nan, 0, 0]}, ValueError, "bias: .* found nan in row 0"),
        ({"bias": 0.0}, ValueError, r"bias: expected a 1-D array, found shape \(\)"),
        ({"reg": 0.0}, ValueError, "reg: expected a finite number > 0, found 0"),
        ({"reg": -1}, ValueError, "reg: expected a finite number > 0, found -1"),
        ({"reg": nan}, ValueError, "reg: expected a finite number > 0, found nan"),
        ({"reg": np.inf}, ValueError, "reg: expected a finite number > 0, found inf"),
        ({"reg": "1"}, TypeError, "reg: expected a finite number > 0, found str '1'"),
        ({"reg": None}, TypeError, "reg: expected a finite number > 0, found NoneType None"),
        ({"reg": True}, TypeError, "reg: expected a finite number > 0, found bool True"),
        ({"loss": "l2"}, ValueError, "loss: expected one of 'absolute', .* found 'l2'"),
    ],
)
def test_one_task(function: Any, change: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        function(**changed(ONE, **change))


@pytest.mark.parametrize(
    ("function", "change", "error", "message"),
    [
        (biased_sgd, {"order": "shuffle"}, ValueError, "order: expected one of 'stream', 'res"),
        (
            biased_sgd,
            {"order": "resample", "random_state": "x"},
            TypeError,
            "random_state: expected None, an integer >= 0 or a numpy.random.Generator, found str",
        ),
        (biased_sgd, {"order": "resample", "random_state": -1}, ValueError, "random_state: .* -1"),
        (biased_erm, {"solver": "newton"}, ValueError, "solver: expected one of 'cd', 'fista'"),
        (biased_erm, {"tol": 0.0}, ValueError, "tol: expected a finite number > 0, found 0"),
        (biased_erm, {"max_iter": 0}, ValueError, "max_iter: expected an integer >= 1, found 0"),
        (biased_erm, {"max_iter": 1.5}, TypeError, "max_iter: .* found float 1.5"),
        (biased_erm, {"smoothness": "none"}, ValueError, "smoothness: expected one of 'radius'"),
    ],
)
def test_options(function: Any, change: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        function(**changed(ONE, **change))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tasks": 3}, TypeError, r"tasks: expected a TaskSet or a list of \(X, y\) pairs"),
        ({"tasks": []}, ValueError, "tasks: expected at least one task"),
        ({"reg": 0}, ValueError, "reg: expected a finite number > 0, found 0"),
        ({"step": -1.0}, ValueError, "step: expected a finite number >= 0, found -1"),
        ({"step": "big"}, TypeError, "step: expected a finite number >= 0, found str 'big'"),
        (
            {"inner": "adam"},
            ValueError,
            "inner: expected one of 'sgd', 'constant', 'erm', found 'adam'",
        ),
        ({"initial": [1.0]}, ValueError, "initial: expected length 3, found 1"),
        ({"batch_size": 0}, ValueError, "batch_size: expected an integer >= 1, found 0"),
        ({"batch_size": 2.0}, TypeError, "batch_size: expected an integer >= 1, found float 2.0"),
        ({"n_jobs": 0, "batch_size": 2}, ValueError, "n_jobs: expected None or an integer other"),
        ({"order": "random"}, ValueError, "order: expected one of 'stream', 'resample'"),
        (
            {"tasks": [(X, 2 * y)], "loss": "hinge"},
            ValueError,
            "y: the hinge loss takes labels -1 and .1, found 2 in row 0 of task 0",
        ),
        ({"tasks": [(X, y)] * 50, "step": 1e308}, ValueError, "step: the bias grew beyond all"),
        ({"n_jobs": 0}, ValueError, "n_jobs: expected None or an integer other than 0, found 0"),
        ({"reg": 10**400}, ValueError, "reg: expected a finite number > 0, found inf"),
        ({"loss": Loss()}, TypeError, "loss: expected a subclass of Loss, found"),
    ],
)
def test_learn_bias(change: Any, error: Any, message: str) -> None:
    base = {"tasks": TASKS, "reg": 1.0, "step": 1.0}
    with pytest.raises(error, match=message):
        learn_bias(**changed(base, **change))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate_bias(TASKS, TASKS.subset([0]), h, 1.0), ValueError, "found 1 tasks$"),
        (
            lambda: evaluate_bias(TASKS, TASKS.subset([1, 0]), h, 1.0),
            ValueError,
            "queries: expected the tasks of shots in the same order .2 tasks., .* with other ids",
        ),
        (
            lambda: evaluate_bias([(X, y)], [(X[:, :2], y)], h, 1.0),
            ValueError,
            "queries: expected 3 features as in shots, found 2",
        ),
        (lambda: evaluate_bias(TASKS, TASKS, h[:2], 1.0), ValueError, "bias: expected length 3"),
        (lambda: task_weights(TASKS, h, 1.0, predictor="best"), ValueError, "predictor: expected"),
        (
            lambda: start_bias(0),
            ValueError,
            "n_features: expected an integer >= 1 and <= 1073741824, found 0",
        ),
        (
            lambda: continue_bias(start_bias(2), TASKS, 1.0, 1.0),
            ValueError,
            "tasks: expected 2 features as in the state, found 3",
        ),
        (lambda: sgd_batch(X, y, np.zeros((2, 4)), 1.0), ValueError, "biases: .* last axis 3"),
        (lambda: sgd_batch(X, y, [[nan, 0, 0]], 1.0), ValueError, "biases: .* found nan"),
        (lambda: sgd_batch(X, y, [h], [1.0, 0.0]), ValueError, "regs: expected numbers > 0"),
        (lambda: sgd_batch(X, y, [h, h], [1, 1, 1]), ValueError, "regs: shape .3,. does not br"),
        (lambda: SGDState.start(h, 0.0), ValueError, "reg: expected a finite number > 0"),
        (lambda: SGDState.start(h[:2], 1.0).update(X, y), ValueError, "X: expected 2 columns"),
        (
            lambda: SGDState.start(h, 1.0, "hinge").update(X, 2 * y),
            ValueError,
            "hinge loss takes labels -1 and .1, found 2 in row 0",
        ),
    ],
)
def test_the_rest(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_results_are_told_from_vectors_and_states() -> None:
    learned: Any = learn_bias(TASKS, 1.0, 1.0)
    with pytest.raises(TypeError, match="bias: expected a vector, found BiasResult"):
        evaluate_bias(TASKS, TASKS, learned, 1.0)
    with pytest.raises(TypeError, match="state: expected a BiasState from start_bias"):
        continue_bias(learned, TASKS, 1.0, 1.0)


def test_a_duration_is_no_number_though_numpy_calls_it_an_integer() -> None:
    second = np.timedelta64(1, "s")
    for check in (check_count, check_number):
        with pytest.raises(TypeError, match=r"few: expected a.*, found timedelta64"):
            check("few", second)


def test_enormous_counts_are_no_trouble() -> None:
    same = learn_bias(TASKS, 1.0, 1.0, batch_size=2)
    for batch in (2**63, 10**30):
        again = learn_bias(TASKS, 1.0, 1.0, batch_size=batch)
        np.testing.assert_array_equal(again.bias, same.bias)
    task_weights(TASKS, h, 1.0, n_jobs=10**30)
    assert biased_erm(X, y, h, 1.0, max_iter=10**30).converged


def test_options_are_checked_even_where_they_do_not_matter() -> None:
    for wrong in ({"predictor": "best"}, {"order": "random"}):
        options: dict[str, Any] = {"inner": "erm", **wrong}
        with pytest.raises(ValueError, match="expected one of"):
            evaluate_bias(TASKS, TASKS, h, 1.0, **options)


def test_public_names_exist() -> None:
    for name in headstart.__all__:
        assert isinstance(name, str)
        assert hasattr(headstart, name)
