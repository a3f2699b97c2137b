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


def _results(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr().out.splitlines()[2:]
    return [line.replace("(bias 0)", "") for line in lines]
