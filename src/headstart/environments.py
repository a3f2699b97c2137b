r"""Synthetic task distributions with what is known of them: the paper's two experiments.

A task has weights :math:`w_\mu \sim N(m, \sigma^2 I)` around a common mean :math:`m`, and
inputs uniform on the unit sphere. Whether sharing pays depends on how much tasks differ,
:math:`\sigma` (`task_std`), on the rows a task has and on the noise: all are parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import (
    Vector,
    check_array,
    check_bias,
    check_choice,
    check_count,
    check_generator,
    check_number,
    check_size,
)
from headstart.tasks import TaskSet

MOST_NUMBERS = 2**33  # 64 GiB


class Draw(NamedTuple):
    """Tasks drawn from an environment, and the weights that made their labels."""

    tasks: TaskSet
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Environment:
    """A distribution of linear tasks around one mean; see its two subclasses.

    Attributes
    ----------
    n_features : dimension d
    center : every coordinate of the mean m of the tasks' weights
    task_std : standard deviation of each coordinate of a task's weights around m. (The
        paper's "standard deviation Var_m = 1" is this one; its Var_m is 3.87 for d = 30.)
    """

    n_features: int = 30
    center: float = 4.0
    task_std: float = 1.0

    def __post_init__(self) -> None:
        check_count("n_features", self.n_features, at_most=MOST_NUMBERS)
        if check_number("center", self.center) != 0.0:
            check_size("center", abs(self.center))
        check_size("task_std", self.task_std, or_zero=True)

    @property
    def mean(self) -> Vector:
        """The mean m of the tasks' weights."""
        return np.full(self.n_features, float(self.center))

    @property
    def oracle_bias(self) -> Vector:
        """The bias of the method MEAN."""
        return self.mean

    def var_h(self, bias: ArrayLike) -> float:
        r""":math:`\mathrm{Var}_h = \sqrt{\frac12(d\sigma^2 + \|m - h\|^2)}`, exactly."""
        h = check_bias("bias", bias, self.n_features)
        with quietly():
            squares = self.n_features * self.task_std**2 + np.sum(np.square(self.mean - h))
        return math.sqrt(check_answer(0.5 * float(squares), "bias"))

    def draw(self, n_tasks: int, n_rows: ArrayLike, random_state: object = None) -> Draw:
        """Draw tasks of `n_rows` rows each, or with one number of rows for every task.

        Examples
        --------
        >>> RegressionEnvironment(n_features=2).draw(3, n_rows=[5, 1, 4], random_state=0).tasks
        TaskSet(3 tasks, 10 rows, 2 features, 1 to 5 rows a task)
        """
        T = check_count("n_tasks", n_tasks, at_most=MOST_NUMBERS)
        sizes: NDArray[Any] = check_array("n_rows", n_rows, None)
        if sizes.dtype.kind not in "iu" or sizes.shape not in ((), (T,)) or np.any(sizes < 1):
            raise ValueError(f"n_rows: expected an integer >= 1, or {T} of them, found {n_rows!r}")
        sizes = np.broadcast_to(sizes, T).astype(np.float64)
        if max(T, sizes.sum()) * self.n_features > MOST_NUMBERS:
            raise ValueError(
                f"n_rows: expected at most {MOST_NUMBERS} numbers in all, found {sizes.sum():g} "
                f"rows of {self.n_features}"
            )
        sizes = sizes.astype(np.int64)
        rng = check_generator(random_state)
        weights = self.mean + self.task_std * rng.standard_normal((T, self.n_features))
        owner = np.repeat(np.arange(T), sizes)
        X = _on_sphere(len(owner), self.n_features, rng)
        y = self._labels(X, weights, owner, rng)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Draw(TaskSet.of(X, y, offsets, np.arange(T)), weights)

    def _labels(
        self,
        X: NDArray[np.float64],
        weights: NDArray[np.float64],
        owner: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Vector:
        raise NotImplementedError


@dataclass(frozen=True)
class RegressionEnvironment(Environment):
    """Labels ``<x, w>`` plus Gaussian noise whose variance is the signal's over `snr`.

    The signal's variance is taken over the rows of the task, so that every task has the
    same signal-to-noise ratio. With a single row there is none, and no noise.

    Examples
    --------
    >>> environment = RegressionEnvironment()
    >>> print(environment.var_h(environment.mean), environment.var_h(0 * environment.mean))
    3.872983346207417 15.968719422671311
    """

    snr: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("snr", self.snr)

    def _labels(
        self,
        X: NDArray[np.float64],
        weights: NDArray[np.float64],
        owner: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Vector:
        signal = _row_products(X, weights[owner])
        count = np.bincount(owner)
        centered = signal - (np.bincount(owner, signal) / count)[owner]
        variance = np.bincount(owner, centered**2) / count
        noise = rng.standard_normal(len(signal)) * np.sqrt(variance / self.snr)[owner]
        return np.asarray(signal + noise, np.float64)


@dataclass(frozen=True)
class ClassificationEnvironment(Environment):
    r"""Labels -1 and +1 from a logistic model, inputs kept off the boundary.

    Inputs with :math:`|\langle x, w\rangle|` below `margin` are drawn again.

    Attributes
    ----------
    label_model : ``"steep"`` is :math:`P(y=1) = 1/(1 + e^{-10\langle x,w\rangle})`, which made
        the published figures; ``"printed"`` is the paper's
        :math:`1/(1 + 10e^{-\langle x,w\rangle})`, under which a third of the labels are
        positive and the mean of the weights is a poor bias.
    oracle_scale : the method MEAN uses this multiple of m. The figures used 2; the paper
        says m. The weights that minimise the hinge risk are not those that made the
        labels, and the best multiple is about 1.5.
    """

    margin: float = 0.5
    label_model: str = "steep"
    oracle_scale: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("margin", self.margin, or_zero=True)
        if check_number("oracle_scale", self.oracle_scale) != 0.0:
            check_size("oracle_scale", abs(self.oracle_scale))
        check_choice("label_model", self.label_model, ["steep", "printed"])

    @property
    def oracle_bias(self) -> Vector:
        """The bias of the method MEAN: `oracle_scale` times the mean of the weights."""
        return np.asarray(self.oracle_scale * self.mean, np.float64)

    def _labels(
        self,
        X: NDArray[np.float64],
        weights: NDArray[np.float64],
        owner: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Vector:
        reachable = np.linalg.norm(weights, axis=1)
        if np.any(reachable <= self.margin):
            raise ValueError(
                f"margin: {self.margin:g} is out of reach of a task whose weights have norm "
                f"{reachable.min():g}; use a smaller margin or a larger center"
            )
        signal = _row_products(X, weights[owner])
        while len(close := np.flatnonzero(np.abs(signal) < self.margin)):
            X[close] = _on_sphere(len(close), self.n_features, rng)
            signal[close] = _row_products(X[close], weights[owner[close]])
        steep = self.label_model == "steep"
        with quietly():  # odds that overflow are certain
            odds = np.exp(-10.0 * signal) if steep else 10.0 * np.exp(-signal)
        return np.where(rng.random(len(signal)) * (1.0 + odds) < 1.0, 1.0, -1.0)


def _on_sphere(count: int, d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    X = rng.standard_normal((count, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def _row_products(X: NDArray[np.float64], W: NDArray[np.float64]) -> Vector:
    return np.asarray(np.einsum("id,id->i", X, W), np.float64)
