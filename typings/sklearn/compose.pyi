from typing import Any, Self

class ColumnTransformer:
    def __init__(
        self, transformers: list[tuple[str, Any, list[str]]], *, remainder: str
    ) -> None: ...
    def set_output(self, *, transform: str) -> Self: ...
