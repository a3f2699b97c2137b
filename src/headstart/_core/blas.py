"""One thread for linear algebra on small matrices, where threads only cost time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_taken = Lock()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for libraries takes as long as several passes


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the threads, unless another thread does already: who limits them gives them back."""
    if not _taken.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _taken.release()
