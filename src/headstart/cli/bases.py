"""Models of all rows that can be named on the command line, as `base` of the estimators."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from headstart.cli.tables import TableError
from headstart.estimators import MetaClassifier, MetaRegressor

# For numbers, and for classes. Seeds are fixed: the same command gives the same model.
BASES: dict[str, tuple[Any, Any]] = {
    "gradient-boosting": (HistGradientBoostingRegressor, HistGradientBoostingClassifier),
    "random-forest": (RandomForestRegressor, RandomForestClassifier),
}


def named_base(name: str | None, *, binary: bool) -> Any:
    """The base of this name; None without one."""
    if name is None:
        return None
    if name not in BASES:
        raise TableError(f"--base: expected one of {', '.join(BASES)}, found {name}")
    return BASES[name][binary](random_state=0)


def on_base(name: str | None, *, binary: bool) -> dict[str, Any]:
    """What is compared with other ways: the base of this name alone, and headstart on it."""
    if name is None:
        return {}
    below = named_base(name, binary=binary)
    meta = MetaClassifier(base=below) if binary else MetaRegressor(base=below)
    return {name: below, f"headstart on {name}": meta}
