"""Writers and readers of one folder at once, and writers that are killed.

Every load must give one of the models that were written, whole: its number is among its
parameters, and then all its answers are known. Processes are forked from one that has all models
in memory, so that a race takes little time.
``PYTHONPATH=tests python -m attack.races race SEED FIRST COUNT`` repeats some; ``kill`` likewise.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attack.watch import numbers, place, say_harm, say_try, watched
from headstart import MetaRegressor

MODELS, D, LARGE = 5, 3, 3000  # the weights of so many entities are mapped, not read at once
WRITERS, READERS, SAVES, LOADS = 3, 3, 4, 12  # in one race
AT_ONCE = 500  # attacks in one process

Rng = np.random.Generator
ROWS = np.random.default_rng(0).normal(size=(6, D))
ASKED = [0, 1, 2, 3, 999, None]


def made(number: int) -> MetaRegressor:
    """A model that says its number, and has its own count of entities."""
    count = LARGE if number == 0 else 4 + number
    rng = np.random.default_rng(number)
    X, ids = rng.normal(size=(2 * count, D)), np.arange(2 * count) % count
    return MetaRegressor(random_state=number).fit(X, X.sum(axis=1) + rng.normal(size=len(X)), ids)


Answers = tuple[NDArray[Any], ...]


def answers(model: MetaRegressor) -> Answers:
    """What a model says of entities one by one, of all, and when it has to go on."""
    own, predicted = model.weights_of(3), model.predict(ROWS, ASKED)
    model.finish()
    return own, predicted, np.array(model.ids_), *model.predict(ROWS, ASKED, return_std=True)


class Models:
    """Some models, and what each of them answers."""

    def __init__(self, folder: Path) -> None:
        self.models = [made(number) for number in range(MODELS)]
        self._right: list[Answers] = []
        for model in self.models:
            model.save(folder / "right")
            self._right.append(answers(MetaRegressor.load(folder / "right")))

    def check(self, model: MetaRegressor) -> int:
        """The number of a model; raises if anything of it is of another."""
        number = model.random_state
        assert isinstance(number, int)
        for found, right in zip(answers(model), self._right[number], strict=True):
            np.testing.assert_array_equal(found, right)
        return number


def forked(work: Callable[[], object], harm: Path) -> int:
    """A process that does this work; it writes down what goes wrong."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        with harm.open("a") as file:
            file.write(traceback.format_exc(limit=-3))
        os._exit(1)


def leftovers(folder: Path, most: int) -> str | None:
    """What lies in a folder of at most so many versions, and should not."""
    page = json.loads((folder / "model.json").read_text())
    ours = {"model.json", ".lock", page["place"], *page["older"]}
    wrong = [p.name for p in folder.iterdir() if p.name not in ours]
    wrong += [str(p) for p in folder.rglob("*") if ".part" in p.name]
    wrong += ["too many versions"] * (len(page["older"]) >= most)
    return f"left in the folder: {wrong}" if wrong else None


def one_race(models: Models, rng: Rng, folder: Path) -> str | None:
    """Writers and readers of one folder, which may have a model at the beginning, or none."""
    harm, go = folder.with_suffix(".harm"), folder.with_suffix(".go")
    begun = bool(rng.random() < 0.7)
    if begun:
        models.models[1].save(folder)
    seeds = rng.integers(2**31, size=WRITERS + READERS).tolist()

    def wait() -> None:
        while not go.exists():
            time.sleep(0.0002)

    def write(seed: int) -> None:
        own = np.random.default_rng(seed)
        wait()
        chosen = own.integers(MODELS, size=2)
        threads = [threading.Thread(target=save, args=(int(number),)) for number in chosen]
        for thread in threads:  # who saves at the same time from one process
            thread.start()
        for _ in range(SAVES):
            save(int(own.integers(MODELS)))
        for thread in threads:
            thread.join()

    def save(number: int) -> None:
        try:
            models.models[number].save(folder, keep=1 + number % 3)
        except BaseException:
            with harm.open("a") as file:
                file.write(traceback.format_exc(limit=-3))

    def read() -> None:
        served = MetaRegressor.load(folder) if begun else None
        wait()
        seen = 0
        while seen < LOADS:
            try:
                models.check(MetaRegressor.load(folder))
            except FileNotFoundError:
                if begun or seen:
                    raise
                continue
            seen += 1
        if served is not None:
            models.check(served)  # whose files are deleted by now

    children = [forked(partial(write, seed), harm) for seed in seeds[:WRITERS]]
    children += [forked(read, harm) for _ in seeds[WRITERS:]]
    go.touch()
    codes = [os.waitpid(child, 0)[1] for child in children]
    if any(codes) or harm.exists():
        return f"processes ended with {codes}: {harm.read_text() if harm.exists() else ''}"
    models.check(MetaRegressor.load(folder))
    return _versions_are_whole(models, folder) or leftovers(folder, 3)


