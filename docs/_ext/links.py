"""Whether what pages link to is there: ``python docs/_ext/links.py docs/_build/html``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to or loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses and ids."""
        given = dict(attrs)
        if target := given.get("href"):
            (self.targets if tag == "a" else self.loads).append(target)
        if target := given.get("src"):
            self.loads.append(target)
        if place := given.get("id"):
            self.places.add(place)


def broken(folder: Path) -> Iterator[str]:
    """A line for each link to a page, place or file that is not there, or a load from elsewhere."""
    ours = (path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts)
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in ours}
    for path, page in pages.items():
        for target in page.targets + page.loads:
            address = urlsplit(target)
            if address.scheme or address.netloc:
                if target in page.loads and address.scheme != "data":
                    yield f"{path}: loads {target}, which needs a network"
                continue
            there = path.parent / unquote(address.path) if address.path else path
            there = there.resolve()
            if not there.is_file():
                yield f"{path}: no file {target}"
            elif there in pages and unquote(address.fragment) not in pages[there].places:
                yield f"{path}: no place {target}"


if __name__ == "__main__":
    found = list(broken(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "all links lead somewhere")
    sys.exit(1 if found else 0)
