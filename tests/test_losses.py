"""Every loss of the registry, from its value alone: nothing here is written per loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import loss_subgradient, loss_value
from scipy.optimize import minimize_scalar
from strategies import LIPSCHITZ, losses

from headstart import (
    LOSSES,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Pinball,
    TaskSet,
    biased_erm,
    biased_sgd,
    evaluate_bias,
    get_loss,
    learn_bias,
    register_loss,
    select_online,
)
from headstart._core.checks import together
from headstart._core.jit import uncached
from headstart.losses import Form
from headstart.losses.form import ABSOLUTE, HINGE, OWN, SQUARED
from headstart.losses.scalar import conjugate_slope, prox_conjugate, prox_slope
from headstart.theory import sgd_regret

finite = st.floats(-20.0, 20.0, allow_subnormal=False)
positive = st.floats(0.05, 20.0)


def label(loss: Loss, y: float) -> float:
    return (1.0 if y > 0 else -1.0) if loss.binary else y


def domain(loss: Loss, y: float) -> tuple[float, float]:
    """The values of u at which the conjugate is finite, up to 20."""
    a, b = (end * (y if loss.binary else 1.0) for end in np.clip(loss.domain, -20.0, 20.0))
    return float(min(a, b)), float(max(a, b))


@given(losses(), finite, finite)
def test_value_and_subgradient_are_the_textbook_ones(loss: Loss, z: float, y: float) -> None:
    y = label(loss, y)
    assert loss.value(z, y) == pytest.approx(loss_value(loss.name, loss.parameters[0], z, y))
    expected = loss_subgradient(loss.name, loss.parameters[0], z, y)
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


@given(losses(LIPSCHITZ), finite, finite, finite)
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
    kinks = np.array(
        [y, y - loss.parameters[0], y + loss.parameters[0], 1.0 / y if abs(y) > 1e-100 else 0.0]
    )
    grid = np.concatenate([grid, kinks])
    best = float(np.max(u * grid - loss.value(grid, y)))
    # the sup over a grid is below the sup, by less than the slope times half a spacing
    assert best - 1e-9 <= loss.conjugate(u, y) <= best + 0.03


@given(losses(LIPSCHITZ), finite)
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


@uncached
def prox_and_slopes(form: Form, eta: float, v: float) -> tuple[float, float, float]:
    """The prox at v, its derivative there, and the slope of the conjugate at the prox."""
    u = prox_conjugate(form, eta, v)
    return u, prox_slope(form, eta, u), conjugate_slope(form, u)


@given(losses(), finite, positive)
def test_derivatives_used_by_newtons_method(loss: Loss, a: float, eta: float) -> None:
    eps = 1e-6
    points = [prox_and_slopes(loss.form, eta, a + t) for t in (-eps, 0.0, eps)]
    at, slopes, _ = zip(*points, strict=True)
    if len({s > 0.0 for s in slopes}) == 1:  # no corner in between
        assert slopes[1] == pytest.approx((at[2] - at[0]) / (2.0 * eps), abs=1e-4)
    b, slope, star_slope = points[1]
    if slope > 0.0 and 1e-3 < abs(b) < 0.999:
        assert eta * star_slope + b - a == pytest.approx(0.0, abs=1e-6 * (1.0 + abs(a)))


INSTANCES = [loss() for loss in LOSSES.values()]
INSTANCES += [Huber(0.3), EpsilonInsensitive(2.0), Pinball(0.8)]


@pytest.mark.parametrize("loss", INSTANCES, ids=str)
@given(share=st.floats(0.02, 0.98), eta=positive)
def test_slopes_of_conjugate_and_prox_inside_the_domain(
    loss: Loss, share: float, eta: float
) -> None:
    """From a value u of the prox backwards: it is reached at ``v = u + eta star'(u)``."""
    low, high = np.clip(loss.domain, -3.0, 3.0)
    u, eps = float(low + share * (high - low)), 1e-6
    assume(abs(u) > 1e-3)
    below, above = loss.conjugate([u - eps, u + eps], 1.0 if loss.binary else 0.0)
    slope = slope_of_star(loss.form, u)
    assert slope == pytest.approx((above - below) / (2.0 * eps), rel=1e-4, abs=1e-4)
    v = u + eta * slope
    values = [prox_and_slopes(loss.form, eta, v + t) for t in (-eps, 0.0, eps)]
    assert values[1][0] == pytest.approx(u, abs=1e-9)
    assert values[1][1] == pytest.approx((values[2][0] - values[0][0]) / (2.0 * eps), rel=1e-3)


