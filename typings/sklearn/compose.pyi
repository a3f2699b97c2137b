from typing import Any, Self

class ColumnTransformer:
    def __init__(
        self,
        transformers: list[tuple[str, Any, list[str]]],
        *,
        remainder: str,
        verbose_feature_names_out: bool = ...,
    ) -> None: ...
    def set_output(self, *, transform: str) -> Self: ...
