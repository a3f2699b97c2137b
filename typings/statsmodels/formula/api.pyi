from typing import Any

from statsmodels.api import MixedLM

def mixedlm(
    formula: str, data: Any, *, groups: Any, re_formula: str | None = ..., **options: Any
) -> MixedLM: ...
