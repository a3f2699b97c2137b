"""The kernel cache: an edit anywhere is noticed, and no folder is no trouble."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numba
import pytest

from headstart._core import checks, jit

PROBE = """
from headstart import biased_sgd
from headstart._core import jit
print(biased_sgd([[1.0]], [3.0], [0.0], 1.0).last[0])
print(sum(1 for _ in jit.CACHE_FOLDER.rglob('*.nbi')) if jit.CACHE_FOLDER else 'no folder')
"""


def probe(package: Path, **environment: str) -> list[str]:
    """Run one kernel in a new process with the copy of the package in this folder."""
    clean = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**clean, "PYTHONPATH": str(package), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(jit.PACKAGE, tmp_path / "headstart", ignore=ignored)
    return tmp_path


def test_editing_a_loss_changes_what_compiled_kernels_compute(copy: Path) -> None:
    assert probe(copy)[0] == "1.0"
    assert probe(copy)[0] == "1.0"  # now from the cache
    losses = copy / "headstart" / "losses" / "regression.py"
    text = losses.read_text()
    edited = text.replace("return 1.0 * (s > 0.0) - 1.0", "return 0.5 * (s > 0.0) - 0.5", 1)
    assert edited != text
    losses.write_text(edited)
    assert probe(copy)[0] == "0.5"
    losses.write_text(text)
    assert probe(copy)[0] == "1.0"


def test_a_second_process_compiles_nothing(copy: Path) -> None:
    probe(copy)
    folder = copy / "headstart" / "__pycache__"
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*.nb?")}
    assert len(before) > 4
    probe(copy)
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*.nb?")} == before


def test_without_a_writable_folder_kernels_still_run(copy: Path) -> None:
    """A file where each folder should be stands for a place that cannot be written."""
    for name in ("__pycache__", "cache"):
        (copy / "headstart" / name).write_text("in the way")
    blocked = str(copy / "headstart" / "cache")
    value, cached, *_ = probe(copy, XDG_CACHE_HOME=blocked, PYTHONDONTWRITEBYTECODE="1")
    assert (value, cached) == ("1.0", "no folder")


def test_the_users_cache_serves_where_the_package_is_read_only(copy: Path) -> None:
    (copy / "headstart" / "__pycache__").write_text("in the way")
    home = str(copy / "home")
    value, cached, *_ = probe(copy, XDG_CACHE_HOME=home, PYTHONDONTWRITEBYTECODE="1")
    assert value == "1.0"
    assert int(cached) > 0
    assert list(Path(home).rglob("*.nbi"))


def test_numbas_own_setting_is_respected_and_left_alone(copy: Path) -> None:
    chosen = str(copy / "chosen")
    probe(copy, NUMBA_CACHE_DIR=chosen)
    assert list(Path(chosen).rglob("*.nbi"))
    assert not list((copy / "headstart").rglob("*.nbi"))


def test_digest_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = jit.source_digest(tmp_path)
    (tmp_path / "a.py").write_text("2")
    second = jit.source_digest(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, jit.source_digest(tmp_path)}) == 3


def collect(seen: list[int], first: int, last: int) -> None:
    seen.extend(range(first, last))


def test_blocks_cover_everything_once() -> None:
    for count in (1, 7, 100):
        for jobs in (1, 2, 3):
            seen: list[int] = []
            jit.run_blocks(partial(collect, seen), count, jobs)
            assert sorted(seen) == list(range(count))


def test_an_error_in_a_block_is_raised() -> None:
    def work(first: int, last: int) -> None:
        raise MemoryError(f"{first} to {last}")

    with pytest.raises(MemoryError):
        jit.run_blocks(work, 10, 2)


def test_editing_a_help_text_compiles_nothing(copy: Path) -> None:
    probe(copy)
    before = set((copy / "headstart" / "__pycache__").glob("kernels-*"))
    command = next((copy / "headstart" / "cli").glob("*.py"))
    command.write_text(command.read_text() + "\n# a better word\n")
    probe(copy)
    assert set((copy / "headstart" / "__pycache__").glob("kernels-*")) == before


def test_the_cache_is_named_after_all_folders_that_hold_kernels() -> None:
    decorators = ("@kernel", "@part", "@inlined", "@within", "@intrinsic", "uncached(")
    holding = {
        source.relative_to(jit.PACKAGE).parts[0]
        for source in jit.PACKAGE.rglob("*.py")
        if any(word in source.read_text() for word in decorators)
    }
    assert holding == set(jit.HOLD_KERNELS)


def test_kernels_of_others_keep_their_cache_folder() -> None:
    before = vars(numba.config)["CACHE_DIR"]
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba, "njit", lambda *_, **__: seen.append(vars(numba.config)["CACHE_DIR"]))
        jit.kernel(abs)
    assert seen == [str(jit.CACHE_FOLDER)]
    assert vars(numba.config)["CACHE_DIR"] == before


def test_threads_are_counted_back_from_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "cores", lambda: 4)
    assert [checks.check_jobs(n) for n in (None, 1, 3, -1, -2, -4, -9)] == [1, 1, 3, 4, 3, 1, 1]
