"""The site: built without a warning, no public name missing, no link broken, theory that is there.

Scripts of the gallery are not run here, which `test_gallery` and `test_examples` do.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import evaluate, needs_browser

import headstart

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))  # as docs/conf.py does

from api import GROUPS, MODULES, exported, home, modules  # noqa: E402
from links import broken  # noqa: E402
from mathml import to_mathml  # noqa: E402
from readme import as_page  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy of the pages so that no two builds meet."""
    place = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("_build", "api", "auto_*", "command-line.md", "__pycache__")
    shutil.copytree(DOCS, place / "docs", ignore=made)
    for name in ("README.md", "examples"):
        (place / name).symlink_to(ROOT / name)
    out = place / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-D", "plot_gallery=0", str(place / "docs"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def public() -> Iterator[str]:
    """Every public name, where it is documented."""
    for name in exported(headstart):
        yield f"headstart.{name}"
    for module in modules():
        for name in exported(module):
            yield home(module, name)


def test_every_public_name_has_its_page(site: Path) -> None:
    names = set(public())
    assert len(names) > 100
    without = [
        name
        for name in sorted(names)
        if not (page := site / "api" / "names" / f"{name}.html").exists()
        or f'id="{name}"' not in page.read_text(encoding="utf-8")
    ]
    assert without == []


def test_methods_are_documented_where_they_are_inherited(site: Path) -> None:
    page = (site / "api" / "names" / "headstart.MetaRegressor.html").read_text(encoding="utf-8")
    for method in ("fit", "predict", "predict_interval", "adapt", "partial_fit", "save", "summary"):
        assert f'id="headstart.MetaRegressor.{method}"' in page
    assert "get_metadata_routing" not in page  # scikit-learn's own are in its documentation


def test_names_of_groups_are_public_and_in_one_group() -> None:
    placed = [name for names in GROUPS.values() for name in names]
    assert len(placed) == len(set(placed))
    assert set(placed) <= set(headstart.__all__)
    assert set(MODULES) <= {path.stem for path in (ROOT / "src" / "headstart").iterdir()}
    named = re.findall(r"`headstart\.([a-z_]+)[.`]", (ROOT / "README.md").read_text("utf-8"))
    assert set(named) <= set(MODULES)


def test_every_command_is_there(site: Path) -> None:
    from headstart.cli.main import COMMANDS

    page = (site / "command-line.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'id="headstart-{name}"' in page
    for option in ("--group", "--target", "--scheduler", "--interval", "--categorical", "--seeds"):
        assert option in page


def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert list(broken(site)) == []
    assert len(list(site.rglob("*.html"))) > 150


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text('<a href="two.html#here">x</a><a href="three.html">y</a>')
    (tmp_path / "two.html").write_text('<p id="there"></p><script src="https://a.org/b.js">')
    there = [line.partition(": ")[2] for line in broken(tmp_path)]
    assert there == [
        "no place two.html#here",
        "no file three.html",
        "loads https://a.org/b.js, which needs a network",
    ]


def test_links_of_the_readme_lead_to_files_and_to_pages() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    for link in links:
        assert link.startswith("http") or (ROOT / link).exists()
    assert sum(link.startswith("docs/") for link in links) > 3
    assert "](docs/" not in as_page(text)
    assert "](auto_examples/stores.rst)" in as_page(text)


def test_formulas() -> None:
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in to_mathml(r"\frac12 x", block=True)
    assert "\\" in to_mathml(r"\nosuchsign x", block=False)  # by which the build knows


THEORY = DOCS / "theory"


def functions_named() -> set[str]:
    """All names in roles on the theory pages."""
    text = "".join(path.read_text(encoding="utf-8") for path in THEORY.glob("*.md"))
    return set(re.findall(r"\{(?:py:)?(?:func|class|meth|attr)\}`~?([\w.]+)`", text))


def test_every_function_on_the_theory_pages_exists() -> None:
    named = functions_named()
    assert len(named) > 30
    for name in named:
        found: object = headstart
        for part in name.split(".")[1:]:
            found = (
                getattr(found, part)
                if hasattr(found, part)
                else importlib.import_module(f"{getattr(found, '__name__', '')}.{part}")
            )


def test_every_test_on_the_theory_pages_exists() -> None:
    page = (THEORY / "statements.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(tests/\w+\.py)::(\w+)`", page)
    assert len(tests) > 60
    missing = [
        f"{path}::{name}"
        for path, name in tests
        if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_statement_has_a_test_and_the_table_has_every_statement() -> None:
    page = (THEORY / "statements.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|") and "---" not in line]
    rows = [line for line in rows if "| statement |" not in line]
    assert all("tests/" in line for line in rows)
    numbers = {number for line in rows for number in line.split("|")[1].replace(" ", "").split(",")}
    assert {str(number) for number in range(1, 29)} <= numbers
    assert {"P0", "P1", "P2", "P3", "P3b", "P3c", "P3d", "P4", "P5", "P6", "P7"} <= numbers
    misprints = (THEORY / "misprints.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (E\d+) ", misprints, re.M) == [f"E{k}" for k in range(1, 14)]


LOOK = """
const page = frames[0].document;
return {wide: page.documentElement.scrollWidth, inner: frames[0].innerWidth,
  paper: frames[0].getComputedStyle(page.body).backgroundColor,
  formulas: page.querySelectorAll('math').length,
  broken: [...page.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)};
"""


@needs_browser
@pytest.mark.parametrize("page", ["index.html", "theory/one-task.html", "theory/misprints.html"])
def test_pages_fit_a_phone_and_follow_light_and_dark(site: Path, page: str, tmp_path: Path) -> None:
    frame = tmp_path / "frame.html"  # because windows have a least width
    address = (site / page).as_uri()
    frame.write_text(f"<title></title><iframe width=390 height=800 src='{address}'></iframe>")
    dark, light = (
        evaluate(
            frame,
            tmp_path,
            LOOK,
            "--allow-file-access-from-files",
            f"--blink-settings=preferredColorScheme={scheme}",
        )
        for scheme in (0, 1)
    )
    for seen in (dark, light):
        assert seen["inner"] == 390
        assert seen["wide"] <= 390  # nothing to scroll aside
        assert seen["broken"] == []
    assert dark["paper"] != light["paper"]
    assert dark["formulas"] > (10 if "theory" in page else -1)
