"""The stream of rows against its definition, and the laws it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import meta_stream, tuned_stream

from headstart import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    MetaClassifier,
    MetaRegressor,
    biased_erm,
    learn_bias,
)
from headstart.estimators.many import Progress
from headstart.online import KAPPAS
from headstart.tasks import TaskSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rows of a stream and the parameters of who learns from them."""

    X: Array
    y: Array
    groups: list[Any]
    settings: dict[str, Any]

    def model(self, **changes: Any) -> Any:
        settings = {**self.settings, **changes}
        binary = isinstance(settings["loss"], Logistic)
        return MetaClassifier(**settings) if binary else MetaRegressor(**settings)

    def part(self, first: int, last: int) -> tuple[Array, Array, Any]:
        ids = np.empty(last - first, object)
        ids[:] = self.groups[first:last]
        return self.X[first:last], self.y[first:last], ids

    def feed(self, model: Any, first: int, last: int) -> None:
        """One chunk, with both classes known from the first."""
        extra = {"classes": [-1.0, 1.0]} if isinstance(model, MetaClassifier) else {}
        model.partial_fit(*self.part(first, last), **extra)


@st.composite
def streams(draw: st.DrawFn, tuned: bool = True) -> Rows:
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    loss = draw(st.sampled_from([Huber(0.7), Logistic()]))  # no kinks: no ties to flip
    kinds: list[list[Any]] = [[1, 2, 3], ["a", "b", None], [7, "seven", (7, 7)]]
    names = draw(st.sampled_from(kinds))
    groups = draw(st.lists(st.sampled_from(names), min_size=n, max_size=n))
    reg, step = draw(st.floats(0.1, 3.0)), draw(st.floats(0.0, 1.0))
    settings = {
        "loss": loss,
        "reg": draw(st.one_of(st.just("auto"), st.floats(0.1, 3.0))) if tuned else reg,
        "step": draw(st.one_of(st.just("auto"), st.floats(0.0, 1.0))) if tuned else step,
        "inner": draw(st.sampled_from(["sgd", "constant"])) if tuned else "sgd",
        "task_size": draw(st.sampled_from([None, 1, 2, 5])),
        "fit_intercept": draw(st.booleans()),
    }
    y = rng.normal(size=n)
    return Rows(rng.normal(size=(n, d)), np.sign(y) if loss.binary else y, groups, settings)


def cuts(n: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, n - 1), unique=True).map(sorted) if n > 1 else st.just([])


def state(model: Any) -> list[Any]:
    """Everything that decides what the model does next."""
    index, stream = model._live()
    count = len(index)
    own = [a[:count] for a in stream.entities] if count else []
    return [index.keys, *stream.bias, *own, model.finish().bias_, model.intercept_]


