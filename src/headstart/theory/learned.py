r"""A bias that is learned from T tasks: prescribed parameters and bounds, as in `within`."""

from __future__ import annotations

import math

from headstart._core.checks import check_count, check_flag, check_size
from headstart.theory.within import MOST, Prescription, is_exact, task_terms, within_term


def meta_rate(
    n: int,
    n_tasks: int,
    distance: float,
    step: float,
    inner: str = "sgd",
    sharp: bool = False,
    radius: float = 1.0,
    lipschitz: float = 1.0,
) -> float:
    r"""What learning the bias costs before step is chosen.

    .. math:: \frac{D^2}{2\gamma T} + \frac{\gamma G^2}{2}

    D is the `distance` of the comparator from the initial bias and G bounds the
    meta-gradients. The paper takes :math:`G^2 = 2R^2L^2(1 + 4(\log n+1)/n)` for
    ``inner="sgd"``; the meta-gradients are convex combinations of the rows times their
    subgradients, so :math:`G = RL` always holds: ``sharp=True``, and ``inner="erm"``.
    For sgd the error of the gradients adds `sgd_regret` once more.
    """
    gradient = _gradient_bound(n, inner, sharp, radius, lipschitz)
    tasks, gamma = check_count("n_tasks", n_tasks, at_most=MOST), check_size("step", step)
    D = check_size("distance", distance, or_zero=True)
    return D**2 / (2.0 * gamma * tasks) + gamma * gradient**2 / 2.0


def learned_bias(
    n: int,
    n_tasks: int,
    var_m: float,
    distance: float,
    inner: str = "sgd",
    sharp: bool = False,
    radius: float = 1.0,
    lipschitz: float = 1.0,
    predictor: str = "average",
) -> Prescription:
    r"""Theorem for the learned bias: reg, step and bound after T tasks.

    With :math:`D = \|m - h_1\|` (`distance`) and :math:`C = 1 + 4(\log n+1)/n`:

    * sgd: reg :math:`(2RL/\mathrm{Var}_m)\sqrt{(\log n+1)/n}`, step :math:`D/(LR\sqrt{2TC})`,
      bound :math:`4\mathrm{Var}_mRL\sqrt{(\log n+1)/n} + DLR\sqrt{2C/T}`;
    * sgd, sharp: the same reg, step :math:`D/(LR\sqrt T)`, last term :math:`DLR/\sqrt T`;
    * erm: reg :math:`(RL/\mathrm{Var}_m)/\sqrt n`, step :math:`D/(LR\sqrt T)`,
      bound :math:`2\mathrm{Var}_mRL/\sqrt n + DLR/\sqrt T`.

    With another `predictor` the within-task term of sgd is its `sgd_regret` and that of the
    meta-gradients' error, which keeps its logarithm.

    Corrections. The paper prints the sgd step as :math:`\sqrt2 D/(LR\sqrt{TC})`, twice the
    minimiser of its own bound, with which the second term is 1.25 times the one claimed;
    the minimiser is used here. For erm the printed parameters are kept, but the proof
    rests on the printed stability constant: by `erm_stability` only twice the within-task
    term is proven.

    Examples
    --------
    >>> learned_bias(n=100, n_tasks=400, var_m=0.5, distance=2.0, inner="erm")
    Prescription(reg=0.2, step=0.1, bound=0.2)
    """
    gradient = _gradient_bound(n, inner, sharp, radius, lipschitz)
    V = check_size("var_m", var_m)
    tasks, D = check_count("n_tasks", n_tasks, at_most=MOST), check_size("distance", distance)
    n, _, RL = task_terms(n, 1.0, radius, lipschitz)
    within = within_term(n, predictor, exact=is_exact(inner))
    error = 0.0 if is_exact(inner) else within_term(n)  # of the meta-gradients
    rate = RL * math.sqrt(within + error)
    step = D / (gradient * math.sqrt(tasks))
    return Prescription(rate / V, step, 2.0 * V * rate + D * gradient / math.sqrt(tasks))


def conditional_bias(
    n: int,
    n_tasks: int,
    var_tau: float,
    size: float,
    side_radius: float,
    inner: str = "sgd",
    radius: float = 1.0,
    lipschitz: float = 1.0,
) -> Prescription:
    r"""Parameters and bound for a bias that depends on what is known of a task.

    A task of which s is known starts from :math:`\tau(s) = M\phi(s) + b`. By the chain rule
    :math:`\hat\nabla(\phi(s)^\top, 1)` is as good a subgradient in (M, b) as
    :math:`\hat\nabla` is at :math:`\tau(s)`, so that Algorithm 2 applies to (M, b):
    :math:`M \leftarrow M - \gamma\hat\nabla\phi(s)^\top` and
    :math:`b \leftarrow b - \gamma\hat\nabla`.
    With :math:`\mathrm{Var}_\tau^2 = \frac12E\|w_\mu - \tau(s)\|^2`, the Frobenius norm
    :math:`D = \|(M, b)\|_F` (`size`) and :math:`\|\phi(s)\| \le K` (`side_radius`):

    * reg as in `learned_bias`, with :math:`\mathrm{Var}_\tau`;
    * step :math:`D/(LR\sqrt{(1+K^2)T})`;
    * the last term of the bound is :math:`DLR\sqrt{(1+K^2)/T}`.

    s must not use the rows the task then learns from.

    Examples
    --------
    >>> conditional_bias(100, 400, var_tau=0.5, size=2.0, side_radius=0.0, inner="erm")
    Prescription(reg=0.2, step=0.1, bound=0.2)
    """
    K = check_size("side_radius", side_radius, or_zero=True)
    V, D = check_size("var_tau", var_tau), check_size("size", size)
    alone = learned_bias(n, n_tasks, V, D, inner, True, radius, lipschitz)
    n, _, RL = task_terms(n, 1.0, radius, lipschitz)
    larger, last = math.sqrt(1.0 + K**2), D * RL / math.sqrt(n_tasks)
    step = D / (RL * larger * math.sqrt(n_tasks))
    return Prescription(alone.reg, step, alone.bound + last * (larger - 1.0))


def _gradient_bound(n: int, inner: str, sharp: bool, radius: float, lipschitz: float) -> float:
    n, _, RL = task_terms(n, 1.0, radius, lipschitz)
    if is_exact(inner) | check_flag("sharp", sharp):
        return RL
    return RL * math.sqrt(2.0 * (1.0 + 4.0 * (math.log(n) + 1.0) / n))
