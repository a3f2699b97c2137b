"""Pictures: what they show is what was learned."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

from headstart import FewShotCurve, MetaClassifier, MetaRegressor, plot
from headstart.plot.style import apart

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    plt.close("all")


def rows() -> tuple[pd.DataFrame, Array]:
    """Shops whose price effects differ, of which number 7 is unlike all others."""
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(60), 12)
    frame = pd.DataFrame({"price": rng.normal(100.0, 20.0, 720), "rain": rng.normal(size=720)})
    own = rng.normal(-2.0, 0.1, 60)
    own[7] = -1.0
    dear = frame["price"] - 100.0
    y = 300.0 + own[shop] * dear + 5.0 * frame["rain"] + rng.normal(0.0, 3.0, 720)
    return frame.assign(shop=shop), y.to_numpy()


@pytest.fixture(scope="module")
def model() -> MetaRegressor:
    frame, y = rows()
    return MetaRegressor(group="shop").fit(frame, y)


def drawn(ax: Axes, marker: str) -> list[Array]:
    """Points of all lines with this marker."""
    lines = [line for line in ax.get_lines() if line.get_marker() == marker]
    return [np.asarray(line.get_xydata(), np.float64) for line in lines]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


PICTURES: list[Callable[[MetaRegressor, Axes | None], Axes]] = [
    lambda model, ax: plot.effects(model, ax=ax),
    lambda model, ax: plot.entities(model, ax=ax),
    lambda model, ax: plot.unusual(model, ax=ax),
    lambda model, ax: plot.intervals(model, *rows(), ax=ax),
    lambda _, ax: plot.few_shot_curve({"headstart": curve(1.0)}, ax=ax),
    lambda _, ax: plot.calibration([True, False], [0.8, 0.2], ax=ax),
]


@pytest.mark.parametrize("draw", PICTURES)
def test_axes_come_in_and_go_out(
    model: MetaRegressor, draw: Callable[[MetaRegressor, Axes | None], Axes]
) -> None:
    plt.close("all")  # those of other tests
    figure, given_axes = plt.subplots()
    assert draw(model, given_axes) is given_axes
    assert len(plt.get_fignums()) == 1
    assert draw(model, None).get_figure() is not figure


def test_effects_are_those_of_the_prior(model: MetaRegressor) -> None:
    ax = plot.effects(model, target="sales")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["price", "rain", "(level)"]
    (points,) = drawn(ax, "o")
    frame, _ = rows()
    steps = frame[["price", "rain"]].std(ddof=0).to_numpy()
    np.testing.assert_allclose(points[:, 0], [*(model.bias_ * steps), 0.0], atol=1e-9)
    summary = model.summary()
    price = summary.loc["price"]
    assert f"{price.effect:.3g} ± {price.differs:.2g}" in texts(ax)
    level = model.bias_ @ frame[["price", "rain"]].mean() + model.intercept_
    assert any(text.startswith(f"{level:.3g} ± ") for text in texts(ax))
    collections: list[Any] = list(ax.collections)
    thin, thick = collections
    for lines, reach in ((thin, 1.645), (thick, 1.0)):
        segment = lines.get_segments()[0][:, 0]
        half = reach * price.differs * steps[0]
        np.testing.assert_allclose(segment, points[0, 0] + [-half, half], rtol=1e-3)
    assert "sales" in ax.get_xlabel()


def test_the_unusual_one_is_found(model: MetaRegressor) -> None:
    ax = plot.unusual(model, most=3)
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert len(names) == 3
    assert names[0] == "7"
    effect = model.weights_of(7)[0]
    assert texts(ax)[0] == f"price {effect:.3g}, shared {model.bias_[0]:.3g}"
    far = [float(points[0, 0]) for points in drawn(ax, "o")]
    scale = model.summary().loc["price", "differs"]
    assert far[0] == pytest.approx((effect - model.bias_[0]) / scale)
    assert np.abs(far).tolist() == sorted(np.abs(far), reverse=True)


def test_entities_by_name(model: MetaRegressor) -> None:
    assert "7" in texts(plot.entities(model))
    ax = plot.entities(model, [3, 5])
    assert {"shared", "3", "5"} == set(texts(ax))
    frame, _ = rows()
    steps = frame[["price", "rain"]].std(ddof=0).to_numpy()
    (first,) = drawn(ax, "P")
    np.testing.assert_allclose(first[:2, 0], model.weights_of(3) * steps, rtol=1e-6)
    with pytest.raises(KeyError, match="99 is no known id"):
        plot.entities(model, [99])


def test_intervals_tell_their_coverage(model: MetaRegressor) -> None:
    frame, y = rows()
    y = y + np.where(np.arange(720) % 4 == 0, 1000.0, 0.0)  # a quarter is far outside
    ends = model.predict_interval(frame, coverage=0.8)
    held = 100.0 * np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
    ax = plot.intervals(model, frame, y, coverage=0.8)
    assert ax.get_title(loc="left") == f"80 % intervals held {held:.1f} % of 720 rows"
    (inside,), (outside,) = drawn(ax, "o"), drawn(ax, "^")
    np.testing.assert_array_equal(np.sort(outside[:, 1])[-3:] > 1000.0, True)
    assert inside[:, 1].max() < 1000.0
    with pytest.raises(ValueError, match="coverage"):
        plot.intervals(model, frame, y, coverage=1.5)


def test_probabilities_are_held_against_what_was_seen() -> None:
    frame, y = rows()
    late = np.where(y > np.median(y), "late", "fine")
    model = MetaClassifier(group="shop").fit(frame, late)
    ax = plot.intervals(model, frame, late)
    p = model.predict_proba(frame)[:, 1]
    top = p >= 0.9
    points = np.concatenate(drawn(ax, "o"))
    np.testing.assert_allclose(points[-1], [p[top].mean(), np.mean(late[top] == "late")])
    assert "log-odds" in plot.effects(model).get_xlabel()


def curve(level: float) -> FewShotCurve:
    errors = level * np.array([[4.0, 2.0], [5.0, 3.0], [6.0, 4.0]])
    return FewShotCurve((0, 4), errors, np.arange(3))


def test_curves_have_bands_and_names_beside_their_ends() -> None:
    curves = {"each task alone": curve(1.0), "headstart": curve(0.99), "trees": curve(1.5)}
    ax = plot.few_shot_curve(curves, error="minutes")
    assert texts(ax) == list(curves)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "4"]
    for line, (name, one) in zip(ax.get_lines(), curves.items(), strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), one.mean)
    low, high = ax.collections[0].get_datalim(ax.transData).intervaly
    one = curves["each task alone"]
    assert low == pytest.approx(np.min(one.mean - one.half_width))
    assert high == pytest.approx(np.max(one.mean + one.half_width))
    figure: Any = ax.get_figure()
    figure.canvas.draw()
    boxes = sorted((t.get_window_extent() for t in ax.texts), key=lambda box: box.y0)
    assert all(a.y1 <= b.y0 + 1.0 for a, b in pairwise(boxes))
    assert ax.get_yscale() == "linear"
    assert plot.few_shot_curve({"a": curve(0.1), "b": curve(1.0)}).get_yscale() == "log"


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_labels_are_moved_apart_and_keep_their_order(places: list[float], least: float) -> None:
    found = apart(places, least)
    order = np.argsort(places, kind="stable")
    assert np.all(np.diff(found[order]) >= least - 1e-9)
    assert np.mean(found) == pytest.approx(np.mean(places))
    if np.all(np.diff(np.sort(places)) >= least):
        np.testing.assert_allclose(found, places)


def test_what_has_no_entities_is_refused() -> None:
    empty = MetaRegressor(group="shop").fit(*rows())
    for shop in range(60):
        empty.forget(shop)
    with pytest.raises(ValueError, match="model: expected entities"):
        plot.unusual(empty)
