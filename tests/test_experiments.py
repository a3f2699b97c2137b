"""Experiments of one's own: tasks, losses and data; and the methods beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from runpy import run_path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from test_datasets import at_hand

from headstart import LOSSES, Loss, TaskSet, datasets, learn_prior, register_loss
from headstart.environments import (
    ClassificationEnvironment,
    Mixture,
    RegressionEnvironment,
)
from headstart.experiments import (
    EXPERIMENTS,
    METHODS,
    Data,
    Dealt,
    Drawn,
    Exam,
    Experiment,
    Method,
    Piece,
    PieceFolder,
    Sizes,
    Source,
    deal,
    draw_data,
    methods_of,
    run,
)
from headstart.experiments.running import learning_times, run_method

Array = NDArray[np.float64]


def tiny(source: Any = None, loss: Any = "absolute", **changes: Any) -> Experiment:
    drawn = Drawn(RegressionEnvironment(n_features=3))
    base = Experiment("tiny", loss, source or drawn, 6, 5, 5, 4, 6, seeds=1, grid_size=4)
    return replace(base, **changes)


@dataclass(frozen=True)
class Ramps(Source):
    """Tasks without a random number: the slope of task t is t."""

    steepness: float = 1.0

    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        del rng
        x = np.linspace(-1.0, 1.0, 5)[:, None]
        tasks = TaskSet.from_list(
            [(x, self.steepness * t * x.ravel()) for t in range(sum(sizes[:3]))]
        )
        first, second = sizes.n_tasks, sizes.n_tasks + sizes.n_valid
        parts = [range(first), range(first, second), range(second, sum(sizes[:3]))]
        train, valid, test = (tasks.subset(part) for part in parts)
        return Data(train, valid.split_rows(3), test.split_rows(3))


def test_a_source_of_ones_own(tmp_path: Path) -> None:
    e = tiny(Ramps(2.0), n_shots=None, n_queries=None)
    methods = ["itl-sgd", "mean-sgd", "ltl-erm-erm", "pooled", "ridge-ltl", "prior"]
    outcome = run(e, methods, tmp_path)
    assert outcome.not_done == []
    assert outcome.claims == []  # the paper says nothing of it
    _, curves = outcome.results["tiny"]
    assert list(curves) == [m for m in methods if m != "mean-sgd"]  # its mean is not known
    assert all(np.isfinite(runs.loss).all() for runs in curves.values())
    assert "Ramps(steepness=2.0)" in (tmp_path / "report.html").read_text()
    other = PieceFolder(tmp_path / "tiny", tiny(Ramps(3.0), n_shots=None, n_queries=None), print)
    assert other.load(Piece(e, "itl-sgd", 0)) is None  # other tasks
    assert PieceFolder(tmp_path / "tiny", e, print).load(Piece(e, "itl-sgd", 0))


def test_the_recipe_for_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of docs/architecture.md, as it stands."""
    page = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
    recipe = page.split("### Add a data set")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "recipe.py").write_text(recipe)
    monkeypatch.chdir(tmp_path)
    _, curves = run_path("recipe.py")["outcome"].results["two-speeds"]
    assert list(curves) == ["itl-sgd", "ltl-sgd-sgd", "prior"]
    assert (tmp_path / "results" / "two-speeds" / "figure.pdf").exists()


def test_an_environment_of_ones_own(tmp_path: Path) -> None:
    """Side by side: uneven directions, clusters, and a sequence that drifts."""
    uneven = RegressionEnvironment(2, center=(4.0, 0.0), task_std=(0.1, 2.0))
    parts = tuple(RegressionEnvironment(2, center=c) for c in (-4.0, 4.0))
    sources: dict[str, RegressionEnvironment | Mixture] = {
        "uneven": uneven,
        "clusters": Mixture(parts),
        "drift": Mixture(parts, "drift"),
    }
    asked = [tiny(Drawn(env), name=name) for name, env in sources.items()]
    outcome = run(asked, ["itl-sgd", "mean-sgd"], tmp_path)
    assert list(outcome.results) == list(sources)
    page = (tmp_path / "report.html").read_text()
    assert "with mean from 0 to 4 and standard deviation from 0.1 to 2" in page
    assert "2 parts, one after another." in page


