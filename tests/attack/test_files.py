"""A short run of the attacks with bad files and with kills."""

from __future__ import annotations

from attack import files, kills


def test_bad_files_give_right_answers_or_clear_errors() -> None:
    assert files.run(40, seed=0) == []


def test_killed_commands_end_as_undisturbed_ones() -> None:
    assert kills.run(8, seed=0) == []
