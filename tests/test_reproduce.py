"""The experiments end to end: in process, from the shell, killed and gone on with."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import needs_browser, open_page
from typer.testing import CliRunner

from headstart._files import write_aside
from headstart.cli import app
from headstart.experiments import (
    EXPERIMENTS,
    METHODS,
    Experiment,
    Piece,
    Store,
    draw_data,
    methods_of,
)
from headstart.selection import select_online

SMALL = ["synthetic-regression", "--tasks", "6", "--seeds", "2"]
SGD = ["--methods", "itl-sgd,mean-sgd,ltl-sgd-sgd"]


def small(name: str = "synthetic-regression", **changes: Any) -> Experiment:
    base = replace(EXPERIMENTS[name], n_tasks=5, n_valid=4, n_test=4, n_queries=5, grid_size=3)
    return replace(base, **changes)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", *arguments])


def contents(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on how often a run was stopped: all but timings."""
    names = ("curves.csv", "config.json", "figure.png", "figure.svg")
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.name in names
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with every method."""
    out = tmp_path_factory.mktemp("finished") / "results"
    result = run("synthetic-classification", *SMALL, "--out", str(out), "--jobs", "2")
    assert result.exit_code == 0, result.output
    return out


def test_files_and_columns(finished: Path) -> None:
    for name in ("synthetic-regression", "synthetic-classification"):
        for file in ("curves.csv", "config.json", "figure.png", "figure.svg"):
            assert (finished / name / file).stat().st_size > 100
        with (finished / name / "curves.csv").open() as table:
            rows = list(csv.DictReader(table))
        assert list(rows[0]) == ["experiment", "method", "seed", "tasks", "metric", "value"]
        assert {r["method"] for r in rows} == set(METHODS)
        metrics = {"loss"} if "regression" in name else {"loss", "accuracy"}
        assert {r["metric"] for r in rows} == metrics
        assert len(rows) == len(METHODS) * 2 * 7 * len(metrics)
        config = json.loads((finished / name / "config.json").read_text())
        assert (config["n_tasks"], config["seeds"], config["grid_size"]) == (6, 2, 10)
    assert not list(finished.rglob("*.part*"))


def test_report_is_one_page_with_everything(finished: Path) -> None:
    page = (finished / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert not re.search(r'(src|href)="(?!data:)', page)
    for word in ("LTL SGD-SGD", "MEAN ERM", "LTL is far below ITL", "seconds a run", "accuracy"):
        assert word in page


def test_curves_are_the_selection(finished: Path) -> None:
    e = replace(EXPERIMENTS["synthetic-regression"], n_tasks=6, seeds=2)
    data = draw_data(e, 1)
    expected = select_online(data.train, data.valid, data.test, e.grid, e.grid, e.loss)
    with (finished / e.name / "curves.csv").open() as file:
        rows = [
            r for r in csv.DictReader(file) if r["method"] == "ltl-sgd-sgd" and r["seed"] == "1"
        ]
    np.testing.assert_array_equal([float(r["value"]) for r in rows], expected.test_loss)


def test_results_do_not_depend_on_jobs_or_interruption(finished: Path, tmp_path: Path) -> None:
    """One job at a time, half of the pieces already there, others damaged."""
    out = tmp_path / "results"
    shutil.copytree(finished, out)
    pieces = sorted(out.rglob("*.npz"))
    for piece in pieces[::2]:
        piece.unlink()
    pieces[1].write_bytes(pieces[1].read_bytes()[:-40])
    pieces[3].write_bytes(b"not a piece")
    np.savez(pieces[5], tasks=np.arange(3), loss=np.zeros(3), accuracy=np.zeros(0), seconds=0.0)
    result = run("synthetic-classification", *SMALL, "--out", str(out), "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert result.output.count("computing this piece again") == 3
    assert contents(out) == contents(finished)


def test_killed_five_times_and_gone_on_with(tmp_path: Path) -> None:
    arguments = [*SMALL, *SGD, "--jobs", "2"]
    command = [sys.executable, "-c", "from headstart.cli import app; app()", "reproduce"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(*arguments, "--out", str(whole)).exit_code == 0
    rng = np.random.default_rng(0)
    for _ in range(5):
        process = subprocess.Popen(
            [*command, *arguments, "--out", str(broken)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(1.5, 5.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run([*command, *arguments, "--out", str(broken)], check=False)
    assert done.returncode == 0
    assert contents(broken) == contents(whole)


def test_repetitions_and_experiments_differ_and_methods_share_data() -> None:
    a, b = draw_data(small(), 0), draw_data(small(), 1)
    assert np.any(a.train.X != b.train.X)
    other = draw_data(small("synthetic-classification"), 0)
    assert np.any(a.train.X != other.train.X)
    np.testing.assert_array_equal(a.train.X, draw_data(small(), 0).train.X)


@pytest.mark.parametrize("method", METHODS)
def test_resampling_changes_only_what_sgd_sees(method: str) -> None:
    stream = Piece(small(), method, 0).compute().loss
    resample = Piece(small(order="resample"), method, 0).compute().loss
    assert np.any(stream != resample) == ("sgd" in method)


def test_lenk_has_no_mean() -> None:
    assert methods_of(EXPERIMENTS["lenk-regression"], ["mean-sgd", "itl-sgd"]) == ["itl-sgd"]


def test_settings_that_matter_keep_their_pieces_apart(tmp_path: Path) -> None:
    folders = {
        Store(tmp_path, e, print).folder
        for e in (small(), small(order="resample"), small(n_tasks=6), small(seeds=3))
    }
    assert len(folders) == 3  # more repetitions use the pieces there are


def test_missing_data_leaves_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    result = run(
        "lenk-regression", *SMALL, "--methods", "itl-sgd", "--out", str(tmp_path / "results")
    )
    assert result.exit_code == 1
    assert "lenk-regression: lenk_data.mat: HEADSTART_DATA is" in result.output
    assert (tmp_path / "results" / "synthetic-regression" / "curves.csv").exists()
    assert "Not done" in (tmp_path / "results" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lenk"], "experiment: expected any of synthetic-regression.* found lenk"),
        (["--methods", "itl"], "method: expected any of itl-sgd.* found itl"),
        (["--order", "random"], "--order: expected one of stream, resample, found random"),
        (["--seeds", "0"], "Invalid value"),
        (["--jobs", "x"], "Invalid value"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert re.search(message, result.stderr)
    assert "Traceback" not in result.output


def test_an_output_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run(*SMALL, "--methods", "itl-sgd", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr
    assert "Traceback" not in result.output


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fail(aside: Path) -> None:
        aside.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_aside(path, fail)
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    assert path.read_text() == "old"


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    """On a real full file system where one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small file system here")
    try:
        result = run(*SMALL, "--methods", "itl-sgd", "--out", str(disk / "results"))
        assert result.exit_code == 2
        assert "No space left on device" in result.stderr
        assert "Traceback" not in result.output
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@needs_browser
def test_the_report_opens_in_a_browser(finished: Path, tmp_path: Path) -> None:
    document, picture = open_page(finished / "report.html", tmp_path)
    assert document.count("<tr>") > 20
    assert "LTL SGD-SGD" in document
    assert len(picture) > 20_000
