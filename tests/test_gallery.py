"""The scripts of the gallery run, draw, and their pictures show what their texts say."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from headstart import LOSSES

GALLERY = Path(__file__).parent.parent / "docs" / "gallery"


@pytest.fixture(autouse=True)
def no_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures stay in memory and are closed; losses that a script registers are gone after it."""
    before = dict(LOSSES)
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")
    LOSSES.clear()
    LOSSES.update(before)


def run(name: str) -> dict[str, Any]:
    """The variables of a script that has drawn something into every axes."""
    found = runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert all(ax.has_data() for ax in figure.axes)
    return found


def test_algorithm_and_dual() -> None:
    found = run("algorithm_and_dual")
    above, below, exact = (np.array(found[name]) for name in ("above", "below", "exact"))
    assert np.all(below <= exact + 1e-6)
    assert np.all(exact <= above + 1e-6)
    assert np.all(found["gaps"] <= found["bound"])
    mean = found["gaps"].mean(axis=0)
    assert mean[-1] < 0.05 * mean[0]


def test_moreau_envelope() -> None:
    found = run("moreau_envelope")
    assert np.all(found["curve"] <= found["risk"] + 1e-9)
    for line in found["lines"]:
        assert np.all(line <= found["curve"] + 1e-6)
        assert np.min(found["curve"] - line) < 0.3  # it is near, too


def test_path_of_the_bias() -> None:
    found = run("path_of_the_bias")
    mean = found["weights"].mean(axis=0)
    (large, small) = (found["found"][step] for step in found["steps"])
    assert np.linalg.norm(large.bias - mean) < 0.5 < np.linalg.norm(small.bias - mean)
    late = [np.std(one.path[-50:], axis=0).max() for one in (large, small)]
    assert late[0] > 3.0 * late[1]


def test_bounds_and_risk() -> None:
    found = run("bounds_and_risk")
    for values in (found["measured"], found["bounds"]):
        alone, learned, oracle = (np.array(values[way]) for way in ("alone", "learned", "oracle"))
        assert np.all(oracle < learned)
        assert np.all(learned < alone)
    for way, values in found["measured"].items():
        assert np.all(np.array(values) < found["bounds"][way])


def test_certificates() -> None:
    found = run("certificates")
    assert np.all(found["best"] <= found["free"] + 1e-9)
    assert np.all(found["free"].mean(axis=1) < found["constant"])
    assert np.all(found["error"] <= found["promised"] + 1e-4)


def test_validation_map() -> None:
    found = run("validation_map")
    selection, steps = found["found"], found["steps"]
    assert np.all(np.diff(selection.test_loss[[1, 5, 30]]) < 0.0)
    good = selection.validation_loss < 1.2 * selection.validation_loss.min()
    ten, all_tasks = (
        good[list(selection.tasks).index(seen)].any(axis=0) for seen in (50, 300)
    )  # fmt: skip
    assert steps[all_tasks].min() < steps[ten].min()  # the valley widens toward small steps


def test_learned_metric() -> None:
    found = run("learned_metric")
    errors = found["errors"]
    assert all(full < other for full, other in zip(
        errors["full"][1:], errors["isotropic"][1:], strict=True))  # fmt: skip
    assert errors["full"][1] < 0.9 * errors["diagonal"][1]
    np.testing.assert_allclose(found["priors"]["full"].covariance, found["spread"], rtol=0.2)


def test_intervals_that_cover() -> None:
    found = run("intervals_that_cover")
    for shares in found["covered"].values():
        assert np.abs(np.array(shares) - found["coverages"]).max() < 0.05
    widths = list(found["widths"].values())
    assert widths == sorted(widths, reverse=True)


def test_when_sharing_hurts() -> None:
    found = run("when_sharing_hurts")
    kept, chosen, alone = (np.array(found[name]) for name in ("kept", "chosen", "alone"))
    assert kept[0] < alone < kept[-1]
    assert alone < chosen[-1] < kept[-1]
    errors = found["errors"]
    ours, others = np.array(errors["headstart"]), [errors[way] for way in list(errors)[:2]]
    assert np.all(ours < 1.05 * np.min(others, axis=0))
    assert errors["all tasks pooled"][-1] > 3.0 * ours[-1]
    assert errors["each task alone"][0] > 1.5 * ours[0]


def test_own_loss() -> None:
    found = run("own_loss")
    errors = {loss: np.median(values) for loss, values in found["errors"].items()}
    assert errors["log_cosh"] < 0.75 * errors["squared"]
    np.testing.assert_allclose(found["bias"], [2.0, -1.0, 1.0], atol=0.4)
    z, loss = found["z"], found["LogCosh"]()
    for mean in (0.0, 0.5, 1.5, 4.0):
        omega, tau, c = loss.quadratic_form(mean, 0.0, 0.0)
        assert np.all(omega / 2 * (z - tau) ** 2 + c >= loss.value(z, 0.0) - 1e-12)


def test_own_environment() -> None:
    found = run("own_environment")
    plain, told = found["errors"].values()
    assert all(mine < theirs for mine, theirs in zip(told, plain, strict=True))
    assert told[0] < 0.6 * plain[0]
    np.testing.assert_allclose(found["told"].start([1.0]), [3.0, -1.0], atol=0.3)


def test_own_data() -> None:
    found = run("own_data")
    assert found["found"].verdict == "cannot tell"  # of eleven firms
    assert found["model"].n_tasks_ == 11


def test_every_script_is_tested() -> None:
    scripts = {path.stem for path in GALLERY.glob("*.py")}
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert scripts <= tests
    assert len(scripts) >= 12
