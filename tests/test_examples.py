"""The examples run, and say what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_head_start(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "head_start.py"), run_name="__main__")
    errors = [float(line.split("(")[0].split()[-1]) for line in _results(capsys)]
    alone, *learned, oracle = errors if len(errors) == 5 else [0.0, 0.0]
    assert alone > learned[0] > learned[1] > learned[2]
    assert learned[2] < 1.05 * oracle


def run(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_paper(capsys: pytest.CaptureFixture[str]) -> None:
    first, *learned = run("paper", capsys)
    alone, oracle = (float(part.split()[-1]) for part in first.split(";")[0].split(","))
    losses = [float(line.split()[-1]) for line in learned]
    assert losses[0] == alone
    assert oracle < losses[-1] < 1.01 * oracle


def test_stream(capsys: pytest.CaptureFixture[str]) -> None:
    _, unseen, seen, bias, model = run("stream", capsys)
    assert float(seen.split()[-1]) < 0.7 * float(unseen.split()[-1])
    assert float(bias.split()[-1]) == pytest.approx(10.0, abs=0.3)
    assert model.startswith("MetaRegressor(task_size=8) <3000 tasks, reg")


def test_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    best, error = run("pipeline", capsys)
    assert best.startswith("best {'reg': ")
    assert float(error.split()[-1]) < 1.5  # one line for all patients leaves 1.9


@pytest.mark.skipif(
    not (EXAMPLES / "data" / "pupils.parquet").exists(), reason="made by examples/prepare.py"
)
def test_pupils(capsys: pytest.CaptureFixture[str]) -> None:
    _, alone, pooled, headstart, *findings = run("pupils", capsys)
    for other in (alone, pooled):
        assert float(headstart.split()[-1]) < float(other.split()[-1])
    assert any(line.startswith("verdict: share") for line in findings)


def test_when_not_to_share(capsys: pytest.CaptureFixture[str]) -> None:
    told = run("when_not_to_share", capsys)
    first, second, third = (line for line in told if line.startswith("verdict"))
    assert first.startswith("verdict: do not share")
    assert second.startswith("verdict: pool instead")
    assert third.startswith("verdict: share")


def _results(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr().out.splitlines()[2:]
    return [line.replace("(bias 0)", "") for line in lines]
