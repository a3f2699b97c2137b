"""What a fitted meta estimator knows: in memory, or on disk and read as it is needed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._checks import FloatArray
from headstart.ids import IdIndex
from headstart.losses import Loss, get_loss
from headstart.online import (
    OPEN,
    Bias,
    Entities,
    OpenTasks,
    Stream,
    TunedEntities,
    TunedStream,
    TunedTasks,
    Tuning,
)
from headstart.plain import from_plain, to_plain
from headstart.store import StoredArray, StoredIds, StoreError, pack_ids, read_model, write_model

Positions = NDArray[np.int64]
AnyStream = Stream | TunedStream


@dataclass
class InMemory:
    """Ids and the state of the stream, which can go on."""

    ids: IdIndex
    stream: AnyStream

    @property
    def bias(self) -> Bias:
        """Algorithm 2's state."""
        return self.stream.bias

    @property
    def dtype(self) -> DTypeLike:
        """The float type of the inputs."""
        return self.stream.entities.weights.dtype

    @property
    def tuning(self) -> Tuning | None:
        """What the candidates for reg have lost, if it is chosen."""
        return self.stream.tuning if isinstance(self.stream, TunedStream) else None

    def index(self) -> IdIndex:
        """All ids."""
        return self.ids

    def find(self, keys: list[Hashable]) -> list[int]:
        """Positions of ids; -1 for an unknown or missing one."""
        return self.ids.find(keys)

    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Weights, and for each of the positions the row among them."""
        return self.stream.entities.weights, positions

    def write(self, folder: Path, model: Any) -> None:
        """Save the model this belongs to."""
        stream, count = self.stream, len(self.ids)
        n_open = int(stream.bias.counts[OPEN])
        arrays = {
            **{f"bias_{name}": a for name, a in stream.bias._asdict().items()},
            **{f"open_{name}": a[:n_open] for name, a in stream.tasks._asdict().items()},
            **{f"own_{name}": a[:count] for name, a in stream.entities._asdict().items()},
            **pack_ids(self.ids.keys),
        }
        if isinstance(stream, TunedStream):
            arrays |= {f"tuning_{name}": a for name, a in stream.tuning._asdict().items()}
        elif len(stream.entities.starts) == 1:  # for all of them, be there any or not
            arrays["own_starts"] = stream.entities.starts
        names = getattr(model, "feature_names_in_", None)
        classes = getattr(model, "classes_", None)
        about = {
            "kind": type(model).__name__,
            "parameters": {k: _pack(k, v) for k, v in model.get_params(deep=False).items()},
            "n_features": model.n_features_in_,
            "feature_names": None if names is None else list(names),
            "classes": None if classes is None else [to_plain("classes", c) for c in classes],
        }
        write_model(folder, about, arrays)


@dataclass
class Stored:
    """Ids and arrays on disk, the bias and its tuning in memory."""

    bias: Bias
    tuning: Tuning | None
    ids: StoredIds
    arrays: dict[str, StoredArray]
    predictor: str

    @property
    def dtype(self) -> DTypeLike:
        """The float type of the inputs."""
        return self.arrays["own_weights"].dtype

    def index(self) -> IdIndex:
        """All ids."""
        return self.ids.index()

    def find(self, keys: list[Hashable]) -> list[int]:
        """Positions of ids; -1 for an unknown or missing one."""
        return self.ids.find(keys)

    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Weights, and for each of the positions the row among them."""
        different, place = np.unique(positions, return_inverse=True)
        unknown = int(np.searchsorted(different, 0))  # how many of them are -1: none or one
        return self.arrays["own_weights"].rows(different[unknown:]), place - unknown

    def in_memory(self) -> InMemory:
        """All of it, read and checked."""
        stream: AnyStream
        if self.tuning is not None:
            open_tasks = TunedTasks(*self._part("open", TunedTasks._fields))
            entities = TunedEntities(*self._part("own", TunedEntities._fields))
            stream = TunedStream(self.bias, open_tasks, entities, self.tuning)
        else:
            tasks = OpenTasks(*self._part("open", OpenTasks._fields))
            known = Entities(*self._part("own", Entities._fields))
            stream = Stream(self.bias, tasks, known, self.predictor)
        return InMemory(self.ids.index(), stream)

    def _part(self, part: str, fields: tuple[str, ...]) -> list[NDArray[Any]]:
        return [self.arrays[f"{part}_{field}"].whole() for field in fields]

    @classmethod
    def read(cls, folder: Path, kind: type[Any]) -> Any:
        """The model saved in a folder, which must be of this class."""
        about, arrays = read_model(folder)
        if about["kind"] != kind.__name__:
            raise StoreError(f"{folder} holds a {about['kind']}; load it with {about['kind']}.load")
        model = kind(**{name: _unpack(v) for name, v in about["parameters"].items()})
        model.n_features_in_ = about["n_features"]
        if about["feature_names"] is not None:
            model.feature_names_in_ = np.array(about["feature_names"], object)
        if about["classes"] is not None:
            model.classes_ = np.array([from_plain(c) for c in about["classes"]])
        bias = Bias(*(arrays[f"bias_{name}"].whole() for name in Bias._fields))
        tuning = None
        if "tuning_kappas" in arrays:
            tuning = Tuning(*(arrays[f"tuning_{name}"].whole() for name in Tuning._fields))
        model._known = cls(bias, tuning, StoredIds(arrays), arrays, model.predictor)
        return model


def _pack(name: str, value: object) -> object:
    if isinstance(value, Loss):
        return {"loss": {"name": value.name, **asdict(value)}}
    return to_plain(name, value)


def _unpack(value: Any) -> Any:
    if isinstance(value, dict) and "loss" in value:
        settings = dict(value["loss"])
        return type(get_loss(settings.pop("name")))(**settings)
    return from_plain(value)
