"""One thread for linear algebra on small matrices, where threads only cost time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock, _stack = Lock(), ExitStack()
_users = 0


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for libraries takes as long as several passes


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While anyone is in here; the last one out gives back what the first one found."""
    global _users
    with _lock:
        if _users == 0:
            _stack.enter_context(_controller().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _stack.close()
