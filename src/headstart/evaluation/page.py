"""Self-contained HTML pages: what they share, and the page of a diagnosis."""

from __future__ import annotations

import html
import io
from base64 import b64encode
from pathlib import Path

from matplotlib.figure import Figure

from headstart._core.files import write_aside
from headstart.evaluation.diagnosis import Diagnosis

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; margin: 2rem auto; max-width: 60rem;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
th.text, td.text { text-align: left; }
img { max-width: 100%; } .holds { color: #1b7837; } .fails { color: #b2182b; }
.open { color: #777; } footer { color: #777; font-size: .85rem; margin-top: 3rem; }
"""


def write_page(path: Path, title: str, body: str) -> None:
    """Write a page with its style inside, in one step; `body` is HTML, `title` plain text."""
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style><body>{body}</body></html>"
    )
    write_aside(path, lambda aside: aside.write_text(page, encoding="utf-8"))


def picture(alt: str, png: bytes) -> str:
    """A picture that is part of the page, with a text for those who cannot see it."""
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{b64encode(png).decode()}">'


def write_diagnosis(path: Path, diagnosis: Diagnosis, title: str) -> None:
    """Write a page with the verdict, the curves and the findings."""
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    diagnosis.plot(figure.subplots())
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150)
    *findings, verdict = diagnosis.lines
    write_page(
        path,
        title,
        f"<h1>{html.escape(title)}</h1><p><strong>{html.escape(verdict)}</strong></p>"
        f"{picture('few-shot curves', png.getvalue())}"
        f"<pre>{html.escape(chr(10).join(findings))}</pre>",
    )
