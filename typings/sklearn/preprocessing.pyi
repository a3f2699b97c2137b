from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

class StandardScaler:
    def fit(self, X: ArrayLike) -> Self: ...
    def transform(self, X: ArrayLike) -> NDArray[np.float64]: ...

class SplineTransformer:
    def __init__(self, *, n_knots: int = ..., degree: int = ...) -> None: ...

class OneHotEncoder:
    def __init__(self, *, drop: str = ..., sparse_output: bool = ...) -> None: ...

class PolynomialFeatures:
    def __init__(self, degree: int = ...) -> None: ...

class QuantileTransformer:
    def __init__(self, *, n_quantiles: int = ...) -> None: ...
