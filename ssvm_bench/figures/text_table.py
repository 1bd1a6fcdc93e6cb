"""Small tables of text: the same cells in Markdown and on the page of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Bold(str):
    """A cell that stands out."""

    __slots__ = ()


class Sheet(NamedTuple):
    """A table: its title, the heads of its columns, and its rows.

    All columns but the first ``words`` hold numbers, which line up on the right.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


def lines(sheet: Sheet) -> list[str]:
    """Return the lines of a table in Markdown, without its title."""
    rule = ["---" if k < sheet.words else "---:" for k in range(len(sheet.header))]
    return [line(sheet.header), line(rule), *(line(row) for row in sheet.rows)]


def page(title: str, paragraphs: Iterable[str], sheets: Iterable[Sheet]) -> str:
    """Return a page of Markdown: paragraphs, then each table below its title."""
    parts = [f"# {title}", *paragraphs]
    for sheet in sheets:
        parts += [f"## {sheet.title}", "\n".join(lines(sheet))]
    return "\n\n".join(parts) + "\n"


def line(cells: Iterable[str]) -> str:
    """Return one row in Markdown."""
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(cell: str) -> str:
    text = " ".join(cell.replace("|", "\\|").split())
    return f"**{text}**" if isinstance(cell, Bold) else text
