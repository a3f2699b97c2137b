"""Self-contained HTML pages: what they share, and the page of a diagnosis."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from importlib.resources import files
from string import Template

import numpy as np

from headstart import plot
from headstart._core.files import write_aside
from headstart._core.places import Place
from headstart.evaluation.advice import Source, next_steps
from headstart.evaluation.findings import Diagnosis
from headstart.evaluation.pictures import Picture, as_figure
from headstart.evaluation.priors import HEADSTART
from headstart.evaluation.verdict import REASONS, last_gain

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; margin: 2rem auto; max-width: 60rem;
       padding: 0 1rem; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
th.text, td.text { text-align: left; }
img { max-width: 100%; } .holds { color: #1b7837; } .fails { color: #b2182b; }
.open { color: #777; } .unclear { color: #9a6700; } figure { margin: 1.5rem 0; }
figcaption { color: #555; font-size: .9rem; }
footer { color: #777; font-size: .85rem; margin-top: 3rem; }
"""


def write_page(path: Place, title: str, body: str) -> None:
    """Write a page with its style inside, in one step; `body` is HTML, `title` plain text."""
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<style>{STYLE}</style><body>{body}</body></html>"
    )
    write_aside(path, lambda aside: aside.write_text(page, encoding="utf-8"))


def picture(alt: str, png: bytes) -> str:
    """A picture that is part of the page, with a text for those who cannot see it."""
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{b64encode(png).decode()}">'


def write_diagnosis(path: Place, diagnosis: Diagnosis, source: Source) -> None:
    """Write a page: the verdict and its number, pictures, what to do next, and all numbers."""
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    shown = [as_figure(one, number) for number, one in enumerate(_pictures(diagnosis, source))]
    notes = "".join(f"<li>{escape(note)}</li>" for note in diagnosis.notes)
    page = template.substitute(
        title=escape(f"{source.data}: {source.target} by {source.group}"),
        verdict=escape(diagnosis.verdict),
        reason=escape(REASONS[diagnosis.verdict]),
        numbers=_numbers(diagnosis, source),
        notes=f'<ul class="notes">{notes}</ul>' if notes else "",
        pictures="\n".join(shown),
        next="".join(_step(text, code) for text, code in next_steps(diagnosis, source)),
        details=_details(diagnosis, source),
        footer=escape(_footer(diagnosis)),
    )
    write_aside(path, lambda aside: aside.write_text(page, encoding="utf-8"))


def _numbers(found: Diagnosis, source: Source) -> str:
    """The numbers that matter: the two best ways to choose from, and how they differ."""
    unit = "of labels wrong" if found.classify else f"average error in {source.target}"
    k = found.headstart.shots[-1]
    cells = []
    for way in (HEADSTART, found.simple):
        curve = found.curves[way]
        mean, half = float(curve.mean[-1]), float(curve.half_width[-1])
        value, plus = (
            (f"{100 * mean:.1f} %", f"{100 * half:.1f} %")
            if found.classify
            else (_g(mean), f"{half:.2g}")
        )
        cells.append((f"{way}, after {k} rows of a new {source.group}", value, f"{unit}, ± {plus}"))
    gap, base = last_gain(found.headstart, found.curves[found.simple]), found.curves[found.simple]
    scale = float(base.mean[-1])
    what = f"error of headstart against {found.simple}"
    if scale > 0.0:
        low, high = 100.0 * gap.low / scale, 100.0 * gap.high / scale
        mean = 100.0 * gap.mean / scale
        cells.append((what, _signed(mean), f"95 % interval from {_signed(low)} to {_signed(high)}"))
    else:
        cells.append((what, _g(gap.mean), f"95 % interval {_g(gap.low)} to {_g(gap.high)}"))
    if found.verdict in ("pool instead", "do not share"):
        cells[:2] = cells[1::-1]
    return "".join(
        f"<div{' class=first' * (number == 0)}><dt>{escape(name)}</dt><dd>{escape(value)} "
        f"<small>{escape(text)}</small></dd></div>"
        for number, (name, value, text) in enumerate(cells)
    )


