"""The examples run, and say what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble  # noqa: F401  its threads can be limited once it is there
from matplotlib.image import imread
from threadpoolctl import threadpool_limits

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def drawn(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What an example prints that ends in a picture, which is written and not blank."""
    picture = EXAMPLES / "pictures" / f"{name}.png"
    picture.unlink(missing_ok=True)
    lines = run(name, capsys)
    pixels = imread(picture)[::3, ::3, :3]
    assert min(pixels.shape[:2]) > 200
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
    return lines


def numbers(line: str, words: int = 1) -> list[float]:
    """The numbers at the end of a line that begins with so many words."""
    return [float(part) for part in line.split()[words:]]


def last(line: str) -> float:
    return float(line.split()[-1])


def row(lines: list[str], feature: str) -> list[float]:
    """Effect, differs and rows of a feature in a printed summary."""
    (found,) = (line for line in lines if line.startswith(feature))
    return numbers(found)


def test_head_start(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, alone, pooled, headstart, *lines = drawn("head_start", capsys)
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
    *days, left, same = drawn("stream", capsys)
    lived, again = days[:8], days[9:]  # days 2 to 9; then, gone back, days 8 to 12
    first, *good, bad, noticed = (float(line.split()[-2]) for line in lived)
    assert good[-1] < 0.6 * first
    assert min(bad, noticed) > 100.0 * good[-1]
    assert days[8].endswith("back to the night of day 7")
    for line in again:
        assert 0.7 < float(line.split()[-2]) < 1.1 * good[-1]
    assert len(again) == 5
    assert left == "MetaRegressor() <199 tasks> 7 is forgotten"
    assert same == "all rows at once give the same model"


def test_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    shared, own, best, *lines = drawn("pipeline", capsys)
    assert last(own) < 0.5 * last(shared)
    assert last(best) <= last(own)
    assert best.startswith("the best metric: full")
    assert row(lines, "dose")[2] < 1.0 < row(lines, "age")[2]


def test_stores(capsys: pytest.CaptureFixture[str]) -> None:
    _, described, common, _, floor, centre = drawn("stores", capsys)
    own, others = numbers(described, 2), numbers(common, 2)
    assert own[0] < 0.4 * others[0]
    assert all(mine < theirs for mine, theirs in zip(own, others, strict=True))
    assert own == sorted(own, reverse=True)
    assert float(floor.split()[3].strip(",")) == pytest.approx(0.012, abs=0.001)
    assert float(centre.split()[3].strip(",")) == pytest.approx(4.0, abs=1.0)
    assert last(centre) == pytest.approx(-6.0, abs=0.5)


def test_customers(capsys: pytest.CaptureFixture[str]) -> None:
    _, *lines, noise, _, one, stranger = drawn("customers", capsys)
    known, new, adapted = (float(line.split()[-2]) for line in lines)
    assert known < adapted < 0.5 * new
    for line in lines:
        (inside,) = (float(part[:-1]) for part in line.split() if part.endswith("%"))
        assert 86.0 < inside < 94.0
    assert float(noise.split()[-2]) == pytest.approx(1.645 * 8.0, abs=1.0)
    widths = [float(line.split()[-2]) - float(line.split()[-4]) for line in (one, stranger)]
    assert widths[0] < 0.5 * widths[1]


@pytest.mark.skipif(
    not (EXAMPLES / "data" / "sleep.parquet").exists(), reason="made by examples/prepare.py"
)
def test_beside_statsmodels(capsys: pytest.CaptureFixture[str]) -> None:
    _, names, *rows, likelihood, apart = drawn("beside_statsmodels", capsys)
    assert names.split() == ["statsmodels", "headstart", "its", "default"]
    for line in rows:
        theirs, ours, _ = (float(part) for part in line.split()[-3:])
        assert ours == pytest.approx(theirs, abs=0.01)
    assert len(rows) == 5
    theirs, ours = (float(part.split()[-1]) for part in likelihood.split(","))
    assert ours == pytest.approx(theirs, abs=0.001)
    assert float(apart.split()[-2]) < 0.01


def test_boosted_trees(capsys: pytest.CaptureFixture[str]) -> None:
    with threadpool_limits(1, "openmp"):  # they wait busily where cores are taken
        _, line, trees, both = drawn("boosted_trees", capsys)
    ours, theirs = numbers(both), numbers(trees, 3)
    assert ours == sorted(ours, reverse=True)
    assert ours[0] == pytest.approx(theirs[0], rel=0.05)  # nothing is known of the building
    assert ours[1] < 0.5 * min(theirs[1], numbers(line, 3)[1])


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
    _, alone, pooled, headstart, *findings = drawn("pupils", capsys)
    for other in (alone, pooled):
        assert last(headstart) < last(other)
    assert any(line.startswith("verdict: share") for line in findings)
    known, new = (line.split()[-4:-1] for line in findings[-2:])
    assert int(known[2]) - int(known[0]) < int(new[2]) - int(new[0])


def test_when_not_to_share(capsys: pytest.CaptureFixture[str]) -> None:
    lines = drawn("when_not_to_share", capsys)
    first, second, third = (line for line in lines if line.startswith("verdict"))
    assert first.startswith("verdict: do not share")
    assert second.startswith("verdict: pool instead")
    assert third.startswith("verdict: share")
