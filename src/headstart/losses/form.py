"""What kernels see of a loss, and how they call its parts.

A built-in loss is an integer code: numba keeps the machine code of such a choice on disk and
loads it in milliseconds, where function arguments and closures would be compiled anew in every
process. The choice is written out from the list of losses, one `if` for each, and there is no
last branch for a loss to fall into: any other loss is called at the addresses of its own parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from headstart._jit import uncached, within

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
RESULTS = {"quadratic": 3}  # numbers a part returns, where it is not 1
ADDRESSES = [(name, k) for name in PARTS for k in range(RESULTS.get(name, 1))]


class Form(NamedTuple):
    """What kernels see of a loss.

    Attributes
    ----------
    code : of a built-in loss, else `OWN`
    a, b : its parameters; 0 where it has fewer
    margin : whether it is a function of ``y z``, else of ``z - y``
    lower, upper : the ends of the conjugate's domain
    table : where the addresses of an own loss's parts are
    """

    code: int
    a: float
    b: float
    margin: bool
    lower: float
    upper: float
    table: int


class Objective(NamedTuple):
    """What kernels see of a task's regularised risk: reg, and the loss."""

    lam: float
    form: Form


@intrinsic
def call_at(typing_context: Any, table: Any, place: Any, arguments: Any) -> Any:  # noqa: ARG001
    """Call the function of floats whose address is number `place` of the table."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        number, double = ir.IntType(64), ir.DoubleType()
        start = builder.inttoptr(args[0], number.as_pointer())
        address = builder.load(builder.gep(start, [args[1]]), typ=number)
        kind = ir.FunctionType(double, [double] * signature.args[2].count)
        values = cgutils.unpack_tuple(builder, args[2])
        return builder.call(builder.inttoptr(address, kind.as_pointer()), values)

    return types.float64(types.int64, types.int64, arguments), code


def choice(part: str, losses: Sequence[type]) -> Callable[..., Any]:
    """The compiled function that finds this part of the loss in a `Form`.

    numba compiles source, so the choice is written as such: ``if form.code == 0: ...`` for every
    built-in loss that has the part.
    """
    given = ", ".join(PARTS[part])
    lines = [f"def {part}(form, {given}):"]
    known: dict[str, Any] = {"call_at": call_at}
    for code, loss in enumerate(losses):
        if hasattr(loss, part):
            known[f"part_{code}"] = within(getattr(loss, part))
            lines.append(f"    if form.code == {code}:")
            lines.append(f"        return part_{code}({given}, form.a, form.b)")
    floats = ", ".join(f"1.0 * {name}" for name in PARTS[part])
    calls = [
        f"call_at(form.table, {place}, ({floats}, form.a, form.b))"
        for place, (name, _) in enumerate(ADDRESSES)
        if name == part
    ]
    lines.append(f"    return {', '.join(calls)}")
    exec("\n".join(lines), known)
    compiled: Callable[..., Any] = uncached(known[part])
    return compiled
