"""What a fitted `MetaRegressor` or `MetaClassifier` tells of what it has learned."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from headstart._checks import FloatArray, check_count, check_number
from headstart.estimators.base import Estimator
from headstart.estimators.known import InMemory, Stored
from headstart.online import (
    AUTO,
    FOLLOW,
    GRADIENTS,
    REACH,
    STEPS,
    Pace,
    leading_step,
    sureness,
)


class Candidate(NamedTuple):
    """A candidate for reg, the loss before seeing a row, a mean over tasks, and if it leads."""

    reg: float
    loss: float
    chosen: bool


class Learned(Estimator):
    """The bias, what was chosen on the way, and the own weights of every entity."""

    step: float | str
    task_size: int | None
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _known: InMemory | Stored

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    @property
    def bias_(self) -> FloatArray:
        """The learned starting point, one number for each feature."""
        return self._start()[:-1]

    @property
    def intercept_(self) -> float:
        """The learned starting point of the intercept; 0 without one."""
        return float(self._start()[-1])

    @property
    def reg_(self) -> float:
        """The regularisation in use: `reg`, or if that is chosen or steps are constant, n times it.

        That many rows would weigh as much as the bias does: in a task of n rows the paper's
        reg is ``reg_ / n``.
        """
        check_is_fitted(self)
        tuning = self._known.tuning
        if tuning is None:
            return float(self.reg)
        step = leading_step(self._known.bias, tuning, self._pace(moving_on=True))
        return 1.0 / max(step, 1e-300)  # 0 where the bias has made no error yet

    @property
    def step_(self) -> float:
        """The meta step size in use: `step`, or the newest one if it is chosen."""
        check_is_fitted(self)
        sums = self._known.bias.sums
        if self.step != "auto":
            return float(self.step)
        return float(sums[REACH] / np.sqrt(sums[GRADIENTS])) if sums[GRADIENTS] > 0.0 else 0.0

    @property
    def tuning_(self) -> list[Candidate]:
        """The candidates for reg with what they lost; empty if reg was given."""
        check_is_fitted(self)
        known = self._known
        if known.tuning is None or known.tuning.given[0] > 0.0:
            return []
        best = int(known.tuning.lead[0])
        relative = known.tuning.kappas[best] / known.tuning.kappas
        return [
            Candidate(float(self.reg_ * ratio), float(loss), k == best)
            for k, (ratio, loss) in enumerate(zip(relative, known.tuning.losses, strict=True))
        ]

    @property
    def reg_sureness_(self) -> float:
        """Probability that the chosen reg is better than the next best; 1 if reg was given."""
        check_is_fitted(self)
        known = self._known
        return 1.0 if known.tuning is None else sureness(known.tuning)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        told = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__() or self._known.bias.counts[STEPS] == 0:
            return told
        chosen = f"reg {self.reg_:.3g}"
        if self._is_tuned():
            chosen += f" chosen, {100.0 * self.reg_sureness_:.0f} % sure"
        return f"{told} <{self.n_tasks_} tasks, {chosen}>"

    @property
    def n_tasks_(self) -> int:
        """Number of meta-gradients the bias has taken: one a task and pass."""
        check_is_fitted(self)
        return int(self._known.bias.counts[STEPS])

    @property
    def ids_(self) -> list[Hashable]:
        """The ids of all entities with own weights."""
        check_is_fitted(self)
        return self._known.index().keys

    def bias_by_feature(self) -> dict[str, float]:
        """The bias by feature name: as in the data frame of `fit`, or x0, x1, ..."""
        names = getattr(self, "feature_names_in_", None)
        named = [f"x{j}" for j in range(self.n_features_in_)] if names is None else names
        return dict(zip(map(str, named), self.bias_.tolist(), strict=True))

    def weights_of(self, id: Hashable) -> FloatArray:  # noqa: A002
        """The own weights of an entity, one for each feature; KeyError if it is not known."""
        return self._own(id)[:-1]

    def intercept_of(self, id: Hashable) -> float:  # noqa: A002
        """The own intercept of an entity."""
        return float(self._own(id)[-1])

    def _own(self, key: Hashable) -> FloatArray:
        check_is_fitted(self)
        (position,) = self._known.find([key])
        if position < 0:
            raise KeyError(f"{key!r} is no known id; unknown ones start from bias_, see adapt")
        weights, (place,) = self._known.weights(np.array([position]))
        own: FloatArray = weights[place].copy()
        return own

    def _start(self) -> FloatArray:
        check_is_fitted(self)
        return self._known.bias.mean.astype(self._known.dtype)

    def _pace(self, *, moving_on: bool) -> Pace:
        size = 0 if self.task_size is None else check_count("task_size", self.task_size)
        step = AUTO if self.step == "auto" else _number("step", self.step, at_least=0.0)
        if self.inner == "erm" and (step == AUTO or self.reg == "auto"):
            raise ValueError("inner: exact solutions need numbers for reg and step, found 'auto'")
        return Pace(step, size, moving_on, FOLLOW if self.fit_intercept else 0.0)

    def _is_tuned(self) -> bool:
        return isinstance(self.reg, str) and self.reg == "auto"


def _number(name: str, value: float | str, *, at_least: float) -> float:
    if isinstance(value, str):
        raise ValueError(f"{name}: expected a number >= {at_least:g} or 'auto', found {value!r}")
    return check_number(name, value, at_least=at_least)
