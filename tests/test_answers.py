"""Answers are numbers, or an error says which argument is out of range; odd arguments are refused.

Each of these was found by the attack, or is of a kind that it tries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headstart as hs
from headstart import theory
from headstart._core.answers import LARGEST, check_answer, is_finite
from headstart.environments import RegressionEnvironment

X, y = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]), np.array([1.0, -1.0, 2.0])
IDS, h = np.array([0, 1, 0]), np.array([0.5, -0.5])
TASKS = hs.TaskSet.from_arrays(X, y, IDS)
QUERIES = hs.TaskSet.from_arrays(2.0 * X, y, IDS)
PRIOR = hs.Prior(h, 1.0, noise=0.5)
LESS = hs.TaskSet.from_arrays(X * 1e140, y, IDS)  # in range, and products of three are not

SMALL_REG: list[Callable[[float], Any]] = [
    lambda reg: hs.biased_sgd(X, y, h, reg),
    lambda reg: hs.biased_erm(X, y, h, reg),
    lambda reg: hs.sgd_batch(X, y, [h], [1.0, reg]),
    lambda reg: hs.SGDState.start(h, reg),
    lambda reg: hs.weights_from_dual(X, h, reg, y),
    lambda reg: hs.task_weights(TASKS, h, reg),
    lambda reg: hs.evaluate_bias(TASKS, QUERIES, h, reg),
    lambda reg: hs.learn_bias(TASKS, reg, 1.0),
    lambda reg: hs.continue_bias(hs.start_bias(2), TASKS, reg, 1.0),
    lambda reg: hs.select_reg((TASKS, QUERIES), (TASKS, QUERIES), h, [1.0, reg]),
    lambda reg: hs.select_online(TASKS, (TASKS, QUERIES), (TASKS, QUERIES), [reg], [1.0]),
    lambda reg: hs.TaskRegressor(reg=reg).fit(X, y),
    lambda reg: hs.MetaRegressor(reg=reg).fit(X, y, groups=IDS),
    lambda reg: theory.sgd_regret(3, reg),
]


@pytest.mark.parametrize("reg", [5e-324, 1e-310])
@pytest.mark.parametrize("call", SMALL_REG)
def test_a_reg_that_cannot_be_divided_by_is_refused(call: Any, reg: float) -> None:
    with pytest.raises(ValueError, match=r"^regs?: expected .*, found .*e-3[12]"):
        call(reg)


LARGE: list[Callable[[float], Any]] = [
    lambda size: hs.biased_sgd(size * X, y, h, 1.0),
    lambda size: hs.biased_erm(size * X, y, h, 1.0, "squared"),
    lambda size: hs.sgd_batch(size * X, y, [h], [1.0]),
    lambda size: hs.SGDState.start(h, 1.0).update(size * X, y),
    lambda size: hs.TaskSet.from_arrays(size * X, y, IDS),
    lambda size: hs.TaskSet.from_list([(X, size * y)]),
    lambda size: hs.TaskSet(size * X, y, np.array([0, 3]), np.array([0])),
    lambda size: PRIOR.posterior(size * X, y),
    lambda size: PRIOR.posterior(X, size * y),
    lambda size: PRIOR.posterior().update(size * X, y),
    lambda size: PRIOR.predict(size * X),
    lambda size: PRIOR.posterior(X, y).variance(size * X),
    lambda size: hs.learn_prior([(size * X, y)]),
    lambda size: hs.Summaries().add(size * X, y, IDS),
    lambda size: hs.TaskRegressor().fit(size * X, y),
    lambda size: hs.TaskRegressor(prior=PRIOR, fit_intercept=False).fit(size * X, y),
    lambda size: hs.TaskRegressor().fit(X, y).predict(size * X),
    lambda size: hs.MetaRegressor().fit(size * X, y, groups=IDS),
    lambda size: hs.MetaRegressor(reg=1.0).partial_fit(X, size * y, groups=IDS),
    lambda size: theory.primal_value(size * X, y, h, h, 1.0),
]


@pytest.mark.parametrize("size", [1e160, 1e300])
@pytest.mark.parametrize("call", LARGE)
def test_numbers_too_large_are_refused_where_they_are(call: Any, size: float) -> None:
    with pytest.raises(ValueError, match=r"(X|y): .*expected numbers of at most 1e\+150, found"):
        call(size)


GROWS: list[Callable[[], Any]] = [
    lambda: hs.biased_sgd(1e140 * X, y, h, 1e-200),
    lambda: hs.sgd_batch(1e140 * X, y, [h], [1e-200]),
    lambda: hs.SGDState.start(h, 1e-200).update(1e140 * X, y),
    lambda: hs.task_weights(LESS, h, 1e-200),
    lambda: hs.evaluate_bias(LESS, QUERIES, h, 1e-200),
    lambda: hs.weights_from_dual(1e140 * X, h, 1e-200, y),
    lambda: hs.learn_bias(LESS, 1.0, 1e200),
    lambda: hs.select_reg((LESS, QUERIES), (LESS, QUERIES), h, [1e-200]),
    lambda: hs.TaskRegressor(reg=1e-200).fit(1e140 * X, y),
    lambda: hs.TaskRegressor(reg=1e-100).fit(1e100 * X, y).predict(1e149 * X),
    lambda: hs.Prior(h, 1e149).posterior().variance(1e149 * X),
    lambda: hs.Prior(h, 1.0).log_likelihood([(1e140 * X, 1e149 * y)] * 9),
    lambda: hs.biased_sgd((1e30 * X).astype(np.float32), y, h, 1e-30),
    lambda: hs.get_loss("squared").value(1e149, -1e149) * 0 + hs.get_loss("huber").value(1e400, 0),
]


@pytest.mark.parametrize("call", GROWS)
def test_what_grows_beyond_all_numbers_is_said(call: Any) -> None:
    with pytest.raises(ValueError, match=r"^[\w, ]+: .*(beyond all numbers|expected finite)"):
        call()


def test_a_bias_beyond_the_numbers_of_its_type_is_said() -> None:
    X, y = np.ones((8, 2), np.float32), np.arange(8, dtype=np.float32)
    ids = np.repeat([0, 1], 4)
    assert (
        hs.MetaRegressor(reg=1.0, step=1e45).fit(X.astype(float), y, groups=ids).bias_.min() > 1e40
    )
    with pytest.raises(ValueError, match="step: the bias grew beyond all numbers"):
        hs.MetaRegressor(reg=1.0, step=1e45).fit(X, y, groups=ids)


def test_a_column_too_small_to_square_is_refused() -> None:
    with pytest.raises(ValueError, match=r"X: column 0: expected numbers of at least .* too small"):
        hs.learn_prior([(X * [1e-170, 1.0], y)] * 3, fit_intercept=True)
    hs.learn_prior([(X * [0.0, 1.0], y)] * 3)  # a column of zeros is nothing of the kind


def test_a_stream_goes_on_with_rows_that_cannot_be_squared_and_its_end_says_so() -> None:
    said = r"X: column 0: expected numbers of at least .* too small"
    model = hs.MetaRegressor().partial_fit([[0.0]], [1.0], groups=[0])
    model.partial_fit([[1e-170]], [2.0], groups=[1])  # the second row, after which it learns
    assert len(model.ids_) == 2
    assert model.intercept_ == pytest.approx(1.0)  # as it was
    with pytest.raises(ValueError, match=said):
        model.finish()
    with pytest.raises(ValueError, match=said):
        hs.MetaRegressor(fit_intercept=False).partial_fit([[1e-170]], [2.0], groups=[1])
    model.partial_fit([[1.0], [2.0]], [3.0, 6.0], groups=[0, 1]).finish()
    rows = [[0.0], [1e-170], [1.0], [2.0]], [1.0, 2.0, 3.0, 6.0], [0, 1, 0, 1]
    assert model.bias_ == pytest.approx(hs.MetaRegressor().fit(*rows).bias_)


def test_a_prediction_that_overflows_is_not_taken_for_one_without_slope() -> None:
    """The slope of most losses is a number even at NaN, and would hide where a row went."""
    one, other = [[1e149, 1e149]], [1e149, -1e149]
    assert hs.biased_sgd(one, [1.0], other, 1.0).dual == pytest.approx([-1.0])
    with pytest.raises(ValueError, match="X, y, bias, reg: the answer is beyond all numbers"):
        hs.biased_sgd([*one, *one], [1.0, -1.0], h, 1e-100)


@given(
    st.lists(st.floats(-1e140, 1e140), min_size=1, max_size=9),
    st.sampled_from([None, np.nan, np.inf, 1e151]),
)
def test_one_pass_finds_what_is_not_a_number(numbers: list[float], bad: float | None) -> None:
    values = np.array(numbers if bad is None else [*numbers, bad])
    assert is_finite(values) == (bad is None)
    assert is_finite(values[::-1]) == (bad is None)


def test_answers_of_all_shapes_are_looked_at() -> None:
    right = 1.0, np.zeros(2), None
    assert check_answer(right, "X") is right
    for wrong in (np.nan, np.array([1.0, np.inf]), (0.0, np.array([np.nan])), (1.0, -np.inf)):
        with pytest.raises(ValueError, match="X, y: the answer is beyond all numbers"):
            check_answer(wrong, "X, y")


def test_the_constructor_of_a_task_set_looks_at_its_rows() -> None:
    cuts, ids = np.array([0, 3]), np.array(["a"])
    for wrong, said in (
        (np.where(X == 3.0, np.nan, X), "X: .* nan in row 1"),
        (X[:, 0], "X: .*2-D"),
    ):
        with pytest.raises(ValueError, match=said):
            hs.TaskSet(wrong, y, cuts, ids)
    with pytest.raises(ValueError, match=r"y: .* found nan in row 0"):
        hs.TaskSet(X, y * np.nan, cuts, ids)
    with pytest.raises(ValueError, match="offsets: expected a 1-D array"):
        hs.TaskSet(X, y, None, ids)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.float16, np.int64, object, "U3", "nonsense", None, 3, ">f8"])
def test_task_sets_are_float32_or_float64(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"dtype: expected numpy.float32 or numpy.float64, found"):
        TASKS.astype(dtype)
    assert TASKS.astype("float32").dtype == np.float32
    with pytest.raises(ValueError, match="X: expected finite numbers, found inf"):
        LESS.astype(np.float32)


def anything(**options: Any) -> Any:
    """An estimator with parameters that types forbid."""
    return hs.MetaRegressor(**{"reg": 1.0, **options}).fit(X, y)


model: Any = hs.MetaRegressor(reg=1.0).fit(X, y, groups=IDS)
kept: Any = hs.Summaries()
odd: dict[str, Any] = {"no": "no", "two": 2.0}
TWICE = pd.DataFrame(X, columns=["a", "a"])
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: hs.start_bias(2**40), ValueError, "n_features: expected .* <= 1073741824, found"),
    (lambda: anything(task_size=2**63), ValueError, "task_size: expected an integer"),
    (lambda: anything(group=99), ValueError, "group: expected .* 0 to 1, found 99"),
    (lambda: anything(group=[0]), TypeError, "group: expected a column's name"),
    (lambda: anything(step=np.array([0.1, 1.0])), TypeError, "step: expected a finite number"),
    (lambda: anything(reg=np.array([1.0, 2.0])), TypeError, "reg: expected a finite number"),
    (lambda: anything(side=slice(2)), TypeError, "side: expected a list of column"),
    (lambda: model.predict(X, return_std="no"), TypeError, "return_std: expected True or False"),
    (lambda: model.predict_one({"a": 1.0}), TypeError, "x: expected an array, since fit had no"),
    (lambda: model.predict_one(["a", "b"]), TypeError, "x: expected an array of numbers"),
    (lambda: model.adapt_tasks(3), TypeError, "tasks: expected a TaskSet"),
    (lambda: model.learn(3), TypeError, "chunks: expected an iterable"),
    (lambda: model.predict("abc"), ValueError, "X: expected a table of numbers, found str"),
    (lambda: model.score(X, ["a", "b", "c"]), TypeError, "y: expected an array of numbers"),
    (lambda: model.fit(TWICE, y, groups=IDS), ValueError, "X: expected columns of different"),
    (lambda: hs.Prior(h, 1.0, intercept=odd["no"]), TypeError, "intercept: expected True or"),
    (lambda: hs.Prior([], 1.0), ValueError, "bias: expected a number for each column"),
    (lambda: hs.Summaries(fit_intercept=odd["two"]), TypeError, "fit_intercept: expected True"),
    (lambda: kept.settle(3), TypeError, "prior: expected a Prior"),
    (lambda: kept.merge(3), TypeError, "other: expected a Summaries"),
    (lambda: RegressionEnvironment().draw(2**40, 9), ValueError, "n_tasks: expected an integer"),
    (lambda: hs.get_loss("absolute").value([1, 2], [1, 2, 3]), ValueError, "prediction, target"),
    (lambda: hs.weights_from_dual(X, h, 1.0, [1.0]), ValueError, "dual: expected last axis 3"),
    (lambda: theory.fixed_bias(3, 1e200), ValueError, "var_h: expected a number from 1e-50 to"),
]


@pytest.mark.parametrize(("call", "error", "said"), REFUSED)
def test_odd_arguments_are_refused_in_clear_words(call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said), warnings.catch_warnings(action="ignore"):
        call()


def test_summaries_do_not_take_themselves_in() -> None:
    kept = hs.Summaries()
    kept.add(X, y, IDS)
    with pytest.raises(ValueError, match="other: expected other summaries, found these"):
        kept.merge(kept)


def test_a_refused_row_leaves_a_stream_as_it_was() -> None:
    stream = hs.MetaRegressor().fit(X, y, groups=IDS)
    before = stream.predict(X, groups=IDS)
    for x, label in (([1e160, 1.0], 1.0), ([1.0, 1.0], 1e160), ([np.nan, 1.0], 1.0)):
        with pytest.raises(ValueError, match=r"x(, y)?: expected"):
            stream.learn_one(np.array(x), label, 0)
    np.testing.assert_array_equal(stream.finish().predict(X, groups=IDS), before)


IMPORT = "import headstart; print(headstart.learn_bias([([[1.0]], [2.0])], 1.0, 1.0).last)"


def test_the_package_needs_no_home() -> None:
    """No HOME and no entry in the list of users, as in a container with a number for a user."""
    code = "import pathlib\n\ndef nowhere():\n    raise RuntimeError('no home')\n"
    code += "pathlib.Path.home = staticmethod(nowhere)\nfrom headstart._core import jit\n"
    code += "jit.PACKAGE = pathlib.Path('/proc/nowhere')\nprint(jit.find_cache_folder())\n"
    code += IMPORT.split("; ", 1)[0] + "\n" + IMPORT.split("; ", 1)[1]
    kept = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=kept)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[1.]"
    assert done.stdout.startswith("None")


def test_largest_is_safe_to_square() -> None:
    assert np.isfinite(LARGEST**2)
