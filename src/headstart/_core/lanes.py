"""Small problems side by side, eight at a time: a number of each is a lane of a line.

Matrices of a task are small, and loops over their rows are too short for vector instructions. So
entry (i, j) of the matrices of eight tasks lies together, in one line of an array of shape
(lines, 8), and every step is taken for all of them. All that is known of eight tasks of a few rows
stays in the nearest cache.

A line is a value that kernels compute with, ``total += line(A, i) * line(B, j)``, and it stays in
registers until it is `put`: of loops over lanes the compiler could not know that the line they
write is none of those they read, and would look at every one anew. Products are added in their
order, so that lines of zeros at the end change no bit of a sum, nor do the numbers in other lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import llvmlite.ir
import numba.core.cgutils
import numba.extending
from numba.core import types

from headstart._core.jit import intrinsic, lent

LANES = 8

# Any, because stubs lack what vectors need, or types of functions.
ir: Any = llvmlite.ir
extending: Any = numba.extending
declared: Any = numba.core.cgutils.get_or_insert_function
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
WHOLE = types.intp
TOGETHER = ("contract",)  # a product and a sum may be one instruction


class _Line(types.Type):
    """The type of lines."""


LINE: Any = _Line("line")


@extending.register_model(_Line)
class _Model(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _operator(function: Callable[[Any, Any], Any], instruction: str) -> None:
    """Let kernels write an operator between lines."""

    def of_lines(_: Any) -> Any:
        return lambda one, other: LINE if one == other == LINE else None

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return getattr(builder, instruction)(*values, flags=TOGETHER)

    extending.type_callable(function)(of_lines)
    extending.lower_builtin(function, _Line, _Line)(generate)


for name, instruction in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul")):
    _operator(getattr(operator, name), instruction)
    _operator(getattr(operator, "i" + name), instruction)


def _place(context: Any, builder: Any, kind: Any, array: Any, number: Any) -> Any:
    """Where a number of an array is, counted as if it had one axis."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [number])


