"""HTML from Python values: a string is text and is escaped, unless it is markup already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from ssvm_bench.figures.document import Block, Heading, List, Table, Warning

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
    """Return a table whose first column names its rows, in a box that scrolls sideways."""
    head = element("tr", *(element("th", name, scope="col") for name in header))
    lines = []
    for first, *others in rows:
        cells = (element("td", content) for content in others)
        lines.append(element("tr", element("th", first, scope="row"), *cells))
    parts = element("caption", caption), element("thead", head), element("tbody", *lines)
    return element("div", element("table", *parts), class_="wide", tabindex="0")


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


def caution(text: Content) -> Html:
    """Return a paragraph that must not be overlooked."""
    return element("p", element("strong", text), class_="standin", role="note")


# ---- documents --------------------------------------------------------------------------------

MARKS = {
    r"\*\*(.+?)\*\*": r"<strong>\1</strong>",
    r"\*(\w+)\*": r"<em>\1</em>",
    r"`(.+?)`": r"<code>\1</code>",
}
"""What the marks in a document's texts become, one after the other."""


def marked(text: str) -> Html:
    """Return the markup of a text with the marks of Markdown."""
    shown = html.escape(text)
    for mark, tag in MARKS.items():
        shown = re.sub(mark, tag, shown)
    return Html(shown)


def block(shown: Block) -> Html:
    """Return the markup of a part of a document, in a section of the third level."""
    if isinstance(shown, Heading):
        return element(f"h{shown.level + 2}", marked(shown.text))
    if isinstance(shown, Warning):
        return caution(marked(shown.text))
    if isinstance(shown, List):
        items = (element("li", marked(text)) for text in shown.texts)
        return element("ol" if shown.numbered else "ul", *items)
    if isinstance(shown, Table):
        rows = ([marked(cell) for cell in row] for row in shown.rows)
        return table(marked(shown.title), [marked(name) for name in shown.header], rows)
    return element("p", marked(shown))
