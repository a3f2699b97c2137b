"""The losses by name, and the built-in ones by code."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from headstart._core.checks import check_choice
from headstart.losses.classification import Hinge, Logistic, SmoothedHinge
from headstart.losses.loss import Loss
from headstart.losses.regression import Absolute, EpsilonInsensitive, Huber, Pinball, Squared
from headstart.losses.switch import CODES

# A loss's place here is its code inside kernels.
BUILT_IN: tuple[type[Loss], ...] = (
    Absolute,
    EpsilonInsensitive,
    Pinball,
    Huber,
    Squared,
    Hinge,
    SmoothedHinge,
    Logistic,
)
CODES.update((loss, code) for code, loss in enumerate(BUILT_IN))
LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in BUILT_IN}

L = TypeVar("L", bound=type[Loss])


def register_loss(loss: L) -> L:
    """Let a loss of one's own be called by its name; a decorator of the class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register_loss
    ... @dataclass(frozen=True)
    ... class Cosh(Loss):
    ...     name = "cosh"
    ...     @staticmethod
    ...     def phi(s, a, b):
    ...         return abs(s) + math.log1p(math.exp(-2.0 * abs(s))) - math.log(2.0)
    ...     @staticmethod
    ...     def slope(s, a, b):
    ...         return math.tanh(s)
    >>> import math
    >>> print(get_loss("cosh").value(1.0, 0.0).round(4))
    0.4338
    >>> del LOSSES["cosh"]
    """
    _check_class(loss)
    if LOSSES.get(loss.name, loss) is not loss:
        raise ValueError(f"name: there is another loss called {loss.name!r}")
    LOSSES[loss.name] = loss
    return loss


def get_loss(loss: str | Loss) -> Loss:
    """The loss of that name with its default parameters, or the loss itself.

    Examples
    --------
    >>> get_loss("pinball")
    Pinball(tau=0.5)
    """
    if isinstance(loss, Loss):
        _check_class(type(loss))
        return loss
    kind = LOSSES[check_choice("loss", loss, list(LOSSES), "or a Loss instance")]
    _check_class(kind)
    return kind()


def _check_class(loss: type[Loss]) -> None:
    if not (isinstance(loss, type) and issubclass(loss, Loss)) or loss is Loss:
        raise TypeError(
            f"loss: expected a subclass of Loss, found {getattr(loss, '__name__', loss)}"
        )
    if not hasattr(loss, "name"):
        raise TypeError(f"loss: {loss.__name__} has no name")
    if not hasattr(loss, "phi"):
        raise TypeError(f"loss: {loss.__name__} has no part 'phi', the loss of a score")
    if "__init__" in vars(loss) and "__dataclass_fields__" not in vars(loss):
        raise TypeError(
            f"loss: {loss.__name__} has an __init__ of its own; make it a frozen dataclass whose "
            "fields are its parameters"
        )
    if len(fields(loss)) > 2:
        raise TypeError(
            f"loss: {loss.__name__} has {len(fields(loss))} parameters, and its parts take two"
        )
