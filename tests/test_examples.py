"""The examples run, and say what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def numbers(line: str) -> list[float]:
    """The numbers at the end of a line that begins with a word."""
    return [float(part) for part in line.split()[1:]]


def last(line: str) -> float:
    return float(line.split()[-1])


def row(lines: list[str], feature: str) -> list[float]:
    """Effect, differs and rows of a feature in a printed summary."""
    (found,) = (line for line in lines if line.startswith(feature))
    return numbers(found)


def test_head_start(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, alone, pooled, headstart, *lines = run("head_start", capsys)
    ours = numbers(headstart)  # after 0, 1, 2, 4 and 8 rows
    assert ours == sorted(ours, reverse=True)
    assert all(mine < theirs for mine, theirs in zip(ours[2:], numbers(alone), strict=True))
    assert ours[0] == pytest.approx(numbers(pooled)[0], rel=0.01)
    assert ours[1] < 0.6 * numbers(pooled)[1]
    effect, differs, rows = row(lines, "minutes")
    assert effect == pytest.approx(40.0, abs=2.0)
    assert differs == pytest.approx(10.0, abs=1.0)
    assert rows < 1.0 < row(lines, "temperature")[2]
    assert float(lines[-1].split()[-2]) == pytest.approx(150.0, abs=10.0)


def test_stream(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, single, evening, model, *lines = run("stream", capsys)
    errors = [last(first), last(second), float(evening.split(",")[0].split()[-1])]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.7
    assert 0.4 < errors[2] < last(single) + 0.02
    assert model == "MetaRegressor() <499 tasks> 7 is forgotten"
    assert row(lines, "(intercept)")[0] == 10.0


def test_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    shared, own, best, *lines = run("pipeline", capsys)
    assert last(own) < 0.5 * last(shared)
    assert last(best) <= last(own)
    assert best.startswith("the best metric: full")
    assert row(lines, "dose")[2] < 1.0 < row(lines, "age")[2]


def test_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    _, common, described, _, *readings, _, age, outdoors = run("descriptions", capsys)
    assert last(described) < 0.5 * last(common)
    assert len(readings) == 4
    for line in readings:
        mean, std, truth = (float(part) for part in line.split())
        assert abs(mean - truth) < 3.0 * std
    assert last(age) == pytest.approx(0.002, abs=0.0002)
    assert last(outdoors) == pytest.approx(0.01, abs=0.002)


def test_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    *lines, noise = run("intervals", capsys)
    widths = [last(line) for line in lines]
    known, strangers, adapted = widths
    assert known < adapted < 0.5 * strangers
    for line in lines:
        (inside,) = (float(part[:-1]) for part in line.split() if part.endswith("%"))
        assert 86.0 < inside < 94.0
    assert " 1.0:" in noise


def test_paper(capsys: pytest.CaptureFixture[str]) -> None:
    first, *learned = run("paper", capsys)
    alone, oracle = (float(part.split()[-1]) for part in first.split(";")[0].split(","))
    losses = [last(line) for line in learned]
    assert losses[0] == alone
    assert oracle < losses[-1] < 1.01 * oracle


@pytest.mark.skipif(
    not (EXAMPLES / "data" / "pupils.parquet").exists(), reason="made by examples/prepare.py"
)
def test_pupils(capsys: pytest.CaptureFixture[str]) -> None:
    _, alone, pooled, headstart, *findings = run("pupils", capsys)
    for other in (alone, pooled):
        assert last(headstart) < last(other)
    assert any(line.startswith("verdict: share") for line in findings)
    known, new = (line.split()[-4:-1] for line in findings[-2:])
    assert int(known[2]) - int(known[0]) < int(new[2]) - int(new[0])


def test_when_not_to_share(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTART_PICTURES", str(tmp_path))
    lines = run("when_not_to_share", capsys)
    assert (tmp_path / "when_not_to_share.png").stat().st_size > 20_000
    first, second, third = (line for line in lines if line.startswith("verdict"))
    assert first.startswith("verdict: do not share")
    assert second.startswith("verdict: pool instead")
    assert third.startswith("verdict: share")
