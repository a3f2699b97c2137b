"""Models on disk, of whichever class."""

from __future__ import annotations

from pathlib import Path

from headstart.estimators.classifier import MetaClassifier
from headstart.estimators.regressor import MetaRegressor
from headstart.store import read_model


def load_model(path: str | Path) -> MetaRegressor | MetaClassifier:
    """The model in the folder `path`, of whichever class it is."""
    if read_model(Path(path))[0]["kind"] == "MetaClassifier":
        return MetaClassifier.load(path)
    return MetaRegressor.load(path)
