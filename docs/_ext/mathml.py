"""Formulas as MathML, which browsers draw themselves: no script and no network.

Not every machine has a font with the signs and sizes of formulas, so the site brings one: what is
needed of STIX Two Math, from the package ziamath.
"""

from __future__ import annotations

import re
from importlib.metadata import files
from pathlib import Path

from docutils import nodes
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

FONT = "STIXTwoMath-Regular.ttf"
SIGNS = [
    *range(0x20, 0x180),  # Latin
    *range(0x300, 0x370),  # accents
    *range(0x370, 0x400),  # Greek
    *range(0x2010, 0x2070),  # punctuation and primes
    *range(0x20D0, 0x2400),  # letters, arrows, operators, brackets
    *range(0x27E0, 0x2800),
    *range(0x2A00, 0x2B00),
    *range(0x1D400, 0x1D800),  # letters of formulas
]
FUNCTION = re.compile(r"(<mi>(?:log|det|tanh|cosh|diag|tr)</mi>)(?=<m[in])")  # and its argument
LOG = logging.getLogger(__name__)


def to_mathml(code: str, block: bool) -> str:
    r"""MathML of a formula in TeX.

    Examples
    --------
    >>> "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in to_mathml(r"\frac12 x", block=False)
    True
    """
    code = code.replace(r"\arg\min", r"\operatorname{argmin}")
    found = str(convert(code, display="block" if block else "inline"))
    return FUNCTION.sub(r'\1<mspace width="0.17em" />', found)


def _write(self: HTML5Translator, node: nodes.Element, block: bool) -> None:
    code = node.astext()
    found = to_mathml(code, block)
    if "\\" in found or "&amp;" in found:  # what the converter does not know it leaves as it is
        LOG.warning("formula: it cannot be converted: %s", code, location=node)
    self.body.append(found)
    raise nodes.SkipNode


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula in a sentence."""
    _write(self, node, block=False)


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    _write(self, node, block=True)


def write_font(app: Sphinx, error: Exception | None) -> None:
    """Write the font beside the style sheet that names it."""
    place = Path(app.outdir) / "_static" / "formulas.woff"
    if error is not None or place.exists() or app.builder.format != "html":
        return
    (source,) = (part for part in files("ziamath") or () if part.name == FONT)
    font = TTFont(str(source.locate()))
    subsetter = Subsetter(Options(layout_features=["*"], notdef_outline=True))
    subsetter.populate(unicodes=SIGNS)
    subsetter.subset(font)
    font.flavor = "woff"
    font.save(place)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Make this the way formulas are written."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("build-finished", write_font)
    app.config["html_math_renderer"] = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
