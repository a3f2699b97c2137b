"""Pictures as part of a page: SVG whose colours are the page's, with a text for all readers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from headstart.plot import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of pictures by those of the page, which follow light and dark.
VARIABLES = {
    style.INK: "ink",
    style.FAINT: "faint",
    style.PAPER: "paper",
    style.SHARED: "blue",
    style.MISSED: "orange",
    style.PINK: "pink",
    style.SKY: "sky",
    style.GREEN: "green",
    style.ORANGE: "amber",
}
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # letters stay letters, to be read aloud, searched and copied
    "svg.hashsalt": "headstart",
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "text.color": style.INK,
    "axes.labelcolor": style.INK,
    "axes.edgecolor": style.FAINT,
    "xtick.color": style.INK,
    "ytick.color": style.INK,
}


class Picture(NamedTuple):
    """What is drawn: a heading, what is to be seen, and how."""

    heading: str
    caption: str
    draw: Callable[[Axes], object]
    height: float = 3.1  # in inches; pictures are 4.4 wide


def as_figure(picture: Picture, number: int) -> str:
    """A picture with its heading, as HTML."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(4.4, picture.height), layout="constrained")
        picture.draw(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    label = escape(f"{picture.heading}. {picture.caption}", quote=True)
    return (
        f"<figure><figcaption><h3>{escape(picture.heading)}</h3><p>{escape(picture.caption)}</p>"
        f"</figcaption>{_inline(out.getvalue(), f'p{number}-', label)}</figure>"
    )


def _inline(svg: str, prefix: str, label: str) -> str:
    """Matplotlib's SVG as part of a page: ids of its own, the page's colours, any size."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", svg)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    for color, name in VARIABLES.items():
        svg = svg.replace(color, f"var(--{name})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
