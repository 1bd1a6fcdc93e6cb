"""HTML from Python values: a string is text and is escaped, unless it is markup already."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

VOID = ("br", "link", "meta")
"""Elements that have no end."""


class Html(str):
    """A string that is markup."""

    __slots__ = ()


Content = str | int | float | None


def markup(content: Content) -> Html:
    """Return the markup that shows some content; nothing for None."""
    if isinstance(content, Html):
        return content
    return Html("" if content is None else html.escape(str(content)))


def join(contents: Iterable[Content], between: str = "") -> Html:
    """Return the markup of several things, one behind the other."""
    return Html(between.join(markup(content) for content in contents))


def element(tag: str, *contents: Content, **attributes: str | None) -> Html:
    """Return an element.

    Parameters
    ----------
    tag : str
        Its name.
    contents : str, number or None
        What is inside.
    attributes : str or None
        ``class_`` is class and ``aria_label`` is aria-label; those that are None are left out.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    end = "" if tag in VOID else f"</{tag}>"
    return Html(f"<{tag}{shown}>{join(contents)}{end}")


def section(level: int, id_: str, title: Content, *contents: Content) -> Html:
    """Return a section with its heading, which also names it to a screen reader."""
    heading = element(f"h{level}", title, id=id_)
    return element("section", heading, *contents, aria_labelledby=id_)


def table(caption: Content, header: Sequence[Content], rows: Iterable[Sequence[Content]]) -> Html:
    """Return a table whose first column names its rows."""
    return framed(caption, header, [body(rows)])


def framed(caption: Content, header: Sequence[Content], bodies: Iterable[Html]) -> Html:
    """Return a table of some bodies, in a box that scrolls sideways."""
    head = element("tr", *(element("th", name, scope="col") for name in header))
    parts = (element("caption", caption), element("thead", head), *bodies)
    return element("div", element("table", *parts), class_="wide", tabindex="0")


def body(rows: Iterable[Sequence[Content]], title: Content = None, columns: int = 0) -> Html:
    """Return rows of a table, below a title across its columns if there is one."""
    across = element("th", title, colspan=str(columns), scope="rowgroup", class_="across")
    lines = [element("tr", across)] if title else []
    for first, *others in rows:
        cells = (element("td", content) for content in others)
        lines.append(element("tr", element("th", first, scope="row"), *cells))
    return element("tbody", *lines)


def facts(pairs: Iterable[tuple[str, Content]]) -> Html:
    """Return a list of names and values."""
    items = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *items)


def details(summary: Content, *contents: Content) -> Html:
    """Return a part of the page that is closed until it is asked for."""
    return element("details", element("summary", summary), *contents)


def bullets(items: Iterable[Content]) -> Html:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items))
