"""The methods that are compared: the paper's eight, three of today, and one's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from headstart._core.checks import check_choice
from headstart.experiments.settings import Experiment
from headstart.inner import get_inner
from headstart.inner.own import InnerFunction

NEEDS = {  # of each bias: whether it is learned with an algorithm, and used with one
    "itl": (False, True),
    "mean": (False, True),
    "ltl": (True, True),
    "pooled": (False, False),
    "ridge-ltl": (False, False),
    "prior": (False, False),
}


@dataclass(frozen=True)
class Method:
    """A bias, what it is learned with and what it is used with.

    Parameters
    ----------
    name : str
        Names it in curves, figures and files.
    bias : {"itl", "mean", "ltl"}
        0, the environment's mean, or learned; ``pooled``, ``ridge-ltl`` and ``prior`` of `METHODS`
        learn something else instead.
    inner, evaluate_with : str or callable
        The within-task algorithm that gives meta-gradients, for ``ltl`` alone, and the one that
        solves new tasks. A function of one's own is ``function(X, y, bias, reg, loss)``, as
        `learn_bias` takes it.

    Notes
    -----
    Finished pieces of work are told apart by the name and the source text of the functions, or of
    the class and its ``repr`` for an object that can be called. What they call is not looked at:
    give a method another name when that has changed.

    Examples
    --------
    >>> def stay(X, y, bias, reg, loss):
    ...     return bias, [loss.subgradient(x @ bias, label) for x, label in zip(X, y)]
    >>> Method("stay", "ltl", stay, "sgd").bias
    'ltl'
    """

    name: str
    bias: str
    inner: str | InnerFunction = ""
    evaluate_with: str | InnerFunction = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"\w[\w.-]*", self.name):
            raise ValueError(
                "name: expected letters, digits, dots and dashes, which name files, found "
                f"{self.name!r}"
            )
        learned, used = NEEDS[check_choice("bias", self.bias, list(NEEDS))]
        for argument, wanted in (("inner", learned), ("evaluate_with", used)):
            given = getattr(self, argument)
            if wanted and callable(given):
                _text(argument, given)
            elif wanted:
                get_inner(given, argument).check_everywhere(argument)
            elif given != "":
                raise ValueError(
                    f"{argument}: expected nothing for the bias {self.bias!r}, found {given!r}"
                )

    @property
    def cost(self) -> float:
        """Roughly how long it takes, in units of ltl-sgd-sgd."""
        costs = {"ltl": 1.0, "pooled": 0.5, "ridge-ltl": 0.2, "prior": 0.5}
        factor = 1.0
        if callable(self.inner) or callable(self.evaluate_with):
            factor = 300.0  # a call in Python for each task and candidate
        elif self.evaluate_with and get_inner(self.evaluate_with).exact:
            factor = 8.0
        return costs.get(self.bias, 0.02) * factor

    @property
    def key(self) -> str:
        """Its name, and for one's own a digest of what it does."""
        if METHODS.get(self.name) == self:
            return self.name
        texts = [_text("inner", self.inner), _text("evaluate_with", self.evaluate_with)]
        digest = blake2b("\n".join([self.bias, *texts]).encode(), digest_size=4)
        return f"{self.name}-{digest.hexdigest()}"


def _text(argument: str, algorithm: str | InnerFunction) -> str:
    """What tells an algorithm from others: its name, or its source with what it was made of."""
    if isinstance(algorithm, str):
        return algorithm
    plain = inspect.isfunction(algorithm)
    said = "" if plain else repr(algorithm)
    try:
        source = inspect.getsource(algorithm if plain else type(algorithm))
    except (OSError, TypeError):
        source = ""
    if not source or " at 0x" in said or not isinstance(algorithm, Hashable):
        raise ValueError(
            f"{argument}: expected a function whose source can be read, or a frozen dataclass that "
            f"can be called, found {algorithm!r}"
        )
    return said + source


METHODS = {
    method.name: method
    for method in (
        Method("itl-sgd", "itl", "", "sgd"),
        Method("itl-erm", "itl", "", "erm"),
        Method("mean-sgd", "mean", "", "sgd"),
        Method("mean-erm", "mean", "", "erm"),
        Method("ltl-sgd-sgd", "ltl", "sgd", "sgd"),
        Method("ltl-erm-sgd", "ltl", "erm", "sgd"),
        Method("ltl-sgd-erm", "ltl", "sgd", "erm"),
        Method("ltl-erm-erm", "ltl", "erm", "erm"),
        Method("pooled", "pooled"),
        Method("ridge-ltl", "ridge-ltl"),
        Method("prior", "prior"),
    )
}


def get_method(method: str | Method) -> Method:
    """The method of this name in `METHODS`, or one's own as it is."""
    if not isinstance(method, Method):
        return METHODS[check_choice("methods", method, list(METHODS), "or a Method")]
    if METHODS.get(method.name, method) != method:
        raise ValueError(
            f"methods: expected another name for one's own than those of METHODS, found "
            f"{method.name!r}"
        )
    return method


def check_methods(methods: Iterable[str | Method]) -> list[str | Method]:
    """Each method once: its name if it is in `METHODS`, one's own as it is."""
    found: dict[str, Method] = {}
    for method in map(get_method, methods):
        if found.setdefault(method.name, method) != method:
            raise ValueError(
                f"methods: expected a name for each of one's own, found two named {method.name!r}"
            )
    return [name if name in METHODS else method for name, method in found.items()]


def methods_of(experiment: Experiment, methods: Iterable[str | Method]) -> list[str | Method]:
    """Those of the methods that the experiment has: MEAN needs a known mean."""
    return [m for m in methods if experiment.source.has_mean or get_method(m).bias != "mean"]
