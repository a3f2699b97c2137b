"""Threads that share the rounds of one sequential algorithm.

A round of a few hundred small tasks lasts tens of microseconds, about what it takes to
wake a sleeping thread. The members of a team therefore stay inside their compiled kernels
and wait for each other by reading shared counters, the clock; a wait that lasts (more
threads than cores) returns to Python for a moment and comes back.

**Memory order.** A counter is written by one thread only. Its writer stores it with *release*:
all that it wrote before, its part of the shared arrays, is visible to whoever then reads the new
count with *acquire*. Plain loads and stores would not do: compiler and processor may reorder
them, so that a member sees the count and still the old numbers. A thread's own counter it may
read plainly. The count of long waits is a hint that all write without order: an update that gets
lost costs a few spins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numpy.typing import NDArray

from headstart._core.jit import intrinsic, kernel

Clock = NDArray[np.int64]

LINE = 8  # counters apart, so that each has a cache line of its own
SPINS, FEW_SPINS = 1_000_000, 50_000  # about a millisecond, and a twentieth of one
PATIENCE = 32  # long waits after which cores are taken to be shared, and waits kept short
ROUNDS_A_CALL = 4096  # then back to Python, where an interrupt can be noticed


def new_clock(members: int) -> Clock:
    """Counters at 0: rounds opened [0], long waits [1], rounds member m finished [LINE (m + 1)]."""
    return np.zeros(LINE * (members + 1), np.int64)


def run_team(work: Callable[[int], bool], members: int) -> None:
    """Call ``work(member)`` for every member at once, again and again until all return True."""
    failed = Event()

    def take_part(member: int) -> None:
        try:
            while not work(member) and not failed.is_set():
                time.sleep(0)
        except BaseException:
            failed.set()
            raise

    if members == 1:
        take_part(0)
        return
    with ThreadPoolExecutor(members - 1) as pool:
        others = [pool.submit(take_part, member) for member in range(1, members)]
        take_part(0)
        for other in others:
            other.result()


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """The address of an entry of a contiguous vector."""
    view = context.make_array(array_type)(context, builder, array)
    return builder.gep(view.data, [index])


@intrinsic
def load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index]``; what its writer wrote before `store_release` is visible afterwards."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], *args)
        return builder.load_atomic(place, "acquire", 8, typ=ir.IntType(64))

    return types.int64(array, types.intp), code


@intrinsic
def store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index] = value``, after everything written before it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], *args[:2])
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), code


@kernel
def _reached(clock: Clock, place: int, count: int) -> bool:
    for _ in range(SPINS if clock[1] < PATIENCE else FEW_SPINS):
        if load_acquire(clock, place) >= count:
            return True
    clock[1] += 1
    return False


@kernel
def rounds_finished(clock: Clock, member: int) -> int:
    """Number of rounds this member has finished, asked by itself."""
    return int(clock[LINE * (member + 1)])


@kernel
def rounds_opened(clock: Clock) -> int:
    """Number of rounds after the first that were opened, asked by who opens them."""
    return int(clock[0])


@kernel
def finish_round(clock: Clock, member: int, number: int) -> None:
    """This member has done its part of round `number`."""
    store_release(clock, LINE * (member + 1), number + 1)


@kernel
def open_round(clock: Clock, number: int) -> None:
    """Let all members begin round `number`."""
    store_release(clock, 0, number)


@kernel
def is_open(clock: Clock, number: int) -> bool:
    """Whether round `number` may begin; False after a long wait."""
    return _reached(clock, 0, number)


@kernel
def is_finished(clock: Clock, members: int, number: int) -> bool:
    """Whether all members have finished round `number`; False after a long wait for one."""
    for member in range(members):
        if not _reached(clock, LINE * (member + 1), number + 1):
            return False
    return True
