from typing import Self

from numpy.typing import ArrayLike

class SGDRegressor:
    def __init__(
        self,
        *,
        loss: str,
        epsilon: float,
        alpha: float = ...,
        max_iter: int = ...,
        tol: float | None = ...,
        fit_intercept: bool = ...,
        shuffle: bool = ...,
    ) -> None: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...

class LogisticRegression:
    def __init__(self, *, max_iter: int) -> None: ...

class HuberRegressor:
    def __init__(self, *, max_iter: int) -> None: ...

class Ridge:
    def __init__(self, alpha: float = ...) -> None: ...

class RidgeCV: ...
