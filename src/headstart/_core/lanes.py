"""Sums of products for many small problems side by side: a number of each is a lane of a line.

Matrices of a task are small, and loops over their rows are too short for vector instructions. So
entry (i, j) of the matrices of 32 tasks lies together, in one line of an array of shape
(lines, 32), and every step is taken for all of them.

A loop over the lanes of lines would do, but for one thing: the compiler cannot know that the line
it writes is none of those it reads, and looks at every one anew. Here a sum stays in registers
until it is complete. Products are added in their order, so that lines of zeros at the end change
no bit of it, nor do the numbers in other lanes.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir
from numba.core import cgutils, types

from headstart._core.jit import intrinsic

LANES = 32

ir: Any = llvmlite.ir  # whose stubs lack what vectors need
LINE = ir.VectorType(ir.DoubleType(), LANES)


def _generate(context: Any, builder: Any, signature: Any, values: Any, sign: str) -> Any:
    """Instructions of ``out[o] += sum A[i + t] B[j + t]``, or of ``-=``."""
    out, o, A, i, B, j, n = values
    to, _, first, _, second, _, _ = signature.args

    def pointer(kind: Any, array: Any, place: Any, lanes: int) -> Any:
        data = context.make_array(kind)(context, builder, array).data
        where = builder.gep(data, [builder.mul(place, ir.Constant(place.type, lanes))])
        return builder.bitcast(where, LINE.as_pointer()) if lanes == LANES else where

    def line(kind: Any, array: Any, place: Any) -> Any:
        if kind.ndim == 2:
            return builder.load(pointer(kind, array, place, LANES), align=8)
        number = builder.load(pointer(kind, array, place, 1))
        one = builder.insert_element(ir.Constant(LINE, ir.Undefined), number, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return builder.shuffle_vector(one, ir.Constant(LINE, ir.Undefined), zeros)

    target = pointer(to, out, o, LANES)
    total = cgutils.alloca_once(builder, LINE)  # type: ignore[no-untyped-call]
    builder.store(builder.load(target, align=8), total)
    with cgutils.for_range(builder, n) as loop:
        a = line(first, A, builder.add(i, loop.index))
        b = line(second, B, builder.add(j, loop.index))
        join = builder.fadd if sign == "+" else builder.fsub
        product = builder.fmul(a, b, flags=("contract",))
        builder.store(join(builder.load(total), product, flags=("contract",)), total)
    builder.store(builder.load(total), target, align=8)
    return context.get_dummy_value()


def _products(sign: str) -> Any:
    def define(_: Any, out: Any, o: Any, A: Any, i: Any, B: Any, j: Any, n: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _generate(context, builder, signature, values, sign)

        whole = types.intp
        return types.void(out, whole, A, whole, B, whole, whole), generate

    return intrinsic(define)


# A has lines, or where it has one axis, numbers that are the same in all lanes.
add_products = _products("+")  # out[o] += sum of A[i + t] B[j + t] over t < n
take_products = _products("-")  # out[o] -= the same
