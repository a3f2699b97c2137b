"""A loss with its name, parameters and labels, on arrays; and what each algorithm needs of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from headstart._core.answers import check_answer
from headstart._core.checks import as_numbers, check_reg, first_row, together
from headstart.losses.form import OWN, PARTS, SQUARED, Form, Objective
from headstart.losses.many import map_part, quadratics
from headstart.losses.own import table_of
from headstart.losses.switch import CODES

Points = NDArray[np.float64]
NODES, SHARES = np.polynomial.legendre.leggauss(64)  # for integrals over residuals
HALVINGS = 0.5 ** np.arange(16, -1, -1)
NORMAL, NORMAL_SHARES = np.polynomial.hermite_e.hermegauss(32)

SGD = ("slope",)
EXACT = ("phi", "slope", "star", "star_slope", "prox", "prox_slope")
NEEDS = {
    "sgd": ("stochastic gradient descent", SGD),
    "constant": ("stochastic gradient descent", SGD),
    "erm": ("the exact solver", EXACT),
    "posterior": ("the posterior", ("quadratic",)),
    "own": ("an algorithm of one's own", ()),
}


@dataclass(frozen=True)
class Loss:
    r"""A convex loss ``l(z, y)`` of a prediction z and a label y.

    Use a name (``"huber"``) wherever the default parameter will do, or an instance of one
    of the subclasses: `Squared`, `Absolute`, `EpsilonInsensitive`, `Pinball`, `Huber` for
    regression, `Hinge`, `SmoothedHinge`, `Logistic` for labels -1 and +1.

    **A loss of one's own** is a subclass: a frozen dataclass with a `name`, at most two fields,
    which are its parameters a and b, `binary` for labels -1 and +1, the `domain` of its
    conjugate, that is the range of its slopes, and these parts as static methods of numbers,
    written so that numba can compile them. An algorithm for which a part is missing refuses.

    ============ ========================== ====================================================
    part         arguments, then a and b    what it is, s being ``z - y``, or ``y z`` if `binary`
    ============ ========================== ====================================================
    phi          s                          the loss
    slope        s                          its derivative, 0 at a kink
    star         u                          the conjugate inside its domain
    star_slope   u                          its derivative
    prox         eta, v                     ``argmin_u eta star(u) + (u - v)^2 / 2``
    prox_slope   eta, u                     the prox's derivative in v where its value is u
    quadratic    mean, variance             omega, t and c of the parabola
                                            ``omega (s - t)^2 / 2 + c`` that stands for phi
                                            where s has that mean and variance
    ============ ========================== ====================================================

    SGD needs `slope`, exact solutions need all but `quadratic`, the learned prior needs that.

    Examples
    --------
    >>> from headstart import Hinge, Huber
    >>> loss = Huber(delta=2.0)
    >>> loss.value([0.0, 1.0, 5.0], 0.0)
    array([0.  , 0.25, 4.  ])
    >>> loss.subgradient([0.0, 1.0, 5.0], 0.0)
    array([0. , 0.5, 1. ])
    >>> Hinge().conjugate([-0.5, 0.5], 1.0)
    array([-0.5,  inf])
    """

    name: ClassVar[str]
    binary: ClassVar[bool] = False
    bounded: ClassVar[bool] = True  # whether its parabolas are nowhere below it
    domain: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @property
    def parameters(self) -> tuple[float, float]:
        """The parameters that the parts take; 0 where there are fewer."""
        a, b = [*(float(getattr(self, f.name)) for f in fields(self)), 0.0, 0.0][:2]
        return a, b

    @property
    def form(self) -> Form:
        """What kernels see of this loss."""
        kind = type(self)
        code = CODES.get(kind, OWN)
        table = table_of(kind) if code == OWN else 0
        low, high = self.domain
        return Form(code, *self.parameters, self.binary, float(low), float(high), table)

    def regularised(self, reg: object, inner: str = "sgd") -> Objective:
        """The objective with `reg`, a number > 0, for the within-task algorithm `inner`."""
        self.check_inner(inner)
        return Objective(check_reg("reg", reg), self.form)

    def check_inner(self, inner: str) -> None:
        """Raise if a within-task algorithm cannot do with this loss."""
        algorithm, parts = NEEDS.get(inner, NEEDS["sgd"])  # what is not listed takes slopes
        missing = next((part for part in parts if not hasattr(type(self), part)), None)
        if missing is not None:
            raise ValueError(
                f"loss: {algorithm} needs the part {missing!r}, which the {self.name} loss does "
                f"not have; it is a static method {missing}({', '.join(PARTS[missing])}, a, b)"
            )
        if parts is SGD and not math.isfinite(self.lipschitz):
            raise ValueError(
                f"loss: {algorithm} needs a loss of bounded slope, and that of the {self.name} "
                "loss is not: its steps would grow with the residuals; use inner='erm', "
                "learn_prior or the huber loss"
            )

    @property
    def is_squared(self) -> bool:
        """Whether this is the squared loss itself, whose quadratic form never changes."""
        return CODES.get(type(self)) == SQUARED

    @property
    def lipschitz(self) -> float:
        """The smallest L with ``|l(z, y) - l(z', y)| <= L |z - z'|``; infinite if there is none."""
        low, high = self.domain
        return max(-low, high)

    def value(self, prediction: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
        """``l(prediction, target)``, elementwise."""
        return check_answer(self._apply("phi", prediction, target), "prediction, target")

    def subgradient(self, prediction: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
        """The chosen element of the subdifferential in the prediction: 0 at kinks."""
        return self._apply("slope", prediction, target)

    def conjugate(self, dual: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
        """``l*(u) = sup_z u z - l(z, y)``, ``inf`` outside its domain.

        A point that misses the domain by the rounding of its own float type counts as its end.
        """
        u = as_numbers("dual", dual)
        rounding = np.finfo(np.float32 if u.dtype == np.float32 else np.float64)
        return self._apply("star", u, target, 4.0 * float(rounding.eps), "dual")

    def prox_conjugate(
        self, point: ArrayLike, target: ArrayLike, eta: float = 1.0
    ) -> NDArray[np.float64]:
        """``argmin_u eta l*(u) + (u - point)^2 / 2``, elementwise, for ``eta > 0``."""
        found = self._apply("prox", point, target, check_reg("eta", eta), "point")
        return check_answer(found, "point, target, eta")

    def quadratic_form(
        self, mean: ArrayLike, variance: ArrayLike, target: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        r"""The parabola that stands for the loss of a prediction of this mean and variance.

        :math:`\omega > 0`, :math:`\tau` and c of :math:`\frac\omega2(z - \tau)^2 + c`,
        elementwise. For all losses but the logistic one it is nowhere below the loss and
        touches it, at two points opposite to each other, such that its expectation is as small
        as it gets: learning with it raises a lower bound of the likelihood. For the logistic
        loss it is the one that has the loss's expectation and the slopes of that in mean and
        variance: learning with it finds the best normal distribution for a task's weights.

        Examples
        --------
        >>> from headstart import Absolute
        >>> omega, tau, c = Absolute().quadratic_form(mean=2.0, variance=0.0, target=0.0)
        >>> print(omega, tau, c)
        0.5 0.0 1.0
        """
        self.check_inner("posterior")
        points = together(mean=mean, variance=variance, target=target)
        if np.any(points[1] < 0.0):
            raise ValueError(f"variance: expected numbers >= 0, found {points[1].min():g}")
        m, v, y = (p.ravel() for p in points)
        self.check_labels(y)
        omega, t, c = (row.reshape(points[0].shape) for row in quadratics(self.form, m, v, y))
        return check_answer((omega, t, c), "mean, variance, target")

    def fit_noise(self, mean_loss: float) -> float:
        r"""The noise b under which rows would have this mean loss.

        Rows have the density :math:`e^{-\varphi(r)/b}/Z(b)`, and b is where the likelihood
        :math:`-L/b - \log Z(b)` is largest: where the expected loss is L.
        """
        low = high = mean_loss
        for _ in range(200):  # doublings that reach from the least to the largest float and back
            if self.mean_loss(low) <= mean_loss:
                break
            low *= 0.5
        for _ in range(200):
            if self.mean_loss(high) >= mean_loss:
                break
            high *= 2.0
        return float(brentq(lambda b: self.mean_loss(b) - mean_loss, low, high))

    def mean_loss(self, noise: float) -> float:
        """The expected loss of residuals that have the density ``exp(-phi / noise) / Z``."""
        return self._moment(noise, self._values)

    def normal_loss(self, variance: float) -> float:
        """The expected loss of normal residuals: 32 points, for which no kernel is compiled."""
        phi: Callable[..., float] = getattr(type(self), "phi")  # noqa: B009 - a part, see PARTS
        losses = [phi(math.sqrt(variance) * node, *self.parameters) for node in NORMAL]
        return float(NORMAL_SHARES @ losses / NORMAL_SHARES.sum())

    def log_normaliser(self, noise: float) -> float:
        """``log Z``, Z being the integral of ``exp(-phi / noise)``."""
        return math.log(float(np.sum(self._grid(noise)[1])))

    def noise_variance(self, noise: float) -> float:
        """The mean square of residuals that have the density ``exp(-phi / noise) / Z``."""
        return self._moment(noise, lambda r: r * r)

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
        self,
        part: str,
        points: ArrayLike,
        labels: ArrayLike,
        extra: float = 0.0,
        name: str = "prediction",
    ) -> NDArray[np.float64]:
        if not hasattr(type(self), part):
            raise ValueError(f"loss: the {self.name} loss does not have the part {part!r}")
        p, y = together(**{name: points, "target": labels})
        self.check_labels(y.ravel())
        out = map_part(list(PARTS).index(part), self.form, p.ravel(), y.ravel(), extra)
        return out.reshape(p.shape)

    def _values(self, r: Points) -> Points:
        """The losses of residuals, which may be infinite."""
        zeros = np.zeros(r.size)
        out = map_part(list(PARTS).index("phi"), self.form, r.ravel(), zeros, 0.0)
        return np.asarray(out.reshape(r.shape))

    def _grid(self, noise: float) -> tuple[Points, Points]:
        """Residuals and their weights in an integral of the density ``exp(-phi / noise)``.

        Gauss-Legendre on intervals halving toward 0, where a loss may have its corner or bend
        sharply. The farthest end is where the density is below 1e-17.
        """
        reach = int(math.log2(1e300) - math.log2(noise))
        ends = np.ldexp(noise, np.arange(max(reach, 1)))
        residuals, weights = [], []
        for side in (ends, -ends):
            far = self._values(side) >= 40.0 * noise
            cuts = np.append(0.0, side[int(np.argmax(far)) if far.any() else -1] * HALVINGS)
            half = np.diff(cuts)[:, None] / 2.0
            residuals.append(cuts[:-1, None] + half * (1.0 + NODES))
            weights.append(abs(half) * SHARES)
        r = np.array(residuals)
        return r, np.array(weights) * np.exp(-self._values(r) / noise)

    def _moment(self, noise: float, function: Callable[[Points], Points]) -> float:
        r, weights = self._grid(noise)
        return float(np.sum(function(r) * weights) / np.sum(weights))
