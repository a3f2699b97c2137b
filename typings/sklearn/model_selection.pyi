from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

class KFold:
    def __init__(self, n_splits: int, *, shuffle: bool, random_state: int) -> None: ...

class GroupKFold:
    def __init__(self, n_splits: int) -> None: ...
    def split(
        self, X: Any, y: Any, groups: Any
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]: ...

class GridSearchCV:
    best_params_: dict[str, Any]
    best_score_: float
    def __init__(
        self,
        estimator: Any,
        grid: dict[str, Any],
        *,
        scoring: str | None = ...,
        cv: Any,
        error_score: str = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any) -> Self: ...

def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: str | None = ...,
    cv: Any,
    params: dict[str, Any] | None = ...,
) -> NDArray[np.float64]: ...
