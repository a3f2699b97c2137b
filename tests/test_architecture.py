"""The page on architecture says what is there, its loss recipe works, and files stay short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart import (
    LOSSES,
    Loss,
    MetaRegressor,
    TaskSet,
    get_loss,
    learn_bias,
    learn_prior,
    select_online,
)

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "headstart"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MOST_LINES = 330

Array = NDArray[np.float64]


def recipe_code() -> str:
    """The code of the recipe for a loss."""
    _, recipe = PAGE.split("### Add a loss\n")
    return recipe.split("```python\n")[1].split("```")[0]


@pytest.fixture
def pseudo_huber(tmp_path: Path) -> Iterator[type[Loss]]:
    """The loss of the recipe, registered for one test."""
    before, script = dict(LOSSES), tmp_path / "recipe.py"
    script.write_text(recipe_code())
    try:
        run_path(str(script))
        (name,) = LOSSES.keys() - before
        yield LOSSES[name]
    finally:
        LOSSES.clear()
        LOSSES.update(before)


def draw(n_tasks: int) -> tuple[Array, Array, NDArray[np.int64], Array]:
    """Rows, labels with outliers, ids and own weights around (2, -1, 1)."""
    rng = np.random.default_rng(0)
    own = rng.normal([2.0, -1.0, 1.0], 1.0, (n_tasks, 3))
    ids, X = np.repeat(np.arange(n_tasks), 8), rng.standard_normal((8 * n_tasks, 3))
    noise = np.where(rng.random(len(X)) < 0.05, 10.0, 0.3) * rng.standard_normal(len(X))
    return X, (X * own[ids]).sum(axis=1) + noise, ids, own


def test_the_recipe_for_a_loss_gives_the_paper_its_loss(pseudo_huber: type[Loss]) -> None:
    """Algorithm 2 by hand, with the textbook slope ``r / hypot(delta, r)``."""
    X, y, ids, _ = draw(20)
    tasks, reg, step = TaskSet.from_arrays(X, y, ids), 0.3, 0.2
    for loss, delta in (("pseudo_huber", 1.0), (pseudo_huber(0.5), 0.5)):  # type: ignore[call-arg]
        h, path = np.zeros(3), [np.zeros(3)]
        for task_X, task_y in tasks:
            total = np.zeros(3)
            for k, (x, label) in enumerate(zip(task_X, task_y, strict=True)):
                w = h - total / (max(k, 1) * reg)
                r = x @ w - label
                total += r / np.hypot(delta, r) * x
            h = h - step * total / len(task_y)
            path.append(h)
        found = learn_bias(tasks, reg, step, loss, keep_path=True)
        assert found.path is not None
        np.testing.assert_allclose(found.path, np.array(path), atol=1e-12)
    shots, queries = tasks.split_rows(4)
    grid = [0.1, 1.0], [0.1, 1.0]
    chosen = select_online(tasks, (shots, queries), (shots, queries), *grid, "pseudo_huber")
    assert chosen.test_loss[-1] < chosen.test_loss[0]


def test_the_recipe_for_a_loss_gives_a_prior_its_loss(pseudo_huber: type[Loss]) -> None:
    loss, z = pseudo_huber(), np.linspace(-50.0, 50.0, 2001)
    for mean, variance in ((0.0, 0.0), (3.0, 0.5), (-1.0, 9.0)):
        omega, tau, c = loss.quadratic_form(mean, variance, 0.0)
        above = omega / 2.0 * (z - tau) ** 2 + c - loss.value(z, 0.0)
        assert above.min() >= -1e-9
        touch = np.sqrt(mean**2 + variance)
        assert omega / 2.0 * touch**2 + c == pytest.approx(float(loss.value(touch, 0.0)))
    X, y, ids, own = draw(150)
    tasks = TaskSet.from_arrays(X, y, ids)
    prior = learn_prior(tasks, "pseudo_huber")
    squared = learn_prior(tasks)
    assert np.abs(prior.bias - own.mean(axis=0)).max() < 0.1
    assert prior.loss == loss
    error, without = (np.abs(p.posteriors(tasks).weights - own).mean() for p in (prior, squared))
    assert error < 0.6 * without  # outliers count for less


@pytest.mark.parametrize("reg", ["auto", 0.3])
def test_the_recipe_for_a_loss_gives_estimators_their_loss(
    reg: float | str, pseudo_huber: type[Loss], tmp_path: Path
) -> None:
    X, y, ids, own = draw(150)
    model = MetaRegressor(loss="pseudo_huber", reg=reg).fit(X, y, groups=ids)
    truth = (X * own[ids]).sum(axis=1)
    error = np.abs(model.predict(X, groups=ids) - truth).mean()
    assert error < 0.5 * np.abs(truth).mean()
    model.save(tmp_path / "model")
    loaded = MetaRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X, groups=ids), model.predict(X, groups=ids))
    with pytest.raises(ValueError, match="the exact solver needs the part 'star'"):
        MetaRegressor(loss=pseudo_huber(), reg=1.0, inner="erm").fit(X, y, groups=ids)


def test_a_loss_of_a_recipe_is_gone_after_its_test() -> None:
    with pytest.raises(ValueError, match="loss: expected one of"):
        get_loss("pseudo_huber")


def prose() -> str:
    """The page without its code."""
    return re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)


def named_paths() -> list[str]:
    """All paths of files and folders that the page names."""
    return [
        word
        for word in re.findall(r"`([^`\s]+)`", prose())
        if "/" in word or word.endswith((".py", ".md", ".toml"))
    ]


def find(path: str) -> Path | None:
    places = [top / path for top in (PACKAGE, ROOT)]
    return next((place for place in places if place.exists()), None)


def test_every_path_on_the_page_exists() -> None:
    paths = named_paths()
    assert len(paths) > 80
    assert [path for path in paths if find(path) is None] == []
    folders = [path for path in paths if path.endswith("/")]
    assert all((find(path) or ROOT / "nowhere").is_dir() for path in folders)


def test_every_name_in_a_step_is_one_of_its_file() -> None:
    """A step is a path with a colon, then names which that file defines."""
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`: (.*(?:\n   .*)*)", prose(), flags=re.MULTILINE)
    assert len(steps) > 50
    missing = []
    for path, text in steps:
        source = (find(path) or ROOT / "nowhere").read_text()
        # names of the steps that are not of the file: the faces, and an environment variable
        for name in set(re.findall(r"`([\w.]+)`", text)) - {"fit", "HEADSTART_DATA"}:
            if name.endswith(".py"):
                continue
            for part in name.split("."):
                defined = rf"^\s*(?:def|class) {part}\b|^{part}\b.* = "
                if not re.search(defined, source, flags=re.MULTILINE):
                    missing.append(f"{path}: {name}")
    assert missing == []


def test_the_map_has_every_folder_and_file_of_the_top() -> None:
    there = {
        f"{entry.name}/" if entry.is_dir() else entry.name
        for entry in PACKAGE.iterdir()
        if (entry.is_dir() and list(entry.glob("*.py"))) or entry.suffix == ".py"
    }
    the_map = PAGE.split("## The map\n")[1].split("**Why one way.**")[0]
    assert there - set(re.findall(r"`([^`]+)`", the_map)) == {"__init__.py"}


def test_folders_with_kernels_are_those_of_the_cache_key() -> None:
    text = " ".join(PAGE.split("**Kernels**")[1].split("**Doors**")[0].split())
    live_in = text.split("They live in ")[1].split(", take")[0]
    key = re.search(r"^HOLD_KERNELS = \((.*)\)$", (PACKAGE / "_core/jit.py").read_text(), re.M)
    assert key is not None
    assert re.findall(r"`(\w+)/`", live_in) == re.findall(r'"(\w+)"', key.group(1))


def test_no_source_file_is_too_long() -> None:
    lengths = {
        str(source.relative_to(PACKAGE)): len(source.read_text().splitlines())
        for source in PACKAGE.rglob("*.py")
    }
    assert len(lengths) > 100
    assert {name: n for name, n in lengths.items() if n > MOST_LINES} == {}
