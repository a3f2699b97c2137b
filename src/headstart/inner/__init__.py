"""Within-task algorithms: from a starting point and the rows of a task to its weights."""

from headstart.inner.algorithm import ALGORITHMS, INNER, Compiled, Inner, Visit, get_inner
from headstart.inner.gradient import add_gradient, sum_gradients
from headstart.inner.own import InnerFunction, OwnInner, find_inner

__all__ = [
    "ALGORITHMS",
    "INNER",
    "Compiled",
    "Inner",
    "InnerFunction",
    "OwnInner",
    "Visit",
    "add_gradient",
    "find_inner",
    "get_inner",
    "sum_gradients",
]
