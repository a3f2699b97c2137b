"""Hostile numbers that Hypothesis thinks of, against the contract of `attack.contract`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attack.contract import attempt
from headstart import (
    MetaRegressor,
    TaskRegressor,
    biased_erm,
    biased_sgd,
    evaluate_bias,
    learn_bias,
    learn_prior,
)

ROWS, COLUMNS = 6, 2
NUMBERS = st.one_of(
    st.floats(-10.0, 10.0),
    st.floats(),  # NaN, infinities, and what is too small to square
    st.sampled_from([0.0, 1e-310, 1e-170, 1e149, 1e151, 1e308, -1e308, 5e-324]),
)


def some(*shape: int) -> st.SearchStrategy[Any]:
    return arrays.arrays(np.float64, shape, elements=NUMBERS, fill=st.nothing())


@settings(max_examples=60, deadline=None)
@given(some(ROWS, COLUMNS), some(ROWS), some(COLUMNS), NUMBERS)
def test_any_numbers_give_numbers_or_a_clear_error(X: Any, y: Any, h: Any, reg: float) -> None:
    half = [(X[:3], y[:3]), (X[3:], y[3:])]
    calls: dict[str, Any] = {
        "biased_sgd": lambda: biased_sgd(X, y, h, reg),
        "biased_erm": lambda: biased_erm(X, y, h, reg, max_iter=50),
        "fista": lambda: biased_erm(X, y, h, reg, solver="fista", max_iter=50),
        "learn_bias": lambda: learn_bias(half, reg, 0.1),
        "evaluate_bias": lambda: evaluate_bias(half, half, h, reg),
        "learn_prior": lambda: learn_prior(half, fit_intercept=True, max_iter=20),
        "TaskRegressor": lambda: TaskRegressor(bias=h, reg=reg).fit(X, y).predict(X),
        "MetaRegressor": lambda: MetaRegressor().fit(X, y, groups=[0, 0, 0, 1, 1, 1]).predict(X),
    }
    faults = {name: attempt(call, {}).fault for name, call in calls.items()}
    assert not any(faults.values()), {name: fault for name, fault in faults.items() if fault}
