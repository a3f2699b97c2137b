"""The command line as a whole: its list of commands, and what it imports."""

from __future__ import annotations

import inspect
import linecache
import subprocess
import sys
from importlib import import_module

import pytest
from typer.testing import CliRunner

import headstart
from headstart.cli import app
from headstart.cli.console import raised_here
from headstart.cli.main import COMMANDS

HEAVY = "numba", "sklearn", "pyarrow", "scipy"

PROBE = f"""
import sys
{{}}
print([name for name in {HEAVY} if name in sys.modules])
"""


def imported_after(code: str) -> str:
    """Which of the heavy libraries a new process has imported after this code."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_it_says_of_itself(name: str) -> None:
    command = getattr(import_module(f"headstart.cli.{name}"), name)
    text = inspect.getdoc(command) or ""
    assert COMMANDS[name] == text.split("\n\n")[0].replace("\n", " ")


def test_the_list_of_commands_imports_none_of_them() -> None:
    run = "from headstart.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass"
    assert imported_after(run) == "[]"
    assert imported_after("import headstart") == "[]"
    assert "numba" in imported_after("import headstart; headstart.learn_bias")


def test_an_unknown_command_is_refused_and_a_known_one_has_its_own_help() -> None:
    unknown = CliRunner().invoke(app, ["foo"])
    assert unknown.exit_code == 2
    assert "foo" in unknown.output
    known = CliRunner().invoke(app, ["info", "--help"])
    assert known.exit_code == 0
    assert "A folder made by fit" in known.output


def test_every_public_name_is_there() -> None:
    assert set(headstart.__all__) <= set(dir(headstart)) | {"__version__"}
    for name in headstart.__all__:
        assert getattr(headstart, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = headstart.nothing  # type: ignore[attr-defined]


def test_mistakes_are_known_from_faults_and_without_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def error_of(loss: object) -> Exception:
        with pytest.raises((ValueError, TypeError)) as caught:
            headstart.get_loss(loss)  # type: ignore[arg-type]
        return caught.value

    said, fault = error_of("l2"), ValueError("of another")
    try:
        raise fault
    except ValueError:
        pass
    assert raised_here(said)
    assert not raised_here(fault)
    monkeypatch.setattr(linecache, "getline", lambda *_: "")  # as in a frozen application
    assert raised_here(said)
    assert not raised_here(fault)
