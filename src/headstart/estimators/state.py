"""A fitted meta estimator as a folder on disk, and what is read of it as it is needed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headstart._core.checks import FloatArray, Vector, check_count
from headstart._core.places import Place
from headstart._core.plain import from_plain, to_plain
from headstart._core.saved import MANY, checked
from headstart.estimators.inputs import Labels
from headstart.estimators.run import FitRun
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
from headstart.store import (
    StoredArray,
    StoredIds,
    StoreError,
    damaged,
    pack_ids,
    read_model,
    write_model,
)

Positions = NDArray[np.int64]
Files = dict[str, StoredArray]

ABOUT = ("kind", "parameters", "n_features", "feature_names", "classes", "n_tasks")
BASE = "base"  # the array of a base's bytes


class Description(NamedTuple):
    """What an estimator is, apart from what it has learned."""

    kind: str
    parameters: dict[str, Any]
    n_features: int
    feature_names: list[str] | None
    classes: Labels | None
    run: FitRun | None
    has_base: bool = False


@dataclass
class Stored:
    """A stream on disk: own weights are read by entity, all the rest when it has to go on."""

    folder: Place
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
        stored = self.arrays["own_weights"]
        own = stored.rows(different[unknown:])
        if not np.isfinite(own).all():
            raise StoreError(f"{stored.path} is damaged: expected finite weights")
        return own, place - unknown

    def live(self) -> PriorStream | BiasStream:
        """All of it, read and checked."""
        rest = self.folder, self.settings, self.ids, self.arrays
        if isinstance(self.settings, PriorSettings):
            return _stream(PriorStream, *rest)
        return _stream(BiasStream, *rest)


S = TypeVar("S", PriorStream, SparseStream, BiasStream)


def _stream(kind: type[S], folder: Place, settings: Any, ids: StoredIds, arrays: Files) -> S:
    """The stream of a kind whose arrays these are."""
    index = ids.index()
    with damaged(folder):
        return kind.from_arrays(settings, index, {name: a.whole() for name, a in arrays.items()})


class Saved(NamedTuple):
    """A model in a folder: the estimator's description, and the files of its stream."""

    folder: Place
    description: Description
    arrays: Files
    n_tasks: int

    def stream(self, settings: PriorSettings | Settings) -> Stored | SparseStream:
        """The stream, of which only the start and the prior are read, if its rows are dense."""
        d = self.description.n_features + self.description.has_base
        if "sparse_values" in self.arrays and isinstance(settings, PriorSettings):
            ids = StoredIds(self.arrays)
            stream = _stream(SparseStream, self.folder, settings, ids, self.arrays)
            if stream.n_features != d:
                raise ValueError(f"n_features: expected {stream.n_features}, found {d}")
            return stream
        prior, own = None, self.arrays["own_weights"]
        if own.shape[1:] != (d + 1,) or own.dtype not in (np.float32, np.float64):
            raise ValueError(f"own_weights: expected {d + 1} floats a row, found {own.shape}")
        names = {name for name in self.arrays if name.startswith("prior_")} | {"start"}
        small = {name: self.arrays[name].whole() for name in names}
        if isinstance(settings, PriorSettings):
            prior = prior_from(
                small, settings.loss, n_features=d, intercept=settings.fit_intercept,
                n_side=len(settings.side),
            )  # fmt: skip
        start = checked(small, "start", (d + 1,), np.float64)
        ids = StoredIds(self.arrays, len(own))
        arrays = {name: array for name, array in self.arrays.items() if name != BASE}
        return Stored(self.folder, settings, ids, arrays, start, prior, self.n_tasks)

    def base(self) -> bytes:
        """The base of the model, as it was given to `write`."""
        return self.arrays[BASE].whole().tobytes()


def write(
    folder: Place, model: Description, stream: AnyStream, keep: int, base: bytes | None = None
) -> None:
    """Save a model and the stream it knows, beside the versions that are kept."""
    classes = None if model.classes is None else [to_plain("classes", c) for c in model.classes]
    with stream.lock:
        arrays = {**stream.arrays(), "start": stream.start, **pack_ids(stream.ids.keys)}
        if base is not None:
            arrays[BASE] = np.frombuffer(base, np.uint8)
        about = {
            "kind": model.kind,
            "parameters": {name: _pack(name, v) for name, v in model.parameters.items()},
            "n_features": model.n_features,
            "feature_names": model.feature_names,
            "classes": classes,
            "n_tasks": stream.n_tasks,
            "run": None if model.run is None else model.run._asdict(),
        }
        write_model(folder, about, arrays, keep)


def read(folder: Place, version: int) -> Saved:
    """A version of the model saved in a folder."""
    about, arrays = read_model(folder, version)
    with damaged(folder):
        kind, parameters, d, names, classes, n_tasks = (about[name] for name in ABOUT)
        if not isinstance(kind, str) or not isinstance(parameters, dict):
            raise ValueError("expected the name and the parameters of an estimator")
        check_count("n_features", d, at_most=MANY)
        check_count("n_tasks", n_tasks, at_least=0, at_most=MANY)
        if names is not None:
            _check_names(names, d)
        values = {name: _unpack(value) for name, value in parameters.items()}
        if not isinstance(values.get("group"), str | int | None):
            raise ValueError(f"group: expected a column, found {values['group']!r:.60}")
        labels = None if classes is None else _checked_classes(classes)
        run = run_of(about)
        description = Description(kind, values, d, names, labels, run, BASE in arrays)
        return Saved(folder, description, arrays, n_tasks)


def run_of(about: dict[str, Any]) -> FitRun | None:
    """How learning went, if that is known of a model."""
    found = about.get("run")
    return None if found is None else FitRun.checked(found)


def _check_names(names: Any, count: int) -> None:
    """Raise if these are not the names of so many features."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature_names: expected a list of names")
    if len(names) != count or len(set(names)) != count:
        raise ValueError(f"feature_names: expected {count} different ones, found {len(names)}")


def _checked_classes(classes: Any) -> Labels:
    """The two labels of a classifier."""
    first, second = (from_plain(c) for c in classes)
    found = np.array([first, second])
    if found.shape != (2,) or found.dtype.kind == "O" or not bool(found[0] < found[1]):
        raise ValueError(f"classes: expected two labels in order, found {classes!r:.60}")
    if found.tolist() != [first, second] and found.dtype.kind not in "mM":
        raise ValueError(f"classes: expected two labels of one type, found {classes!r:.60}")
    return found


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