def test_a_data_set_of_ones_own() -> None:
    drawn = RegressionEnvironment(n_features=3).draw(30, 8, 0).tasks
    source = Dealt("mine", *drawn.split_rows(5))
    e = tiny(source, n_tasks=10, n_shots=None, n_queries=None)
    data = draw_data(e, 0)
    parts = [data.train, *data.valid, *data.test]
    assert [len(part) for part in parts] == [10, 5, 5, 5, 5]
    ids = [set(part.ids.tolist()) for part in parts]
    assert ids[1] == ids[2]
    assert ids[3] == ids[4]
    assert len(ids[0] | ids[1] | ids[3]) == 20
    assert draw_data(e, 1).train.ids.tolist() != data.train.ids.tolist()
    assert source == Dealt("mine", *drawn.split_rows(5))
    assert source != Dealt("mine", *drawn.split_rows(4))
    assert methods_of(e, list(METHODS)) == [m for m in METHODS if not m.startswith("mean")]
    few = draw_data(replace(e, n_shots=2, n_queries=1), 0)
    assert (set(few.train.sizes), set(few.test[1].sizes)) == ({2}, {1})
    np.testing.assert_array_equal(few.train[0][0], data.train[0][0][:2])


def test_an_experiment_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put into EXPERIMENTS can be asked for on the command line."""
    from typer.testing import CliRunner

    from headstart.cli import app

    monkeypatch.setitem(EXPERIMENTS, "tiny", tiny())
    asked = ["reproduce", "tiny", "--methods", "itl-sgd", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "tiny" / "curves.csv").exists()


@pytest.fixture
def log_cosh() -> Iterator[str]:
    before = dict(LOSSES)

    @register_loss
    @dataclass(frozen=True)
    class LogCosh(Loss):
        name = "log_cosh"
        domain = (-1.0, 1.0)

        @staticmethod
        def phi(s: float, a: float, b: float) -> float:  # noqa: ARG004
            return abs(s) + math.log1p(math.exp(-2.0 * abs(s))) - math.log(2.0)

        @staticmethod
        def slope(s: float, a: float, b: float) -> float:  # noqa: ARG004
            return math.tanh(s)

    yield "log_cosh"
    LOSSES.clear()
    LOSSES.update(before)


def test_a_loss_of_ones_own(log_cosh: str, tmp_path: Path) -> None:
    e = tiny(loss=log_cosh)
    _, curves = run(e, ["itl-sgd", "ltl-sgd-sgd", "ridge-ltl", "prior"], tmp_path).results["tiny"]
    data = draw_data(e, 0)
    (X, y), reg = data.test[0][0], curves["itl-sgd"].reg[0, 0]
    assert np.isfinite(curves["ltl-sgd-sgd"].loss).all()
    assert reg in e.grid
    assert (X.shape, y.shape) == ((4, 3), (4,))
    assert "log_cosh loss" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("classes", [False, True])
def test_pooled_is_the_best_linear_model_of_the_rows_so_far(classes: bool) -> None:
    env = ClassificationEnvironment(3) if classes else RegressionEnvironment(3)
    e = tiny(Drawn(env), "hinge" if classes else "absolute", grid_low=0.01, grid_high=1.0)
    data = draw_data(e, 0)
    found = run_method("pooled", e, data, np.random.default_rng(0))
    X, y = data.train.X[:16], data.train.y[:16]  # four tasks
    value = LOSSES[e.loss]().value

    def fitted(reg: float) -> Array:
        def cost(w: Array) -> float:
            return float(value(X @ w, y).mean() + reg / 2.0 * w @ w)

        start = np.linalg.lstsq(X, y, rcond=None)[0]
        best = minimize(
            cost, start, method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000},
        )  # fmt: skip
        return np.asarray(best.x)

    k = found.times.tolist().index(4)
    queries = data.valid[1]
    losses = [float(value(queries.X @ fitted(reg), queries.y).mean()) for reg in e.grid]
    assert found.reg[k] == e.grid[int(np.argmin(losses))]
    test = data.test[1]
    scores = test.X @ fitted(float(found.reg[k]))
    assert found.loss[k] == pytest.approx(float(value(scores, test.y).mean()), rel=1e-3)
    if classes:
        assert found.accuracy[k] == pytest.approx(np.mean((scores > 0) == (test.y > 0)))


def test_ridge_is_the_closed_form() -> None:
    """The bias maximises the likelihood of all training tasks, tasks are solved toward it."""
    e = tiny(n_tasks=4, grid_low=0.01, grid_high=1.0)
    data = draw_data(e, 0)
    found = run_method("ridge-ltl", e, data, np.random.default_rng(0))

    def cost(h: Array, reg: float) -> float:
        total = 0.0
        for X, y in data.train:
            K = X @ X.T + reg * len(y) * np.eye(len(y))
            total += float((y - X @ h) @ np.linalg.solve(K, y - X @ h))
        return total

    def error(pair: tuple[TaskSet, TaskSet], h: Array, reg: float) -> float:
        errors = []
        for (X, y), (X_new, y_new) in zip(*pair, strict=True):
            A = X.T @ X + reg * len(y) * np.eye(3)  # ridge regression, the other way round
            w = h + np.linalg.solve(A, X.T @ (y - X @ h))
            errors.append(np.abs(X_new @ w - y_new).mean())
        return float(np.mean(errors))

    best = [minimize(cost, np.zeros(3), args=(reg,), tol=1e-12).x for reg in e.grid]
    tried = [error(data.valid, h, reg) for h, reg in zip(best, e.grid, strict=True)]
    j = int(np.argmin(tried))
    assert found.reg[-1] == e.grid[j]
    assert found.loss[-1] == pytest.approx(error(data.test, best[j], e.grid[j]), rel=1e-5)
    assert found.loss[0] == pytest.approx(
        error(data.test, np.zeros(3), float(found.reg[0])), rel=1e-9
    )


def test_prior_is_learn_prior_on_the_tasks_so_far() -> None:
    e = tiny(Drawn(ClassificationEnvironment(3)), "hinge")
    data = draw_data(e, 0)
    found = run_method("prior", e, data, np.random.default_rng(0))
    prior = learn_prior(data.train.subset(range(4)), "logistic")
    hits, losses = [], []
    for (X, y), (X_new, y_new) in zip(*data.test, strict=True):
        scores = prior.posterior(X, y).predict(X_new)
        hits.append(np.mean((scores > 0.0) == (y_new > 0.0)))
        losses.append(np.maximum(1.0 - y_new * scores, 0.0).mean())
    k = found.times.tolist().index(4)
    assert found.accuracy[k] == pytest.approx(np.mean(hits))
    assert found.loss[k] == pytest.approx(np.mean(losses), rel=1e-6)
    assert np.isnan(found.reg).all()
    assert found.loss[0] == 1.0  # it predicts 0 before the first task


def test_what_was_found_holds_until_the_next_time() -> None:
    e = tiny(n_tasks=6)
    found = run_method("ridge-ltl", e, draw_data(e, 0), np.random.default_rng(0))
    held = Piece(e, "ridge-ltl", 0).compute()
    assert learning_times(6).tolist() == [0, 1, 2, 3, 4, 6]
    np.testing.assert_array_equal(held.tasks, np.arange(7))
    np.testing.assert_array_equal(held.loss, found.loss[[0, 1, 2, 3, 4, 4, 5]])


@at_hand(datasets.EXAM)
def test_schools() -> None:
    e = EXPERIMENTS["exam-regression"]
    data = draw_data(e, 0)
    assert [len(part) for part in (data.train, *data.valid, *data.test)] == [35, 15, 15, 15, 15]
    shots, queries = data.test
    share = shots.sizes / (shots.sizes + queries.sizes)
    assert np.all(np.abs(share - 0.75) <= 0.5 / (shots.sizes + queries.sizes) + 1e-12)
    whole = Exam().draw(Sizes(35, 15, 15), e.generator(0, "data"))
    np.testing.assert_array_equal(whole.train.X, data.train.X)
    small = replace(e, n_tasks=5, grid_size=3, seeds=1)
    for method in ("ltl-sgd-sgd", "pooled", "ridge-ltl", "prior"):  # tasks of unequal sizes
        assert np.isfinite(Piece(small, method, 0).compute().loss).all()


class Nameless(Source):
    def draw(self, sizes: Sizes, rng: np.random.Generator) -> Data:
        raise NotImplementedError


PAIR = RegressionEnvironment(2).draw(5, 4, 0).tasks.split_rows(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tiny(name="../up"), "name: expected letters, digits, dots and dashes"),
        (lambda: tiny(loss="nothing"), "loss: expected one of"),
        (lambda: tiny(n_tasks=0), "n_tasks: expected an integer >= 1"),
        (lambda: tiny(n_shots=0), "n_shots: expected an integer >= 1"),
        (lambda: tiny(order="random"), "order: expected one of"),
        (lambda: tiny(Nameless()), "source: expected a repr that says what its tasks depend on"),
        (lambda: tiny(RegressionEnvironment()), "source: expected a Source, found Regression"),
        (lambda: tiny(loss=LOSSES["huber"]()), "loss: expected a name, found Huber"),
        (lambda: draw_data(tiny(n_shots=None), 0), "n_shots, n_queries: expected numbers"),
        (lambda: deal(*PAIR, Sizes(3, 2, 1), np.random.default_rng(0)), "at most 5 tasks in all"),
        (
            lambda: deal(*PAIR, Sizes(1, 1, 1, 3), np.random.default_rng(0)),
            "n_shots: expected at most 2, the rows of the smallest task, found 3",
        ),
        (lambda: Exam(share=1.0), "share: expected"),
        (lambda: run([]), "experiments: expected some, each with its own name"),
        (lambda: run([tiny(), tiny()]), "experiments: expected some, each with its own name"),
        (lambda: run(tiny(), ["itl"]), "methods: expected one of"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def algorithm_1(X: Array, y: Array, bias: Array, reg: float, loss: Loss) -> tuple[Array, Array]:
    """The paper's, as a function that no kernel knows."""
    return Steps()(X, y, bias, reg, loss)


