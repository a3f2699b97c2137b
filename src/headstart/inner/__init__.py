"""Within-task algorithms: from a starting point and the rows of a task to its weights."""

from headstart.inner.algorithm import ALGORITHMS, INNER, Inner, Visit, get_inner
from headstart.inner.gradient import add_gradient, sum_gradients

__all__ = [
    "ALGORITHMS",
    "INNER",
    "Inner",
    "Visit",
    "add_gradient",
    "get_inner",
    "sum_gradients",
]
