"""The long attack: ``python tests/attack``, two parts of it at a time.

Each kind is a function ``(count, seed) -> list of lines``, a line for each failure with what is
needed to repeat it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent.parent
AT_ONCE = 2
PARTS = 20  # a kind is done in so many parts, of which each tells how far it came


class Kind(NamedTuple):
    """What is attacked: the option that says how often, and the function that does it."""

    option: str
    often: int
    module: str
    function: str


KINDS = [
    Kind("calls", 1_000_000, "calls", "run"),
    Kind("mutations", 100_000, "models", "run"),
    Kind("bounds", 10_000, "models", "run_bounds"),
    Kind("kills", 500, "kills", "run"),
    Kind("races", 500, "races", "race"),
    Kind("saves", 100, "races", "kill_saves"),
    Kind("files", 1_000, "files", "run"),
]


class Tally(NamedTuple):
    """What came of one kind."""

    tried: int
    seconds: float
    failures: list[str]

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            self.tried + other.tried,
            self.seconds + other.seconds,
            [*self.failures, *other.failures],
        )


def parts(kind: Kind, count: int, seed: int) -> Iterator[tuple[Kind, int, int]]:
    """The parts of a kind: how many to try, and from which seed."""
    cuts = [count * k // PARTS for k in range(PARTS + 1)]
    for k in range(PARTS):
        if cuts[k + 1] > cuts[k]:
            yield kind, cuts[k + 1] - cuts[k], seed + k


def attack(kind: Kind, count: int, seed: int) -> Tally:
    """One part, in a process of its own: what it leaves behind, or ends it by, harms no other."""
    begun = time.perf_counter()
    command = [sys.executable, str(TESTS / "attack"), "--part", kind.option]
    done = subprocess.run(
        [*command, str(count), str(seed)], capture_output=True, text=True, cwd=TESTS.parent
    )
    failures = done.stdout.splitlines()
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1:] or [f"code {done.returncode}"]
        failures.append(f"{kind.option} {count} {seed}: the attack itself ended: {why[0]}")
    return Tally(count, time.perf_counter() - begun, failures)


def run_part(option: str, count: int, seed: int) -> int:
    """Try a part here, and print its failures."""
    kind = next(kind for kind in KINDS if kind.option == option)
    sys.path[0] = str(TESTS)  # in the place of this folder, which is a package there
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")])
    )
    module = importlib.import_module(f"attack.{kind.module}")
    for line in getattr(module, kind.function)(count, seed):
        print(line.replace("\n", " | "))
    return 0


def main() -> int:
    """Attack, print a table of what came of it, and fail if anything did."""
    parser = argparse.ArgumentParser(prog="python tests/attack", description=__doc__)
    for kind in KINDS:
        parser.add_argument(f"--{kind.option}", type=int, default=kind.often, metavar="N")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--part", nargs=3, metavar=("KIND", "COUNT", "SEED"), help="one part alone")
    options = parser.parse_args()
    if options.part is not None:
        name, count, seed = options.part
        return run_part(name, int(count), int(seed))
    work = [
        part for kind in KINDS for part in parts(kind, getattr(options, kind.option), options.seed)
    ]
    tallies = {kind.option: Tally(0, 0.0, []) for kind in KINDS}
    print(f"seed {options.seed}", flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = {pool.submit(attack, *part): part for part in work}
        for number, future in enumerate(as_completed(waiting), 1):
            option, found = waiting[future][0].option, future.result()
            tallies[option] = tallies[option].plus(found)
            for line in found.failures:
                print(f"{option}: {line}")
            failed = sum(len(tally.failures) for tally in tallies.values())
            print(f"{number} of {len(work)} parts, {failed} failures", flush=True)
    print(f"\n{'kind':12}{'tried':>12}{'failures':>12}{'seconds':>12}")
    for option, tally in tallies.items():
        print(f"{option:12}{tally.tried:>12,}{len(tally.failures):>12}{tally.seconds:>12,.0f}")
    failures = [f"{option}: {line}" for option, t in tallies.items() for line in t.failures]
    print("", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
