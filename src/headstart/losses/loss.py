"""The losses with their names, parameters and labels, on arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._checks import check_choice, check_number, first_row
from headstart._jit import kernel
from headstart.losses.scalar import (
    ABSOLUTE,
    EPSILON_INSENSITIVE,
    FIRST_MARGIN_CODE,
    HINGE,
    HUBER,
    LOGISTIC,
    PINBALL,
    SMOOTHED_HINGE,
    Objective,
    conjugate,
    lower,
    phi,
    prox_conjugate,
    score,
    sign_of,
    slope,
    upper,
)

VALUE, SUBGRADIENT, CONJUGATE, PROX = range(4)


@kernel
def _map(
    what: int,
    code: int,
    c: float,
    points: NDArray[np.float64],
    labels: NDArray[np.float64],
    extra: float,
) -> NDArray[np.float64]:
    out = np.empty(points.size)
    for i in range(points.size):
        v, y = points[i], labels[i]
        sign = sign_of(code, y)
        offset = y if code < FIRST_MARGIN_CODE else 0.0
        if what == VALUE:
            out[i] = phi(code, c, score(code, v, y))
        elif what == SUBGRADIENT:
            out[i] = sign * slope(code, c, score(code, v, y))
        elif what == CONJUGATE:
            b = sign * v
            end = min(max(b, lower(code, c)), upper(code, c))
            out[i] = v * offset + conjugate(code, c, end if abs(b - end) <= extra else b)
        else:
            out[i] = sign * prox_conjugate(code, c, extra, sign * v - extra * offset)
    return out


@dataclass(frozen=True)
class Loss:
    """A convex Lipschitz loss ``l(z, y)`` of a prediction z and a label y.

    Use a name (``"huber"``) wherever the default parameter will do, or an instance of one
    of the subclasses: `Absolute`, `EpsilonInsensitive`, `Pinball`, `Huber` for regression,
    `Hinge`, `SmoothedHinge`, `Logistic` for labels -1 and +1.

    Examples
    --------
    >>> loss = Huber(delta=2.0)
    >>> loss.value([0.0, 1.0, 5.0], 0.0)
    array([0.  , 0.25, 4.  ])
    >>> loss.subgradient([0.0, 1.0, 5.0], 0.0)
    array([0. , 0.5, 1. ])
    >>> Hinge().conjugate([-0.5, 0.5], 1.0)
    array([-0.5,  inf])
    """

    name: ClassVar[str]
    code: ClassVar[int]

    @property
    def parameter(self) -> float:
        """The one parameter the compiled functions take; 0 where there is none."""
        names = fields(self)
        return float(getattr(self, names[0].name)) if names else 0.0

    def regularised(self, reg: object) -> Objective:
        """The objective of this loss with `reg`, checked to be a number > 0."""
        return Objective(check_number("reg", reg, above=0.0), self.code, self.parameter)

    @property
    def binary(self) -> bool:
        """Whether labels must be -1 or +1; otherwise any finite number will do."""
        return self.code >= FIRST_MARGIN_CODE

    @property
    def lipschitz(self) -> float:
        """The smallest L with ``|l(z, y) - l(z', y)| <= L |z - z'|``."""
        return max(-lower(self.code, self.parameter), upper(self.code, self.parameter))

    def value(self, prediction: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
        """``l(prediction, target)``, elementwise."""
        return self._apply(VALUE, prediction, target)

    def subgradient(self, prediction: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
        """The chosen element of the subdifferential in the prediction: 0 at kinks."""
        return self._apply(SUBGRADIENT, prediction, target)

    def conjugate(self, dual: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
        """``l*(u) = sup_z u z - l(z, y)``, ``inf`` outside its domain.

        A point that misses the domain by the rounding of its own float type counts as its end.
        """
        rounding = np.finfo(np.float32 if np.asarray(dual).dtype == np.float32 else np.float64)
        return self._apply(CONJUGATE, dual, target, 4.0 * float(rounding.eps))

    def prox_conjugate(
        self, point: ArrayLike, target: ArrayLike, eta: float = 1.0
    ) -> NDArray[np.float64]:
        """``argmin_u eta l*(u) + (u - point)^2 / 2``, elementwise, for ``eta > 0``."""
        return self._apply(PROX, point, target, check_number("eta", eta, above=0.0))

    def check_labels(
        self, y: NDArray[np.floating], place: Callable[[int], str] = "row {}".format
    ) -> None:
        """Raise if a label is outside the loss's domain; `place` tells where a row is."""
        if self.binary and (wrong := first_row(np.abs(y) != 1.0)) is not None:
            raise ValueError(
                f"y: the {self.name} loss takes labels -1 and +1, found {y[wrong]:g} "
                f"in {place(wrong)}"
            )

    def _apply(
        self, what: int, points: ArrayLike, labels: ArrayLike, extra: float = 0.0
    ) -> NDArray[np.float64]:
        p, y = np.broadcast_arrays(np.asarray(points, float), np.asarray(labels, float))
        self.check_labels(y.ravel())
        out = _map(what, self.code, self.parameter, p.ravel(), y.ravel(), extra)
        return out.reshape(p.shape)


@dataclass(frozen=True)
class Absolute(Loss):
    """``|z - y|``."""

    name = "absolute"
    code = ABSOLUTE


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """``max(|z - y| - epsilon, 0)``."""

    epsilon: float = 0.1
    name = "epsilon_insensitive"
    code = EPSILON_INSENSITIVE

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, at_least=0.0)


@dataclass(frozen=True)
class Pinball(Loss):
    """``max(tau (y - z), (tau - 1)(y - z))``, whose minimiser is the quantile `tau`."""

    tau: float = 0.5
    name = "pinball"
    code = PINBALL

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0.0, below=1.0)


@dataclass(frozen=True)
class Huber(Loss):
    """``r^2 / (2 delta)`` up to ``|r| = delta``, then ``|r| - delta / 2``, with r = z - y."""

    delta: float = 1.0
    name = "huber"
    code = HUBER

    def __post_init__(self) -> None:
        check_number("delta", self.delta, above=0.0)


@dataclass(frozen=True)
class Hinge(Loss):
    """``max(1 - y z, 0)``."""

    name = "hinge"
    code = HINGE


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with its corner rounded over a width `delta` below margin 1."""

    delta: float = 1.0
    name = "smoothed_hinge"
    code = SMOOTHED_HINGE

    def __post_init__(self) -> None:
        check_number("delta", self.delta, above=0.0)


@dataclass(frozen=True)
class Logistic(Loss):
    """``log(1 + exp(-y z))``."""

    name = "logistic"
    code = LOGISTIC


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (Absolute, EpsilonInsensitive, Pinball, Huber, Hinge, SmoothedHinge, Logistic)
}


def get_loss(loss: str | Loss) -> Loss:
    """The loss of that name with its default parameter, or the loss itself.

    Examples
    --------
    >>> get_loss("pinball")
    Pinball(tau=0.5)
    """
    if isinstance(loss, Loss) and type(loss) is not Loss:
        return loss
    return LOSSES[check_choice("loss", loss, list(LOSSES), "or a Loss instance")]()
