"""Naive NumPy transcriptions, written from the paper's formulas and nothing of the package's.

A loss here is a name and its parameter; labels and predictions are plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
Data = NDArray[np.floating]


def loss_value(name: str, c: float, z: float, y: float) -> float:
    r, m = z - y, y * z
    if name == "absolute":
        return abs(r)
    if name == "epsilon_insensitive":
        return max(0.0, abs(r) - c)
    if name == "pinball":
        return max(c * (y - z), (c - 1.0) * (y - z))
    if name == "huber":
        return r**2 / (2.0 * c) if abs(r) < c else abs(r) - c / 2.0
    if name == "squared":
        return r**2 / 2.0
    if name == "hinge":
        return max(0.0, 1.0 - m)
    if name == "smoothed_hinge":
        if m >= 1.0:
            return 0.0
        return (1.0 - m) ** 2 / (2.0 * c) if 1.0 - m < c else 1.0 - m - c / 2.0
    if name == "logistic":
        return float(np.logaddexp(0.0, -m))
    raise ValueError(name)


def loss_subgradient(name: str, c: float, z: float, y: float) -> float:
    r, m = z - y, y * z
    if name == "absolute":
        return float(np.sign(r))
    if name == "epsilon_insensitive":
        return 0.0 if abs(r) <= c else float(np.sign(r))
    if name == "pinball":
        return 0.0 if r == 0 else (1.0 - c if r > 0 else -c)
    if name == "huber":
        return float(np.clip(r / c, -1.0, 1.0))
    if name == "squared":
        return r
    if name == "hinge":
        return -y if m < 1.0 else 0.0
    if name == "smoothed_hinge":
        return float(-y * np.clip((1.0 - m) / c, 0.0, 1.0))
    if name == "logistic":
        return float(-y * expit(-m))
    raise ValueError(name)


class Pass(NamedTuple):
    iterates: Array  # w_1 .. w_{n+1} as rows
    dual: Array  # u_1 .. u_n
    full: Array  # s_k = x_k u_k + lam (w_k - h), as rows

    @property
    def average(self) -> Array:
        return np.asarray(self.iterates[:-1].mean(axis=0))

    @property
    def last(self) -> Array:
        return np.asarray(self.iterates[-1])


def algorithm_1(X: Data, y: Data, h: Data, lam: float, name: str, c: float) -> Pass:
    """The paper's Algorithm 1, line by line."""
    w: Array = h.astype(np.float64)
    iterates, dual, full = [w], [], []
    for k in range(1, len(y) + 1):
        u = loss_subgradient(name, c, float(X[k - 1] @ w), float(y[k - 1]))
        s = X[k - 1] * u + lam * (w - h)
        w = w - s / (k * lam)
        iterates.append(w)
        dual.append(u)
        full.append(s)
    return Pass(np.array(iterates), np.array(dual), np.array(full))


def constant_steps(X: Data, y: Data, h: Data, lam: float, name: str, c: float) -> Pass:
    """Steps of length 1 / (n lam) and no pull to h: item 27 of the theory, line by line."""
    w: Array = h.astype(np.float64)
    iterates, dual, full = [w], [], []
    for x, label in zip(X, y, strict=True):
        u = loss_subgradient(name, c, float(x @ w), float(label))
        w = w - u * x / (len(y) * lam)
        iterates.append(w)
        dual.append(u)
        full.append(u * x)
    return Pass(np.array(iterates), np.array(dual), np.array(full))


def constant_step_rounds(
    tasks: Sequence[tuple[Data, Data]],
    lam: float,
    gamma: float,
    name: str,
    c: float,
    h: Data,
    batch: int = 1,
) -> Array:
    """Algorithm 2 with constant steps inside, `batch` tasks a step: its iterates as rows."""
    path: list[Array] = [h.astype(np.float64)]
    for first in range(0, len(tasks), batch):
        here = path[-1]
        some = tasks[first : first + batch]
        last = [constant_steps(X, y, here, lam, name, c).last for X, y in some]
        path.append(here - gamma * lam * (here - np.mean(last, axis=0)))
    return np.array(path)


def algorithm_2(
    tasks: Sequence[tuple[Data, Data]], lam: float, gamma: float, name: str, c: float, h: Data
) -> Array:
    """The paper's Algorithm 2, line by line: the iterates h_1 .. h_{T+1} as rows."""
    path: list[Array] = [h.astype(np.float64)]
    for X, y in tasks:
        w = algorithm_1(X, y, path[-1], lam, name, c).last
        gradient = -lam * (w - path[-1])
        path.append(path[-1] - gamma * gradient)
    return np.array(path)


