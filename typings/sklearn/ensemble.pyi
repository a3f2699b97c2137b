from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

class HistGradientBoostingRegressor:
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        max_iter: int = ...,
        max_leaf_nodes: int = ...,
        min_samples_leaf: int = ...,
        random_state: int | None = ...,
    ) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.float64]: ...

class HistGradientBoostingClassifier:
    def __init__(self, *, max_iter: int = ..., random_state: int | None = ...) -> None: ...

class RandomForestRegressor:
    def __init__(self, *, random_state: int | None = ...) -> None: ...

class RandomForestClassifier:
    def __init__(self, *, random_state: int | None = ...) -> None: ...
