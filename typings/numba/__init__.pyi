from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

config: ModuleType

def njit(
    function: Callable[P, R],
    *,
    nogil: bool = ...,
    fastmath: bool | set[str] = ...,
    error_model: str = ...,
    cache: bool = ...,
    forceinline: bool = ...,
    inline: str = ...,
) -> Callable[P, R]: ...
def cfunc(signature: str, *, error_model: str = ...) -> Callable[[Callable[..., float]], Any]: ...
def carray(pointer: Any, shape: Any, dtype: Any = ...) -> Any: ...
