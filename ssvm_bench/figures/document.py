"""Documents of paragraphs, lists and tables, and their conversion to Markdown, LaTeX and HTML.

Texts have the marks of Markdown: ``**bold**``, ``*emphasis*`` and ```code```.
"""

from __future__ import annotations

import html
import itertools
import math
import os
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

import pandas as pd
import yaml

from ssvm_bench.figures import style
from ssvm_bench.results import words


class Heading(NamedTuple):
    """The heading of what follows."""

    text: str
    level: int = 2


class Warning(NamedTuple):
    """A paragraph that must not be overlooked."""

    text: str


class List(NamedTuple):
    """A list."""

    texts: Sequence[str]
    numbered: bool = False


class Table(NamedTuple):
    """A table: its title, the heads of its columns, and its rows.

    The first ``words`` columns have text, all others numbers, which are aligned on the right. In
    Markdown, the title is a heading if ``headed``.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    headed: bool = True

    def filled(self) -> Table:
        """Return the table without the columns of numbers in which no row has one."""
        kept = [
            k
            for k in range(len(self.header))
            if k < self.words or any(row[k] != words.NONE for row in self.rows)
        ]
        rows = [[row[k] for k in kept] for row in self.rows]
        return self._replace(header=[self.header[k] for k in kept], rows=rows)


Block: TypeAlias = str | Heading | Warning | List | Table
"""A text is a paragraph."""

Cell: TypeAlias = str | Callable[[Any], str]
"""What a column shows of a row: a format, ``{time:.3g}``, or a function of the row.

A row is a mapping, or an object with attributes. In addition to Python's format specifications, a
format can use the names in `SHOWN`: ``{time:seconds}``.
"""

Cells: TypeAlias = Mapping[str, Cell]
"""The head of each column → its cells."""

SHOWN: Mapping[str, Callable[[Any], str]] = {
    "dataset": style.dataset_name,
    "solver": style.solver_label,
    "percent": words.percent,
    "share": words.share,
    "problem": style.problem_title,
    "points": lambda share: f"{100 * share:.2f}",
    "more points": lambda share: f"{100 * share:+.1f}",
    "seconds": partial(words.reached, text=words.seconds),
    "reached": partial(words.reached, text="{:.3g}".format),
    "times": partial(words.reached, text=words.times),
    "name": lambda name: name.replace("_", " "),
}
"""Name of a format → function that formats a value."""


class _Formatter(string.Formatter):
    """Formats cells; NaN is shown as `words.NONE`."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a value of the row; of the key 0, the row itself."""
        (row,) = args
        if key == 0:
            return row
        return row[key] if isinstance(row, Mapping) else getattr(row, str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value as text."""
        if isinstance(value, float) and math.isnan(value):
            return words.NONE
        return SHOWN[format_spec](value) if format_spec in SHOWN else format(value, format_spec)


def beside(module: str, name: str = "texts") -> dict[str, Any]:
    """Return the content of the file ``NAME.yaml`` beside a module."""
    text = Path(module).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


TEXTS = beside(__file__)
"""The texts above the tables and before the figures of this folder."""


def table_of(
    title: str, cells: Cells, rows: Iterable[Any], words: int = 1, headed: bool = True
) -> Table:
    """Return a table with a line for each row; the parameters are those of `Table`."""
    shown = [[_text(of, row) for of in cells.values()] for row in rows]
    return Table(title, [*cells], shown, words, headed)


class Description(NamedTuple):
    """A document of one or more tables with the same columns.

    Attributes
    ----------
    title, text : str
        Title of the document, and the paragraph above its tables.
    columns : Cells
    heading : str or callable
        The title of each table: a cell of its first row.
    by : sequence of str
        Columns of the numbers; there is a table for each of their values. Empty: one table.
    words, headed
        As for `Table`.
    """

    title: str
    text: str
    columns: Cells
    heading: Cell = style.problem_title
    by: Sequence[str] = style.PROBLEM
    words: int = 1
    headed: bool = True

    def tables(self, table: pd.DataFrame) -> Iterator[Table]:
        """Yield the tables of some numbers."""
        groups = table.groupby([*self.by], sort=False, dropna=False) if self.by else [("", table)]
        for _, group in groups:
            rows = group.to_dict("records")
            title = _text(self.heading, rows[0])
            yield table_of(title, self.columns, rows, self.words, self.headed)

    def blocks(self, _: object, table: pd.DataFrame) -> list[Block]:
        """Return the document of some numbers, as `kind.table_kind` asks for it."""
        return [self.text, *self.tables(table)]


def described(
    module: str, name: str, cells: Cells = MappingProxyType({}), **values: object
) -> Description:
    """Return a document that the file ``tables.yaml`` beside a module describes.

    The file has the fields of a `Description`. ``cells`` are those of the columns that are empty
    there; ``values`` are placeholders in the text.
    """
    said = beside(module, "tables")[name]
    columns = {**said.pop("columns"), **cells}
    return Description(text=said.pop("text", "").format(**values), columns=columns, **said)


def _text(of: Cell, row: Any) -> str:
    return _Formatter().vformat(of, (row,), {}).strip() if isinstance(of, str) else of(row)


def bold(text: str, stands_out: bool = True) -> str:
    """Return a text, in bold if it stands out."""
    return f"**{text}**" if stands_out else text


def markdown(blocks: Iterable[Block]) -> str:
    """Return a document as a page of Markdown."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Warning):
        return f"> {block.text}"
    if isinstance(block, List):
        marks = [f"{k}." if block.numbered else "-" for k in range(1, len(block.texts) + 1)]
        return "\n".join(f"{mark} {text}" for mark, text in zip(marks, block.texts, strict=True))
    if isinstance(block, Table):
        title = f"## {block.title}\n\n" if block.headed else ""
        return title + "\n".join(lines(block))
    return block


def lines(table: Table) -> list[str]:
    """Return the lines of a table in Markdown, without its title."""
    rule = ["---" if k < table.words else "---:" for k in range(len(table.header))]
    return [_line(row) for row in (table.header, rule, *table.rows)]


LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "λ": r"$\lambda$",
    "ν": r"$\nu$",
    "ε": r"$\varepsilon$",
    "–": "--",
    "…": r"\dots{}",
    "×": r"$\times$",
    "÷": r"$\div$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "∞": r"$\infty$",
}
"""Character → what LaTeX needs in place of it."""


