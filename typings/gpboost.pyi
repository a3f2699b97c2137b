from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike, NDArray

class GPModel:
    def __init__(
        self,
        likelihood: str = ...,
        group_data: ArrayLike | None = ...,
        group_rand_coef_data: ArrayLike | None = ...,
        ind_effect_group_rand_coef: list[int] | None = ...,
    ) -> None: ...
    def fit(self, y: ArrayLike, X: ArrayLike | None = ...) -> GPModel: ...
    def predict(
        self,
        *,
        group_data_pred: ArrayLike | None = ...,
        group_rand_coef_data_pred: ArrayLike | None = ...,
        X_pred: ArrayLike | None = ...,
    ) -> dict[str, NDArray[Any]]: ...

class Dataset:
    def __init__(self, data: ArrayLike, label: ArrayLike) -> None: ...

class Booster:
    def predict(
        self, data: ArrayLike, *, group_data_pred: ArrayLike, pred_latent: bool = ...
    ) -> dict[str, NDArray[Any]]: ...

def train(
    params: Mapping[str, object],
    train_set: Dataset,
    *,
    gp_model: GPModel,
    num_boost_round: int = ...,
) -> Booster: ...
