import numpy as np
from numpy.typing import NDArray

PAIRWISE_KERNEL_FUNCTIONS: dict[str, object]

def pairwise_kernels(
    X: NDArray[np.floating], Y: NDArray[np.floating], metric: str
) -> NDArray[np.float64]: ...
def rbf_kernel(
    X: NDArray[np.floating], Y: NDArray[np.floating], gamma: float | None = ...
) -> NDArray[np.float64]: ...
