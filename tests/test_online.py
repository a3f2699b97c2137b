"""The paper's stream of rows against its definition, and the laws it keeps."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, replace
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import MetaSteps, meta_stream

from headstart import (
    Huber,
    Logistic,
    MetaRegressor,
    TaskSet,
    biased_erm,
    get_loss,
    learn_bias,
    task_weights,
)
from headstart.estimators.meta import Progress
from headstart.online import BiasStream, Chunk, OneTask, Settings, predictions
from headstart.tasks.columns import Constant
from headstart.tasks.ids import IdIndex, read_ids

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
ABSOLUTE = get_loss("absolute")
INNER = ["sgd", "constant", "erm"]


@dataclass(frozen=True)
class Rows:
    """Rows of a stream, and the settings of who learns from them."""

    X: Array
    y: Array
    groups: list[Any]
    settings: Settings

    def stream(self) -> BiasStream:
        return BiasStream(self.settings, self.X.shape[1])

    def part(self, first: int, last: int) -> Chunk:
        ids = read_ids("groups", self.groups[first:last])
        return Chunk(self.X[first:last], self.y[first:last], ids)

    def taken(self) -> BiasStream:
        stream = self.stream()
        stream.take(self.part(0, len(self.y)))
        return stream


@st.composite
def streams(draw: st.DrawFn) -> Rows:
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    loss = draw(st.sampled_from([Huber(0.7), Logistic()]))  # no kinks: no ties to flip
    kinds: list[list[Any]] = [[1, 2, 3], ["a", "b", None], [7, "seven", (7, 7)]]
    names = draw(st.sampled_from(kinds))
    groups = draw(st.lists(st.sampled_from(names), min_size=n, max_size=n))
    settings = Settings(
        loss,
        reg=draw(st.floats(0.1, 3.0)),
        step=draw(st.one_of(st.none(), st.floats(0.0, 1.0))),
        inner=draw(st.sampled_from(["sgd", "constant"])),
        predictor=draw(st.sampled_from(["average", "last", "poly"])),
        task_size=draw(st.sampled_from([None, 1, 2, 5])),
        fit_intercept=draw(st.booleans()),
    )
    y = rng.normal(size=n)
    return Rows(rng.normal(size=(n, d)), np.sign(y) if loss.binary else y, groups, settings)


def cuts(n: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, n - 1), unique=True).map(sorted) if n > 1 else st.just([])


def own(stream: BiasStream, key: Any) -> Array:
    table, rows = stream.weights(np.array(stream.ids.find([key])))
    return np.array(table[rows[0]], np.float64)


def copied(stream: BiasStream) -> dict[str, NDArray[Any]]:
    return {name: array.copy() for name, array in stream.arrays().items()}


def assert_same(one: BiasStream, other: BiasStream) -> None:
    """Everything that decides what comes next, before and after the open tasks close."""
    assert one.ids.keys == other.ids.keys
    for _ in range(2):
        mine, theirs = one.arrays(), other.arrays()
        assert mine.keys() == theirs.keys()
        for name, array in mine.items():
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)
        np.testing.assert_array_equal(one.start, other.start)
        one.finish()
        other.finish()


@given(streams())
def test_stream_is_its_definition(rows: Rows) -> None:
    s = rows.settings
    expected = meta_stream(
        rows.X,
        rows.y,
        rows.groups,
        s.reg,
        s.step,
        s.loss.name,
        s.loss.parameters[0],
        s.task_size,
        s.fit_intercept,
        s.inner == "constant",
        s.predictor,
    )
    stream = rows.taken()
    stream.finish()
    np.testing.assert_allclose(stream.start, expected.bias, rtol=1e-7, atol=1e-9)
    assert stream.n_rows == len(rows.y)
    assert set(stream.ids.keys) == set(expected.own)
    for key, weights in expected.own.items():
        np.testing.assert_allclose(own(stream, key), weights, rtol=1e-7, atol=1e-8)


@given(streams(), st.data())
def test_any_chunking_gives_the_same_bits(rows: Rows, data: st.DataObject) -> None:
    n, parts = len(rows.y), rows.stream()
    for first, last in pairwise([0, *data.draw(cuts(n)), n]):
        parts.take(rows.part(first, last))
    assert_same(rows.taken(), parts)


@given(streams(), st.data())
def test_saved_and_continued_is_never_stopped(rows: Rows, data: st.DataObject) -> None:
    n = len(rows.y)
    middle = data.draw(st.integers(1, n))
    first = rows.stream()
    first.take(rows.part(0, middle))
    ids = IdIndex(first.ids.keys)
    again = BiasStream.from_arrays(rows.settings, ids, copied(first))
    pickled: BiasStream = pickle.loads(pickle.dumps(first))
    for stream in (again, pickled):
        if middle < n:
            stream.take(rows.part(middle, n))
        assert_same(rows.taken(), stream)


@given(streams())
def test_fit_is_the_stream_of_its_tasks(rows: Rows) -> None:
    rows = replace(rows, settings=replace(rows.settings, task_size=None))
    n, fitted = len(rows.y), rows.stream()
    fitted.fit(rows.part(0, n))
    named = [("row", i) if g is None else ("id", g) for i, g in enumerate(rows.groups)]
    order = np.array(sorted(range(n), key=lambda i: (named.index(named[i]), i)))
    together = [rows.groups[i] for i in order]
    streamed = replace(rows, X=rows.X[order], y=rows.y[order], groups=together).taken()
    streamed.finish()
    np.testing.assert_array_equal(fitted.start, streamed.start)
    for key in fitted.ids.keys:  # own weights start from the final bias: those of new tasks
        mine = [i for i, g in enumerate(rows.groups) if g == key]
        (new,) = fitted.adapted(rows.X[mine], rows.y[mine], np.array([0, len(mine)]))
        np.testing.assert_array_equal(own(fitted, key), new)
    again = BiasStream.from_arrays(rows.settings, IdIndex(fitted.ids.keys), copied(fitted))
    for stream in (fitted, again):  # all goes on from one start, and each entity from its own
        stream.take(rows.part(0, n))
    assert_same(fitted, again)


def table(T: int = 40, n: int = 8, d: int = 3) -> tuple[Array, Array, Ids]:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(T), n)
    X = rng.normal(size=(T * n, d))
    return X, np.sum(X * rng.normal(3.0, 0.3, (T, d))[ids], axis=1) + 1.0, ids


def chunk(X: Array, y: Array, ids: Any) -> Chunk:
    return Chunk(X, y, read_ids("groups", ids))


def fitted(settings: Settings, X: Array, y: Array, ids: Any, **options: Any) -> BiasStream:
    stream = BiasStream(settings, X.shape[1])
    stream.fit(chunk(X, y, ids), **options)
    return stream


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("predictor", ["average", "last", "poly"])
def test_bias_and_weights_are_those_of_the_functions(inner: str, predictor: str) -> None:
    X, y, ids = table()
    settings = Settings(ABSOLUTE, 0.5, 0.2, inner, predictor, fit_intercept=False)
    stream = fitted(settings, X, y, ids)
    tasks, reg = TaskSet.from_arrays(X, y, ids), 0.5 / 8 if inner == "constant" else 0.5
    bias = learn_bias(tasks, reg, 0.2, inner=inner).bias
    np.testing.assert_allclose(stream.start, [*bias, 0.0], rtol=1e-10)
    assert (stream.n_tasks, stream.n_rows, stream.step) == (40, 320, 0.2)
    expected = task_weights(tasks, bias, reg, inner=inner, predictor=predictor)
    table_, rows = stream.weights(np.arange(40))
    np.testing.assert_allclose(table_[rows, :-1], expected, rtol=1e-6)
    new = stream.adapted(X, y, tasks.offsets)
    np.testing.assert_array_equal(new, table_[rows])


def test_exact_intercept_is_that_of_a_constant_column() -> None:
    X, y, ids = table()
    stream = fitted(Settings(ABSOLUTE, 0.5, 0.2, "erm"), X, y, ids)
    b = np.sqrt(np.mean(X**2))
    wide = np.column_stack([X, np.full(len(X), b)])
    bias = learn_bias(TaskSet.from_arrays(wide, y, ids), 0.5, 0.2, inner="erm").bias
    np.testing.assert_allclose(stream.start, bias * [1.0, 1.0, 1.0, b], rtol=1e-9)
    assert stream.scale == pytest.approx(b)
    (new,) = stream.adapted(X[:5], y[:5], np.array([0, 5]))
    alone = biased_erm(wide[:5], y[:5], bias, 0.5).weights
    np.testing.assert_allclose(new, alone * [1.0, 1.0, 1.0, b], rtol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_exact_solutions_take_steps_of_their_own_choosing(intercept: bool) -> None:
    X, y, ids = table(T=12)
    stream = fitted(Settings(Huber(), 0.5, None, "erm", fit_intercept=intercept), X, y, ids)
    b = np.sqrt(np.mean(X**2)) if intercept else 0.0
    column = Constant(float(b))
    steps = MetaSteps(4, 0.5, None)
    for t in range(12):
        rows, h = column.rows(X[ids == t]), column.inward(steps.newest)
        w = biased_erm(rows, y[ids == t], h, 0.5, Huber()).weights
        gradient = np.asarray(column.outward(0.5 * (h - w)), np.float64)
        steps.take(gradient, 1, t, b * b)
    np.testing.assert_allclose(stream.start, steps.mean, rtol=1e-4)
    assert stream.step > 0.0
    with pytest.raises(ValueError, match="inner: 'erm' needs all rows of a task at once"):
        stream.take(chunk(X, y, ids))


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("step", [0.2, None])
def test_task_size_uses_the_first_rows_of_each_task(inner: str, step: float | None) -> None:
    X, y, ids = table()
    settings = Settings(ABSOLUTE, 0.5, step, inner, fit_intercept=False)
    few = fitted(replace(settings, task_size=3), X, y, ids)
    first = np.arange(len(y)) % 8 < 3
    alone = fitted(settings, X[first], y[first], ids[first])
    np.testing.assert_array_equal(few.start, alone.start)
    assert np.any(own(few, 0) != own(alone, 0))  # own weights use all rows


@pytest.mark.parametrize("inner", INNER)
def test_tasks_in_a_random_order(inner: str) -> None:
    X, y, ids = table()
    scattered = np.random.default_rng(1).permutation(len(y))
    order = np.random.default_rng(2).permutation(40)
    settings = Settings(ABSOLUTE, 0.5, 0.2, inner, fit_intercept=False)
    rng = np.random.default_rng(2)
    X, y, ids = X[scattered], y[scattered], ids[scattered]
    stream = fitted(settings, X, y, ids, rng=rng)
    appeared = list(dict.fromkeys(ids.tolist()))
    turn = np.array([order[appeared.index(i)] for i in ids])
    sorted_ = np.argsort(turn, kind="stable")
    plain = fitted(settings, X[sorted_], y[sorted_], ids[sorted_])
    np.testing.assert_array_equal(stream.start, plain.start)
    for key in range(40):
        np.testing.assert_array_equal(own(stream, key), own(plain, key))
    threads = fitted(settings, X[sorted_], y[sorted_], ids[sorted_], n_jobs=2)
    np.testing.assert_array_equal(threads.weights(NO)[0], plain.weights(NO)[0])
    with pytest.raises(ValueError, match="fit: expected a new stream"):
        stream.fit(chunk(X, y, ids))


NO = np.zeros(0, np.int64)


@given(streams(), st.data())
def test_learning_from_runs_is_fit(rows: Rows, data: st.DataObject) -> None:
    n, groups = len(rows.y), sorted(rows.groups, key=str)
    lying = replace(rows, groups=groups)
    expected = lying.stream()
    expected.fit(lying.part(0, n))
    runs = lying.stream()
    for first, last in pairwise([0, *data.draw(cuts(n)), n]):
        here = groups[first:last]
        named = [g for g in dict.fromkeys(here) if g is not None]
        run = np.array([-1 if g is None else named.index(g) for g in here])
        goes_on = first > 0 and here[0] is not None and groups[first - 1] == here[0]
        runs.learn_runs(lying.X[first:last], lying.y[first:last], run, goes_on)
    runs.finish()
    np.testing.assert_array_equal(runs.start, expected.start)
    assert (runs.n_tasks, runs.n_rows, len(runs.ids)) == (expected.n_tasks, n, 0)
    for bare in (runs, expected.without_entities()):
        assert len(bare.arrays()["own_weights"]) == len(bare.ids) == 0
        found = bare.adapted(lying.X, lying.y, np.array([0, n]))
        np.testing.assert_array_equal(found, expected.adapted(lying.X, lying.y, np.array([0, n])))


def test_rows_of_a_closed_group_leave_the_bias_alone() -> None:
    X, y, ids = table()
    stream = BiasStream(Settings(ABSOLUTE, 1.0), 3)
    stream.take(chunk(X, y, ids))
    stream.finish()
    start, mine, other = stream.start, own(stream, 3), own(stream, 4)
    stream.take(chunk(X[:5], -y[:5], [3] * 5))
    stream.finish()
    np.testing.assert_array_equal(stream.start, start)
    assert np.any(own(stream, 3) != mine)
    np.testing.assert_array_equal(own(stream, 4), other)


def test_interleaved_tasks_close_after_task_size_rows() -> None:
    X, y, ids = table(T=4, n=6)
    order = np.argsort(np.arange(24) % 6, kind="stable")  # one row of each in turn
    settings = Settings(ABSOLUTE, 1.0, 0.5, task_size=4)
    stream, closed = BiasStream(settings, 3), []
    for i in order:
        stream.take(chunk(X[i : i + 1], y[i : i + 1], ids[i : i + 1]))
        closed.append(stream.n_tasks)
    assert closed == [0] * 12 + [1, 2, 3] + [4] * 9
    short = BiasStream(replace(settings, task_size=100), 3)
    short.take(chunk(X[order], y[order], ids[order]))
    assert short.n_tasks == 0
    assert not short.start.any()
    short.finish()
    assert short.n_tasks == 4


@pytest.mark.parametrize("step", [0.01, None])
def test_open_tasks_close_in_the_order_they_opened(step: float | None) -> None:
    X, y, ids = table(T=150, n=2)
    some = np.random.default_rng(0).permutation(len(y))[: len(y) // 2]
    rows = X[some], y[some], ids[some].tolist()
    expected = meta_stream(*rows, 1.0, step, "huber", 1.0, 2, intercept=False)
    stream = BiasStream(Settings(Huber(), 1.0, step, task_size=2, fit_intercept=False), 3)
    stream.take(chunk(*rows))
    stream.finish()
    assert stream.n_tasks == len(expected.own)
    np.testing.assert_allclose(stream.start, expected.bias, rtol=1e-9, atol=1e-12)


def test_finishing_costs_the_same_for_each_open_task() -> None:
    X, y = np.ones((160_000, 1)), np.ones(160_000)
    stream = BiasStream(Settings(Huber(), 1.0, task_size=2), 1)
    stream.take(chunk(X, y, np.arange(160_000)))
    assert stream.n_tasks == 0
    before = process_time()
    stream.finish()
    assert process_time() - before < 5.0  # to look for the oldest each time takes minutes
    assert stream.n_tasks == 160_000


def test_two_threads_lose_no_row() -> None:
    X, y, ids = table(T=200)
    settings = Settings(ABSOLUTE, 1.0, 0.0, fit_intercept=False)  # own weights know no order
    expected = BiasStream(settings, 3)
    expected.take(chunk(X, y, ids))
    stream, met = BiasStream(settings, 3), list[bool]()

    def feed(first: int) -> None:
        for i in range(first, len(y), 16):
            rows = slice(i, i + 8)
            stream.take(chunk(X[rows], y[rows], ids[rows]))

    def ask() -> None:
        while threads[0].is_alive():
            known, rows = stream.weights(np.arange(220))
            met.append(bool(np.all(rows < len(known)) and np.all(rows[200:] == -1)))

    threads = [threading.Thread(target=feed, args=(first,)) for first in (0, 8)]
    threads.append(threading.Thread(target=ask))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(met)
    assert (stream.n_rows, len(stream.ids)) == (len(y), 200)
    for key in range(200):
        np.testing.assert_array_equal(own(stream, key), own(expected, key))


def test_a_step_too_large_is_said() -> None:
    X, y, ids = table()
    settings = Settings(ABSOLUTE, 1.0, 1e308)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="step: the bias grew beyond"):
        fitted(settings, X, 1e3 * y, ids)
    with pytest.raises(ValueError, match=r"loss: .* needs a loss of bounded slope"):
        BiasStream(Settings(get_loss("squared"), 1.0, 0.1), 3)
    with pytest.raises(ValueError, match=r"groups: expected one id per row of X \(320\), found 1"):
        BiasStream(Settings(ABSOLUTE, 1.0), 3).take(chunk(X, y, [0]))


def test_arrays_that_no_stream_has_are_refused() -> None:
    X, y, ids = table(T=4)
    settings = Settings(ABSOLUTE, 1.0, 0.1, task_size=100)
    stream = BiasStream(settings, 3)
    stream.take(chunk(X, y, ids))
    wrong: dict[str, Any] = {
        "bias_total": np.zeros(3),
        "bias_counts": np.zeros(4, np.int64),
        "open_pulls": np.zeros((4, 4), np.float32),
        "open_entity": np.array([0, 1, 2, 7]),
        "own_slot": np.array([0, 1, 3, 2]),
        "own_rows": np.zeros(3, np.int64),
        "own_weights": np.zeros((4, 3)),
    }
    for name, array in wrong.items():
        with pytest.raises(ValueError, match=f"{name}|own_slot: expected"):
            BiasStream.from_arrays(
                settings, IdIndex(stream.ids.keys), {**copied(stream), name: array}
            )


def test_a_bias_learned_elsewhere() -> None:
    X, y, ids = table()
    settings = Settings(ABSOLUTE, 1.0, 0.1)
    stream = BiasStream(settings, 3)
    last, total = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 20.0, 30.0, 40.0])
    stream.set_bias(last, total, steps=9, rows=100, mean_square=4.0)
    np.testing.assert_array_equal(stream.start, total / 10)
    assert (stream.n_tasks, stream.n_rows, stream.scale) == (9, 100, 2.0)
    stream.take(chunk(X, y, ids))
    stream.finish()
    assert stream.n_tasks == 49


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_task_from_a_given_start(inner: str, dtype: Any) -> None:
    X, y, _ = table(T=1)
    X, y = X.astype(dtype), y.astype(dtype)
    start = np.array([2.0, 1.0, 0.5, 3.0])
    reg = 2.0 / 8 if inner == "constant" else 2.0
    for b in (None, 0.7, 0.0):
        settings = Settings(
            Huber(), 2.0, None, inner, task_size=2, fit_intercept=b != 0.0, scaling=b or None
        )
        task = OneTask(settings, start, dtype)
        weights = task.fit(X, y)
        column = Constant(float(np.sqrt(np.mean(X**2))) if b is None else b)
        h = column.inward(start)
        expected = task_weights([(column.rows(X), y)], h, reg, Huber(), inner)[0]
        near = column.outward(np.asarray(expected, np.float64))
        np.testing.assert_allclose(weights, near, rtol=1e-3 if inner == "erm" else 1e-5)
        assert weights.dtype == dtype
        if inner != "erm":
            whole = OneTask(settings, start, dtype).take(X, y)
            parts = OneTask(settings, start, dtype)
            for i in range(8):
                found = parts.take(X[i : i + 1], y[i : i + 1])
            np.testing.assert_array_equal(found, whole)
            assert np.any(task.take(X, y) != weights)


def test_predictions_by_own_weights_or_the_start() -> None:
    X, y, ids = table()
    stream = fitted(Settings(ABSOLUTE, 1.0, 0.1), X, y, ids)
    own_, rows = stream.weights(np.array([3, -1, 77]))
    assert rows.tolist() == [3, -1, -1]
    for writable in (True, False):
        arrays = [X[:3].copy(), own_.copy(), stream.start.copy()]
        for array in arrays:
            array.flags.writeable = writable
        out = np.empty(3)
        predictions(arrays[0], rows, arrays[1], arrays[2], out)
        wide = np.column_stack([X[:3], np.ones(3)])
        expected = [wide[0] @ own(stream, 3), wide[1] @ stream.start, wide[2] @ stream.start]
        np.testing.assert_allclose(out, expected)


def test_learn_reads_chunks_and_reports() -> None:
    X, y, ids = table()
    said: list[Progress] = []
    chunks = ((X[k : k + 50], y[k : k + 50], ids[k : k + 50]) for k in range(0, 320, 50))
    model = MetaRegressor(reg=1.0).learn(chunks, callback=said.append)
    whole = MetaRegressor(reg=1.0).partial_fit(X, y, ids).finish()
    np.testing.assert_array_equal(model.bias_, whole.bias_)
    assert [p.rows for p in said] == [50, 100, 150, 200, 250, 300, 320]
    assert said[0].tasks == 6
    with pytest.raises(TypeError, match=r"chunks: expected \(X, y\) or .* found int as number 0"):
        MetaRegressor(reg=1.0).learn([3])  # type: ignore[list-item]


@pytest.mark.parametrize("inner", INNER)
def test_estimators_are_the_stream(inner: str, tmp_path: Any) -> None:
    X, y, ids = table()
    model = MetaRegressor(reg=0.5, step=0.2, inner=inner).fit(X, y, groups=ids)
    stream = fitted(Settings(ABSOLUTE, 0.5, 0.2, inner), X, y, ids)
    np.testing.assert_array_equal([*model.bias_, model.intercept_], stream.start)
    np.testing.assert_array_equal([*model.weights_of(7), model.intercept_of(7)], own(stream, 7))
    adapted = model.adapt(X[:5], y[:5])
    (new,) = stream.adapted(X[:5], y[:5], np.array([0, 5]))
    np.testing.assert_allclose([*adapted.coef_, adapted.intercept_], new, rtol=1e-6)
    model.save(tmp_path / "model")
    loaded = MetaRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X, ids), model.predict(X, ids))
