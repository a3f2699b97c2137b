"""The losses: value, subgradient, conjugate, prox of the conjugate, and quadratic form.

Every loss is a convex function ``phi`` of one number ``s``:

* regression losses, of the residual: ``l(z, y) = phi(z - y)``, so ``l*(u) = u y + phi*(u)``;
* classification losses, of the margin: ``l(z, y) = phi(y z)``, so ``l*(u) = phi*(y u)``,
  labels being -1 and +1.

A loss is one class, which holds all its parts; `Loss` adds labels, arrays and names, and says
how to write one's own. Kernels see a `Form` and call the functions in `scalar`.

**Kinks.** Where ``phi`` has a corner its subdifferential contains 0, and 0 is the
subgradient taken: absolute and pinball at residual 0, epsilon-insensitive at
``|residual| = epsilon``, hinge at margin 1. (The paper prints the hinge's
subdifferential at margin 1 as ``[-1, 1]{-y}``; it is ``[0, 1]{-y}``.)
"""

from headstart.losses.classification import Hinge, Logistic, SmoothedHinge
from headstart.losses.form import Form, Objective
from headstart.losses.loss import Loss
from headstart.losses.names import LOSSES, get_loss, register_loss
from headstart.losses.regression import Absolute, EpsilonInsensitive, Huber, Pinball, Squared

__all__ = [
    "LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Form",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Objective",
    "Pinball",
    "SmoothedHinge",
    "Squared",
    "get_loss",
    "register_loss",
]
