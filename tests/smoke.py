"""What must work where only the wheel and what it asks for are installed: run by ``make dist``."""

from __future__ import annotations

import tempfile
from importlib import metadata, resources
from pathlib import Path

import numpy as np

import headstart
from headstart import MetaRegressor


def main() -> None:
    if headstart.__version__ != metadata.version("headstart"):
        raise SystemExit(f"versions differ: {headstart.__version__} in the code")
    for name in ("py.typed", "__init__.pyi"):
        if not resources.files("headstart").joinpath(name).is_file():
            raise SystemExit(f"{name} is not in the wheel")
    rng = np.random.default_rng(0)
    X, ids = rng.standard_normal((400, 2)), rng.integers(0, 40, 400)
    own = rng.normal([1.0, -1.0], 0.3, (40, 2))
    y = (X * own[ids]).sum(axis=1) + 0.1 * rng.standard_normal(400)
    model = MetaRegressor().fit(X, y, groups=ids)
    error = float(np.abs(model.predict(X, groups=ids) - y).mean())
    if not error < 0.12:
        raise SystemExit(f"own weights are off by {error}, the noise is 0.1")
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = MetaRegressor.load(Path(folder) / "model")
        if not np.array_equal(loaded.predict(X, groups=ids), model.predict(X, groups=ids)):
            raise SystemExit("a loaded model predicts otherwise")
    missing = [name for name in headstart.__all__ if not hasattr(headstart, name)]
    if missing:
        raise SystemExit(f"not there: {missing}")
    print(f"headstart {headstart.__version__}: the wheel works")


if __name__ == "__main__":
    main()