def _versions_are_whole(models: Models, folder: Path) -> str | None:
    page = json.loads((folder / "model.json").read_text())
    for version in range(1 + len(page["older"])):
        models.check(MetaRegressor.load(folder, version))
    return None


EVENTS = {"open": 90, "os.mkdir": 3, "os.rename": 3, "os.remove": 60, "os.rmdir": 3}


def kill_at(kind: str, last: int) -> None:
    """Have this process killed when something of this kind is about to happen to files so often."""
    seen = 0

    def count(event: str, arguments: Any) -> None:  # noqa: ARG001
        nonlocal seen
        seen += event == kind
        if event == kind and seen == last:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def one_kill(models: Models, rng: Rng, folder: Path) -> str | None:
    """A process that saves is killed at some moment, at its first save or a later one."""
    harm, before = folder.with_suffix(".harm"), bool(rng.random() < 0.5)
    old, new = models.models[1], models.models[int(rng.choice([0, 2]))]
    keep = int(rng.integers(1, 4))
    if before:
        old.save(folder, keep=2)
    event = str(rng.choice(list(EVENTS))) if rng.random() < 0.5 else None
    often = int(rng.integers(1, EVENTS[event] + 1)) if event else 0

    def save() -> None:
        if event:
            kill_at(event, often)
        while True:
            new.save(folder, keep=keep)

    child = forked(save, harm)
    if not event:
        time.sleep(float(rng.uniform(0.0, 0.02)))
        os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        return f"was not killed: {harm.read_text() if harm.exists() else ''}"
    try:
        number = models.check(MetaRegressor.load(folder))
    except FileNotFoundError:
        if before:
            return "the old model is lost"
    else:
        if number not in ([1] if before else []) + [new.random_state]:
            return f"load gives model {number}"
    models.models[3].save(folder, keep=keep)
    if models.check(MetaRegressor.load(folder)) != 3:
        return "the save after it is not there"
    return _versions_are_whole(models, folder) or leftovers(folder, keep)


def attacks(one: Callable[[Models, Rng, Path], str | None], *which: int) -> None:
    """Try some, and say before and after each how it goes."""
    with tempfile.TemporaryDirectory(dir=place()) as folder:
        here = Path(folder)
        models = Models(here)
        for number, own in numbers(*which):
            say_try(f"number {number}")
            try:
                say_harm(one(models, np.random.default_rng(own), here / f"model-{number}"))
            except Exception:
                say_harm(traceback.format_exc(limit=-3))


def race(count: int, seed: int) -> list[str]:
    """Let writers and readers race so often; a line for each race in which one failed."""
    return watched("attack.races", "race", seed, count, AT_ONCE)


def kill_saves(count: int, seed: int) -> list[str]:
    """Kill so many writers; a line for each after which something was lost or left."""
    return watched("attack.races", "kill", seed, count, AT_ONCE)


if __name__ == "__main__":
    attacks({"race": one_race, "kill": one_kill}[sys.argv[1]], *map(int, sys.argv[2:]))
