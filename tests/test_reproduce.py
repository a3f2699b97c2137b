"""The experiments end to end: in process, from the shell, killed and started again."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import needs_browser, open_page
from test_datasets import here
from typer.testing import CliRunner

from headstart import biased_sgd
from headstart._core.checks import check_count
from headstart._core.files import write_aside
from headstart.cli import app
from headstart.environments import RegressionEnvironment
from headstart.experiments import (
    EXPERIMENTS,
    METHODS,
    Drawn,
    Experiment,
    Piece,
    PieceFolder,
    draw_data,
    methods_of,
    run_pieces,
)
from headstart.experiments.claims import VERDICTS
from headstart.experiments.figures import draw, title
from headstart.experiments.pieces import Curves
from headstart.experiments.reproduce import Request, reproduce
from headstart.experiments.reproduce import run as run_experiments
from headstart.experiments.running import run_method
from headstart.experiments.settings import configured, cut_short, sweep
from headstart.selection import select_online, select_reg

KINDS = ("png", "svg", "pdf")
SMALL = ["synthetic-regression", "--tasks", "6", "--seeds", "2"]
SGD = ["--methods", "itl-sgd,mean-sgd,ltl-sgd-sgd"]


def small(name: str = "synthetic-regression", **changes: Any) -> Experiment:
    base = replace(EXPERIMENTS[name], n_tasks=5, n_valid=4, n_test=4, n_queries=5, grid_size=3)
    return replace(base, **changes)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", *arguments])


def contents(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on how often a run was stopped: all but timings."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.suffix in (".csv", ".json", ".png", ".svg", ".pdf")
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
        pictures = [f"{name}.{kind}" for name in ("figure", "chosen") for kind in KINDS]
        for file in ("curves.csv", "chosen.csv", "config.json", *pictures):
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
        assert "Environment(n_features=30, center=4.0, task_std=1.0" in config["source"]
    for name in ("figure-1", "figure-3", "sweep/gains"):
        assert all((finished / f"{name}.{kind}").stat().st_size > 100 for kind in KINDS)
    assert not (finished / "figure-2.png").exists()  # of the data that were not asked for
    assert b"CreationDate" not in (finished / "figure-1.pdf").read_bytes()
    assert not list(finished.rglob("*.part*"))


def test_report_is_one_page_with_everything(finished: Path) -> None:
    page = (finished / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2 + 2 * 2 + 1  # the paper's, both, the sweep
    assert not re.search(r'(src|href)="(?!data:)', page)
    for word in (
        "LTL SGD-SGD", "MEAN ERM", "LTL is far below ITL", "seconds a run", "accuracy",
        "learned prior", "one standard deviation", "at most 85 %", "MEAN starts from 2 times",
        "1/(1 + exp(-10 &lt;x, w&gt;))", "<td>0.856<td>", "--order resample", *VERDICTS.values(),
    ):  # fmt: skip
        assert word in page
    for name in ("synthetic-regression", "synthetic-classification"):
        picture = b64encode((finished / name / "figure.png").read_bytes()).decode()
        assert picture in page
        final: dict[tuple[str, str], list[float]] = {}
        with (finished / name / "curves.csv").open() as table:
            for row in csv.DictReader(table):
                if row["tasks"] == "6":
                    final.setdefault((row["method"], row["metric"]), []).append(float(row["value"]))
        for (method, metric), (a, b) in final.items():
            cell = f"{(a + b) / 2.0:.4f} ± {abs(a - b) / 2.0:.4f}"  # two runs
            before = "" if metric == "loss" else "<td>[^<]*"
            assert re.search(f"<td>{title(method)}{before}<td>{cell}<td>", page)


def test_curves_are_the_selection(finished: Path) -> None:
    e = replace(EXPERIMENTS["synthetic-regression"], n_tasks=6, seeds=2)
    data = draw_data(e, 1)
    expected = select_online(data.train, data.valid, data.test, e.grid, e.grid, e.loss)
    with (finished / e.name / "curves.csv").open() as file:
        rows = [
            r for r in csv.DictReader(file) if r["method"] == "ltl-sgd-sgd" and r["seed"] == "1"
        ]
    np.testing.assert_array_equal([float(r["value"]) for r in rows], expected.test_loss)
    with (finished / e.name / "chosen.csv").open() as file:
        every = [r for r in csv.DictReader(file) if r["seed"] == "1"]
    chosen = [r for r in every if r["method"] == "ltl-sgd-sgd"]
    assert list(chosen[0]) == ["experiment", "method", "seed", "tasks", "reg", "step"]
    np.testing.assert_array_equal([float(r["reg"]) for r in chosen], expected.reg)
    np.testing.assert_array_equal([float(r["step"]) for r in chosen], expected.step)
    assert {r["step"] for r in every if r["method"] == "itl-sgd"} == {""}  # it has none
    assert len(every) == 7 * len(METHODS)


def test_results_do_not_depend_on_jobs_or_interruption(finished: Path, tmp_path: Path) -> None:
    """One job at a time, half of the pieces already there, others damaged."""
    out = tmp_path / "results"
    shutil.copytree(finished, out)
    pieces = sorted(out.rglob("*.npz"))
    for piece in pieces[::2]:
        piece.unlink()
    pieces[1].write_bytes(pieces[1].read_bytes()[:-40])
    pieces[3].write_bytes(b"not a piece")
    three = np.zeros(3)
    np.savez(
        pieces[5], tasks=np.arange(3), accuracy=np.zeros(0), seconds=0.0, loss=three, reg=three,
        step=three,
    )  # fmt: skip
    result = run("synthetic-classification", *SMALL, "--out", str(out), "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert result.output.count("computing this piece again") == 3
    assert result.output.count("is damaged") == 2
    assert contents(out) == contents(finished)


def test_killed_five_times_and_resumed(tmp_path: Path) -> None:
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
    def folder(**changes: Any) -> Path:
        return PieceFolder(tmp_path, small(**changes), print).folder

    assert folder(seeds=3) == folder()  # more repetitions use the pieces there are
    far = Drawn(RegressionEnvironment(task_std=2.0))
    different = [folder(), folder(order="resample"), folder(n_tasks=6), folder(source=far)]
    assert len(set(different)) == 4


def test_a_user_changes_what_is_asked_and_nothing_else() -> None:
    paper = EXPERIMENTS["synthetic-regression"]
    assert configured(paper.name, None, None, False, "stream") == paper
    changed = configured(paper.name, 3, 2000, False, "resample")
    assert changed == replace(paper, seeds=3, n_tasks=2000, order="resample")
    quick = configured(paper.name, None, None, True, "stream")
    assert quick == replace(paper, n_tasks=100, n_valid=30, n_test=50, seeds=2)
    assert configured(paper.name, 5, 7, True, "stream") == replace(quick, seeds=5, n_tasks=7)
    lenk = EXPERIMENTS["lenk-regression"]  # of people there are so many and no more
    assert configured(lenk.name, None, 2000, False, "stream") == lenk
    assert configured(lenk.name, None, 99, False, "stream") == replace(lenk, n_tasks=99)
    quick = replace(lenk, grid_size=10, seeds=3)
    assert configured(lenk.name, None, None, True, "stream") == quick


def test_the_sweep_varies_one_thing_at_a_time() -> None:
    base = replace(EXPERIMENTS["synthetic-regression"], n_tasks=300, seeds=5)
    usual = replace(base, n_tasks=200, seeds=5)
    assert sweep(base) == [
        *(
            (std, replace(usual, source=Drawn(RegressionEnvironment(task_std=std))))
            for std in (0.5, 1.0, 2.0, 4.0)
        ),
        *((1.0, replace(usual, n_shots=n)) for n in (40, 160)),
    ]
    assert {(e.n_tasks, e.seeds) for _, e in sweep(small(seeds=2))} == {(5, 2)}


def test_gains_are_itl_minus_ltl_by_what_varies(finished: Path) -> None:
    """The claims about the sweep, from the pieces on disk."""
    base = replace(EXPERIMENTS["synthetic-regression"], n_tasks=6, seeds=2)
    gains: dict[tuple[float, int], list[float]] = {}
    for std, e in sweep(base):
        folder = PieceFolder(finished / "sweep", e, print)
        itl, ltl = (
            [last_loss(folder, Piece(e, method, seed)) for seed in range(2)]
            for method in ("itl-sgd", "ltl-sgd-sgd")
        )
        gains[std, e.n_shots or 0] = [a - b for a, b in zip(itl, ltl, strict=True)]
    page = html.unescape((finished / "report.html").read_text())

    def said(std: float, n: int) -> str:
        a, b = gains[std, n]
        return f"{(a + b) / 2.0:.2f} ± {12.7062047 * abs(a - b) / 2.0:.2f}"  # Student's, two runs

    by_std = ", ".join(f"{said(s, 10)} at spread {s:g}" for s in (0.5, 1.0, 2.0, 4.0))
    by_rows = ", ".join(f"{said(1.0, n)} at n {n}" for n in (10, 40, 160))
    assert f"ITL minus LTL: {by_std}" in page
    assert f"ITL minus LTL: {by_rows}" in page
    with (finished / "sweep" / "gains.csv").open() as file:
        found = [float(r["gain"]) for r in csv.DictReader(file) if r["at"] == "160.0"]
    assert found == gains[1.0, 160]


def last_loss(folder: PieceFolder, piece: Piece) -> float:
    curve = folder.load(piece)
    assert curve is not None
    return float(curve.loss[-1])


@here
def test_people_of_lenk_are_in_one_part_only() -> None:
    e = replace(EXPERIMENTS["lenk-classification"], n_tasks=90)
    data = draw_data(e, 0)
    parts = [data.train, *data.valid, *data.test]
    assert [len(part) for part in parts] == [90, 40, 40, 40, 40]
    people = [set(part.ids.tolist()) for part in parts]
    assert people[1] == people[2]
    assert people[3] == people[4]
    assert len(people[0] | people[1] | people[3]) == 170
    assert set(np.unique(data.train.y)) == {-1.0, 1.0}
    assert data.oracle_bias is None
    assert np.unique(draw_data(EXPERIMENTS["lenk-regression"], 0).train.y).size > 2


def test_accuracies_are_shares_of_right_signs() -> None:
    """Of a fixed bias one for all numbers of tasks; of a learned one the winner's at each."""
    e = small("synthetic-classification")
    data = draw_data(e, 0)
    shots, queries = data.test
    for method in ("itl-sgd", "ltl-sgd-sgd"):
        curve = Piece(e, method, 0).compute()
        if method == "itl-sgd":
            found = select_reg(data.valid, data.test, np.zeros(30), e.grid, e.loss)
            winners = [(np.zeros(30), found.reg)] * 6
        else:
            chosen = select_online(data.train, data.valid, data.test, e.grid, e.grid, e.loss)
            winners = list(zip(chosen.bias, chosen.reg, strict=True))
        for accuracy, (bias, reg) in zip(curve.accuracy, winners, strict=True):
            hits = []
            for (X, y), (X_new, y_new) in zip(shots, queries, strict=True):
                w = biased_sgd(X, y, bias, float(reg), e.loss).average
                hits += [
                    (x @ w > 0.0) == (label > 0.0) for x, label in zip(X_new, y_new, strict=True)
                ]
            assert accuracy == pytest.approx(np.mean(hits))