@uncached
def slope_of_star(form: Form, u: float) -> float:
    return conjugate_slope(form, u)


MAJORISED = [name for name in LOSSES if name != "logistic"]


@given(losses(MAJORISED), finite, st.floats(0.0, 100.0), finite)
def test_parabolas_dominate_and_touch(loss: Loss, mean: float, variance: float, y: float) -> None:
    y = label(loss, y)
    omega, tau, c = (float(v) for v in loss.quadratic_form(mean, variance, y))
    spread = np.sqrt((abs(mean) + abs(y) + 1.0) ** 2 + variance)
    grid = np.concatenate([np.linspace(-3.0, 3.0, 6001) * spread + y, [mean, tau]])
    above = omega / 2.0 * (grid - tau) ** 2 + c - loss.value(grid, y)
    assert omega > 0.0
    assert above.min() >= -1e-9 * (1.0 + spread)
    if loss.name == "epsilon_insensitive":
        return  # the sum of two parabolas, each of which touches its half
    # s - t is symmetric about the corner: the touching points have that distance from it
    p = loss.parameters[0]
    corner = {"hinge": 1.0, "smoothed_hinge": 1.0 - p / 2.0}.get(loss.name, 0.0)
    centre = y * corner if loss.binary else y + corner
    xi = np.sqrt((mean - centre) ** 2 + variance)
    points = np.array([centre - xi, centre + xi])
    gaps = omega / 2.0 * (points - tau) ** 2 + c - loss.value(points, y)
    assert np.abs(gaps).max() <= 1e-9 * (1.0 + spread + spread**2 * (loss.name == "squared"))


@given(losses(MAJORISED), finite, st.floats(1e-3, 100.0), finite)
def test_parabolas_are_the_best_of_their_kind(
    loss: Loss, mean: float, variance: float, y: float
) -> None:
    """Those of other moments touch elsewhere, and are higher for a prediction of these."""
    y = label(loss, y)

    def expected(at_mean: float, at_variance: float) -> float:
        omega, tau, c = (float(v) for v in loss.quadratic_form(at_mean, at_variance, y))
        return omega / 2.0 * ((mean - tau) ** 2 + variance) + c

    best = expected(mean, variance)
    for other in ((mean + 1.0, variance), (mean, 2.0 * variance), (mean, 0.5 * variance)):
        assert best <= expected(*other) * (1.0 + 1e-9) + 1e-9


@given(st.floats(-6.0, 6.0), st.floats(1e-6, 9.0), st.sampled_from([-1.0, 1.0]))
def test_the_logistic_parabola_is_the_loss_on_average(m: float, v: float, y: float) -> None:
    """Its expectation, and the slopes of that in mean and variance, by a finer quadrature."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(100)
    s = m + np.sqrt(v) * nodes
    p = 1.0 / (1.0 + np.exp(y * s))
    shares = shares / shares.sum()
    omega, tau, c = (float(a) for a in Logistic().quadratic_form(m, v, y))
    assert omega > 0.0
    assert omega == pytest.approx(shares @ (p * (1.0 - p)), abs=0.02)
    assert omega * (m - tau) == pytest.approx(shares @ (-y * p), abs=0.02)
    expected = omega / 2.0 * ((m - tau) ** 2 + v) + c
    assert expected == pytest.approx(shares @ np.logaddexp(0.0, -y * s), abs=0.03)


@given(st.sampled_from([n for n in LOSSES if not LOSSES[n].binary]), st.floats(0.01, 100.0))
def test_noise_is_where_the_likelihood_is_largest(name: str, mean_loss: float) -> None:
    loss = get_loss(name)
    noise = loss.fit_noise(mean_loss)

    def likelihood(b: float) -> float:
        return -mean_loss / b - loss.log_normaliser(b)

    assert likelihood(noise) >= max(likelihood(0.9 * noise), likelihood(1.1 * noise))
    assert loss.log_normaliser(noise) == pytest.approx(Loss.log_normaliser(loss, noise), abs=1e-4)
    assert loss.noise_variance(noise) == pytest.approx(Loss.noise_variance(loss, noise), rel=1e-3)
    assert noise == pytest.approx(Loss.fit_noise(loss, mean_loss), rel=1e-3)
    assert loss.mean_loss(noise) == pytest.approx(mean_loss, rel=1e-6)
    assert loss.mean_loss(noise) == pytest.approx(Loss.mean_loss(loss, noise), rel=1e-3)


@dataclass(frozen=True)
class Tilted(Loss):
    """``(a s^+ + b s^-)^2 / 2`` softened to ``|s|`` beyond 1: two parameters, no conjugate."""

    above: float = 1.0
    below: float = 1.0
    name = "tilted"
    domain = (-10.0, 10.0)

    @staticmethod
    def phi(s: float, a: float, b: float) -> float:
        r = a * s if s > 0.0 else -b * s
        return 0.5 * r * r if r < 1.0 else r - 0.5

    @staticmethod
    def slope(s: float, a: float, b: float) -> float:
        return min(a * a * s, a) if s > 0.0 else max(b * b * s, -b)


@dataclass(frozen=True)
class OwnHuber(Loss):
    """Huber's loss again, as a user would write it, with every part."""

    delta: float = 1.0
    name = "own_huber"
    phi = staticmethod(Huber.phi)
    slope = staticmethod(Huber.slope)
    star = staticmethod(Huber.star)
    star_slope = staticmethod(Huber.star_slope)
    prox = staticmethod(Huber.prox)
    prox_slope = staticmethod(Huber.prox_slope)
    quadratic = staticmethod(Huber.quadratic)


