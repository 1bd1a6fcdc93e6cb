"""What is looked at in the finished site: links, anchors, sizes.

``make docs`` fails if a page links to a page, a picture or a place on a page that is not there, or
is too large. It reads the HTML as it will be served, the pages of ``ssvm-bench report`` too.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST = 1_000_000
"""No page has more bytes."""

LINKS = {("a", "href"), ("link", "href"), ("img", "src"), ("script", "src"), ("source", "src")}
NOT_FOUND = "404.html"
"""A server shows it at any address, so that its links are those of the site's root."""


class _Page(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.links += [to for name, to in attrs if to is not None and (tag, name) in LINKS]
        self.places |= {to for name, to in attrs if to and name in ("id", "name")}


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each link of a built site that leads nowhere, and for each large page."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        if (size := path.stat().st_size) > LARGEST:
            yield f"{path.relative_to(site)} has {size:,} bytes, more than {LARGEST:,}"
        pages[path.relative_to(site).as_posix()] = _Page(path.read_text(encoding="utf-8"))
    for name, page in pages.items():
        for link in dict.fromkeys(page.links):
            to = urlsplit(link)
            if to.scheme or to.netloc or name == NOT_FOUND:
                continue
            path, place = unquote(to.path), unquote(to.fragment)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            target = target if path else name
            if not (site / target).is_file():
                yield f"{name} links to {link}, where no file is"
            elif place and target in pages and place not in pages[target].places:
                yield f"{name} links to {link}, where no such place is"
