r"""Methods at work on the tasks of a repetition.

Those with a bias (0, the oracle's or learned online) go by `select_online` and `select_reg`. Three
more learn from the same tasks:

* ``pooled``: one linear model of all training rows so far, with the experiment's loss; it takes no
  notice of a new task's shots.
* ``ridge-ltl``: the squared loss in closed form. With :math:`K_t = X_tX_t^\top + \lambda n_tI`
  the best bias is :math:`(\sum X_t^\top K_t^{-1}X_t)^{-1}\sum X_t^\top K_t^{-1}y_t`, and a new
  task is solved by ridge regression toward it.
* ``prior``: bias, covariance and noise learned together, as `learn_prior` does by default.

They are learned again at a few numbers of tasks (`learning_times`), and held between these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart._core.checks import FloatArray, Vector
from headstart.experiments.methods import Method, get_method
from headstart.experiments.settings import Experiment
from headstart.experiments.sources import Data, Pair
from headstart.inner.adapt import task_weights
from headstart.inner.erm import biased_erm
from headstart.losses import get_loss
from headstart.meta.prior.learn import find_prior
from headstart.selection import select_online, select_reg
from headstart.tasks import TaskSet

Matrix = NDArray[np.float64]
NONE = float("nan")


class Found(NamedTuple):
    """What a method came to after each of some numbers of tasks.

    Attributes
    ----------
    times : the numbers of tasks; what was found holds until the next
    loss, accuracy : on the test tasks; no accuracies for regression
    reg, step : chosen by validation; NaN where a method has none
    """

    times: NDArray[np.int64]
    loss: Vector
    accuracy: Vector
    reg: Vector
    step: Vector

    def held(self, n_tasks: int) -> Found:
        """The same at every number of tasks."""
        tasks = np.arange(n_tasks + 1)
        last = np.searchsorted(self.times, tasks, side="right") - 1
        accuracy = self.accuracy[last] if self.accuracy.size else self.accuracy
        return Found(tasks, self.loss[last], accuracy, self.reg[last], self.step[last])


def run_method(method: str | Method, e: Experiment, data: Data, rng: np.random.Generator) -> Found:
    """Run a method on the tasks of a repetition."""
    method = get_method(method)
    others = {"pooled": _pooled, "ridge-ltl": _ridge, "prior": _prior}
    if method.bias in others:
        return others[method.bias](e, data)
    if method.bias == "ltl":
        return _learned(method, e, data, rng)
    bias = np.zeros(data.train.n_features) if method.bias == "itl" else data.oracle_bias
    if bias is None:
        raise ValueError(f"{method.name}: the mean of {e.name} is not known")
    return _fixed(method, e, data, bias, rng)


def _learned(method: Method, e: Experiment, data: Data, rng: np.random.Generator) -> Found:
    chosen = select_online(
        *(data.train, data.valid, data.test, e.grid, e.grid, e.loss),
        *(method.inner, method.evaluate_with, e.order, rng),
    )
    winners = list(zip(chosen.bias, chosen.reg, strict=True))
    hits = _hits(method, e, data, winners, rng)
    return Found(chosen.tasks, chosen.test_loss, hits, chosen.reg, chosen.step)


def _fixed(
    method: Method, e: Experiment, data: Data, bias: Vector, rng: np.random.Generator
) -> Found:
    found = select_reg(
        data.valid, data.test, bias, e.grid, e.loss, method.evaluate_with, e.order, rng
    )
    hits = _hits(method, e, data, [(bias, found.reg)], rng)
    reg, none = np.array([found.reg]), np.array([NONE])
    return Found(np.zeros(1, np.int64), np.array([found.test_loss]), hits, reg, none)


def _hits(
    method: Method,
    e: Experiment,
    data: Data,
    winners: list[tuple[Vector, float]],
    rng: np.random.Generator,
) -> Vector:
    """Accuracies on the test tasks from each bias with its reg; none for regression."""
    if not e.classifies:
        return np.empty(0)
    shots, queries = data.test
    if e.order == "resample":
        shots = shots.resampled(rng)
    weights = (task_weights(shots, h, reg, e.loss, method.evaluate_with) for h, reg in winners)
    return np.array([_share(queries, _scores(queries, W)) for W in weights])


def _scores(queries: TaskSet, W: FloatArray) -> Vector:
    """Predictions of every query with the weights of its task."""
    T, d = W.shape
    if np.all(queries.sizes == queries.sizes[0]):
        return np.asarray((queries.X.reshape(T, -1, d) @ W[:, :, None]).ravel(), np.float64)
    return np.concatenate([X @ w for (X, _), w in zip(queries, W, strict=True)])


def _share(queries: TaskSet, scores: Vector) -> float:
    """Share of right signs: the mean over tasks of the means over their queries."""
    return _mean(queries, (scores > 0.0) == (queries.y > 0.0))


def _mean(queries: TaskSet, values: Vector | NDArray[np.bool_]) -> float:
    sums = np.add.reduceat(np.asarray(values, np.float64), queries.offsets[:-1])
    return float(np.mean(sums / queries.sizes))


def learning_times(n_tasks: int) -> NDArray[np.int64]:
    """Numbers of tasks at about equal distances on a logarithmic scale, 0 and all among them.

    Examples
    --------
    >>> learning_times(100)
    array([  0,   1,   2,   3,   4,   6,   8,  11,  16,  23,  32,  45,  64,
            91, 100])
    """
    halvings = np.arange(0, 2 * np.log2(max(n_tasks, 1)) + 1e-9)
    return np.unique(np.r_[0, np.rint(2.0 ** (halvings / 2.0)), n_tasks]).astype(np.int64)


Predictions = Callable[[int], Matrix]  # of a candidate: a row a query, a column a learning time


def _best_of(e: Experiment, data: Data, valid: Predictions, test: Predictions) -> Found:
    """At each learning time the reg with the smallest validation loss, and its test."""
    loss, times = get_loss(e.loss), learning_times(e.n_tasks)

    def losses(queries: TaskSet, Z: Matrix) -> Vector:
        return np.array([_mean(queries, loss.value(z, queries.y)) for z in Z.T])

    tried = np.array([losses(data.valid[1], valid(j)) for j in range(len(e.grid))])
    best = tried.argmin(axis=0)
    queries, Z = data.test[1], np.empty((len(data.test[1].y), len(times)))
    for j in np.unique(best):
        Z[:, best == j] = test(int(j))[:, best == j]
    hits = [_share(queries, z) for z in Z.T] if e.classifies else []
    none = np.full(len(times), NONE)
    return Found(times, losses(queries, Z), np.array(hits, np.float64), e.grid[best], none)


def _pooled(e: Experiment, data: Data) -> Found:
    train, zero = data.train, np.zeros(data.train.n_features)
    H = np.zeros((len(e.grid), zero.size, len(learning_times(e.n_tasks))))
    for k, t in enumerate(learning_times(e.n_tasks)):
        X, y = train.X[: train.offsets[t]], train.y[: train.offsets[t]]
        for j, reg in enumerate(e.grid if t > 0 else []):
            H[j, :, k] = biased_erm(X, y, zero, float(reg), e.loss, tol=1e-4).weights
    valid, test = data.valid[1].X, data.test[1].X
    return _best_of(e, data, lambda j: valid @ H[j], lambda j: test @ H[j])


def _ridge(e: Experiment, data: Data) -> Found:
    times = learning_times(e.n_tasks)
    H = [_ridge_biases(data.train, float(reg), times) for reg in e.grid]

    def predictions(pair: Pair) -> Predictions:
        return lambda j: _ridge_predictions(pair, float(e.grid[j]), H[j])

    return _best_of(e, data, predictions(data.valid), predictions(data.test))


def _ridge_biases(train: TaskSet, reg: float, times: NDArray[np.int64]) -> Matrix:
    """The best bias after each number of tasks, as columns; the shortest where many are best."""
    d, wanted = train.n_features, set(times.tolist())
    A, c = np.zeros((d, d)), np.zeros(d)
    found: list[FloatArray] = [np.zeros(d)]
    for t, (X, y) in enumerate(train, start=1):
        S = _smoother(X, reg)
        A += S @ X
        c += S @ y
        if t in wanted:
            found.append(np.linalg.lstsq(A, c, rcond=None)[0])
    return np.column_stack(found)


def _smoother(X: FloatArray, reg: float) -> Matrix:
    """``X^T K^{-1}``, by which residuals are turned into weights."""
    K = X @ X.T + reg * len(X) * np.eye(len(X))
    return np.asarray(np.linalg.solve(K, X).T, np.float64)


def _ridge_predictions(pair: Pair, reg: float, H: Matrix) -> Matrix:
    """For every query, after its task's shots, from every column of H."""
    parts = []
    for (X, y), (X_new, _) in zip(*pair, strict=True):
        S = _smoother(X, reg)
        parts.append(X_new @ (H + S @ (y[:, None] - X @ H)))
    return np.concatenate(parts)


def _prior(e: Experiment, data: Data) -> Found:
    """Squared or logistic loss, as the estimators take by default; 0 before the first task."""
    times, (shots, queries) = learning_times(e.n_tasks), data.test
    loss = get_loss(e.loss)
    scores = [np.zeros(len(queries.y))]
    for t in times[1:]:
        prior = find_prior(
            data.train.subset(range(t)), "logistic" if e.classifies else "squared", "auto"
        )
        scores.append(_scores(queries, prior.posteriors(shots).weights))
    hits = [_share(queries, z) for z in scores] if e.classifies else []
    losses = [_mean(queries, loss.value(z, queries.y)) for z in scores]
    none = np.full(len(times), NONE)
    return Found(times, np.array(losses), np.array(hits, np.float64), none, none)
