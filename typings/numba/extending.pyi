from collections.abc import Callable
from typing import Any

# A compiled caller leaves out the typing context that the definition begins with.
def intrinsic(definition: Callable[..., Any]) -> Callable[..., Any]: ...