def encoded(text: str) -> bytes:
    """Return a text in UTF-8; bytes in names of files that are not UTF-8 are escaped."""
    return text.encode(errors="backslashreplace")


def latex_text(text: str) -> str:
    """Return a text that LaTeX sets as it is written; unprintable characters become blanks."""
    return "".join(LATEX.get(c, c if c.isprintable() else " ") for c in text)


def latex(tables: Iterable[Table]) -> str:
    """Return tables in LaTeX, for the package booktabs.

    Consecutive tables with the same columns are one, in which each title is a line across. The
    title of any other table is a comment above it.
    """
    alike = itertools.groupby(tables, lambda table: (tuple(table.header), table.words))
    return "\n".join(_tabular([*group]) for _, group in alike)


def _tabular(tables: Sequence[Table]) -> str:
    """Return tables with the same columns as one in LaTeX."""
    first, several = tables[0], len(tables) > 1
    count = len(first.header)
    columns = "".join("l" if k < first.words else "r" for k in range(count))
    lines = [] if several else [f"% {' '.join(first.title.split())}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _row(first.header)]
    for table in tables:
        lines.append(r"\midrule")
        if several:
            lines.append(rf"\multicolumn{{{count}}}{{l}}{{{_latex(table.title)}}} \\")
        lines += map(_row, table.rows)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _row(cells: Sequence[str]) -> str:
    row = " & ".join(map(_latex, cells)) + r" \\"
    return f"{{}}{row}" if row[:1] in "[*" else row  # else an option of the command before it


def _latex(text: str) -> str:
    """Return a text with Markdown's marks as LaTeX."""
    plain = re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", latex_text(text))
    return re.sub(r"`(.+?)`", r"\\texttt{\1}", plain)


def _line(cells: Iterable[str]) -> str:
    shown = (" ".join(cell.replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(shown)} |"


# ---- HTML -------------------------------------------------------------------------------------

MARKS = {
    r"\*\*(.+?)\*\*": r"<strong>\1</strong>",
    r"\*(\w+)\*": r"<em>\1</em>",
    r"`(.+?)`": r"<code>\1</code>",
}
"""Markdown → HTML, as regular expressions that are applied in this order."""


class Html(str):
    """Markup. Other texts are escaped, and their Markdown is converted."""

    __slots__ = ()


def escaped(value: object) -> Html:
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
    return Html(f"<code>{escaped(value)}</code>")


def address(path: str | PurePath) -> Html:
    """Return the relative address of a file, to be an attribute's value.

    Whatever its name, it is neither a part of another file (``#``), nor a query (``?``), nor
    another scheme (``javascript:``), and has no quotation marks.
    """
    return Html(quote(os.fsencode(path)))


def plain(title: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Return a table of rows that map heads to cells, shown without conversion of Markdown."""
    return Table(title, [*rows[0]], [[*map(escaped, row.values())] for row in rows])


def block(shown: Block) -> Html:
    """Return the markup of a block."""
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
