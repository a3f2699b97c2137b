r"""A bias that is given: prescribed parameters, and bounds that hold in expectation.

Throughout, inputs satisfy :math:`\|x\| \le R` (`radius`), the loss is L-Lipschitz
(`lipschitz`), a task has n rows, T tasks are seen, :math:`m` is the mean of the tasks'
weights and :math:`\mathrm{Var}_h^2 = \frac12 E\|w_\mu - h\|^2`. Bounds are on the expected
excess transfer risk: how much worse than knowing every task's best weights.
Where the printed paper is wrong, the docstring gives the corrected statement and says so.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from headstart._core.checks import (
    as_floats,
    check_bias,
    check_choice,
    check_count,
    check_size,
)

INNER, MOST = ["sgd", "erm"], 2**62
PREDICTORS = ["average", "suffix", "poly"]


class Prescription(NamedTuple):
    """Parameters the theory prescribes, and the bound that holds with them.

    Attributes
    ----------
    reg : within-task regularisation
    step : meta step size, None where the bias is fixed
    bound : on the expected excess transfer risk
    """

    reg: float
    step: float | None
    bound: float


def var_h(weights: ArrayLike, bias: ArrayLike) -> float:
    r""":math:`\mathrm{Var}_h = \sqrt{\frac12\,\mathrm{mean}_t \|w_t - h\|^2}` of tasks' weights.

    This is a norm over all coordinates: tasks with independent coordinates of standard deviation
    `task_std` have :math:`\mathrm{Var}_m = \mathtt{task\_std}\sqrt{d/2}`. (The paper's
    "standard deviation Var_m = 1" is ``task_std = 1``, that is Var_m = 3.87 for d = 30.)

    Examples
    --------
    >>> var_h([[1.0, 0.0], [-1.0, 0.0]], bias=[0.0, 0.0]) ** 2
    0.5000000000000001
    """
    if (tasks := as_floats("weights", weights, 2).astype(np.float64)).size == 0:
        raise ValueError(f"weights: expected shape (tasks, d), found {tasks.shape}")
    h = check_bias("bias", bias, tasks.shape[1])
    return float(np.sqrt(0.5 * np.mean(np.sum(np.square(tasks - h), axis=1))))


def sgd_regret(
    n: int,
    reg: float,
    radius: float = 1.0,
    lipschitz: float = 1.0,
    predictor: str = "average",
) -> float:
    r"""How much worse than the best weights a predictor of Algorithm 1 is expected to be.

    ========= =====================================================================
    predictor bound
    ========= =====================================================================
    average   :math:`c_{n,\lambda} = 2R^2L^2(\log n + 1)/(\lambda n)`
    suffix    :math:`2R^2L^2(1 + H_n - H_m)/(\lambda(n - m))`, without the 1 for m = 0
    poly      :math:`8R^2L^2/(\lambda(n + 1))`
    ========= =====================================================================

    The first is Proposition 1 of the paper, and a bound on the regret of Algorithm 1 for every
    sample too. The others have no logarithm: :math:`H_n - H_m < \log 2 + 1/n` for
    :math:`m = \lfloor n/2\rfloor`. They hold for rows drawn independently.

    Notes
    -----
    Let :math:`F(w) = \mathcal R_\mu(w) + \frac\lambda2\|w-h\|^2`, w its minimiser and
    :math:`D_k = E\|w_k - w\|^2`; steps are :math:`1/(k\lambda)` along :math:`s_k` with
    :math:`\|s_k\| \le G = 2LR`. Strong convexity gives

    .. math:: E F(w_k) - F(w) \le \tfrac{\lambda(k-1)}2 D_k - \tfrac{\lambda k}2 D_{k+1}
              + \tfrac{G^2}{2\lambda k},
              \qquad D_{k+1} \le (1 - \tfrac2k)D_k + \tfrac{G^2}{\lambda^2k^2},

    and by the second :math:`kD_k \le G^2/\lambda^2` for all k but 2, and :math:`D_2` is at most
    that. *suffix*: sum the first over k = m+1..n; all but the first :math:`D` cancel, and
    :math:`\frac{\lambda m}2D_{m+1} \le \frac{G^2}{2\lambda}`. *poly*: times k, over all k; what is
    left are :math:`\frac{\lambda k}2D_{k+1} \le \frac{G^2}{2\lambda}`, so that the sum is at most
    :math:`nG^2/\lambda`, to be divided by n(n+1)/2.

    Examples
    --------
    >>> sgd_regret(n=1, reg=2.0)
    1.0
    >>> print(sgd_regret(1000, 1.0) > sgd_regret(1000, 1.0, predictor="poly"))
    True
    """
    n, lam, RL = task_terms(n, reg, radius, lipschitz)
    return RL**2 * within_term(n, predictor) / lam


def erm_generalisation(n: int, reg: float, radius: float = 1.0, lipschitz: float = 1.0) -> float:
    r"""Expected risk minus empirical risk of the exact solution: :math:`R^2L^2/(\lambda n)`.

    The paper derives this from a replace-one stability with the same constant, which is false
    (see `erm_stability`); the inequality in expectation follows instead by leaving one row out.
    """
    n, lam, RL = task_terms(n, reg, radius, lipschitz)
    return RL**2 / (lam * n)


def erm_stability(n: int, reg: float, radius: float = 1.0, lipschitz: float = 1.0) -> float:
    r"""How far the exact weights can move when one row is replaced: :math:`2LR/(\lambda n)`.

    The paper prints half of it: replacing a row changes *two* losses, as n = 1 shows.

    Examples
    --------
    >>> erm_stability(n=10, reg=1.0)
    0.2
    """
    n, lam, RL = task_terms(n, reg, radius, lipschitz)
    return 2.0 * RL / (lam * n)


def fixed_bias_bound(
    reg: float,
    n: int,
    var_h: float,
    inner: str = "sgd",
    radius: float = 1.0,
    lipschitz: float = 1.0,
    predictor: str = "average",
) -> float:
    r"""The bound for a fixed bias before reg is chosen.

    The within-task term, `sgd_regret` or `erm_generalisation`, plus
    :math:`\lambda\mathrm{Var}_h^2`.
    """
    n, lam, RL = task_terms(n, reg, radius, lipschitz)
    within = RL**2 * within_term(n, predictor, exact=is_exact(inner)) / lam
    return within + lam * check_size("var_h", var_h) ** 2


def fixed_bias(
    n: int,
    var_h: float,
    inner: str = "sgd",
    radius: float = 1.0,
    lipschitz: float = 1.0,
    predictor: str = "average",
) -> Prescription:
    r"""Theorem for a fixed bias h: the reg that minimises `fixed_bias_bound`.

    ===== ================================================== ==================================================
    inner reg                                                bound
    ===== ================================================== ==================================================
    sgd   :math:`(RL/\mathrm{Var}_h)\sqrt{2(\log n+1)/n}`    :math:`2\mathrm{Var}_h RL\sqrt{2(\log n+1)/n}`
    erm   :math:`(RL/\mathrm{Var}_h)\sqrt{1/n}`              :math:`2\mathrm{Var}_h RL\sqrt{1/n}`
    ===== ================================================== ==================================================

    The row of sgd is that of the predictor ``"average"``; with another, the square root is that of
    :math:`\lambda` times its `sgd_regret`.

    Independent task learning is the case h = 0 (give Var_0), the oracle the case h = m
    (give Var_m): the corollary of the paper. reg falls as :math:`1/\sqrt n`, not as 1/n.

    Examples
    --------
    >>> fixed_bias(n=100, var_h=0.5, inner="erm")
    Prescription(reg=0.2, step=None, bound=0.1)
    """  # noqa: E501
    V = check_size("var_h", var_h)
    n, _, RL = task_terms(n, 1.0, radius, lipschitz)
    rate = math.sqrt(within_term(n, predictor, exact=is_exact(inner)))
    return Prescription(RL * rate / V, None, 2.0 * V * RL * rate)


def task_terms(n: int, reg: float, radius: float, lipschitz: float) -> tuple[int, float, float]:
    """n, reg and ``R L``, checked."""
    RL = check_size("radius", radius) * check_size("lipschitz", lipschitz)
    return check_count("n", n, at_most=MOST), check_size("reg", reg), RL


def within_term(n: int, predictor: str = "average", *, exact: bool = False) -> float:
    """The within-task term times reg, over ``(R L)^2``."""
    check_choice("predictor", predictor, PREDICTORS)
    if exact:
        return 1.0 / n
    if predictor == "poly":
        return 8.0 / (n + 1.0)
    if predictor == "average":
        return 2.0 * (math.log(n) + 1.0) / n
    half = n // 2
    return 2.0 * ((half > 0) + _harmonic(n) - _harmonic(half)) / (n - half)


def _harmonic(n: int) -> float:
    """The sum of 1/i for i up to n."""
    return float(digamma(n + 1.0)) + np.euler_gamma


def is_exact(inner: str) -> bool:
    """Whether tasks are solved exactly."""
    return check_choice("inner", inner, INNER) == "erm"
