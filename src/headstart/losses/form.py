"""What kernels see of a loss: an integer code, its parameters and the domain of its conjugate.

numba keeps the machine code of a choice between integers on disk and loads it in milliseconds;
function arguments and closures would be compiled anew in every process.
"""

from __future__ import annotations

from typing import NamedTuple

# Codes that kernels name: places in `names.BUILT_IN`.
ABSOLUTE, SQUARED, HINGE = 0, 4, 5
OWN = -1  # the code of every loss that is not built in

# The parts of a loss and their arguments, which its two parameters a and b follow.
PARTS: dict[str, tuple[str, ...]] = {
    "phi": ("s",),
    "slope": ("s",),
    "star": ("u",),
    "star_slope": ("u",),
    "prox": ("eta", "v"),
    "prox_slope": ("eta", "u"),
    "quadratic": ("mean", "variance"),
}
RESULTS = {"quadratic": 3}  # how many numbers a part returns, where it is not one

# The order of the addresses in the table of an own loss: one function for each number that a
# part returns, because a C function returns one.
ADDRESSES = [(name, k) for name in PARTS for k in range(RESULTS.get(name, 1))]


class Form(NamedTuple):
    """What kernels see of a loss.

    Attributes
    ----------
    code : of a built-in loss, else `OWN`
    a, b : its parameters; 0 where it has fewer
    margin : whether it is a function of ``y z``, else of ``z - y``
    lower, upper : the ends of the conjugate's domain
    table : address of the table of addresses of an own loss's parts; 0 for a built-in loss
    """

    code: int
    a: float
    b: float
    margin: bool
    lower: float
    upper: float
    table: int


# The paper's two losses as constants: what a compiled loop knows beforehand it need not ask of
# every number, and so it can take several at once.
ABSOLUTE_FORM = Form(ABSOLUTE, 0.0, 0.0, False, -1.0, 1.0, 0)
HINGE_FORM = Form(HINGE, 0.0, 0.0, True, -1.0, 0.0, 0)


class Objective(NamedTuple):
    """What kernels see of a task's regularised risk: reg, and the loss."""

    lam: float
    form: Form
