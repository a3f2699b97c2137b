"""Doors: functions of kernels that do the same for several kinds of things.

A door is declared once, as what its callers may rely on. Each kind, a NamedTuple or the plain
array, brings its own text for it. numba chooses by the type of the first argument while it
compiles: a kernel written with doors is compiled for each kind it meets, and when it runs there
is nothing left to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.extending import overload

from headstart._core.jit import SETTINGS

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: Any = {**SETTINGS, "forceinline": True}  # a call would cost as much as a short sum

_TEXTS: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


def door(declaration: F) -> F:
    """Make a function one that kernels may call, as far as `text_for` has given it texts."""
    texts = _TEXTS[declaration] = {}

    def choose(kind: Any, *_: Any) -> Callable[..., Any] | None:
        return texts.get(getattr(kind, "instance_class", np.ndarray))  # a NamedTuple has its class

    overload(declaration, jit_options=OPTIONS, strict=False)(choose)
    return declaration


def text_for(declaration: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """Decorator of what a door does for one kind; parameters are named as the door's are."""

    def register(text: F) -> F:
        _TEXTS[declaration][kind] = text
        return text

    return register