def assert_same(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(np.asarray(a, object), np.asarray(b, object))


@given(streams(tuned=False))
def test_stream_is_its_definition(rows: Rows) -> None:
    s = rows.settings
    loss = s["loss"]
    expected = meta_stream(
        rows.X,
        rows.y,
        rows.groups,
        s["reg"],
        s["step"],
        loss.name,
        loss.parameters[0],
        s["task_size"],
        s["fit_intercept"],
    )
    model = rows.model()
    rows.feed(model, 0, len(rows.y))
    model.finish()
    np.testing.assert_allclose(np.append(model.bias_, model.intercept_), expected.bias, atol=1e-9)
    assert set(model.ids_) == set(expected.own)
    for key, own in expected.own.items():
        found = np.append(model.weights_of(key), model.intercept_of(key))
        np.testing.assert_allclose(found, own, atol=1e-8)


@given(streams(tuned=False))
def test_tuned_stream_is_its_definition(rows: Rows) -> None:
    size, intercept, loss = (rows.settings[k] for k in ("task_size", "fit_intercept", "loss"))
    given_ = (KAPPAS, loss.name, loss.parameters[0], size, intercept, loss.binary)
    expected = tuned_stream(rows.X, rows.y, rows.groups, *given_)
    model = rows.model(reg="auto", step="auto")
    rows.feed(model, 0, len(rows.y))
    model.finish()
    np.testing.assert_allclose(
        np.append(model.bias_, model.intercept_), expected.bias, rtol=1e-7, atol=1e-9
    )
    assert set(model.ids_) == set(expected.own)
    for key, own in expected.own.items():
        found = np.append(model.weights_of(key), model.intercept_of(key))
        np.testing.assert_allclose(found, own, rtol=1e-7, atol=1e-8)


def test_later_tasks_are_trials_now_and_then() -> None:
    rng = np.random.default_rng(0)
    T, n, d = 300, 3, 2
    X, own = rng.normal(size=(T * n, d)), rng.normal(2.0, 0.5, (T, d))
    groups = [int(t) for t in np.repeat(np.arange(T), n)]
    y = np.sum(X * own[groups], axis=1) + 0.1 * rng.normal(size=T * n)
    expected = tuned_stream(X, y, groups, KAPPAS, "huber", 0.7, None, True, False)
    model = MetaRegressor(Huber(0.7)).partial_fit(X, y, groups).finish()
    found = np.append(model.bias_, model.intercept_)
    np.testing.assert_allclose(found, expected.bias, rtol=1e-6)
    np.testing.assert_allclose(model.weights_of(299), expected.own[299][:-1], rtol=1e-6)


@pytest.mark.parametrize("binary", [False, True])
def test_reg_chosen_by_held_out_tasks(binary: bool) -> None:
    rng = np.random.default_rng(1)
    T, n, d = 60, 9, 3
    X, own = rng.normal(size=(T * n, d)), rng.normal(1.0, 1.0, (T, d))
    ids = np.repeat(np.arange(T), n)
    y = np.sum(X * own[ids], axis=1) + rng.normal(size=T * n)
    y = np.sign(y) if binary else y
    kind: Any = MetaClassifier if binary else MetaRegressor
    loss = Hinge() if binary else Absolute()
    model = kind(validation_fraction=0.25).fit(X, y, ids)
    learned = kind().fit(X[: 45 * n], y[: 45 * n], ids[: 45 * n])
    np.testing.assert_array_equal(model.bias_, learned.bias_)
    assert model.n_tasks_ == 45
    assert len(model.ids_) == T
    losses = []
    for candidate in model.tuning_:
        task = model.adapt(X[:1], y[:1]).set_params(reg=candidate.reg)
        paid = []
        for t in range(45, T):
            rows = slice(t * n, t * n + 5)
            rest = slice(t * n + 5, (t + 1) * n)
            fitted = task.fit(X[rows], y[rows])
            z = fitted.decision_function(X[rest]) if binary else fitted.predict(X[rest])
            paid.append(loss.value(z, y[rest]).mean())
        losses.append(np.mean(paid))
        assert candidate.loss == pytest.approx(losses[-1], rel=1e-6)
    assert [c.chosen for c in model.tuning_].index(True) == int(np.argmin(losses))
    assert 0.5 <= model.reg_sureness_ <= 1.0
    last = model.adapt(X[-n:], y[-n:])
    np.testing.assert_allclose(model.weights_of(T - 1), np.ravel(last.coef_), rtol=1e-9)
    with pytest.raises(ValueError, match="validation_fraction: a stream has no end"):
        model.partial_fit(X, y, ids)


@given(streams(), st.data())
def test_any_chunking_gives_the_same_bits(rows: Rows, data: st.DataObject) -> None:
    n = len(rows.y)
    whole, parts = rows.model(), rows.model()
    rows.feed(whole, 0, n)
    edges = [0, *data.draw(cuts(n)), n]
    for first, last in pairwise(edges):
        rows.feed(parts, first, last)
    assert_same(state(whole), state(parts))


@given(streams(), st.data())
def test_saved_and_continued_is_never_stopped(rows: Rows, data: st.DataObject) -> None:
    n = len(rows.y)
    middle = data.draw(st.integers(1, n))
    whole, first = rows.model(), rows.model()
    rows.feed(whole, 0, n)
    rows.feed(first, 0, middle)
    with TemporaryDirectory() as folder:
        first.save(Path(folder) / "model")
        second = type(first).load(Path(folder) / "model")
        assert second.get_params() == first.get_params()
        if middle < n:
            rows.feed(second, middle, n)
        assert_same(state(whole), state(second))


@given(streams())
def test_fit_is_the_stream_of_its_tasks(rows: Rows) -> None:
    if rows.settings["task_size"] is not None or len(set(rows.y)) < 2:
        return
    fitted, streamed = rows.model(), rows.model()
    fitted.fit(*rows.part(0, len(rows.y)))
    appeared: dict[Any, int] = {}
    for i, g in enumerate(rows.groups):
        appeared.setdefault(i if g is None else ("id", g), i)
    key = [appeared[i if g is None else ("id", g)] for i, g in enumerate(rows.groups)]
    order = np.argsort(key, kind="stable")
    together = Rows(rows.X[order], rows.y[order], [rows.groups[i] for i in order], rows.settings)
    together.feed(streamed, 0, len(rows.y))
    streamed.finish()
    np.testing.assert_array_equal(fitted.bias_, streamed.bias_)
    assert fitted.intercept_ == streamed.intercept_
    for known in fitted.ids_:  # own weights start from the final bias: those of adapt
        mine = [i for i, g in enumerate(rows.groups) if g == known]
        adapted = fitted.adapt(rows.X[mine], rows.y[mine])
        np.testing.assert_allclose(fitted.weights_of(known), adapted.coef_, rtol=1e-9, atol=1e-12)
        assert fitted.intercept_of(known) == pytest.approx(adapted.intercept_, rel=1e-9, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.booleans())
def test_defaults_know_no_scale(seed: int, s: float, a: float, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X, ids = rng.normal(size=(60, 3)), np.repeat(np.arange(12), 5)
    y = np.sum(X * rng.normal(2.0, 0.5, (12, 3))[ids], axis=1) + 1.0
    plain = MetaRegressor(fit_intercept=intercept).fit(X, y, ids)
    scaled = MetaRegressor(fit_intercept=intercept).fit(10.0**s * X, 10.0**a * y, ids)
    found = scaled.predict(10.0**s * X, ids) / 10.0**a
    np.testing.assert_allclose(found, plain.predict(X, ids), rtol=1e-6, atol=1e-8)
    assert scaled.reg_ == pytest.approx(plain.reg_ * 10.0 ** (2.0 * s - a))
    if intercept:
        moved = MetaRegressor().fit(X, y + 10.0**a, ids).predict(X, ids) - 10.0**a
        np.testing.assert_allclose(moved, plain.predict(X, ids), rtol=1e-6, atol=1e-6 * 10.0**a)
    labels = y > 0.0
    margins = MetaClassifier(fit_intercept=intercept).fit(X, labels, ids)
    wide = MetaClassifier(fit_intercept=intercept).fit(10.0**s * X, labels, ids)
    found = wide.decision_function(10.0**s * X, ids)
    np.testing.assert_allclose(found, margins.decision_function(X, ids), rtol=1e-6, atol=1e-8)


def test_what_was_chosen_is_told() -> None:
    X, y, ids = table(T=200)
    alike = MetaRegressor().fit(X, X @ [3.0, 1.0, 2.0], ids)
    rng = np.random.default_rng(0)
    apart = MetaRegressor().fit(X, np.sum(X * rng.normal(0, 3.0, (200, 3))[ids], axis=1), ids)
    assert alike.reg_ > 10.0 * apart.reg_
    for model in (alike, apart):
        candidates = model.tuning_
        (best,) = [c for c in candidates if c.chosen]
        assert best.reg == pytest.approx(model.reg_)
        assert best.loss == min(c.loss for c in candidates)
        assert 0.5 <= model.reg_sureness_ <= 1.0
        assert f"<200 tasks, reg {model.reg_:.3g} chosen, " in repr(model)
    assert apart.reg_sureness_ > 0.95
    assert model.step_ > 0.0
    given_ = MetaRegressor(reg=2.0, step=0.5).fit(X, y, ids)
    assert (given_.reg_, given_.step_, given_.tuning_, given_.reg_sureness_) == (2.0, 0.5, [], 1.0)


def test_constant_steps_are_the_regularisation_over_n() -> None:  # item 27
    X, y, ids = table()
    model = MetaRegressor(reg=4.0, step=0.1, inner="constant", fit_intercept=False)
    model.fit(X, y, ids)
    w = model.bias_.copy()
    for x, label in zip(X[:8], y[:8], strict=True):
        w -= np.sign(x @ w - label) * x / 4.0
    np.testing.assert_allclose(model.weights_of(0), w)
    assert model.reg_ == 4.0


def table(T: int = 40, n: int = 8, d: int = 3) -> tuple[Array, Array, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(T), n)
    X = rng.normal(size=(T * n, d))
    return X, np.sum(X * rng.normal(3.0, 0.3, (T, d))[ids], axis=1) + 1.0, ids


def test_bias_is_that_of_algorithm_2() -> None:
    X, y, ids = table()
    for inner in ("sgd", "erm"):
        model = MetaRegressor(reg=0.5, step=0.2, inner=inner, fit_intercept=False)
        model.fit(X, y, groups=ids)
        expected = learn_bias(TaskSet.from_arrays(X, y, ids), 0.5, 0.2, inner=inner).bias
        np.testing.assert_allclose(model.bias_, expected, rtol=1e-10)
        assert model.intercept_ == 0.0
        assert model.n_tasks_ == 40


def test_exact_intercept_is_that_of_a_constant_column() -> None:
    X, y, ids = table()
    model = MetaRegressor(reg=0.5, step=0.2, inner="erm").fit(X, y, groups=ids)
    b = np.sqrt(np.mean(X**2))
    wide = np.column_stack([X, np.full(len(X), b)])
    bias = learn_bias(TaskSet.from_arrays(wide, y, ids), 0.5, 0.2, inner="erm").bias
    np.testing.assert_allclose(model.bias_, bias[:-1], rtol=1e-9)
    assert model.intercept_ == pytest.approx(b * bias[-1], rel=1e-9)
    alone = biased_erm(wide[:5], y[:5], bias, 0.5).weights
    np.testing.assert_allclose(model.adapt(X[:5], y[:5]).coef_, alone[:-1], rtol=1e-6)


@pytest.mark.parametrize("inner", ["sgd", "erm"])
def test_task_size_uses_the_first_rows_of_each_task(inner: str) -> None:
    X, y, ids = table()
    settings: dict[str, Any] = {"reg": 0.5, "step": 0.2, "inner": inner, "fit_intercept": False}
    few = MetaRegressor(**settings, task_size=3).fit(X, y, groups=ids)
    first = np.arange(len(y)) % 8 < 3
    alone = MetaRegressor(**settings).fit(X[first], y[first], groups=ids[first])
    np.testing.assert_array_equal(few.bias_, alone.bias_)
    assert np.any(few.weights_of(0) != alone.weights_of(0))  # own weights use all rows


def test_rows_of_a_closed_group_leave_the_bias_alone() -> None:
    X, y, ids = table()
    model = MetaRegressor().partial_fit(X, y, groups=ids).finish()
    bias, own, other = model.bias_.copy(), model.weights_of(3), model.weights_of(4)
    model.partial_fit(X[:5], -y[:5], groups=[3] * 5).finish()
    np.testing.assert_array_equal(model.bias_, bias)
    assert np.any(model.weights_of(3) != own)
    np.testing.assert_array_equal(model.weights_of(4), other)


def test_interleaved_tasks_close_after_task_size_rows() -> None:
    X, y, ids = table(T=4, n=6)
    order = np.argsort(np.arange(24) % 6, kind="stable")  # one row of each in turn
    model = MetaRegressor(step=0.5, task_size=4)
    rows = [slice(i, i + 1) for i in order]
    closed = [model.partial_fit(X[i], y[i], groups=ids[i]).n_tasks_ for i in rows]
    assert closed == [0] * 12 + [0, 1, 2, 3][1:] + [4] * 9
    short = MetaRegressor(step=0.5, task_size=100).partial_fit(X[order], y[order], ids[order])
    assert short.n_tasks_ == 0
    assert not short.bias_.any()
    assert short.finish().n_tasks_ == 4


def test_a_step_too_large_is_said() -> None:
    X, y, ids = table()
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="step: the bias grew beyond"):
        MetaRegressor(step=1e308).fit(X, 1e3 * y, groups=ids)


def test_learn_reads_chunks_and_reports() -> None:
    X, y, ids = table()
    said: list[Progress] = []
    chunks = ((X[k : k + 50], y[k : k + 50], ids[k : k + 50]) for k in range(0, 320, 50))
    model = MetaRegressor().learn(chunks, callback=said.append)
    whole = MetaRegressor().partial_fit(X, y, ids).finish()
    np.testing.assert_array_equal(model.bias_, whole.bias_)
    assert [p.rows for p in said] == [50, 100, 150, 200, 250, 300, 320]
    assert said[0].tasks == 6
    with pytest.raises(TypeError, match=r"chunks: expected \(X, y\) or .* found int as number 0"):
        MetaRegressor().learn([3])  # type: ignore[list-item]
