"""The one decorator for compiled kernels, and where their machine code is kept.

numba's file cache notices an edit of the file a kernel is written in, but not an edit
of a file it calls into: a kernel using a loss would keep the old formula. The cache
folder is therefore named after a digest of all sources in the folders that hold kernels: an
edit there starts an empty one, and an edit of a help text compiles nothing. Where no folder can
be written, kernels are compiled anew in every process, and nothing else changes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import numba.extending

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parent.parent
HOLD_KERNELS = ("_core", "losses", "tasks", "inner", "meta", "selection", "online", "parquet")


def source_digest(package: Path = PACKAGE, folders: tuple[str, ...] = ("",)) -> str:
    """Digest of every source file of the package, or of these folders, names included."""
    digest = blake2b(digest_size=8)
    for source in sorted(file for name in folders for file in (package / name).rglob("*.py")):
        digest.update(str(source.relative_to(package)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _user_cache() -> list[Path]:
    """Where this user's caches are; nowhere if there is no home, as in some containers."""
    given = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    if folder := os.environ.get(given):
        return [Path(folder)]
    try:
        home = Path.home()
    except RuntimeError:
        return []
    inside = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    return [home / inside]


def find_cache_folder() -> Path | None:
    """The first writable of ``NUMBA_CACHE_DIR``, the package's own folder and the user's cache."""
    chosen = vars(numba.config)["CACHE_DIR"]
    roots = [Path(chosen)] if chosen else [PACKAGE / "__pycache__"]
    if not chosen:
        roots += [cache / "headstart" for cache in _user_cache()]
    digest = source_digest(folders=HOLD_KERNELS)
    for root in roots:
        folder = root / f"kernels-{digest}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


CACHE_FOLDER = find_cache_folder()

# Sums may be reordered into vector lanes and products fused into them; infinities and
# NaN keep their meaning, because an infinite conjugate means "infeasible".
LANES = {"reassoc", "contract"}


# Any, because numba keeps the type of its options to itself.
SETTINGS: Any = {"nogil": True, "fastmath": LANES, "error_model": "numpy"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` without the interpreter lock and keep its machine code on disk."""
    settings = vars(numba.config)
    before = settings["CACHE_DIR"]
    settings["CACHE_DIR"] = "" if CACHE_FOLDER is None else str(CACHE_FOLDER)
    try:
        compiled: Callable[P, R] = numba.njit(function, cache=CACHE_FOLDER is not None, **SETTINGS)
    finally:
        settings["CACHE_DIR"] = before
    return compiled


def part(
    function: Callable[P, R], *, inline: bool = False, counting: bool = True
) -> Callable[P, R]:
    """A function that only kernels call: for Python it stays as it is written.

    A kernel can be called from Python too. To take its arguments over is compiled with it, and
    where they are many arrays, that takes as long as all it does with them.
    """

    def choose(*_: Any) -> Callable[P, R]:
        return function

    about = {"no_cfunc_wrapper": True, "forceinline": inline, "_nrt": counting}
    options: Any = {**SETTINGS, **about}
    numba.extending.overload(function, jit_options=options, strict=False)(choose)
    return function


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part whose machine code becomes part of its callers'.

    For those that take many arrays: handing one over costs as much as a short loop.
    """
    return part(function, inline=True)


def lent(function: Callable[P, R]) -> Callable[P, R]:
    """An inlined part that makes no array, nor does what it calls: those it takes are lent to it.

    So references to them need not be counted, which is an instruction that locks memory whenever
    an array gets another name: where loops are short, a seventh of the time.
    """
    return part(function, inline=True, counting=False)


def within(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose text becomes part of its callers, and that has no machine code of its own.

    For what is small and has many callers: compiling it by itself would take longest.
    """
    compiled: Callable[P, R] = numba.njit(function, inline="always", **SETTINGS)
    return compiled


def uncached(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel without a source file, which numba cannot cache; its callers are, with it inside."""
    compiled: Callable[P, R] = numba.njit(function, **SETTINGS)
    return compiled


def intrinsic(definition: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator of functions that write LLVM instructions themselves.

    Compiled code calls them without the typing context that the definition begins with, which
    numba's own types do not say.
    """
    return numba.extending.intrinsic(definition)


def run_blocks(work: Callable[[int, int], None], count: int, n_jobs: int) -> None:
    """Call ``work(first, last)`` over blocks of ``range(count)`` that are done in any order."""
    n_jobs = min(n_jobs, count)
    if n_jobs <= 1:
        work(0, count)
        return
    cuts = [count * k // (4 * n_jobs) for k in range(4 * n_jobs + 1)]
    with ThreadPoolExecutor(n_jobs) as pool:
        for _ in pool.map(work, *zip(*[(a, b) for a, b in pairwise(cuts) if a < b], strict=True)):
            pass
