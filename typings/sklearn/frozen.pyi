from typing import Any

class FrozenEstimator:
    def __init__(self, estimator: Any) -> None: ...