def average_with_weights(iterates: Array, weights: Array) -> Array:
    """A weighted mean of the iterates w_1 .. w_n."""
    return np.asarray(weights @ iterates[:-1] / weights.sum())


def algorithm_4(X: Data, y: Data, h: Data, lam: float, iterations: int = 2000) -> Array:
    """The paper's Algorithm 4 (FISTA on the dual) for the absolute loss, until a gap of 1e-6."""
    n = len(y)
    gamma = lam / (n * np.square(X).sum(axis=1).max())
    u = p = np.zeros(n)
    t = 1.0
    w: Array = h.astype(np.float64)
    for _ in range(iterations):
        step = p - gamma * (X @ (X.T @ p) / lam - X @ h)
        new = np.clip(n * step - n * gamma * y, -1.0, 1.0) / n
        w = np.asarray(h - X.T @ new / lam, np.float64)
        primal = np.abs(X @ w - y).mean() + lam / 2.0 * np.sum((w - h) ** 2)
        v = X.T @ new
        if primal + new @ y + v @ v / (2.0 * lam) - h @ v < 1e-6:
            break
        after = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        p = new + (t - 1.0) / after * (new - u)
        u, t = new, after
    return w


def online_validation(
    train: Sequence[tuple[Data, Data]],
    valid: Sequence[tuple[Data, Data, Data, Data]],
    lams: list[float],
    gammas: list[float],
    name: str,
    c: float,
) -> Array:
    """The paper's tuning procedure with SGD throughout, candidate by candidate.

    `valid` holds (X, y) to train on and (X, y) to test on for every task; the result is
    the mean validation loss after 0, 1, ..., T tasks, shape (T + 1, regs, steps).
    """
    d = train[0][0].shape[1]
    losses = np.empty((len(train) + 1, len(lams), len(gammas)))
    for i, lam in enumerate(lams):
        for j, gamma in enumerate(gammas):
            path = algorithm_2(train, lam, gamma, name, c, np.zeros(d))
            for t in range(len(path)):
                bias = path[: t + 1].mean(axis=0)
                total = 0.0
                for X, y, X_new, y_new in valid:
                    w = algorithm_1(X, y, bias, lam, name, c).average
                    pairs = zip(X_new @ w, y_new, strict=True)
                    total += float(np.mean([loss_value(name, c, z, v) for z, v in pairs]))
                losses[t, i, j] = total / len(valid)
    return losses


class Streamed(NamedTuple):
    bias: Array  # mean of h_1 .. h_{T+1}, the intercept last
    own: dict[object, Array]


class MetaSteps:
    """Algorithm 2's iterates, the intercept last: by a given step, or by DoG's if that is None.

    Tasks may overlap. `metric` is the square of the constant column's value, in whose units
    gradients and distances of intercepts are measured.
    """

    def __init__(self, size: int, lam: float, gamma: float | None, constant: bool = False) -> None:
        self.lam, self.gamma, self.constant = lam, gamma, constant
        self.iterates, self.weights = [np.zeros(size)], [0.0 if gamma is None else 1.0]
        self.taken, self.squares, self.reach = 0, 0.0, 0.0

    @property
    def newest(self) -> Array:
        return self.iterates[-1]

    @property
    def mean(self) -> Array:
        if sum(self.weights) == 0.0:
            return self.newest
        return np.asarray(np.average(self.iterates, axis=0, weights=self.weights))

    def take(self, gradient: Array, n: int, born: int, metric: float) -> None:
        """The step of a task of n rows that began after `born` steps."""
        self.taken += 1
        if self.gamma is not None:
            self.iterates.append(self.newest - self.gamma * gradient)
            self.weights.append(1.0)
            return
        units = np.append(np.ones(gradient.size - 1), 0.0 if metric == 0.0 else metric**-0.5)
        norm = float(np.sum((units * gradient) ** 2))
        self.squares += norm
        if self.squares == 0.0:
            return
        if self.reach == 0.0:
            lam = self.lam / n if self.constant else self.lam
            self.reach = float(np.sqrt(norm)) / lam
            self.weights = [0.0] * (len(self.weights) - 1) + [self.reach]
        rate = self.reach / np.sqrt(self.squares) / (self.taken - born)
        h = self.newest - rate * gradient
        self.reach = max(self.reach, float(np.linalg.norm(units * (h - self.iterates[0]))))
        self.iterates.append(h)
        self.weights.append(self.reach)


