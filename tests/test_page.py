"""The page of a diagnosis: what it says, and how a browser shows it."""

from __future__ import annotations

import ast
import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from browser import evaluate, needs_browser

from headstart import diagnose
from headstart.evaluation.advice import Source, next_steps
from headstart.evaluation.findings import Diagnosis
from headstart.evaluation.page import write_diagnosis

SOURCE = Source("my <b> trips.csv", "who's", "minutes & more", ["km"], classify=False)


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(40), 10), rng.normal(size=(400, 2))
    y = 3.0 * rng.normal(size=40)[ids] + X @ [2.0, -1.0] + rng.normal(size=400)
    return diagnose(X, y, ids, shots=4, folds=2)


@pytest.fixture(scope="module")
def page(found: Diagnosis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_diagnosis(path, found, SOURCE)
    return path


def with_verdict(found: Diagnosis, verdict: str) -> Diagnosis:
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    return Diagnosis(**{**fields, "verdict": verdict})


def test_names_are_escaped_and_nothing_is_loaded(page: Path) -> None:
    text = page.read_text()
    assert "<b> trips" not in text
    assert text.count("my &lt;b&gt; trips.csv: minutes &amp; more by who&#x27;s") >= 2
    assert re.findall(r'(?:href|src)="(?!#)', text) == []
    assert "@import" not in text
    assert re.findall(r"\$[a-z]", text) == []  # every place of the template is filled


def test_all_numbers_are_in_the_tables(found: Diagnosis, page: Path) -> None:
    text = page.read_text()
    for way, curve in found.curves.items():
        (cells,) = re.findall(rf"<th scope=row>{way}</th>(.*?)</tr>", text)
        assert [f"{mean:.4g}" for mean in curve.mean] == re.findall(r"<td>([^<]+)</td>", cells)[:4]
    for note in found.notes:
        assert html.escape(note) in text


def test_pictures_have_texts_names_of_their_own_and_the_colours_of_the_page(page: Path) -> None:
    text = page.read_text()
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 5
    ids = [name for one in pictures for name in re.findall(r'\bid="([^"]+)"', one)]
    assert len(ids) == len(set(ids))
    for one in pictures:
        assert re.search(r'^<svg role="img" aria-label="[^"]{40,}"', one)
        for name in re.findall(r'(?:href="#|url\(#)([^")]+)', one):
            assert name in ids
        assert set(re.findall(r"#[0-9a-f]{6}\b", one)) == set()  # all follow light and dark


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("share", ["headstart fit", "MetaRegressor().fit(X, y, groups="]),
        ("share a little", ["headstart predict model"]),
        ("pool instead", ["LinearRegression().fit(X, y)"]),
        ("do not share", ["RidgeCV().fit("]),
        ("cannot tell", ["headstart diagnose", "--shots 2"]),
    ],
)
def test_what_to_do_next_can_be_pasted(found: Diagnosis, verdict: str, words: list[str]) -> None:
    steps = next_steps(with_verdict(found, verdict), SOURCE)
    codes = [code for _, code in steps if code]
    for word in words:
        assert any(word in code for code in codes)
    for code in codes:
        if "import" in code:
            constants = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
            assert {"my <b> trips.csv", "minutes & more"} <= set(constants)
        else:
            command, *_ = code.splitlines()
            given = ["my <b> trips.csv", "--group", "who's", "--target", "minutes & more"]
            assert shlex.split(command)[2:7] == given


MEASURE = """
const wide = document.documentElement.scrollWidth;
const small = [...document.querySelectorAll('figure svg text')].map(
  t => t.getBoundingClientRect().height);
const outside = [...document.querySelectorAll('figure svg')].flatMap(s => {
  const box = s.getBoundingClientRect();
  return [...s.querySelectorAll('text')].filter(t => {
    const b = t.getBoundingClientRect();
    return b.left < box.left - 2 || b.right > box.right + 2;
  }).map(t => t.textContent);
});
const folded = [...document.querySelectorAll('details')].map(d => d.open);
const order = ['verdict', 'pictures', 'next', 'details'].map(
  i => document.getElementById(i).getBoundingClientRect().top);
const colour = getComputedStyle(document.body);
return {wide: wide, inner: innerWidth, small: Math.min(...small), outside: outside,
  folded: folded, order: order, ink: colour.color, paper: colour.backgroundColor,
  line: getComputedStyle(document.querySelector('svg text')).fill};
"""


@needs_browser
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_it_is_readable_at_every_width(page: Path, tmp_path: Path, width: int) -> None:
    frame = tmp_path / "frame.html"  # because windows have a least width
    inner = page.read_text().replace("</main>", f"</main><script>{PROBE}</script>")
    frame.write_text(
        f'<title></title><iframe width={width} height=900 srcdoc="{html.escape(inner)}"></iframe>'
    )
    seen = evaluate(frame, tmp_path, "return frames[0].seen;")
    assert seen["inner"] == width
    assert seen["wide"] <= width  # nothing to scroll aside
    assert seen["small"] >= 9.0  # the least height of a text in a picture
    assert seen["outside"] == []
    assert seen["folded"] == [False, False, False]
    assert seen["order"] == sorted(seen["order"])


PROBE = f"window.seen = (() => {{ {MEASURE} }})();"


@needs_browser
def test_it_follows_light_and_dark(page: Path, tmp_path: Path) -> None:
    light = evaluate(page, tmp_path, MEASURE)
    dark = evaluate(page, tmp_path, MEASURE, "--blink-settings=preferredColorScheme=0")
    assert brightness(light["paper"]) > 240 > 60 > brightness(light["ink"])
    assert brightness(dark["paper"]) < 60 < 200 < brightness(dark["ink"])
    assert brightness(dark["line"]) > 200  # pictures too


def brightness(colour: str) -> float:
    return float(np.mean([int(part) for part in re.findall(r"\d+", colour)[:3]]))
