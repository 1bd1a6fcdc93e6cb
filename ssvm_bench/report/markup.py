"""Blocks of documents as HTML.

Unless it is `Html` already, a text is escaped and its Markdown is converted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ssvm_bench.figures.document import Block, Heading, List, Table, Warning

MARKS = {
    r"\*\*(.+?)\*\*": r"<strong>\1</strong>",
    r"\*(\w+)\*": r"<em>\1</em>",
    r"`(.+?)`": r"<code>\1</code>",
}
"""Markdown → HTML, as regular expressions that are applied in this order."""


class Html(str):
    """Markup."""

    __slots__ = ()


def plain(value: object) -> Html:
    """Return a value escaped, without conversion of Markdown."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def marked(text: str) -> Html:
    """Return a text escaped, with its Markdown converted."""
    if isinstance(text, Html):
        return text
    shown = html.escape(text)
    for mark, tag in MARKS.items():
        shown = re.sub(mark, tag, shown)
    return Html(shown)


def code(value: object) -> Html:
    """Return a value in a fixed-width font."""
    return Html(f"<code>{plain(value)}</code>")


def rows(title: str, header: Sequence[str], cells: Iterable[Sequence[object]]) -> Table:
    """Return a table whose cells are shown without conversion of Markdown."""
    return Table(title, header, [[*map(plain, row)] for row in cells])


def block(shown: Block) -> Html:
    """Return the markup of a block of a document."""
    match shown:
        case Heading():
            level = shown.level + 1
            return Html(f"<h{level}>{marked(shown.text)}</h{level}>\n")
        case Warning():
            return Html(
                f'<p class="warning" role="note"><strong>{marked(shown.text)}</strong></p>\n'
            )
        case List():
            tag = "ol" if shown.numbered else "ul"
            items = "".join(f"<li>{marked(text)}</li>" for text in shown.texts)
            return Html(f"<{tag}>{items}</{tag}>\n")
        case Table():
            return _table(shown)
        case _:
            return Html(f"<p>{marked(shown)}</p>\n")


def _table(table: Table) -> Html:
    """Return a table; its rows can be sorted unless some continue the row above."""
    lone = all(row[0] for row in table.rows) and len(table.rows) > 1
    kind = ' class="sortable"' if lone else ""
    header = "".join(f'<th scope="col">{marked(name)}</th>' for name in table.header)
    body = "\n".join(
        f'<tr><th scope="row">{marked(row[0])}</th>'
        + "".join(f"<td>{marked(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return Html(
        f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(table.title)}">'
        f"<table{kind}><caption>{marked(table.title)}</caption>"
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
    )


def details(summary: str, *inside: str) -> Html:
    """Return a block that is closed until it is clicked."""
    return Html(f"<details><summary>{marked(summary)}</summary>\n{''.join(inside)}</details>\n")


def section(id_: str, title: str, *inside: str) -> Html:
    """Return a section of the page; empty if it has no content."""
    if not any(inside):
        return Html("")
    return Html(
        f'<section aria-labelledby="{id_}"><h2 id="{id_}">{marked(title)}</h2>\n'
        f"{''.join(inside)}</section>\n"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Return a list of names and values."""
    named = ((plain(name), plain(value)) for name, value in pairs)
    shown = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in named)
    return Html(f"<dl>{shown}</dl>\n")


def page(title: str, links: Iterable[tuple[str, str]], *inside: str) -> bytes:
    """Return a whole page; ``links`` are pairs of address and text."""
    style, script = (
        Path(__file__).with_name(f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("css", "js")
    )
    nav = "".join(f'<a href="{html.escape(to)}">{plain(name)}</a>\n' for to, name in links)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{plain(title)} – ssvm-bench</title>
<style>{style}</style>
</head>
<body>
<a href="#content" class="skip">To the content</a>
<header><h1>{plain(title)}</h1><button id="theme" type="button">Dark page</button></header>
<nav aria-label="Contents">
{nav}</nav>
<main id="content">
{"".join(inside)}</main>
<script>{script}</script>
</body>
</html>
""".encode()
