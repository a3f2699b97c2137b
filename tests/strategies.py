"""What the laws are tested on: every loss, small and odd shapes, ties, duplicates, outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from reference import Pass, algorithm_1

from headstart import LOSSES, EpsilonInsensitive, Huber, Loss, Pinball, SmoothedHinge
from headstart.theory import primal_value

Array = NDArray[np.float64]


LIPSCHITZ = [name for name, loss in LOSSES.items() if np.isfinite(loss().lipschitz)]


def losses(names: Sequence[str] = tuple(LOSSES)) -> st.SearchStrategy[Loss]:
    width = st.floats(1e-2, 5.0)
    return st.one_of(
        st.sampled_from([LOSSES[name]() for name in names]),
        st.builds(EpsilonInsensitive, st.floats(0.0, 2.0)),
        st.builds(Pinball, st.floats(0.05, 0.95)),
        st.builds(Huber, width),
        st.builds(SmoothedHinge, width),
    )


def regs(low: float = -6.0, high: float = 3.0) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: float(10.0**exponent))


@dataclass(frozen=True)
class Problem:
    """One task with its bias, reg and loss."""

    X: Array
    y: Array
    h: Array
    lam: float
    loss: Loss

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def lr(self) -> float:
        return self.loss.lipschitz * float(np.linalg.norm(self.X, axis=1).max())

    @cached_property
    def naive(self) -> Pass:
        return algorithm_1(
            self.X, self.y, self.h, self.lam, self.loss.name, self.loss.parameters[0]
        )

    def phi(self, w: ArrayLike) -> float:
        return primal_value(self.X, self.y, w, self.h, self.lam, self.loss)

    def online_loss(self) -> float:
        """The mean of the regularised losses paid by the iterates of Algorithm 1."""
        paid = [
            float(self.loss.value(x @ w, y)) + self.lam / 2.0 * np.sum((w - self.h) ** 2)
            for x, y, w in zip(self.X, self.y, self.naive.iterates, strict=False)
        ]
        return float(np.mean(paid))


KINDS = ["normal", "tied", "repeated", "outliers"]


@st.composite
def problems(
    draw: st.DrawFn,
    kinds: tuple[str, ...] = tuple(KINDS),
    reg: st.SearchStrategy[float] | None = None,
    names: Sequence[str] = LIPSCHITZ,
) -> Problem:
    kind = draw(st.sampled_from(kinds))
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    loss, lam = draw(losses(names)), draw(regs() if reg is None else reg)
    X, y, h = rng.normal(size=(n, d)), 2.0 * rng.normal(size=n), rng.normal(size=d)
    if kind == "tied":  # predictions fall exactly on kinks, rows may be 0
        X = rng.integers(-1, 2, (n, d)).astype(float)
        h = rng.integers(-1, 2, d).astype(float)
        y = X @ h if rng.random() < 0.5 else rng.integers(-2, 3, n).astype(float)
    elif kind == "repeated":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "outliers":
        y *= 1000.0
    if loss.binary:
        y = np.where(y > 0.0, 1.0, -1.0)
    return Problem(X, y, h, lam, loss)


def tie_free(reg: st.SearchStrategy[float] | None = None) -> st.SearchStrategy[Problem]:
    """Problems where no rounding can flip a subgradient, so that code paths can be compared."""

    def apart(p: Problem) -> bool:
        z = np.sum(p.X * p.naive.iterates[:-1], axis=1)
        s = np.abs(z * p.y - 1.0) if p.loss.binary else np.abs(z - p.y)
        kink = p.loss.parameters[0] if p.loss.name == "epsilon_insensitive" else 0.0
        return bool(np.all(np.abs(s - kink) > 1e-6 * (1.0 + np.abs(z))))

    return problems(("normal", "outliers"), reg).filter(apart)
