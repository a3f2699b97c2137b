"""Naive NumPy transcriptions, written from the paper's formulas and nothing of the package's.

A loss here is a name and its parameter; labels and predictions are plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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


def meta_stream(
    X: Array,
    y: Array,
    groups: Sequence[object],
    lam: float,
    gamma: float,
    name: str,
    c: float,
    task_size: int | None,
    intercept: bool,
) -> Streamed:
    """A stream of rows, kept whole and gone through again from its definition.

    A constant column follows the inputs: row i has the root mean square of rows 0
    to i there. Its weight is kept in the units of the prediction.
    """
    d = X.shape[1]
    scale = [np.sqrt(np.mean(X[: i + 1] ** 2)) for i in range(len(X))]
    scale = [b if intercept else 0.0 for b in scale]
    history = [np.zeros(d + 1)]
    opened: dict[object, Array] = {}  # the bias a task started from, while it is open
    started: dict[object, Array] = {}
    seen: dict[object, list[int]] = {}

    def iterates(rows: list[int], start: Array) -> tuple[list[Array], Array]:
        pull, w = np.zeros(d + 1), [start]
        for k, i in enumerate(rows, 1):
            z = float(X[i] @ w[-1][:d] + w[-1][d])
            u = loss_subgradient(name, c, z, y[i])
            pull = pull + u * np.append(X[i], scale[i] ** 2)
            w.append(start - pull / (k * lam))
        return w, pull

    def close(group: object) -> None:
        rows = seen[group][:task_size]
        _, pull = iterates(rows, opened.pop(group))
        history.append(history[-1] - gamma * pull / len(rows))

    for i, group in enumerate(groups):
        if task_size is None and opened and group not in opened:
            close(next(iter(opened)))
        if group is None:
            _, pull = iterates([i], history[-1])
            history.append(history[-1] - gamma * pull)
            continue
        if group not in seen:
            seen[group], opened[group] = [], history[-1]
            started[group] = np.mean(history, axis=0)
        seen[group].append(i)
        if group in opened and len(seen[group]) == task_size:
            close(group)
    for group in list(opened):
        close(group)
    own = {g: np.mean(iterates(seen[g], started[g])[0][:-1], axis=0) for g in seen}
    return Streamed(np.mean(history, axis=0), own)


def tuned_stream(
    X: Array,
    y: Array,
    groups: Sequence[object],
    kappas: Array,
    name: str,
    c: float,
    task_size: int | None,
    intercept: bool,
    margins: bool,
) -> Streamed:
    """A stream that chooses its constant step and takes DoG's meta-steps, from its definition."""
    d, decay = X.shape[1], 3.0
    origin = np.append(np.zeros(d), y[0] if intercept and not margins else 0.0)
    h, bias, weights = origin, origin, [np.zeros((0, d + 1)), np.zeros(0)]
    squares, error, reach, losses, lead, steps = 0.0, 0.0, 0.0, np.zeros(len(kappas)), 3, 0
    trials = 0
    tasks: dict[object, dict[str, Any]] = {}
    own: dict[object, Array] = {}
    known: dict[object, int] = {}

    def metric(rows: int) -> float:
        return float(np.mean(X[:rows] ** 2)) if intercept else 0.0

    def unit(rows: int) -> float:
        return error / (float(np.mean(np.sum(X[:rows] ** 2, axis=1))) + metric(rows))

    def meta_step(gradient: Array, n: int, born: int, rows: int) -> None:
        nonlocal h, bias, squares, reach, steps
        steps += 1
        scale = np.append(np.ones(d), 0.0 if metric(rows) == 0.0 else metric(rows) ** -0.5)
        norm = float(np.sum((scale * gradient) ** 2))
        squares += norm
        if squares == 0.0:
            return
        if reach == 0.0:
            reach = n * unit(rows) * np.sqrt(norm)
            weights[0], weights[1] = h[None], np.array([reach])
        h = h - reach / np.sqrt(squares) / (steps - born) * gradient
        reach = max(reach, float(np.linalg.norm(scale * (h - origin))))
        weights[0], weights[1] = np.vstack([weights[0], h]), np.append(weights[1], reach)
        if reach > 0.0:
            bias = np.average(weights[0], axis=0, weights=weights[1])

    def first_error(value: float) -> None:
        nonlocal error
        share = min(1.0, (1.0 + decay) / (steps + 1 + decay))
        error = 1.0 if margins else error + share * (abs(value) - error)

    def close(group: object, rows: int) -> None:
        nonlocal losses, lead, trials
        task = tasks.pop(group)
        n = task["n"]
        if task["trial"]:
            share = (1.0 + decay) / (trials + 1 + decay)
            losses = losses + share * (task["losses"] / (n * (n + 1) / 2) - losses)
            lead, trials = int(np.argmin(losses)), trials + 1
        meta_step(task["pull"] / n, n, task["born"], rows)

    for i, group in enumerate(groups):
        if task_size is None and tasks and group not in tasks:
            close(next(iter(tasks)), i)
        wide, direction = np.append(X[i], 1.0), np.append(X[i], metric(i + 1))
        if group is None:
            first_error(wide @ bias - y[i])
            u = loss_subgradient(name, c, float(wide @ h), y[i])
            meta_step(u * direction, 1, steps, i + 1)
            continue
        if group not in known:
            trial = len(known) < 256 or len(known) % 8 == 0
            known[group], own[group] = i, bias
            tasks[group] = {"n": 0, "leading": h, "pull": np.zeros(d + 1), "born": steps}
            tasks[group] |= {"losses": np.zeros(len(kappas)), "tried": [bias] * len(kappas)}
            tasks[group]["trial"] = trial
        task = tasks.get(group)
        if task is not None and (task["n"] == 0 or error == 0.0):
            first_error(wide @ bias - y[i])
        step = kappas[lead] * unit(i + 1)
        u = loss_subgradient(name, c, float(wide @ own[group]), y[i])
        own[group] = own[group] - step * u * direction
        if task is None:
            continue
        task["n"] += 1
        for q, kappa in enumerate(kappas):
            z = float(wide @ task["tried"][q])
            task["losses"][q] += task["n"] * loss_value(name, c, z, y[i])
            u = loss_subgradient(name, c, z, y[i])
            task["tried"][q] = task["tried"][q] - kappa * unit(i + 1) * u * direction
        u = loss_subgradient(name, c, float(wide @ task["leading"]), y[i])
        task["leading"] = task["leading"] - step * u * direction
        task["pull"] = task["pull"] + u * direction
        if task["n"] == task_size:
            close(group, i + 1)
    for group in list(tasks):
        close(group, len(X))
    return Streamed(bias, own)


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