def test_an_own_loss_is_computed_and_both_its_parameters_count() -> None:
    loss = Tilted(2.0, 0.5)
    z = np.linspace(-3.0, 3.0, 13)
    np.testing.assert_array_equal(loss.value(z, 0.0), [Tilted.phi(s, 2.0, 0.5) for s in z])
    X, y = np.ones((3, 1)), np.array([1.0, 2.0, 0.0])
    w = 0.0  # Algorithm 1 by hand
    total = 0.0
    for k in range(3):
        total += Tilted.slope(w - y[k], 2.0, 0.5)
        w = -total / (k + 1)
    assert biased_sgd(X, y, [0.0], 1.0, loss).last[0] == pytest.approx(w)


def test_an_own_loss_with_every_part_goes_through_every_algorithm() -> None:
    rng = np.random.default_rng(0)
    tasks = TaskSet.from_arrays(rng.normal(size=(60, 3)), rng.normal(size=60), np.arange(60) // 6)
    own, built_in = OwnHuber(0.5), Huber(0.5)
    for inner in ("sgd", "erm"):
        ours, theirs = (learn_bias(tasks, 0.1, 0.5, loss, inner) for loss in (own, built_in))
        np.testing.assert_array_equal(ours.bias, theirs.bias)
    shots, queries = tasks.split_rows(3)
    for inner in ("sgd", "erm"):
        ours_, theirs_ = (
            evaluate_bias(shots, queries, np.ones(3), 0.1, loss, inner) for loss in (own, built_in)
        )
        np.testing.assert_array_equal(ours_, theirs_)
    picked, expected = (
        select_online(tasks, (shots, queries), (shots, queries), [0.1, 1.0], [0.1, 1.0], loss)
        for loss in (own, built_in)
    )
    np.testing.assert_array_equal(picked.validation_loss, expected.validation_loss)
    assert own.quadratic_form(3.0, 0.1, 1.0) == built_in.quadratic_form(3.0, 0.1, 1.0)


def test_what_an_own_loss_lacks_is_named() -> None:
    X, y, h = np.eye(2), np.ones(2), np.zeros(2)
    with pytest.raises(
        ValueError, match="the exact solver needs the part 'star', which the tilted"
    ):
        biased_erm(X, y, h, 1.0, Tilted())
    with pytest.raises(ValueError, match="the tilted loss does not have the part 'prox'"):
        Tilted().prox_conjugate(0.0, 0.0)
    with pytest.raises(ValueError, match="the posterior needs the part 'quadratic'"):
        Tilted().quadratic_form(0.0, 1.0, 0.0)
    nothing = type("Nothing", (Loss,), {"name": "nothing", "code": 99})
    with pytest.raises(TypeError, match="Nothing has no part 'phi'"):
        learn_bias([(X, y)], 1.0, 1.0, nothing())
    crowded = make_dataclass(
        "Crowded", [("p", float, 1.0), ("q", float, 1.0), ("r", float, 1.0)], bases=(Tilted,),
        frozen=True,
    )  # fmt: skip
    with pytest.raises(TypeError, match="Crowded has 5 parameters, and its parts take two"):
        get_loss(crowded())


def test_an_own_loss_is_called_by_its_name_once_registered() -> None:
    register_loss(Tilted)
    try:
        assert get_loss("tilted") == Tilted()
        twin: type[Loss] = dataclass(frozen=True)(type("Twin", (Tilted,), {"name": "tilted"}))
        with pytest.raises(ValueError, match="there is another loss called 'tilted'"):
            register_loss(twin)
    finally:
        del LOSSES["tilted"]


def test_a_part_that_cannot_be_compiled_is_named() -> None:
    wild = type("Wild", (Tilted,), {"slope": staticmethod(lambda s, a, b: str(s) + a * b)})
    with pytest.raises(TypeError, match="the part 'slope' of Wild cannot be compiled"):
        biased_sgd([[1.0]], [1.0], [0.0], 1.0, wild())


def test_sgd_refuses_the_squared_loss_and_says_why() -> None:
    message = "needs a loss of bounded slope, and that of the squared loss is not.*inner='erm'"
    with pytest.raises(ValueError, match=message):
        biased_sgd([[1.0]], [1.0], [0.0], 1.0, "squared")
    with pytest.raises(ValueError, match=message):
        learn_bias([([[1.0]], [1.0])], 1.0, 1.0, "squared")
    with pytest.raises(ValueError, match="lipschitz: expected a finite number > 0, found inf"):
        sgd_regret(10, 1.0, lipschitz=get_loss("squared").lipschitz)


@pytest.mark.parametrize("name", LOSSES)
def test_kinks_take_zero(name: str) -> None:
    loss = get_loss(name)
    y = 1.0 if loss.binary else 0.0
    points = np.array([1.0]) if loss.binary else y + np.array([0.0, loss.parameters[0]])
    below, above = loss.value(points - 1e-7, y), loss.value(points + 1e-7, y)
    here = loss.value(points, y)
    kink = (above - here) - (here - below) > 1e-8
    expected = 0 if name in ("squared", "huber", "smoothed_hinge", "logistic") else 1
    assert kink.sum() >= expected
    assert np.all(loss.subgradient(points[kink], y) == 0.0)


def test_hinge_kink_is_dual_feasible() -> None:
    """The paper prints [-1, 1]{-y}; u = +y would have an infinite conjugate."""
    assert Hinge().conjugate(1.0, 1.0) == np.inf
    assert Hinge().conjugate(Hinge().subgradient(1.0, 1.0), 1.0) == 0.0


def test_codes_that_kernels_name_are_those_of_the_losses() -> None:
    codes = {name: get_loss(name).form.code for name in LOSSES}
    assert sorted(codes.values()) == list(range(len(LOSSES)))
    assert (codes["absolute"], codes["squared"], codes["hinge"]) == (ABSOLUTE, SQUARED, HINGE)


def test_an_own_subclass_of_a_built_in_loss_is_called_at_its_own_parts() -> None:
    """It may be called as the built-in one is, and compute something else."""
    parts = {"phi": staticmethod(lambda s, a, b: 2.0 * s * s), "name": "squared"}  # noqa: ARG005
    twice: Loss = type("Twice", (LOSSES["squared"],), parts)()
    assert (twice.is_squared, get_loss("squared").is_squared) == (False, True)
    assert twice.form.code == OWN
    np.testing.assert_array_equal(twice.value([1.0, 3.0], 1.0), [0.0, 8.0])


def test_one_number_goes_with_many() -> None:
    y = np.array([1.0, -1.0])
    for loss in map(get_loss, LOSSES):
        for of in (loss.value, loss.subgradient):
            np.testing.assert_array_equal(of(0.25, y), of(np.full(2, 0.25), y))
        assert loss.value(0.25, np.empty(0)).shape == (0,)


def test_kernels_are_given_arrays_with_memory_of_their_own() -> None:
    """Of a view that repeats one number NumPy warns when it is asked whether it can be written."""
    for array in together(prediction=0.25, target=[1.0, -1.0]):
        assert array.flags.owndata
        assert array.strides == (8,)


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
        (lambda: get_loss("cubed"), "loss: expected one of 'absolute'.* found 'cubed'"),
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
