"""Compiled functions that find a part of a loss by the loss's `Form`.

Such a function is a chain of ``if form.code == 0: ...``, one for every built-in loss, and there
is no last branch for a loss to fall into: any other loss is called at the addresses of its own
parts. The chain is written when a kernel that needs it is compiled, by which time all built-in
losses have been defined. So this module, and all that calls into a loss, can be imported before
the losses are; and where the kernels come from the cache, the chain is not written at all.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from llvmlite import ir
from numba.core import types
from numba.extending import overload

from headstart._core.jit import SETTINGS, intrinsic, within
from headstart.losses.form import ADDRESSES

P = ParamSpec("P")
R = TypeVar("R")

CODES: dict[type, int] = {}  # of the built-in losses; `names` fills it


@intrinsic
def call_at(typing_context: Any, table: Any, place: Any, arguments: Any) -> Any:  # noqa: ARG001
    """Call the function of floats whose address is number `place` of the table."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        number, double = ir.IntType(64), ir.DoubleType()
        start = builder.inttoptr(args[0], number.as_pointer())
        address = builder.load(builder.gep(start, [args[1]]), typ=number)
        count = signature.args[2].count
        kind = ir.FunctionType(double, [double] * count)
        values = [builder.extract_value(args[2], k) for k in range(count)]
        return builder.call(builder.inttoptr(address, kind.as_pointer()), values)

    return types.float64(types.int64, types.int64, arguments), code


def by_form(part: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let compiled code that calls the decorated function call this part of the form's loss.

    The function gives its name, arguments and types; its body never runs.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        _, *arguments = signature(function).parameters

        def choose(form: Any, *arguments_types: Any) -> Callable[..., Any]:  # noqa: ARG001
            return _write_choice(part, arguments)

        overload(function, jit_options=SETTINGS, strict=False)(choose)
        return function

    return decorate


def _write_choice(part: str, arguments: list[str]) -> Callable[..., Any]:
    """The choice as a Python function: numba compiles source, so it is written as such."""
    values = ", ".join(arguments)
    lines = [f"def choice(form, {values}):"]
    known: dict[str, Any] = {"call_at": call_at}
    for loss, code in sorted(CODES.items(), key=lambda item: item[1]):
        if hasattr(loss, part):
            known[f"part_{code}"] = within(getattr(loss, part))
            lines.append(f"    if form.code == {code}:")
            lines.append(f"        return part_{code}({values}, form.a, form.b)")
    floats = ", ".join(f"1.0 * {name}" for name in arguments)
    calls = [
        f"call_at(form.table, {place}, ({floats}, form.a, form.b))"
        for place, (name, _) in enumerate(ADDRESSES)
        if name == part
    ]
    lines.append(f"    return {', '.join(calls)}")
    exec("\n".join(lines), known)
    written: Callable[..., Any] = known["choice"]
    return written
