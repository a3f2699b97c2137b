"""The seven losses: value, subgradient, conjugate, prox of the conjugate.

Every loss is a convex Lipschitz function ``phi`` of one number ``s``:

* regression losses, of the residual: ``l(z, y) = phi(z - y)``, so ``l*(u) = u y + phi*(u)``;
* classification losses, of the margin: ``l(z, y) = phi(y z)``, so ``l*(u) = phi*(y u)``,
  labels being -1 and +1.

The compiled functions in `scalar` take the loss as an integer code and its one parameter
and know only ``phi``; `Loss` is the face that adds labels, arrays and names.

**Kinks.** Where ``phi`` has a corner its subdifferential contains 0, and 0 is the
subgradient taken: absolute and pinball at residual 0, epsilon-insensitive at
``|residual| = epsilon``, hinge at margin 1. (The paper prints the hinge's
subdifferential at margin 1 as ``[-1, 1]{-y}``; it is ``[0, 1]{-y}``.)
"""

from headstart.losses.loss import (
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Pinball,
    SmoothedHinge,
    get_loss,
)
from headstart.losses.scalar import Objective

__all__ = [
    "LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Objective",
    "Pinball",
    "SmoothedHinge",
    "get_loss",
]
