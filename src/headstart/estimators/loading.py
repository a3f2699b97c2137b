"""Models on disk, of whichever class."""

from __future__ import annotations

from headstart._core.places import AnyPath, as_place
from headstart.estimators.classifier import MetaClassifier
from headstart.estimators.regressor import MetaRegressor
from headstart.estimators.state import read


def load_model(
    path: AnyPath, version: int = 0, trusted: bool = False
) -> MetaRegressor | MetaClassifier:
    """The model in the folder `path`, of whichever class it is.

    Parameters
    ----------
    path : str or Path
        A folder, or an address such as ``"s3://bucket/model"``: all arrays are fetched then.
    version : int
        0 for the newest, 1 for the one saved before it, and so on, as far as
        ``save(path, keep=...)`` keeps them.
    trusted : bool
        Whether the author of the model is trusted. Only a model with a `base` asks for it.
    """
    saved = read(as_place(path), version)
    if saved.description.kind == "MetaClassifier":
        return MetaClassifier.from_saved(saved, trusted=trusted)
    return MetaRegressor.from_saved(saved, trusted=trusted)