def meta_stream(
    X: Array,
    y: Array,
    groups: Sequence[object],
    lam: float,
    gamma: float | None,
    name: str,
    c: float,
    task_size: int | None,
    intercept: bool,
    constant: bool = False,
    predictor: str = "average",
) -> Streamed:
    """A stream of rows, kept whole and gone through again from its definition.

    A constant column follows the inputs: row i has the root mean square of rows 0
    to i there. Its weight is kept in the units of the prediction. With `constant`
    steps within tasks are of length 1 / lam.
    """
    d = X.shape[1]
    metric = [float(np.mean(X[: i + 1] ** 2)) if intercept else 0.0 for i in range(len(X))]
    steps = MetaSteps(d + 1, lam, gamma, constant)
    opened: dict[object, tuple[Array, int]] = {}  # bias and steps when a task began, while open
    started: dict[object, Array] = {}
    seen: dict[object, list[int]] = {}

    def iterates(rows: list[int], start: Array) -> tuple[list[Array], Array]:
        pull, w = np.zeros(d + 1), [start]
        for k, i in enumerate(rows, 1):
            z = float(X[i] @ w[-1][:d] + w[-1][d])
            u = loss_subgradient(name, c, z, y[i])
            pull = pull + u * np.append(X[i], metric[i])
            w.append(start - pull / (lam if constant else k * lam))
        return w, pull

    def close(group: object, newest: int) -> None:
        rows = seen[group][:task_size]
        start, born = opened.pop(group)
        _, pull = iterates(rows, start)
        steps.take(pull / len(rows), len(rows), born, metric[newest])

    def own(rows: list[int], start: Array) -> Array:
        w, _ = iterates(rows, start)
        if predictor == "last":
            return w[-1]
        k = np.ones(len(rows)) if predictor == "average" else np.arange(1.0, len(rows) + 1)
        return np.asarray(np.average(w[:-1], axis=0, weights=k))

    for i, group in enumerate(groups):
        if task_size is None and opened and group not in opened:
            close(next(iter(opened)), i - 1)
        if group is None:
            _, pull = iterates([i], steps.newest)
            steps.take(pull, 1, steps.taken, metric[i])
            continue
        if group not in seen:
            seen[group], opened[group] = [], (steps.newest, steps.taken)
            started[group] = steps.mean
        seen[group].append(i)
        if group in opened and len(seen[group]) == task_size:
            close(group, i)
    for group in list(opened):
        close(group, len(X) - 1)
    return Streamed(steps.mean, {g: own(seen[g], started[g]) for g in seen})


class Normal(NamedTuple):
    """What is known of a task's weights, and how likely its labels were."""

    mean: Array
    covariance: Array
    log_likelihood: float


def normal_posterior(X: Data, y: Data, h: Data, sigma: Array, noise: Array) -> Normal:
    """Weights N(h, sigma) after labels ``X w`` plus noise of these variances, from the textbook."""
    K = X @ sigma @ X.T + np.diag(noise)
    gain = sigma @ X.T @ np.linalg.inv(K)
    r = y - X @ h
    quadratic = float(r @ np.linalg.solve(K, r))
    density = -0.5 * (len(y) * np.log(2.0 * np.pi) + np.linalg.slogdet(K)[1] + quadratic)
    return Normal(h + gain @ r, sigma - gain @ X @ sigma, density)


def em_step(
    tasks: Sequence[tuple[Data, Data]], h: Array, sigma: Array, noise: float
) -> tuple[Array, Array, float]:
    """One step of expectation-maximisation for the squared loss, full covariance, not shrunk."""
    known = [normal_posterior(X, y, h, sigma, np.full(len(y), noise)) for X, y in tasks]
    mean = np.mean([k.mean for k in known], axis=0)
    C = np.mean([np.outer(k.mean - mean, k.mean - mean) + k.covariance for k in known], axis=0)
    squares = [
        float(np.sum((y - X @ k.mean) ** 2) + np.trace(X @ k.covariance @ X.T))
        for k, (X, y) in zip(known, tasks, strict=True)
    ]
    return mean, C, sum(squares) / sum(len(y) for _, y in tasks)
