"""Calls of every public function, class and method with odd and hostile values.

Each call has a number, and seed and number give it again:
``PYTHONPATH=tests python -m attack.calls SEED NUMBER``.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import estimators, objects  # noqa: F401 - they fill the registry
from .contract import Outcome, attempt, differ
from .odd import BAD_IDS, CLOTHES, COSTUMES, DAMAGES, SAME_IDS, SCALARS, ids_of
from .registry import REGISTRY
from .sequences import sequence
from .world import Call, World

OF_TEXTS = ("list", "objects", "empty", "less", "None", "flat", "column", "None inside", "text",
            "number", "more", "an object inside")  # fmt: skip
DRESSED = ("table", "rows", "vector", "ids", "known ids")
OURS = ("tasks", "ids", "known ids")  # nothing can be made up for these
NAMES = [*REGISTRY]
OFTEN = np.array([often for _, often in REGISTRY.values()])
CUTS = np.cumsum(OFTEN) / OFTEN.sum()
A_BLOCK = 25_000  # calls of one process, which takes as long to start as 3,000 calls
PATIENCE = 300.0  # seconds for one call: kernels may have to be compiled
SEQUENCES = 0.02  # the share of calls that are sequences of several
EXACT, ROUNDED = 1e-7, 2e-3

WORDS: list[Any] = [
    "absolute", "squared", "hinge", "logistic", "huber", "sgd", "erm", "constant", "average",
    "last", "suffix", "poly", "stream", "resample", "cd", "fista", "radius", "operator", "full",
    "diagonal", "isotropic", "auto", "adapt", "pooled", "independent", "zero_one", "SGD", "",
]  # fmt: skip
DTYPES: list[Any] = [
    np.float64, np.float32, np.float16, np.longdouble, np.int64, np.bool_, np.complex128, object,
    "float32", "f8", ">f8", "U5", "M8[s]", "nonsense", None, 3, int, float, str, [("a", float)],
]  # fmt: skip
KEYS: list[Any] = [
    *SCALARS, 0, 1, 5, 99, "u0", 0.0, np.int64(1), np.float32(2.0), (1, 2), float("nan"),
    frozenset(),
]  # fmt: skip
SMALL: list[Any] = [  # with which no loop is endless
    s for s in SCALARS if not (isinstance(s, int | np.integer) and s > 100)
]


def hostile(w: World, role: str, value: Any) -> tuple[str, Any]:
    """Something else for an argument of this role, and what it is called."""
    if role in ("number", "jobs", "passes", "few", "seed", "object"):
        options = SCALARS if role in ("number", "seed", "object") else SMALL
        at = int(w.rng.integers(len(options)))
        return f"scalar {at}", options[at]
    if role == "choice":
        options = WORDS if w.rng.random() < 0.6 else SCALARS
        at = int(w.rng.integers(len(options)))
        return f"word {at}", options[at]
    if role == "dtype":
        return "dtype", w.pick(DTYPES)
    if role == "key":
        return "key", w.pick(KEYS)
    if role in ("ids", "known ids"):
        if w.rng.random() < 0.5:
            return ids_of(int(w.rng.integers(100)), 9, np.asarray(value, np.int64))
        name = w.pick([*BAD_IDS])
        return name, BAD_IDS[name](np.asarray(value))
    if role in ("tasks", "pair"):
        return hostile_tasks(w, value, role)
    if w.rng.random() < 0.1:
        at = int(w.rng.integers(len(SCALARS)))
        return f"scalar {at}", SCALARS[at]
    array = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    names = {**DAMAGES, **COSTUMES, **CLOTHES}
    if array.dtype.kind not in "fiu":
        names = {name: names[name] for name in OF_TEXTS}
    name = w.pick([*names])
    return name, names[name](array)


def hostile_tasks(w: World, value: Any, role: str) -> tuple[str, Any]:
    """Tasks, or pairs of them, with something wrong in one."""
    if w.rng.random() < 0.15:
        at = int(w.rng.integers(len(SCALARS)))
        return f"scalar {at}", SCALARS[at]
    if role == "pair":
        shots, queries = value
        if w.rng.random() < 0.2:
            return "one of two", (shots,)
        name, one = hostile_tasks(w, shots, "tasks")
        return name, (one, queries) if w.rng.random() < 0.5 else (shots, one)
    pairs: list[Any] = [(np.array(X), np.array(y)) for X, y in value]
    at = int(w.rng.integers(len(pairs)))
    part = int(w.rng.integers(2))
    name, odd = hostile(w, "table" if part == 0 else "vector", pairs[at][part])
    pairs[at] = (odd, pairs[at][1]) if part == 0 else (pairs[at][0], odd)
    return f"task {at}, part {part}: {name}", pairs


def other_clothes(w: World, role: str, value: Any) -> tuple[str, Any, bool] | None:
    """The same value as another type, and whether it must be taken."""
    if role in ("ids", "known ids"):
        kind = int(w.rng.integers(SAME_IDS if role == "known ids" else 100))
        name, ids = ids_of(kind, 9, np.asarray(value, np.int64))
        return f"ids as {name}", ids, True
    if role not in ("table", "rows", "vector") or not isinstance(value, np.ndarray | list):
        return None
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return None
    must = bool(w.rng.random() < 0.6)
    name = w.pick([*(CLOTHES if must else COSTUMES)])
    if role == "rows" and "sparse" in name:
        return None  # of sparse rows another prior is learned: they are not centred
    return name, (CLOTHES if must else COSTUMES)[name](array), must


def one(seed: int, number: int) -> str:
    """Make one call; what is wrong with what came of it, or nothing."""
    rng = np.random.default_rng((seed, number))
    if rng.random() < SEQUENCES:
        said = sequence(World(rng))
        return f"{seed} {number} sequence: {said}" if said else ""
    name = NAMES[int(np.searchsorted(CUTS, rng.random()))]
    w = World(rng)
    call = REGISTRY[name][0](w)
    mode = rng.random()
    what, fault = "as it should be", ""
    if mode < 0.15:
        fault = right(call)
    elif mode < 0.4:
        what, fault = in_other_clothes(w, call)
    else:
        what, outcome = attacked(w, call)
        fault = outcome.fault
    return f"{seed} {number} {name} ({what}): {fault}" if fault else ""


def right(call: Call) -> str:
    """A right call has an answer, and that of the oracle."""
    found = attempt(call.function, call.arguments, call.allowed)
    if found.refused.startswith("DataUnavailableError"):
        return ""
    if found.fault or found.refused:
        return found.fault or f"is refused: {found.refused}"
    return "" if call.oracle is None else differ(found.answer, call.oracle(), EXACT)


def in_other_clothes(w: World, call: Call) -> tuple[str, str]:
    """The same numbers in another type give the same answer, or are refused in clear words."""
    roles = [n for n in call.arguments if call.roles.get(n) in DRESSED]
    if not roles:
        return "as it should be", right(call)
    name = w.pick(roles)
    dressed = other_clothes(w, call.roles[name], call.arguments[name])
    if dressed is None:
        return "as it should be", right(call)
    clothes, value, must = dressed
    what = f"{name}: {clothes}"
    plain = attempt(call.function, call.arguments, call.allowed)
    found = attempt(call.function, {**call.arguments, name: value}, call.allowed)
    if found.fault or found.refused:
        refused = f"is refused: {found.refused}" if must and not plain.refused else ""
        return what, found.fault or refused
    return what, differ(found.answer, plain.answer, ROUNDED if "float" in clothes else EXACT)


def attacked(w: World, call: Call) -> tuple[str, Outcome]:
    """One to three arguments are something else."""
    arguments, said = dict(call.arguments), []
    roles = {n: r for n, r in call.roles.items() if n in arguments or r not in OURS}
    for _ in range(1 + int(w.rng.random() < 0.3) + int(w.rng.random() < 0.1)):
        if not roles:
            break
        name = w.pick([*roles])
        value = call.arguments.get(name, 1.0)
        if call.roles[name] in ("table", "rows") and np.ndim(value) != 2:
            value = np.ones((w.n_tasks, 1))
        elif call.roles[name] == "vector" and np.ndim(value) != 1:
            value = np.ones(w.n)
        label, arguments[name] = hostile(w, call.roles[name], value)
        said.append(f"{name}: {label}")
    return ", ".join(said), attempt(call.function, arguments, call.allowed)


def run(count: int, seed: int) -> list[str]:
    """Try so many calls; a line for each that broke its contract, with seed and number of it.

    Calls are made in processes of their own, so that one that ends its process is known too.
    """
    failures: list[str] = []
    first = 0
    while first < count:
        last = min(count, first + A_BLOCK)
        found, reached = _block(seed, first, last)
        failures += found
        first = reached
    return failures


def _block(seed: int, first: int, last: int) -> tuple[list[str], int]:
    """The failures of a block, and the number of the call to go on with."""
    with tempfile.NamedTemporaryFile() as counter:
        counter.write(bytes(8))
        counter.flush()
        command = [
            sys.executable,
            "-m",
            "attack.calls",
            str(seed),
            str(first),
            str(last),
            counter.name,
        ]
        tests = str(Path(__file__).parent.parent)
        path = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH", "")]))
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        at, ended = -1, ""
        while process.returncode is None:
            before, at = at, _number(counter.name)
            if at == before:
                process.kill()
                ended = f"was not done after {PATIENCE:g} s"
            try:
                out, errors = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                continue
        failures = out.splitlines()
        if process.returncode == 0:
            return failures, last
        at = _number(counter.name)
        ended = ended or f"ended its process with code {process.returncode}: {errors[-300:]}"
        return [*failures, f"{seed} {at}: {ended}"], max(at, first) + 1


def _number(counter: str) -> int:
    """The number of the call that a process is making."""
    return int.from_bytes(Path(counter).read_bytes()[:8], "little")


def main(arguments: list[str], tell: Callable[[str], object] = print) -> None:
    """Make one call and say what it was, or a block of them for `run`."""
    seed, first, *rest = map(int, arguments[:3])
    last = rest[0] if rest else first + 1
    with open(arguments[3], "r+b") if rest else tempfile.TemporaryFile() as file:  # noqa: PTH123
        if not rest:
            file.write(bytes(8))
            file.flush()
        counter = mmap.mmap(file.fileno(), 8)
        ends_at = int(os.environ.get("HEADSTART_ATTACK_ENDS_AT", -1))  # a crash, for a test
        for number in range(first, last):
            counter[:] = number.to_bytes(8, "little")
            if number == ends_at:
                os._exit(70)
            if fault := one(seed, number):
                tell(fault.replace("\n", " | "))


if __name__ == "__main__":
    main(sys.argv[1:])
