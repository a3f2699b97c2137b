"""A fitted meta estimator as a folder on disk, and what is read of it as it is needed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray, Vector
from headstart._core.plain import from_plain, to_plain
from headstart.estimators.inputs import Labels
from headstart.losses import Loss, get_loss
from headstart.meta.prior import Prior
from headstart.meta.prior.saved import prior_from
from headstart.online import (
    AnyStream,
    BiasStream,
    PriorSettings,
    PriorStream,
    Settings,
    SparseStream,
)
from headstart.store import StoredArray, StoredIds, StoreError, pack_ids, read_model, write_model

Positions = NDArray[np.int64]


class Description(NamedTuple):
    """What an estimator is, apart from what it has learned."""

    kind: str
    parameters: dict[str, Any]
    n_features: int
    feature_names: list[str] | None
    classes: Labels | None


@dataclass
class Stored:
    """A stream on disk: own weights are read by entity, all the rest when it has to go on."""

    settings: PriorSettings | Settings
    ids: StoredIds
    arrays: dict[str, StoredArray]
    start: Vector
    prior: Prior | None
    n_tasks: int

    @property
    def dtype(self) -> DTypeLike:
        """The float type of the inputs."""
        return self.arrays["own_weights"].dtype

    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Own weights, and for each of the positions the row among them."""
        different, place = np.unique(positions, return_inverse=True)
        unknown = int(np.searchsorted(different, 0))  # how many of them are -1: none or one
        return self.arrays["own_weights"].rows(different[unknown:]), place - unknown

    def live(self) -> PriorStream | BiasStream:
        """All of it, read and checked."""
        arrays = {name: array.whole() for name, array in self.arrays.items()}
        if isinstance(self.settings, PriorSettings):
            return PriorStream.from_arrays(self.settings, self.ids.index(), arrays)
        return BiasStream.from_arrays(self.settings, self.ids.index(), arrays)


class Saved(NamedTuple):
    """A model in a folder: the estimator's description, and the files of its stream."""

    description: Description
    arrays: dict[str, StoredArray]
    n_tasks: int

    def stream(self, settings: PriorSettings | Settings) -> Stored | SparseStream:
        """The stream, of which only the start and the prior are read, if its rows are dense."""
        prior = None
        if "sparse_values" in self.arrays and isinstance(settings, PriorSettings):
            arrays = {name: array.whole() for name, array in self.arrays.items()}
            return SparseStream.from_arrays(settings, StoredIds(self.arrays).index(), arrays)
        if isinstance(settings, PriorSettings):
            small = {n: a.whole() for n, a in self.arrays.items() if n.startswith("prior_")}
            prior = prior_from(small, settings.loss)
        start = self.arrays["start"].whole()
        return Stored(settings, StoredIds(self.arrays), self.arrays, start, prior, self.n_tasks)


def write(folder: Path, model: Description, stream: AnyStream) -> None:
    """Save a model and the stream it knows."""
    classes = None if model.classes is None else [to_plain("classes", c) for c in model.classes]
    with stream.lock:
        arrays = {**stream.arrays(), "start": stream.start, **pack_ids(stream.ids.keys)}
        about = {
            "kind": model.kind,
            "parameters": {name: _pack(name, v) for name, v in model.parameters.items()},
            "n_features": model.n_features,
            "feature_names": model.feature_names,
            "classes": classes,
            "n_tasks": stream.n_tasks,
        }
        write_model(folder, about, arrays)


def read(folder: Path, kind: str) -> Saved:
    """The model saved in a folder, which must be of this class."""
    about, arrays = read_model(folder)
    if about["kind"] != kind:
        raise StoreError(f"{folder} holds a {about['kind']}; load it with {about['kind']}.load")
    classes = about["classes"]
    description = Description(
        kind,
        {name: _unpack(value) for name, value in about["parameters"].items()},
        about["n_features"],
        about["feature_names"],
        None if classes is None else np.array([from_plain(c) for c in classes]),
    )
    return Saved(description, arrays, about["n_tasks"])


def _pack(name: str, value: Any) -> object:
    if isinstance(value, Loss):
        return {"loss": {"name": value.name, **asdict(value)}}
    if name == "side" and value is not None:
        return [to_plain(name, column) for column in value]
    return to_plain(name, value)


def _unpack(value: Any) -> Any:
    if isinstance(value, dict) and "loss" in value:
        settings = dict(value["loss"])
        return type(get_loss(settings.pop("name")))(**settings)
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    return from_plain(value)