def test_pieces_are_computed_in_order_of_cost_and_no_more_at_once_than_asked(
    tmp_path: Path,
) -> None:
    e = small()
    methods = ["ltl-sgd-erm", "itl-sgd", "ltl-sgd-sgd", "itl-erm"]
    pool = Recorder()
    folders = {e: PieceFolder(tmp_path, e, print)}
    pieces = [Piece(e, method, seed) for method in methods for seed in range(2)]
    found = dict(run_pieces(pieces, folders, 3, pool))
    assert set(found) == set(pieces)
    order = ["itl-sgd", "itl-erm", "ltl-sgd-sgd", "ltl-sgd-erm"]
    assert [piece.method for piece in pool.pieces] == [m for m in order for _ in range(2)]
    assert max(pool.waiting) == 3
    again = Recorder()
    for piece, curve in run_pieces(pieces, folders, 3, again):
        np.testing.assert_array_equal(curve.loss, found[piece].loss)
    assert not again.pieces  # all were on disk


class Recorder(Executor):
    """Runs each call a little later, and notes how many were unfinished at each submission."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.waiting: list[int] = []
        self.open: list[Future[Any]] = []

    def submit(self, function: Any, /, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.pieces.append(function.__self__)
        self.open = [f for f in self.open if not f.done()] + [future]
        self.waiting.append(len(self.open))
        threading.Timer(0.02, lambda: future.set_result(function())).start()
        return future


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "stopped; finished pieces are in {out}, the same command goes"),
        (OSError(28, "No space left on device", "x.npz"), 2, "x.npz: No space left on device; fin"),
        (OSError("nothing works"), 2, "{out}: nothing works; finished pieces are kept"),
        (ValueError("a mistake"), 2, "a mistake: expected"),
    ],
)
def test_how_a_run_ends(
    error: BaseException, code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: Request) -> None:
        assert (request.methods, request.n_jobs) == (["itl-sgd", "ltl-sgd-sgd"], 3)
        assert [e.name for e in request.experiments] == ["synthetic-regression", "lenk-regression"]
        if isinstance(error, ValueError):  # a user's mistake is what the package itself raises
            check_count(str(error), -1)
        raise error

    monkeypatch.setattr("headstart.cli.reproduce.run_experiments", fail)
    asked = ["lenk-regression", "synthetic-regression", "--jobs", "3", "--out", str(tmp_path)]
    result = run(*asked, "--methods", "ltl-sgd-sgd", "--methods", "itl-sgd,")
    assert result.exit_code == code
    assert message.format(out=tmp_path) in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_progress_is_announced_and_ends_at_all(tmp_path: Path) -> None:
    announced: list[float] = []
    steps: list[float] = []
    request = Request(
        [small(seeds=2)], ["itl-sgd", "mean-sgd"], tmp_path,
        advance=steps.append, announce=announced.append,
    )  # fmt: skip
    outcome = reproduce(request)
    assert len(steps) == 4
    assert announced == [pytest.approx(sum(steps))]
    assert list(outcome.results["synthetic-regression"][1]) == ["itl-sgd", "mean-sgd"]
    assert {claim.verdict for claim in outcome.claims} == {"open"}  # LTL was not run
    assert not (tmp_path / "sweep").exists()


def test_the_cost_of_a_piece_grows_with_what_it_evaluates() -> None:
    sizes = small(n_tasks=4, n_valid=4), small(n_tasks=12, n_valid=4), small(n_tasks=4, n_valid=12)
    few, more_tasks, more_valid = (Piece(e, "ltl-sgd-sgd", 0).cost for e in sizes)
    assert more_tasks == more_valid == pytest.approx(3.0 * few)


def test_final_values_have_their_standard_errors() -> None:
    none = np.full((3, 2), np.nan)
    runs = Curves(
        np.arange(2), np.array([[9.0, 1.0], [9.0, 2.0], [9.0, 6.0]]), np.empty((3, 0)), none,
        none, np.array([1.0, 2.0, 6.0]),
    )  # fmt: skip
    axes, _ = draw(small(n_tasks=1), {"itl-sgd": runs}).axes
    (line,) = axes.get_lines()
    assert list(np.asarray(line.get_ydata())) == [9.0, 3.0]
    low, high = axes.collections[0].get_datalim(axes.transData).intervaly
    assert (low, high) == pytest.approx((3.0 - np.sqrt(14.0 / 3.0), 9.0))


def test_one_run_has_no_error_and_no_band(tmp_path: Path) -> None:
    outcome = run_experiments(small(seeds=1), ["itl-sgd", "ltl-sgd-sgd"], tmp_path)
    page = re.sub(r'"data:[^"]*"', "", (tmp_path / "report.html").read_text())
    assert "loss, one run" in page
    assert "±" not in page
    assert "nan" not in page
    _, curves = outcome.results["synthetic-regression"]
    assert all(not axes.collections for axes in draw(small(), curves).axes)


def test_fewer_tasks_than_asked_for_are_said(tmp_path: Path) -> None:
    lenk = configured("lenk-regression", None, 300, True, "stream")
    said = cut_short(lenk, 300)
    assert said == (
        "lenk-regression: 100 training tasks instead of 300; the data has 180 tasks, of which 80 "
        "are for validation and test"
    )
    assert cut_short(lenk, 100) is None
    assert cut_short(configured("synthetic-regression", None, 3000, False, "stream"), 3000) is None
    told: list[str] = []
    request = Request([small()], ["itl-sgd"], tmp_path, say=told.append, notes=(said,))
    reproduce(request)
    assert told == [said]
    assert said in (tmp_path / "report.html").read_text()


def test_time_is_taken_after_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method runs on next to nothing first, once for each shape of tasks."""
    order: list[str] = []

    def clock() -> float:
        order.append("clock")
        return 0.0

    def noted(name: str, e: Experiment, *rest: Any) -> Any:
        order.append(e.name)
        return run_method(name, e, *rest)

    monkeypatch.setattr("headstart.experiments.pieces.perf_counter", clock)
    monkeypatch.setattr("headstart.experiments.pieces.run_method", noted)
    e = small(n_shots=3)  # a shape that no other test has
    for _ in range(2):
        Piece(e, "itl-sgd", 0).compute()
    timed = ["clock", e.name, "clock"]
    assert order == ["warm", *timed, *timed]


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
