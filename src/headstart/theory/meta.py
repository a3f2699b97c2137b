r"""Values across tasks: the meta-objective, its gradient, and what Algorithm 2 guarantees of both.

The meta-objective of a task is :math:`\mathcal L_Z(h) = \min_w \Phi_h(w)`, the least of
`primal_value`. It is convex, :math:`\lambda`-smooth, and has the gradient
:math:`-\lambda(w_h - h)` with :math:`w_h` the exact solution. All here is exact up to the solver's
duality gap, and holds for every sample and every sequence of tasks: nothing is random.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import Vector, check_bias, check_choice, check_size
from headstart.inner import get_inner
from headstart.inner.adapt import task_weights
from headstart.inner.erm import biased_erm
from headstart.inner.sgd import biased_sgd
from headstart.losses import Loss, get_loss
from headstart.meta import learn_bias
from headstart.tasks import Tasks, as_task_set
from headstart.theory.values import certificate, last_distance, primal_value

TEACHERS = ["sgd", "erm"]


class GradientError(NamedTuple):
    r"""How far the meta-gradient of one pass is from the exact one, and how far it can be.

    Attributes
    ----------
    error : :math:`\|\nabla\mathcal L_Z(h) - \hat\nabla\|`
    epsilon : the `certificate`, at the exact solution
    bound : :math:`\sqrt{2\lambda\varepsilon}`, which the error does not exceed
    """

    error: float
    epsilon: float
    bound: float


class MetaRegret(NamedTuple):
    r"""Both sides of the guarantee of Algorithm 2 for a sequence of tasks: regret <= bound.

    Attributes
    ----------
    regret : :math:`\sum_t \mathcal L_t(h_t) - \sum_t \mathcal L_t(c)`
    distance : :math:`\|c - h_1\|^2/(2\gamma)`
    gradients : :math:`\frac\gamma2\sum_t\|\hat\nabla_t\|^2`
    epsilons : :math:`\sum_t\varepsilon_t`, the certificates of the meta-gradients
    """

    regret: float
    distance: float
    gradients: float
    epsilons: float

    @property
    def bound(self) -> float:
        """The right side: the sum of its three terms."""
        return self.distance + self.gradients + self.epsilons


@quietly()
def meta_objective(
    tasks: Tasks, bias: ArrayLike, reg: float, loss: str | Loss = "absolute"
) -> float:
    r"""The mean over tasks of :math:`\mathcal L_Z(h) = \min_w \Phi_h(w)`, exactly.

    Examples
    --------
    >>> meta_objective([([[1.0]], [3.0]), ([[1.0]], [0.0])], bias=[1.0], reg=1.0)  # 1.5 and 0.5
    1.0
    """
    task_set, lam, chosen = as_task_set(tasks), check_size("reg", reg), get_loss(loss)
    h = check_bias("bias", bias, task_set.n_features)
    W = task_weights(task_set, h, lam, chosen, inner="erm")
    values = [primal_value(X, y, w, h, lam, chosen) for (X, y), w in zip(task_set, W, strict=True)]
    return check_answer(float(np.mean(values)), "tasks, bias, reg")


@quietly()
def meta_gradient(
    tasks: Tasks,
    bias: ArrayLike,
    reg: float,
    loss: str | Loss = "absolute",
    inner: str = "erm",
) -> Vector:
    r"""The gradient of the meta-objective at h, or what Algorithm 2 takes for it.

    The mean over tasks of :math:`\lambda(h - w)`: with ``inner="erm"`` w is the exact solution,
    and this is the gradient; with ``inner="sgd"`` w is the last iterate of Algorithm 1, and it is
    an :math:`\varepsilon`-subgradient, see `certificate`. No entry is larger than LR in norm.

    Examples
    --------
    >>> meta_gradient([([[1.0]], [3.0])], bias=[1.0], reg=1.0)
    array([-1.])
    """
    task_set, lam = as_task_set(tasks), check_size("reg", reg)
    h = check_bias("bias", bias, task_set.n_features)
    check_choice("inner", inner, TEACHERS)
    W = task_weights(task_set, h, lam, loss, inner, predictor="last")
    return check_answer(np.asarray(lam * (h - W.mean(axis=0)), np.float64), "tasks, bias, reg")


@quietly()
def gradient_error(
    X: ArrayLike, y: ArrayLike, bias: ArrayLike, reg: float, loss: str | Loss = "absolute"
) -> GradientError:
    r"""How far the meta-gradient of one pass over a task is from the exact one.

    :math:`\|\nabla\mathcal L_Z(h) - \hat\nabla\|^2 \le 2\lambda\varepsilon` for every sample, with
    :math:`\varepsilon` the `certificate`.

    Examples
    --------
    >>> gradient_error([[1.0], [1.0]], [1.0, 3.0], bias=[0.0], reg=0.5)
    GradientError(error=0.5, epsilon=0.25, bound=0.5)
    """
    chosen, lam = get_loss(loss), check_size("reg", reg)
    exact = biased_erm(X, y, bias, lam, chosen)
    passed = biased_sgd(X, y, bias, lam, chosen)
    epsilon = certificate(X, y, passed.dual, bias, lam, chosen, exact.weights)
    error = lam * float(np.linalg.norm(exact.weights - passed.last))
    found = GradientError(error, epsilon, lam * last_distance(epsilon, lam))
    return check_answer(found, "X, y, bias, reg")


@quietly()
def meta_regret(
    tasks: Tasks,
    comparator: ArrayLike,
    reg: float,
    step: float,
    loss: str | Loss = "absolute",
    inner: str = "sgd",
    initial: ArrayLike | None = None,
) -> MetaRegret:
    r"""Run Algorithm 2 on a sequence of tasks, and give both sides of its guarantee.

    .. math:: \sum_t\mathcal L_t(h_t) - \sum_t\mathcal L_t(c) \le \frac{\|c-h_1\|^2}{2\gamma}
              + \frac\gamma2\sum_t\|\hat\nabla_t\|^2 + \sum_t\varepsilon_t

    for every sequence, whoever made it (an `environments.Mixture` that drifts, say), and every
    comparator c.

    Parameters
    ----------
    tasks : TaskSet, or list of pairs (X, y)
    comparator : array-like of shape (d,)
        The bias c that the biases along the way are compared with.
    reg, step, loss, inner, initial
        As in `learn_bias`; inner is ``"sgd"`` or ``"erm"``.

    Returns
    -------
    MetaRegret

    Examples
    --------
    >>> from headstart.environments import Mixture, RegressionEnvironment
    >>> ends = tuple(RegressionEnvironment(2, center=c) for c in (-4.0, 4.0))
    >>> tasks = Mixture(ends, "drift").draw(30, 5, random_state=0).tasks
    >>> found = meta_regret(tasks, comparator=[0.0, 0.0], reg=0.5, step=0.5)
    >>> print(found.regret < found.bound)
    True
    """
    task_set, lam, chosen = as_task_set(tasks), check_size("reg", reg), get_loss(loss)
    gamma, c = check_size("step", step), check_bias("comparator", comparator, task_set.n_features)
    check_choice("inner", inner, TEACHERS)
    path = learn_bias(task_set, lam, gamma, chosen, inner, initial, keep_path=True).path
    if path is None:
        raise AssertionError("keep_path keeps the path")
    regret, epsilons, exact = 0.0, 0.0, get_inner(inner).exact
    for (X, y), h in zip(task_set, path[:-1], strict=True):
        w = biased_erm(X, y, h, lam, chosen)
        w_c = biased_erm(X, y, c, lam, chosen)
        regret += primal_value(X, y, w.weights, h, lam, chosen)
        regret -= primal_value(X, y, w_c.weights, c, lam, chosen)
        dual = len(y) * w.dual if exact else biased_sgd(X, y, h, lam, chosen).dual
        epsilons += certificate(X, y, dual, h, lam, chosen, w.weights)
    gradients = np.sum(np.square(np.diff(path, axis=0))) / (2.0 * gamma)  # steps are gamma times
    distance = np.sum(np.square(c - path[0])) / (2.0 * gamma)
    found = MetaRegret(regret, float(distance), float(gradients), epsilons)
    return check_answer(found, "tasks, comparator, reg, step")