def _pictures(found: Diagnosis, source: Source) -> list[Picture]:
    target, group, model = source.target, source.group, found.model
    error = "share of wrong labels" if found.classify else f"average error in {target}"
    k = found.headstart.shots[-1]
    rows = len(model.bias_by_feature())
    tall = 1.3 + 0.32 * min(rows + 1, 13)
    seen, mean, std = found.forecasts
    pictures = [
        Picture(
            f"Error by the rows of a new {group}",
            f"Lower is better. Bands are 95 % intervals over the {len(found.headstart.errors)} "
            f"held out. With 0 rows a new {group} is predicted from what the others share.",
            lambda ax: plot.few_shot_curve(found.curves, ax=ax, error=error),
        ),
        Picture(
            "Effects: shared, and how they differ",
            "Dots are shared effects; thick lines hold the own effects of two thirds of all, thin "
            "lines of nine in ten. A typical step is one standard deviation of the feature; the "
            "level is that of an average row.",
            lambda ax: plot.effects(model, ax=ax, target=target),
            tall,
        ),
    ]
    if found.classify:
        pictures.append(
            Picture(
                "Probabilities against what was seen",
                f"For rows of those held out, after {k} rows of each; on the line, "
                "probabilities are right. Lines are 90 % intervals.",
                lambda ax: plot.calibration(seen > 0.0, mean, ax=ax),
            )
        )
    else:
        pictures.append(
            Picture(
                "Predictions against what was seen",
                f"For rows of those held out, after {k} rows of each, with 90 % intervals.",
                lambda ax: plot.intervals_of(seen, mean, std, ax=ax),
            )
        )
    if found.verdict != "pool instead":
        few = min(10, len(model.ids_))
        pictures += [
            Picture(
                "Own effects around the shared ones",
                f"A stroke is one {group}, a diamond the shared effect. Three have their names.",
                lambda ax: plot.entities(model, ax=ax, target=target),
                tall + 0.3,
            ),
            Picture(
                "Who is unusual",
                f"Each {group} here is far from the shared effects, in what stands beside it.",
                lambda ax: plot.unusual(model, most=few, ax=ax),
                1.2 + 0.24 * few,
            ),
        ]
    return pictures


def _step(text: str, code: str) -> str:
    shown = f"<pre><code>{escape(code)}</code></pre>" if code else ""
    return f"<p>{escape(text)}</p>{shown}"


def _details(found: Diagnosis, source: Source) -> str:
    error = "Share of wrong labels" if found.classify else f"Mean absolute error in {source.target}"
    tables = [_table(f"{error}, by the rows of a new {source.group} to learn from.", found)]
    if found.classify:
        tables.append(_table("Log loss of the probabilities, from which the verdict is taken.",
                             found, scores=True))  # fmt: skip
    folded = [
        ("All numbers", "".join(tables)),
        (
            "How this was measured",
            f"<p>Every {escape(source.group)} with enough rows was held out once: all ways learned "
            "from the others, saw its first rows, and were judged by its other rows. Differences "
            "are paired: the same rows, way against way. Intervals are Student's, "
            f"over the {len(found.headstart.errors)} held out.</p>",
        ),
        (
            "What the ways are",
            "<p>All are one model, in which weights of tasks are spread around a start. "
            "<b>Each task alone</b>: the start is 0, nothing is shared but how strongly weights "
            "are pulled there. <b>All tasks pooled</b>: no spread, one linear model. <b>Pooled, "
            "own levels</b>: levels are spread, slopes are not; a random intercept. <b>Headstart, "
            "isotropic</b>: one spread for all columns. <b>Headstart</b>: what fit learns.</p>",
        ),
    ]
    return "".join(f"<details><summary>{name}</summary>{text}</details>" for name, text in folded)


def _table(caption: str, found: Diagnosis, *, scores: bool = False) -> str:
    curves = found.scores if scores else found.curves
    head = "".join(f"<th scope=col>{k}</th>" for k in found.headstart.shots)
    body = []
    for way, curve in curves.items():
        cells = "".join(f"<td>{_g(float(mean))}</td>" for mean in curve.mean)
        gap = last_gain(curves[HEADSTART], curve)
        last = "" if way == HEADSTART else f"{gap.mean:+.3g} ({gap.low:+.3g} to {gap.high:+.3g})"
        body.append(f"<tr><th scope=row>{escape(way)}</th>{cells}<td>{last}</td></tr>")
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>'
        f"<th scope=col>way</th>{head}<th scope=col>headstart minus it, 95 % interval</th></tr>"
        f"</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _footer(found: Diagnosis) -> str:
    used = "" if found.n_used == found.n_tasks else f", of which {found.n_used:,} were looked at"
    return f"{found.n_tasks:,} tasks, {found.n_rows:,} rows{used}. Made by headstart diagnose."


def _signed(percent: float) -> str:
    return f"{percent:+.1f} %".replace("-", "\N{MINUS SIGN}")


def _g(value: float) -> str:
    """A number with few digits, never as a power of ten where it can be helped."""
    text = f"{value:.4g}"
    return text if "e" not in text or not np.isfinite(value) else f"{value:,.0f}"
