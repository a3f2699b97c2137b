"""What datasets on disk, jobs over them and training in rounds ask of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from headstart.estimators.inputs import Labels
from headstart.estimators.run import FitRun
from headstart.online import AnyStream, PriorSettings, Settings


class MetaModel(Protocol):
    """A model of many tasks, such as `MetaRegressor` and `MetaClassifier`.

    Its parameters are attributes, as scikit-learn wants them; those that are read here are named.
    """

    reg: float | str
    step: float | str
    inner: str
    group: str | int | None
    side: Sequence[str | int] | None
    base: object
    fit_intercept: bool
    n_jobs: int | None
    random_state: object
    run_: FitRun | None

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters."""

    def settings(self) -> PriorSettings | Settings:
        """The parameters, checked, as a stream takes them."""

    def stream(self) -> AnyStream:
        """What a fitted model knows."""

    def know(
        self,
        stream: AnyStream,
        features: Sequence[str],
        classes: Labels | None = None,
    ) -> None:
        """Be fitted: know what a stream has learned, with these features and classes."""

    def know_columns(self, stream: AnyStream, width: int, classes: Labels | None = None) -> None:
        """Be fitted: know what a stream has learned of so many columns without names."""