def _line(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    """Where line i of an array is."""
    number = builder.mul(i, ir.Constant(i.type, LANES))
    return builder.bitcast(_place(context, builder, kind, array, number), VECTOR.as_pointer())


def _shuffle(builder: Any, one: Any, other: Any, order: list[int]) -> Any:
    """Lanes of two lines in an order; those of the second are counted from 8 on."""
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
    return builder.shuffle_vector(one, other, places)


def _spread(builder: Any, number: Any) -> Any:
    """A number in all lanes."""
    undefined = ir.Constant(VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.IntType(32)(0))
    return _shuffle(builder, one, undefined, [0] * LANES)


@intrinsic
def spread(_: Any, number: Any) -> Any:
    """A number in all lanes."""

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return _spread(builder, values[0])

    return LINE(types.float64), generate


@intrinsic
def line(_: Any, array: Any, i: Any) -> Any:
    """Line i of an array; or of one with one axis its number i, in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.args[0]
        if kind.ndim == 1:
            return _spread(builder, builder.load(_place(context, builder, kind, *values)))
        return builder.load(_line(context, builder, kind, *values), align=8)

    return LINE(array, WHOLE), generate


@intrinsic
def put(_: Any, array: Any, i: Any, value: Any) -> Any:
    """Make a line the line i of an array."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, i, value = values
        builder.store(value, _line(context, builder, signature.args[0], array, i), align=8)
        return context.get_dummy_value()

    return types.void(array, WHOLE, LINE), generate


@intrinsic
def inverse_root(_: Any, value: Any) -> Any:
    """One over the square root of each lane."""

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        kind, name = ir.FunctionType(VECTOR, [VECTOR]), f"llvm.sqrt.v{LANES}f64"
        root = declared(builder.module, kind, name)
        one = ir.Constant(VECTOR, [1.0] * LANES)
        return builder.fdiv(one, builder.call(root, values))

    return LINE(LINE), generate


@intrinsic
def address(_: Any, array: Any) -> Any:
    """Where an array is in memory; asking its ``ctypes`` would count references every time."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


@intrinsic
def turn(
    _: Any, kind: Any, places: Any, first: Any, shift: Any, count: Any, out: Any, o: Any
) -> Any:
    """Eight rows of up to eight numbers as columns.

    Row s is at the address ``places[first + s]``, `shift` numbers on, of numbers as in the array
    `kind`, of which `count` are read, and 0 for others. Column s is put into `out` s of its
    rows after its number o, counted as if `out` had one axis.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, places, first, shift, count, out, o = values
        kind, where, _, _, _, to, _ = signature.args
        source = ir.VectorType(context.get_data_type(kind.dtype), LANES)
        target = ir.VectorType(context.get_data_type(to.dtype), LANES)
        read = _reader(builder, source, kind.dtype.bitwidth // 8, count)
        rows = []
        for s in range(LANES):
            at = builder.add(first, ir.Constant(first.type, s))
            begin = builder.load(_place(context, builder, where, places, at))
            row = read(builder.gep(builder.inttoptr(begin, source.element.as_pointer()), [shift]))
            rows.append(row if source == target else builder.fpext(row, target))
        for w in (1, 2, 4):  # number p + w of row s changes places with number p of row s + w
            for s in (s for s in range(LANES) if not s & w):
                one, other = rows[s], rows[s + w]
                upper = [LANES + p - w if p & w else p for p in range(LANES)]
                lower = [LANES + p if p & w else p + w for p in range(LANES)]
                rows[s] = _shuffle(builder, one, other, upper)
                rows[s + w] = _shuffle(builder, one, other, lower)
        width = builder.extract_value(context.make_array(to)(context, builder, out).shape, 1)
        for s, column in enumerate(rows):
            at = builder.add(o, builder.mul(width, ir.Constant(width.type, s)))
            pointer = builder.bitcast(_place(context, builder, to, out, at), target.as_pointer())
            builder.store(column, pointer, align=to.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(kind, places, *[WHOLE] * 3, out, WHOLE), generate


def _reader(builder: Any, kind: Any, size: int, count: Any) -> Callable[[Any], Any]:
    """What reads so many numbers, of this size, from a place on; of others nothing is read."""
    whole, bit = ir.IntType(64), ir.IntType(1)
    numbers = ir.VectorType(whole, LANES)
    none = ir.Constant(numbers, ir.Undefined)
    counts = builder.insert_element(none, count, ir.IntType(32)(0))
    counts = _shuffle(builder, counts, none, [0] * LANES)
    mask = builder.icmp_signed("<", ir.Constant(numbers, list(range(LANES))), counts)
    pointer, flags = kind.as_pointer(), ir.VectorType(bit, LANES)
    name = f"llvm.masked.load.v{LANES}f{8 * size}.p0"
    function = declared(
        builder.module, ir.FunctionType(kind, [pointer, ir.IntType(32), flags, kind]), name
    )
    arguments = [ir.Constant(ir.IntType(32), size), mask, ir.Constant(kind, None)]
    return lambda place: builder.call(function, [builder.bitcast(place, pointer), *arguments])


@lent
def plus(total: Any, A: Any, i: int, B: Any, j: int, n: int) -> Any:
    """``total + sum of A[i + t] B[j + t]`` over t < n."""
    for t in range(n):
        total += line(A, i + t) * line(B, j + t)
    return total


@lent
def minus(total: Any, A: Any, i: int, B: Any, j: int, n: int) -> Any:
    """``total - sum of A[i + t] B[j + t]`` over t < n."""
    for t in range(n):
        total -= line(A, i + t) * line(B, j + t)
    return total


@lent
def put_four(out: Any, o: int, A: Any, i: int, step: int, B: Any, j: int, n: int) -> None:
    """``out[o + s] = sum of A[i + s step + t] B[j + t]`` over t < n, for s < 4.

    A sum waits for each of its products, so that four at once take no longer than one.
    """
    one = two = three = four = spread(0.0)
    for t in range(n):
        b = line(B, j + t)
        one += line(A, i + t) * b
        two += line(A, i + step + t) * b
        three += line(A, i + 2 * step + t) * b
        four += line(A, i + 3 * step + t) * b
    put_row(out, o, (one, two, three, four))


@lent
def put_block(
    out: Any, at: tuple[int, int, int], one: tuple[Any, int, int], two: tuple[Any, int, int], n: int
) -> None:
    """``out[row(s) + u] = sum of A[i + s step + t] B[j + u along + t]`` over t < n, for s, u < 4.

    `one` is ``A, i, step`` and `two` is ``B, j, along``. Of `at` the first is row 0, row 1 is the
    second of it on, and of the next two each is further on than the one before by the third: so
    rows of a packed triangle can be written. Sixteen sums stay in registers, and eight lines are
    loaded for sixteen products.
    """
    (o, wide, more), (A, i, step), (B, j, along) = at, one, two
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = spread(0.0)
    c0 = c1 = c2 = c3 = e0 = e1 = e2 = e3 = spread(0.0)
    for t in range(n):
        p, q = line(B, j + t), line(B, j + along + t)
        r, s = line(B, j + 2 * along + t), line(B, j + 3 * along + t)
        x = line(A, i + t)
        a0 += x * p
        a1 += x * q
        a2 += x * r
        a3 += x * s
        x = line(A, i + step + t)
        b0 += x * p
        b1 += x * q
        b2 += x * r
        b3 += x * s
        x = line(A, i + 2 * step + t)
        c0 += x * p
        c1 += x * q
        c2 += x * r
        c3 += x * s
        x = line(A, i + 3 * step + t)
        e0 += x * p
        e1 += x * q
        e2 += x * r
        e3 += x * s
    put_row(out, o, (a0, a1, a2, a3))
    put_row(out, o + wide, (b0, b1, b2, b3))
    put_row(out, o + 2 * wide + more, (c0, c1, c2, c3))
    put_row(out, o + 3 * wide + 3 * more, (e0, e1, e2, e3))


@lent
def put_row(out: Any, o: int, four: tuple[Any, Any, Any, Any]) -> None:
    """Make these the lines of an array from o on."""
    one, two, three, last = four
    put(out, o, one)
    put(out, o + 1, two)
    put(out, o + 2, three)
    put(out, o + 3, last)
