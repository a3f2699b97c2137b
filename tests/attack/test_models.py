"""A few attacks on models; ``make attack`` tries many."""

from __future__ import annotations

from attack import models, races


def test_forged_models_are_refused_or_answer() -> None:
    assert models.run(count=300, seed=0) == []


def test_writers_and_readers_race() -> None:
    assert races.race(count=6, seed=0) == []


def test_killed_writers_lose_and_leave_nothing() -> None:
    assert races.kill_saves(count=40, seed=0) == []
