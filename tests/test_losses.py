"""Every loss of the registry, from its value alone: nothing here is written per loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import loss_subgradient, loss_value
from scipy.optimize import minimize_scalar
from strategies import losses

from headstart import LOSSES, EpsilonInsensitive, Hinge, Huber, Loss, Pinball, get_loss
from headstart.losses.scalar import conjugate_slope, lower, prox_conjugate, prox_slope, upper

finite = st.floats(-20.0, 20.0, allow_subnormal=False)
positive = st.floats(0.05, 20.0)


def label(loss: Loss, y: float) -> float:
    return (1.0 if y > 0 else -1.0) if loss.binary else y


def domain(loss: Loss, y: float) -> tuple[float, float]:
    """The values of u at which the conjugate is finite."""
    ends = lower(loss.code, loss.parameter), upper(loss.code, loss.parameter)
    a, b = (end * (y if loss.binary else 1.0) for end in ends)
    return min(a, b), max(a, b)


@given(losses(), finite, finite)
def test_value_and_subgradient_are_the_textbook_ones(loss: Loss, z: float, y: float) -> None:
    y = label(loss, y)
    assert loss.value(z, y) == pytest.approx(loss_value(loss.name, loss.parameter, z, y))
    expected = loss_subgradient(loss.name, loss.parameter, z, y)
    assert loss.subgradient(z, y) == pytest.approx(expected, abs=1e-12)


@given(losses(), finite, finite)
def test_subgradient_is_the_derivative_where_there_is_one(loss: Loss, z: float, y: float) -> None:
    y, eps = label(loss, y), 1e-6
    below, here, above = loss.value([z - eps, z, z + eps], y)
    left, right = (here - below) / eps, (above - here) / eps
    assert left - 1e-5 <= loss.subgradient(z, y) <= right + 1e-5


@given(losses(), finite, finite, finite)
def test_subgradient_inequality(loss: Loss, z: float, other: float, y: float) -> None:
    y = label(loss, y)
    linear = loss.value(z, y) + loss.subgradient(z, y) * (other - z)
    assert loss.value(other, y) >= linear - 1e-9


@given(losses(), finite, finite, finite)
def test_lipschitz_constant_holds_and_is_reached(
    loss: Loss, z: float, other: float, y: float
) -> None:
    y = label(loss, y)
    rise = abs(loss.value(z, y) - loss.value(other, y))
    assert rise <= loss.lipschitz * abs(z - other) + 1e-9
    steep = np.abs(loss.subgradient([-1e3, 1e3], y)).max()
    assert steep == pytest.approx(loss.lipschitz, rel=1e-6)


@given(losses(), finite, finite)
def test_fenchel_young_is_an_equality_at_the_subgradient(loss: Loss, z: float, y: float) -> None:
    y = label(loss, y)
    u = loss.subgradient(z, y)
    total = loss.value(z, y) + loss.conjugate(u, y)
    assert total == pytest.approx(u * z, abs=1e-9)


@given(losses(), st.floats(-1.5, 1.5), finite)
def test_conjugate_by_brute_force(loss: Loss, u: float, y: float) -> None:
    y = label(loss, y)
    low, high = domain(loss, y)
    outside = max(low - u, u - high)
    assume(not 0.0 < outside < 1e-12)  # there rounding is forgiven
    if outside > 0.0:
        assert loss.conjugate(u, y) == np.inf
        return
    grid = np.linspace(-60.0, 60.0, 4001)
    kinks = np.array([y, y - loss.parameter, y + loss.parameter, 1.0 / y if y else 0.0])
    grid = np.concatenate([grid, kinks])
    best = float(np.max(u * grid - loss.value(grid, y)))
    # the sup over a grid is below the sup, by less than the slope times half a spacing
    assert best - 1e-9 <= loss.conjugate(u, y) <= best + 0.03


@given(losses(), finite)
def test_conjugate_is_infinite_just_outside_its_domain(loss: Loss, y: float) -> None:
    y = label(loss, y)
    low, high = domain(loss, y)
    ends = loss.conjugate([low, high], y)
    assert np.all(np.isfinite(ends))
    assert np.all(np.isinf(loss.conjugate([low - 1e-12, high + 1e-12], y)))
    assert np.isfinite(loss.conjugate(np.nextafter(high, 9.0), y))  # rounding is forgiven


@given(losses(), finite, finite, positive)
def test_prox_by_brute_force(loss: Loss, a: float, y: float, eta: float) -> None:
    y = label(loss, y)
    low, high = domain(loss, y)

    def objective(u: float) -> float:
        return float(eta * loss.conjugate(u, y) + (u - a) ** 2 / 2.0)

    prox = float(loss.prox_conjugate(a, y, eta))
    assert low <= prox <= high
    search = minimize_scalar(objective, bounds=(low, high), method="bounded")
    assert objective(prox) <= min(search.fun, objective(low), objective(high)) + 1e-9


@given(losses(), finite, finite, positive)
def test_prox_by_moreaus_identity(loss: Loss, a: float, y: float, eta: float) -> None:
    y = label(loss, y)
    p = float(loss.prox_conjugate(a, y, eta))
    z = (a - p) / eta  # must be prox of l / eta at a / eta, so p is a subgradient at z
    gap = loss.value(z, y) + loss.conjugate(p, y) - p * z
    assert gap == pytest.approx(0.0, abs=1e-8 * (1.0 + abs(p * z)))


@given(losses(), finite, positive)
def test_derivatives_used_by_newtons_method(loss: Loss, a: float, eta: float) -> None:
    code, c, eps = loss.code, loss.parameter, 1e-6
    at = [prox_conjugate(code, c, eta, a + t) for t in (-eps, 0.0, eps)]
    slopes = [prox_slope(code, c, eta, b) for b in at]
    if len({s > 0.0 for s in slopes}) == 1:  # no corner in between
        assert slopes[1] == pytest.approx((at[2] - at[0]) / (2.0 * eps), abs=1e-4)
    b = at[1]
    if slopes[1] > 0.0 and 1e-3 < abs(b) < 0.999:
        stationary = eta * conjugate_slope(code, c, b) + b - a
        assert stationary == pytest.approx(0.0, abs=1e-6 * (1.0 + abs(a)))


@pytest.mark.parametrize("name", LOSSES)
def test_kinks_take_zero(name: str) -> None:
    loss = get_loss(name)
    y = 1.0 if loss.binary else 0.0
    points = np.array([1.0]) if loss.binary else y + np.array([0.0, loss.parameter])
    below, above = loss.value(points - 1e-7, y), loss.value(points + 1e-7, y)
    here = loss.value(points, y)
    kink = (above - here) - (here - below) > 1e-8
    expected = 0 if name in ("huber", "smoothed_hinge", "logistic") else 1
    assert kink.sum() >= expected
    assert np.all(loss.subgradient(points[kink], y) == 0.0)


def test_hinge_kink_is_dual_feasible() -> None:
    """The paper prints [-1, 1]{-y}; u = +y would have an infinite conjugate."""
    assert Hinge().conjugate(1.0, 1.0) == np.inf
    assert Hinge().conjugate(Hinge().subgradient(1.0, 1.0), 1.0) == 0.0


def test_losses_are_values() -> None:
    assert Huber(2.0) == Huber(2.0) != Huber(3.0)
    assert get_loss("huber") == Huber()
    assert get_loss(Huber(2.0)) == Huber(2.0)
    fixed: Any = Huber()
    with pytest.raises(AttributeError):
        fixed.delta = 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: get_loss("squared"), "loss: expected one of 'absolute'.* found 'squared'"),
        (lambda: Pinball(1.0), "tau: expected a finite number > 0 and < 1, found 1"),
        (lambda: Huber(0.0), "delta: expected a finite number > 0, found 0"),
        (lambda: EpsilonInsensitive(-1.0), "epsilon: expected a finite number >= 0, found -1"),
        (lambda: Hinge().value(0.0, 0.5), "hinge loss takes labels -1 and .1, found 0.5 in row 0"),
        (lambda: Huber().prox_conjugate(0.0, 0.0, 0.0), "eta: expected a finite number > 0"),
    ],
)
def test_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_loss_must_be_a_name_or_a_loss() -> None:
    number: Any = 3
    with pytest.raises(
        TypeError, match=r"loss: expected one of .* or a Loss instance, found int 3"
    ):
        get_loss(number)
