from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

class _Linear:
    coef_: NDArray[np.float64]
    n_iter_: int
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...

class LinearSVR(_Linear):
    def __init__(
        self, *, epsilon: float, C: float, fit_intercept: bool, tol: float, max_iter: int
    ) -> None: ...

class LinearSVC(_Linear):
    def __init__(
        self, *, loss: str, C: float, fit_intercept: bool, tol: float, max_iter: int
    ) -> None: ...
