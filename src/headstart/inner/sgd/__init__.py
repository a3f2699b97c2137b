r"""Within-task stochastic gradient descent toward a bias: Algorithm 1 of the paper.

From ``w_1 = h``, row k gives the subgradient ``u_k`` of its loss at ``<x_k, w_k>`` and

.. math:: w_{k+1} = w_k - \frac{1}{k\lambda}\bigl(u_k x_k + \lambda(w_k - h)\bigr)
          = h - \frac{1}{k\lambda}\sum_{i \le k} u_i x_i .

The kernels use the second form: they keep ``S = sum u_i x_i`` and need no iterate. With
:math:`n` in the place of :math:`k` it is the algorithm of constant steps,
:math:`w_{k+1} = w_k - u_k x_k/(n\lambda)`, so that both are one kernel.
Every output is ``h - X^T a`` for some ``a`` proportional to the subgradients, which
`averaging` gives for each predictor.
"""

from headstart.inner.sgd.batch import sgd_batch
from headstart.inner.sgd.one_pass import (
    PREDICTORS,
    SGDResult,
    biased_sgd,
    sgd_pass,
    sgd_weights,
    weights_from_dual,
)
from headstart.inner.sgd.stream import SGDState

__all__ = [
    "PREDICTORS",
    "SGDResult",
    "SGDState",
    "biased_sgd",
    "sgd_batch",
    "sgd_pass",
    "sgd_weights",
    "weights_from_dual",
]
