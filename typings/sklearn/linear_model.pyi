from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    def __init__(self, *, C: float = ..., max_iter: int = ..., tol: float = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.float64]: ...

class HuberRegressor:
    def __init__(self, *, max_iter: int) -> None: ...

class LinearRegression:
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.float64]: ...

class Ridge:
    coef_: NDArray[np.float64]
    def __init__(
        self, alpha: float = ..., *, fit_intercept: bool = ..., solver: str = ...
    ) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.float64]: ...

class RidgeCV:
    def __init__(self, alphas: ArrayLike = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[np.float64]: ...

class BayesianRidge:
    alpha_: float
    lambda_: float
    def __init__(
        self,
        *,
        max_iter: int,
        tol: float,
        alpha_1: float,
        alpha_2: float,
        lambda_1: float,
        lambda_2: float,
        fit_intercept: bool,
    ) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
