"""One small problem for each call, and everything a call may need that fits it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

import headstart as hs

Array = NDArray[np.float64]

REGRESSION = ["absolute", "huber", "epsilon_insensitive", "pinball"]
BINARY = ["logistic", "smoothed_hinge", "hinge"]


class Call(NamedTuple):
    """A call that is right, and what it may be compared with.

    Attributes
    ----------
    function : what is called
    arguments : right ones, by name
    roles : by argument: what is done to it, see `attack.calls`
    oracle : gives the answer in another way, if there is one
    allowed : exceptions beside the usual ones
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    roles: dict[str, str]
    oracle: Callable[[], Any] | None = None
    allowed: tuple[type[Exception], ...] = ()


class World:
    """Numbers that fit together; products of them are exact, so that ties are ties everywhere."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.d, self.n_tasks = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        self.sizes = rng.integers(1, 5, self.n_tasks)
        self.n = int(self.sizes.sum())
        self.owner = np.repeat(np.arange(self.n_tasks), self.sizes)
        self.integer = bool(rng.random() < 0.2)
        self.X = self.inputs(self.n)
        self.binary = bool(rng.random() < 0.3)
        self.y = self.labels(self.n)
        self.bias = rng.integers(-8, 9, self.d) / 8.0
        self.reg = float(10.0 ** rng.uniform(-2.0, 2.0))
        self.step = float(10.0 ** rng.uniform(-2.0, 0.5))

    def inputs(self, n: int) -> Array:
        """Multiples of an eighth; now and then integers, a constant or a repeated column."""
        X = np.asarray(self.rng.integers(-16, 17, (n, self.d)) / (1.0 if self.integer else 8.0))
        odd = self.rng.integers(12)
        if odd == 0:
            X[:, 0] = 1.0
        elif odd == 1:
            X[:, -1] = X[:, 0]
        elif odd == 2:
            X[:, 0] = 0.0
        return X

    def labels(self, n: int) -> Array:
        """Both classes if there are two rows, or numbers that no product of ours is."""
        if self.binary:
            y = np.where(self.rng.random(n) < 0.5, 1.0, -1.0)
            y[:2] = [1.0, -1.0][:n]
            return y
        return self.rng.integers(-64, 65, n) / 32.0 + (0.0 if self.integer else 1.0 / 128.0)

    @property
    def loss(self) -> str:
        """A loss for the labels, of bounded slope."""
        return str(self.rng.choice(BINARY if self.binary else REGRESSION))

    @property
    def any_loss(self) -> str:
        """Any loss for the labels."""
        return self.loss if self.binary or self.rng.random() < 0.7 else "squared"

    @cached_property
    def tasks(self) -> hs.TaskSet:
        return hs.TaskSet.from_arrays(self.X, self.y, self.owner)

    @cached_property
    def pairs(self) -> list[tuple[Array, Array]]:
        return [(np.array(X), np.array(y)) for X, y in self.tasks]

    def some_tasks(self) -> Any:
        """The tasks as a set or as a list."""
        return self.tasks if self.rng.random() < 0.5 else self.pairs

    def shots_and_queries(self) -> tuple[Any, Any]:
        """Two sets of the same tasks."""
        more = np.repeat(np.arange(self.n_tasks), 2)
        queries = hs.TaskSet.from_arrays(self.inputs(len(more)), self.labels(len(more)), more)
        return self.tasks, queries

    def covariance(self) -> Array:
        """A positive definite matrix."""
        A = self.rng.integers(-4, 5, (self.d, self.d)) / 4.0
        return np.asarray(A @ A.T + 0.25 * np.eye(self.d))

    def prior(self) -> hs.Prior:
        """A prior for these columns and labels."""
        if self.binary:
            return hs.Prior(self.bias, self.covariance(), loss="logistic")
        loss = str(self.rng.choice(["squared", "squared", "huber", "absolute"]))
        return hs.Prior(self.bias, self.covariance(), noise=0.5, loss=loss)

    def pick(self, options: Any) -> Any:
        """One of the options."""
        return options[int(self.rng.integers(len(options)))]


# Estimators are fitted once, to these rows; whoever changes one gets a copy.
_rng = np.random.default_rng(7)
IDS = np.repeat(np.arange(6), 5)
TRAIN = _rng.integers(-16, 17, (30, 2)) / 8.0
OWN = _rng.normal([1.0, -2.0], 0.5, (6, 2))
LABELS = (TRAIN * OWN[IDS]).sum(axis=1) + 0.25 * _rng.standard_normal(30)
CLASSES = np.where(LABELS > 0.0, "yes", "no")
AGE = IDS * 0.5


def frame(group: bool = True, side: bool = False) -> pd.DataFrame:
    """The rows of `TRAIN` with names, and with columns of ids and of what is known of them."""
    table = pd.DataFrame(TRAIN, columns=["a", "b"])
    if side:
        table["age"] = AGE
    if group:
        table["user"] = IDS
    return table


def _parameters() -> dict[str, tuple[dict[str, Any], str]]:
    """By name: parameters of estimators, and what their rows are."""
    return {
        "prior": ({}, "array"),
        "prior, no intercept": ({"fit_intercept": False, "metric": "diagonal"}, "array"),
        "paper": ({"reg": 0.5, "step": 0.1}, "array"),
        "paper, auto step": ({"reg": 0.5, "task_size": 2, "predictor": "last"}, "array"),
        "exact": ({"reg": 0.5, "inner": "erm"}, "array"),
        "constant": ({"reg": 2.0, "inner": "constant", "fit_intercept": False}, "array"),
        "column": ({"group": "user"}, "frame"),
        "side": ({"group": "user", "side": ["age"]}, "side"),
        "sparse": ({"metric": "diagonal"}, "sparse"),
    }


KINDS = list(_parameters())


@cache
def _fitted(kind: str, classifier: bool) -> Any:
    parameters, rows = _parameters()[kind]
    model = (hs.MetaClassifier if classifier else hs.MetaRegressor)(**parameters)
    y = CLASSES if classifier else LABELS
    X = {"array": TRAIN, "sparse": sp.csr_array(TRAIN)}.get(rows, frame(side=rows == "side"))
    groups = None if "group" in parameters else IDS
    return model.fit(X, y, groups=groups)


def fitted(kind: str, classifier: bool) -> Any:
    """A fitted estimator of one's own."""
    return deepcopy(_fitted(kind, classifier))


def shared(kind: str, classifier: bool) -> Any:
    """A fitted estimator that must not be changed."""
    return _fitted(kind, classifier)


def rows_for(kind: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """New rows for such an estimator, and ids beside them if these are no column."""
    X = rng.integers(-16, 17, (n, 2)) / 8.0
    ids = rng.integers(0, 9, n)
    if kind == "sparse":
        return sp.csr_array(X), ids
    if kind not in ("column", "side"):
        return X, ids
    table = pd.DataFrame(X, columns=["a", "b"])
    if kind == "side":
        table["age"] = ids * 0.5
    table["user"] = ids
    return table, None