@dataclass(frozen=True)
class Steps:
    """Algorithm 1 with steps so many times as short, an object that can be called."""

    shorter: float = 1.0

    def __call__(
        self, X: Array, y: Array, bias: Array, reg: float, loss: Loss
    ) -> tuple[Array, Array]:
        total, iterates, u = np.zeros_like(bias), [], np.empty(len(y))
        for k in range(len(y)):
            iterates.append(bias - total / (max(k, 1) * reg * self.shorter))
            u[k] = float(loss.subgradient(X[k] @ iterates[-1], y[k]))
            total = total + u[k] * X[k]
        return np.mean(iterates, axis=0), u


@pytest.mark.parametrize("order", ["stream", "resample"])
@pytest.mark.parametrize(
    ("kind", "loss"), [("itl", "absolute"), ("mean", "hinge"), ("ltl", "hinge")]
)
def test_an_inner_algorithm_of_ones_own_is_a_method(kind: str, loss: str, order: str) -> None:
    world = ClassificationEnvironment if loss == "hinge" else RegressionEnvironment
    e = tiny(Drawn(world(n_features=3)), loss, order=order, grid_low=1e-2, grid_high=1e2)
    inner = {"inner": algorithm_1} if kind == "ltl" else {}
    own = Method("mine", kind, evaluate_with=algorithm_1, **inner)
    found = Piece(e, own, 0).compute()
    same = Piece(e, f"{kind}-sgd" + kind.count("l") // 2 * "-sgd", 0).compute()
    np.testing.assert_allclose(found.loss, same.loss, rtol=1e-6)
    np.testing.assert_allclose(found.accuracy, same.accuracy)
    np.testing.assert_array_equal(found.reg, same.reg)


def test_a_method_of_ones_own_is_in_all_that_a_run_writes(tmp_path: Path) -> None:
    methods: list[Any] = [
        "ltl-sgd-sgd",
        Method("mine", "ltl", Steps(), "sgd"),
        Method("b", "itl", "", "sgd"),
    ]
    outcome = run(tiny(), methods, tmp_path)
    _, curves = outcome.results["tiny"]
    assert list(curves) == ["ltl-sgd-sgd", "mine", "b"]
    np.testing.assert_allclose(curves["mine"].loss, curves["ltl-sgd-sgd"].loss, rtol=1e-6)
    folder = tmp_path / "tiny"
    assert "tiny,mine,0,6,loss," in (folder / "curves.csv").read_text()
    assert "<td>mine<td>" in (tmp_path / "report.html").read_text()
    pieces = sorted(path.name for path in (folder / "pieces").rglob("*.npz"))
    assert len(pieces) == 3
    assert "ltl-sgd-sgd-0.npz" in pieces  # built in: its name says all


def test_finished_pieces_of_ones_own_are_told_apart_by_what_it_does(tmp_path: Path) -> None:
    def finished(method: Method) -> bool:
        return (
            PieceFolder(tmp_path / "tiny", tiny(), print).load(Piece(tiny(), method, 0)) is not None
        )

    def defined(text: str) -> Any:
        script = tmp_path / f"{abs(hash(text))}.py"
        script.write_text(f"def mine(X, y, bias, reg, loss):\n    return {text}, None\n")
        return run_path(str(script))["mine"]

    run(tiny(), [Method("mine", "ltl", Steps(2.0), "sgd")], tmp_path)
    assert finished(Method("mine", "ltl", Steps(2.0), "sgd"))
    assert not finished(Method("mine", "ltl", Steps(3.0), "sgd"))
    assert not finished(Method("mine", "ltl", Steps(2.0), "erm"))
    assert not finished(Method("other", "ltl", Steps(2.0), "sgd"))
    run(tiny(), [Method("plain", "itl", "", defined("bias"))], tmp_path)
    assert finished(Method("plain", "itl", "", defined("bias")))
    assert not finished(Method("plain", "itl", "", defined("bias + 1.0")))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Method("a/b", "itl", "", "sgd"), "name: expected letters"),
        (lambda: Method("a", "own", "", "sgd"), "bias: expected one of 'itl'"),
        (lambda: Method("a", "ltl", "", "sgd"), "inner: expected one of 'sgd'"),
        (lambda: Method("a", "itl", "sgd", "sgd"), "inner: expected nothing for the bias 'itl'"),
        (
            lambda: Method("a", "itl", "", cast(Any, print)),
            "evaluate_with: expected a function whose source",
        ),
        (lambda: Method("a", "ltl", partial(algorithm_1), "sgd"), "inner: expected a function"),
    ],
)
def test_a_method_that_cannot_be_is_refused(make: Callable[[], Method], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_names_of_methods_are_their_own(tmp_path: Path) -> None:
    one, other = (Method("a", "itl", "", Steps(k)) for k in (1.0, 2.0))
    with pytest.raises(ValueError, match="found two named 'a'"):
        run(tiny(), [one, other], tmp_path)
    with pytest.raises(ValueError, match=r"another name for one's own .* found 'itl-sgd'"):
        run(tiny(), [replace(one, name="itl-sgd")], tmp_path)
    with pytest.raises(ValueError, match=r"methods: expected one of .* or a Method, found 'a'"):
        run(tiny(), ["a"], tmp_path)
    assert not list(tmp_path.iterdir())
    assert list(run(tiny(), [METHODS["itl-sgd"], "itl-sgd"], tmp_path).results["tiny"][1]) == [
        "itl-sgd"
    ]
